"""Directives that write the reference from the code: {settings}, {commands}, {make-targets}, {benchmarks}, {words}."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import types
import typing
from pathlib import Path
from typing import Any, Literal

from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
SHORT = {"StrictStr": "str", "StrictInt": "int", "StrictFloat": "float", "Path": "path", "NoneType": "null"}


def settings() -> str:
    """Return a section for each model of an experiment file: what it is, and a table of its keys."""
    from ldsvm.experiment.config.schema import Config
    from ldsvm.report.studies.config import StudyConfig

    parts: list[str] = []
    for title, model in models({"The whole file": Config}).items():
        parts.append(section(title, model))
    parts.append(section("A study", StudyConfig))
    return "\n".join(parts)


def models(found: dict[str, Any]) -> dict[str, Any]:
    """Return the models that these hold, by the key where they stand, those of a section right after it."""
    every: dict[str, Any] = {}
    for title, model in found.items():
        every[title] = model
        below = {}
        for name, field in model.model_fields.items():
            for inner in inside(field.annotation):
                if inner not in every.values() and inner not in below.values():
                    start = "" if model.__name__ == "Config" else f"{title}."
                    title_of = f"{start}{name}"
                    below[f"{title_of}, {kinds(inner)}" if title_of in below else title_of] = inner
        every |= {key: value for key, value in models(below).items() if value not in every.values()}
    return every


def kinds(model: Any) -> str:
    """Return the kind that tells a model from the first one of its key, in words."""
    return f"kind {', '.join(typing.get_args(model.model_fields['kind'].annotation))}"


def inside(annotation: Any) -> list[Any]:
    """Return the pydantic models that a type holds."""
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in typing.get_args(annotation) for model in inside(part)]


def section(title: str, model: Any) -> str:
    text = paragraphs(model.__doc__ or "", {*model.model_fields})
    rows = [
        f"| `{name}` | {cell(spelled(field.annotation))}{bounds(field)} | {default(field)} |"
        for name, field in model.model_fields.items()
    ]
    head = "| key | value | default |\n| --- | --- | --- |\n"
    name = title if " " in title else f"`{title}`"
    return f"## {name}\n\n{text}\n\n{head}" + "\n".join(rows) + "\n"


def paragraphs(text: str, keys: set[str]) -> str:
    """Return a docstring as Markdown, where words on a key, as in `key: words.`, begin a line of a list."""

    def item(found: re.Match[str]) -> str:
        names = found[1].split(", ")
        return f"\n- {', '.join(f'`{name}`' for name in names)}: " if {*names} <= keys else found[0]

    lines = "\n".join(line.strip() for line in text.strip().splitlines())
    return re.sub(r"(?<=[.,;:)\s])\b((?:\w+, )*\w+): ", item, lines)


def spelled(annotation: Any) -> str:
    """Return a type in words: what a file may hold."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is Any or annotation is None or annotation is type(None):
        return "null" if annotation is not Any else "anything"
    if origin is typing.Annotated:
        return spelled(inner[0]) + "".join(limits(part) for part in inner[1:])
    if origin is Literal:
        return ", ".join(f"`{json.dumps(value, ensure_ascii=False)}`" for value in inner)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(spelled(part) for part in inner))
    if origin in (list, tuple):
        return f"a list of {spelled(inner[0])}".replace("a section", "sections")
    if origin is dict:
        return f"a mapping to {spelled(inner[1])}"
    name = getattr(annotation, "__name__", str(annotation))
    if inside(annotation):
        return "a section" if name not in ("Range", "Step") else name.lower()
    return {"str": "text", "int": "whole number", "float": "number", "bool": "true or false"}.get(
        SHORT.get(name, name), SHORT.get(name, name).lower()
    )


def limits(part: Any) -> str:
    signs = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
    parts = [part, *getattr(part, "metadata", [])]
    return "".join(
        f" {sign} {getattr(one, key)}"
        for one in parts
        for key, sign in signs.items()
        if getattr(one, key, None) is not None
    )


def bounds(field: Any) -> str:
    return cell("".join(limits(part) for part in field.metadata))


def default(field: Any) -> str:
    from pydantic import BaseModel

    if field.is_required():
        return "required, here or in `conf/base.yaml`"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "the section's defaults"
    return f"`{json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False, default=str)}`"


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def helps() -> dict[str, list[str]]:
    """Return the arguments that print the help of each command of `python -m flows`."""
    return {"python -m flows": ["--help"]} | {
        f"python -m flows {name}": [name, "--help"] for name in ("new", "check", "data")
    }


def commands() -> str:
    """Return the help of every command, as it is printed."""
    from flows.__main__ import main

    parts = [f"## `{name}`\n\n```text\n{said(main, arguments)}\n```\n" for name, arguments in helps().items()]
    from benchmarks.__main__ import main as benchmark

    parts.append(f"## `python -m benchmarks`\n\n```text\n{said(lambda _: benchmark(), ['--help'])}\n```\n")
    return "\n".join(parts)


def said(main: Any, arguments: list[str]) -> str:
    """Return what a command prints, without the width of this terminal."""
    before, os.environ["COLUMNS"] = os.environ.get("COLUMNS"), "110"
    given, sys.argv = sys.argv, ["benchmarks", *arguments]
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
            main(arguments)
    finally:
        sys.argv = given
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before
    return out.getvalue().rstrip()


def make_targets() -> str:
    """Return what `make` alone prints."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8").split("help:\n", 1)[1].split("\n\n", 1)[0]
    lines = re.findall(r"@echo '(.*)'$", text, re.MULTILINE)
    return "```text\n" + "\n".join(lines).replace("'\\''", "'").replace("$(VENV)", ".venv") + "\n```\n"


def benchmarks() -> str:
    """Return what each benchmark measures, and when its record was made."""
    from benchmarks.names import NAMES

    rows = []
    for name, what in NAMES.items():
        place = ROOT / "docs" / "measured" / f"{name}.json"
        record = json.loads(place.read_text(encoding="utf-8")) if place.is_file() else None
        machine = "" if record is None else f"{record['machine']['processor']}, {record['machine']['cores']} cores"
        commit, day = ("", "no record yet") if record is None else (record["commit"][:7], record["day"])
        rows.append(f"| `python -m benchmarks {name}` | {cell(what)} | {day} | {commit} | {machine} |")
    return "| command | what it measures | day | commit | machine |\n| --- | --- | --- | --- | --- |\n" + "\n".join(
        rows
    )


def glossary() -> str:
    """Return the table of words of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return text.split("## Glossary\n", 1)[1].split("\n## ", 1)[0].strip()


MADE = {
    "settings": settings, "commands": commands, "make-targets": make_targets, "benchmarks": benchmarks,
    "words": glossary,
}  # fmt: skip


class Generated(SphinxDirective):
    """Puts what a function of MADE returns in the place of the directive."""

    def run(self) -> list[Any]:
        return self.parse_text_to_nodes(MADE[self.name](), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    for name in MADE:
        app.add_directive(name, Generated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
