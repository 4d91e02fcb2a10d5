"""Data sets by name, checked and cached, and the splits of their rows."""

from __future__ import annotations

from ldsvm.datasets.dataset import DataError, Dataset
from ldsvm.datasets.labels import relabel
from ldsvm.datasets.loading import load
from ldsvm.datasets.splits import Split, balanced, mnist10, stratified

__all__ = ["DataError", "Dataset", "Split", "balanced", "load", "mnist10", "relabel", "stratified"]
