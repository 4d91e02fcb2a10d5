"""A user's own files: tables, matrices, images and texts, read, checked and cached."""

from __future__ import annotations

from ldsvm.datasets.files.inventory import Part, inventory, listing
from ldsvm.datasets.files.loading import load
from ldsvm.datasets.files.reading import read
from ldsvm.datasets.files.spec import FileSpec

__all__ = ["FileSpec", "Part", "inventory", "listing", "load", "read"]
