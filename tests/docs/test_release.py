"""What a release is made of: one sdist, one wheel of it, and files that say the same of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from ldsvm import __version__
from tests.docs.test_pages import ROOT, blocks


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def take_kernels(site: Path) -> None:
    """Give a copy of the package what this checkout has compiled, which takes a minute.

    Numba knows a kernel by the content of its file, so that it takes none of another file's.
    """
    for kernel in (ROOT / "ldsvm").rglob("__pycache__/*.nb[ic]"):
        place = site / kernel.relative_to(ROOT)
        place.parent.mkdir(exist_ok=True)
        shutil.copy(kernel, place)


@pytest.mark.slow
def test_the_wheel_of_the_sdist_alone_runs_the_ten_lines(tmp_path: Path) -> None:
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=ROOT)
    (sdist,) = tmp_path.glob("*.tar.gz")
    assert sdist.name == f"ldsvm-{__version__}.tar.gz"
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / f"ldsvm-{__version__}"
    assert {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff"} <= {path.name for path in source.iterdir()}
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=source)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with ZipFile(wheel) as archive:
        metadata = Parser().parsestr(archive.read(f"ldsvm-{__version__}.dist-info/METADATA").decode("utf-8"))
        archive.extractall(site)
    assert metadata["Version"] == __version__ and metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().strip() == (ROOT / "README.md").read_text("utf-8").strip()

    take_kernels(site)

    (lines, _), *_ = blocks(ROOT / "README.md", "python")
    said = run(
        sys.executable, "-c", f"{lines}\nimport ldsvm\nprint(ldsvm.__file__)", cwd=tmp_path, PYTHONPATH=str(site)
    )
    score, home = said.splitlines()
    assert f"{float(score):.2f}" == "0.99" and Path(home).is_relative_to(site)


def test_workflows_test_every_version_that_the_package_names() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', pyproject)
    folder = ROOT / ".github" / "workflows"
    jobs = {path.stem: yaml.safe_load(path.read_text("utf-8"))["jobs"] for path in folder.glob("*.yml")}
    assert jobs["tests"]["tests"]["strategy"]["matrix"]["python"] == named
    runs = {
        name: [step["run"] for step in job["steps"] if "run" in step]
        for one in jobs.values()
        for name, job in one.items()
    }
    *build, alone = runs.pop("package")
    assert {line for lines in runs.values() for line in lines} == {"make test PYTHON=python", "make docs PYTHON=python"}
    assert "hatchling build" in build[0] and "twine check --strict" in build[0]
    command = next(line for line in alone.splitlines() if line.startswith("sed ")).split(" > ")[0]
    (lines, _), *_ = blocks(ROOT / "README.md", "python")
    assert run("sh", "-c", command, cwd=ROOT).strip() == lines.strip()
    badge = " ".join(named).replace(" ", "%20%7C%20")
    assert badge in (ROOT / "README.md").read_text("utf-8")


def test_the_changelog_is_by_release() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    releases = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert releases[0] == "[Unreleased]" and all(
        re.fullmatch(r"\[[\d.]+\] - \d{4}-\d\d-\d\d", one) for one in releases[1:]
    )
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert {*re.findall(r"^### (.*)$", text, re.MULTILINE)} <= kinds
