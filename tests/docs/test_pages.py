"""What README and the site tell people to run does run, and what they tell of files, options and keys is there."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.__main__ import NAMES, _parser
from ldsvm.experiment.config.load import load_config

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OTHERS = {"measured", "auto_gallery", "_build"}
PAGES = [ROOT / "README.md", *sorted(p for p in DOCS.rglob("*.md") if not OTHERS & {*p.relative_to(DOCS).parts})]
FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SETUP = re.compile(r"<!-- setup: [^\n]*\n(.*?)-->", re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run here: [^\n]+ -->\n$")  # a reason is given; names are checked all the same
LANGUAGES = {"python", "sh", "yaml", "text", "bibtex", "nginx"}


def blocks(page: Path, language: str) -> list[tuple[str, str]]:
    """The blocks of one language, each with the text before it."""
    text = page.read_text(encoding="utf-8")
    return [(m[3], text[: m.start()]) for m in FENCE.finditer(text) if m[2].strip() == language]


def having(language: str) -> Any:
    names = [page for page in PAGES if blocks(page, language)]
    return pytest.mark.parametrize("page", names, ids=lambda page: str(page.relative_to(ROOT)))


def commands(page: Path) -> list[list[str]]:
    """The commands of the shell blocks of a page, without variables of the environment in front of them."""
    lines = "\n".join(block for block, _ in blocks(page, "sh")).replace("\\\n", " ").splitlines()
    split = [shlex.split(line, comments=True) for line in lines]
    return [words[next(i for i, w in enumerate(words) if not re.match(r"[A-Z_]+=", w)) :] for words in split if words]


def test_pages_have_blocks_of_languages_that_are_checked() -> None:
    found = {m[2].strip() for page in PAGES for m in FENCE.finditer(page.read_text("utf-8"))}
    assert {name for name in found if not name.startswith("{")} == LANGUAGES


@pytest.mark.slow
@having("python")
def test_python_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # the blocks of a page are one program, in a folder of their own; "# 0.99" after a print is what it prints, rounded
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    for setup in SETUP.findall(page.read_text("utf-8")):
        exec(setup, names)
    for block, before in blocks(page, "python"):
        if not NOT_RUN.search(before):
            exec(compile(block, str(page), "exec"), names)
            comments = re.findall(r"^print\(.*?\)(?:  # (.*))?$", block, re.MULTILINE)
            printed = capsys.readouterr().out.splitlines()
            for comment, line in zip(comments, printed, strict=True) if all(comments) else []:
                assert [rounded(word) for word in line.split()] == comment.split()


def rounded(word: str) -> str:
    """A number that is longer than one writes, with two digits behind the point."""
    return f"{float(word):.2f}" if len(word) > 6 else word


@having("python")
def test_python_names_what_is_there(page: Path) -> None:
    for block, _ in blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ldsvm":
                module = import_module(str(node.module))
                assert all(hasattr(module, alias.name) for alias in node.names), ast.unparse(node)


@having("sh")
def test_shell_commands_exist(page: Path) -> None:
    for words in commands(page):
        check(words)


def check(words: list[str]) -> None:
    """Fail where a command, a file or an option of it is not there."""
    program, *rest = words
    if program.startswith(".venv/bin/"):
        program = program.removeprefix(".venv/bin/")
    if program == "make":
        targets = re.findall(r"^([a-z ]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        known = {name for line in targets for name in line.split()}
        assert {word for word in rest if "=" not in word} <= known, words
    elif program == "python":
        assert rest[0] == "-m" and rest[1] in ("flows", "benchmarks"), words
        if rest[1] == "flows":
            check_flow(rest[2:])
    else:
        assert program in {"pip", "mv", "curl", "ssh", "docker", "mkdir", "printf", "chmod", "mlflow", "ray", "prefect"}


def check_flow(words: list[str]) -> None:
    if words[0] in ("new", "check", "serve", "data", "schema"):
        if words[0] in ("new", "serve"):
            import_module(f"flows.{words[0]}")._parser().parse_args(words[1:])
        return
    if words == ["--help"]:
        return
    asked = _parser().parse_args(words)
    assert asked.name in NAMES
    if asked.config != "conf/my.yaml":  # which `new` writes
        from flows._cli import load_any

        overrides = [text.replace("incoming/", "conf/").replace("my.csv", "conf") for text in asked.overrides]
        load_any(asked.config, overrides)


@having("yaml")
def test_yaml_is_of_the_schema(page: Path) -> None:
    # a fragment stands in for these entries of a file that is whole
    for block, _ in blocks(page, "yaml"):
        part = yaml.safe_load(block)
        base = yaml.safe_load((ROOT / "conf" / "own_table.yaml").read_text("utf-8"))
        if "production" in part:
            part["production"]["model"] = "digits"
            base["methods"] = {"ours": {"estimator": "ldsvm"}}
        overrides = [f"{key}={yaml.safe_dump(value, default_flow_style=True).strip()}" for key, value in part.items()]
        load_config("conf/own_table.yaml", overrides, root=ROOT)


@pytest.mark.parametrize(
    "words",
    [
        "make nothing", "python -m flows nothing conf/digits.yaml", "python -m flows pipeline conf/nothing.yaml",
        "python -m flows pipeline conf/digits.yaml nothing=1", "python -m flows new my.csv --nothing 1", "nothing",
    ],
)  # fmt: skip
def test_a_command_that_is_not_there_is_found_out(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    from ldsvm.experiment.config.load import ConfigError

    with pytest.raises((AssertionError, SystemExit, ConfigError)):
        check(words.split())


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)", text):
            if not target.startswith(("http", "auto_gallery")):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_version_is_in_one_place() -> None:
    import tomllib

    from ldsvm import __version__

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["dynamic"] == ["version"] and "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "ldsvm/__init__.py"
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == __version__
    assert f"version = {{{__version__}}}" in (ROOT / "README.md").read_text("utf-8")


def test_readme_is_short() -> None:
    text = FENCE.sub("", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(text.split()) < 1000


@pytest.mark.slow
def test_the_reference_says_what_a_key_means_and_what_it_is_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS / "_ext")
    generated = import_module("generated")
    said = "What it is.\n\n    a, b: of both; if a: no key\n    here. c: None for none; d: of none.\n    "
    assert generated.said_of(said, {"a", "b", "c"}) == (
        "What it is.",
        {"a": "of both; if a: no key here.", "b": "of both; if a: no key here.", "c": "null for none; d: of none."},
    )
    (row,) = [line for line in generated.settings().splitlines() if line.startswith("| `fit_s` |")]
    assert row.startswith("| `fit_s` | number > 0, ≤ 10,000,000 | `600`, in `conf/base.yaml` | seconds ")


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    # without the gallery, whose scripts `make docs` runs
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(tmp_path / "trees")]
    environment = os.environ | {"LDSVM_DOCS": "text", "MPLBACKEND": "agg"}
    done = subprocess.run(
        [*command, str(DOCS), str(tmp_path / "html")], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    whole = {page: page.read_text(encoding="utf-8") for page in (tmp_path / "html").rglob("*.html")}
    fetched = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(?:https?:)?//")
    assert len(whole) > 30 and [page.name for page, text in whole.items() if fetched.search(text)] == []
    settings = whole[tmp_path / "html" / "reference" / "settings.html"]
    from ldsvm.experiment.config.schema import Config

    assert all(
        f">{name}<" in settings for name in [*Config.model_fields, "false_discovery_rate", "folds", "log_uniform_int"]
    )
    helped = whole[tmp_path / "html" / "reference" / "commands.html"]
    assert all(name in helped for name in [*NAMES, "--label", "--json-dir"])
