"""The methods an experiment compares: ours and the usual ones, all through one registry."""

from __future__ import annotations

from ldsvm.methods.by_path import NotAClassifier
from ldsvm.methods.packages import MissingPackage
from ldsvm.methods.registry import METHODS, Method, check_memory, lookup, shared

__all__ = ["METHODS", "Method", "MissingPackage", "NotAClassifier", "check_memory", "lookup", "shared"]
