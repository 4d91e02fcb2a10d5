"""The image builds from what is copied into it: Dockerfile, .dockerignore and pyproject.toml agree; no engine."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatchcase
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LINES = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text("utf-8")).splitlines()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
RULES = [
    line.strip()
    for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    if line.strip() and not line.startswith("#")
]


def ignored(path: str) -> bool:
    """The last rule that fits the path or a folder above it decides, as in an engine."""
    parts = PurePosixPath(path).parts
    above = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
    verdict = False
    for rule in RULES:
        pattern = rule.removeprefix("!").strip("/")
        if any(fits(place, pattern) for place in above):
            verdict = not rule.startswith("!")
    return verdict


def fits(path: str, pattern: str) -> bool:
    """`*` stays within one folder; a leading `**/` is any number of them."""
    if pattern.startswith("**/"):
        return fnmatchcase(path.rsplit("/", 1)[-1], pattern[3:])
    here, there = path.split("/"), pattern.split("/")
    return len(here) == len(there) and all(map(fnmatchcase, here, there))


def copied(lines: list[str]) -> list[tuple[str, str]]:
    """Source and target of every COPY from the checkout, both as in the Dockerfile."""
    pairs = []
    for line in lines:
        words = line.split()
        if words[:1] == ["COPY"] and not any(word.startswith("--from=") for word in words):
            *sources, target = [word for word in words[1:] if not word.startswith("--")]
            pairs += [(source, target) for source in sources]
    return pairs


def before_the_wheel() -> list[str]:
    """The Dockerfile up to the line that builds the wheel."""
    (at,) = (i for i, line in enumerate(LINES) if line.startswith("RUN") and "hatchling build" in line)
    return LINES[:at]


def test_the_rules_of_dockerignore():
    assert ignored(".git/config") and ignored("data/prepared/digits/x.parquet") and ignored("runs/mlflow.db")
    assert ignored("ldsvm/__pycache__/a.pyc") and not ignored("ldsvm/mac/loop.py")
    assert not ignored("data/catalog.yaml")


def test_every_source_of_a_copy_is_in_the_checkout_and_not_ignored():
    sources = [source for source, _ in copied(LINES)]
    assert "." in sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert source == "." or not ignored(source), source


@pytest.mark.slow
def test_the_wheel_is_built_of_what_was_copied_before(tmp_path):
    """The build itself, in a folder with what the Dockerfile has copied until then and nothing else."""
    context = tmp_path / "app"
    context.mkdir()
    for source, target in copied(before_the_wheel()):
        place = context / target / source if target.endswith("/") else context / target
        place.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(
                ROOT / source,
                place,
                ignore=lambda folder, names: [
                    name for name in names if ignored((Path(folder) / name).relative_to(ROOT).as_posix())
                ],
            )
        else:
            shutil.copyfile(ROOT / source, place)
    build = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = [*build["packages"], *build["force-include"], PROJECT["project"]["readme"]]
    for path in ["pyproject.toml", *needed, *PROJECT["project"]["license-files"]]:
        assert (context / path).exists(), f"{path} is not copied before the wheel is built"
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")],
        cwd=context,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    modules = {p.relative_to(ROOT).as_posix() for p in (ROOT / "ldsvm").rglob("*.py")}
    assert modules | set(build["force-include"].values()) <= names


def closure(requirements: list[str]) -> set[str]:
    """Names of packages and of all that they depend on here, as the installed ones say."""
    found, open_ = set(), [Requirement(text) for text in requirements]
    open_ = [one for one in open_ if one.marker is None or one.marker.evaluate()]
    while open_:
        one = open_.pop()
        key = canonicalize_name(one.name), frozenset(one.extras)
        if key not in found:
            found.add(key)
            more = [Requirement(text) for text in distribution(one.name).requires or []]
            extras = [{"extra": extra} for extra in ("", *one.extras)]
            open_ += [r for r in more if r.marker is None or any(map(r.marker.evaluate, extras))]
    return {name for name, _ in found}


@pytest.mark.slow
def test_the_image_is_rid_of_what_only_development_needs():
    """Packages of the extras `dev` and `docs`, and what only they depend on; what anything else depends on stays."""
    (line,) = (line for line in LINES if "pip uninstall" in line)
    words = line.split()
    gone = set(words[words.index("/venv/bin/python") + 1 :])
    extras = dict(PROJECT["project"]["optional-dependencies"])
    dev = closure([*extras.pop("dev"), *extras.pop("docs")])
    stays = closure([*PROJECT["project"]["dependencies"], *itertools.chain(*extras.values())])
    assert gone == (dev - stays) | {"uv"}
