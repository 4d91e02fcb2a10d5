"""This package as a wheel, which no index has: a logged model carries one, so that it can be installed elsewhere."""

from __future__ import annotations

import base64
import hashlib
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

PACKAGE = Path(__file__).resolve().parents[1]
KIND = "Wheel-Version: 1.0\nGenerator: ldsvm\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def wheel(folder: Path) -> Path:
    """Write the sources that run here, as they are on the disk, to a wheel in a folder and return it.

    The same sources make the same bytes. Data and styles of pages stay out: no model needs them.
    """
    name = f"{PACKAGE.name}-{distribution(PACKAGE.name).version}"
    about = f"{name}.dist-info"
    files = {f"{PACKAGE.name}/{path.relative_to(PACKAGE).as_posix()}": path.read_bytes() for path in _sources()}
    files[f"{about}/METADATA"] = (distribution(PACKAGE.name).read_text("METADATA") or "").encode()
    files[f"{about}/WHEEL"] = KIND.encode()
    rows = [f"{file},sha256={_digest(data)},{len(data)}\n" for file, data in files.items()]
    files[f"{about}/RECORD"] = "".join([*rows, f"{about}/RECORD,,\n"]).encode()
    made = folder / f"{name}-py3-none-any.whl"
    with ZipFile(made, "w") as archive:
        for file, data in files.items():
            archive.writestr(ZipInfo(file), data, ZIP_DEFLATED)  # without a time
    return made


def _sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
