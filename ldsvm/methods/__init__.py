"""The methods an experiment compares: ours and the usual ones, all through one registry."""

from __future__ import annotations

from ldsvm.methods.registry import METHODS, Method, check_memory, lookup, shared

__all__ = ["METHODS", "Method", "check_memory", "lookup", "shared"]
