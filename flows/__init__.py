"""Prefect flows over plain functions of `ldsvm`; the only package that knows Prefect."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCTION = ("retrain", "score", "promote", "rollback")  # flows of a model that is kept
