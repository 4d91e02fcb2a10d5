"""Data sets by name, checked and cached, and the splits of their rows."""

from __future__ import annotations

from ldsvm.datasets.dataset import DataError, Dataset, Rows
from ldsvm.datasets.labels import relabel
from ldsvm.datasets.loading import load
from ldsvm.datasets.split import Split
from ldsvm.datasets.splits import balanced, grouped, ordered, shuffled, stratified

__all__ = [
    "DataError",
    "Dataset",
    "Rows",
    "Split",
    "balanced",
    "grouped",
    "load",
    "ordered",
    "relabel",
    "shuffled",
    "stratified",
]
