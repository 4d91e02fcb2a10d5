"""The arrays every method of an experiment shares: loaded, split and scaled once, kept as files, named by content."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ldsvm.datasets import DataError, Dataset, Split, load, mnist10, relabel, stratified
from ldsvm.experiment.config import Config, SplitConfig

PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Prepared:
    """A folder of arrays and the facts about them.

    folder: holds X_{part}.npy (n, D) float32 and y_{part}.npy (n,) for the parts train, validation and test.
    digest: names the content (data, preprocessing, split). split: digest of the row numbers. sizes: rows per part.
    """

    folder: Path
    digest: str
    split: str
    sizes: dict[str, int]
    n_features: int
    preprocess: str
    dataset: dict[str, str]

    def arrays(self, part: str, labels: str) -> tuple[np.ndarray, np.ndarray]:
        """Return X (n, D), mapped from disk and read-only, and y (n,) in the given labelling."""
        X = np.load(self.folder / f"X_{part}.npy", mmap_mode="r")
        return X, relabel(np.load(self.folder / f"y_{part}.npy"), labels)


def prepare(config: Config) -> Prepared:
    """Return the prepared data of an experiment, from the cache when the same content is there and intact.

    The folder appears under `paths.cache` complete or not at all. Raises DataError with one sentence.
    """
    data = load(config.dataset.name, cache_dir=config.paths.cache)
    split = _split(config.split, data, config.seed)
    facts = f"{data.sha256} {config.dataset.preprocess} {split.digest()} {config.seed}"
    digest = hashlib.sha256(facts.encode()).hexdigest()[:12]
    folder = config.paths.cache / f"{data.name}-{digest}"
    if folder.exists() and not _intact(folder):
        warnings.warn(f"{folder} is rebuilt: its content is not what was written.", UserWarning, stacklevel=2)
        shutil.rmtree(folder)
    if not folder.exists():
        _write(folder, _arrays(config, data, split))
    about = {key: getattr(data, key) for key in ("name", "source", "licence", "citation", "sha256")}
    sizes = {part: len(getattr(split, part)) for part in PARTS}
    n_features = config.dataset.n_pca or data.X.shape[1]
    return Prepared(folder, digest, split.digest(), sizes, n_features, config.dataset.preprocess, about)


def save(prepared: Prepared, file: Path) -> None:
    """Write the facts, not the arrays, as JSON: what one stage hands to the next."""
    file.write_text(json.dumps({**asdict(prepared), "folder": str(prepared.folder)}, indent=1), encoding="utf-8")


def read(file: Path) -> Prepared:
    """Read what `save` wrote."""
    facts = json.loads(file.read_text(encoding="utf-8"))
    return Prepared(**{**facts, "folder": Path(facts["folder"])})


def _split(config: SplitConfig, data: Dataset, seed: int) -> Split:
    sizes: dict[str, Any] = {"train": config.train, "validation": config.validation}  # counts or fractions
    if config.test is not None:
        return stratified(data.y, **sizes, test=config.test, seed=seed)
    if data.y_test is None:
        raise DataError(f'split.kind "mnist10" needs an official test set, and {data.name} has none; use "stratified".')
    return mnist10(data.y, data.y_test, **sizes, seed=seed)


def _arrays(config: Config, data: Dataset, split: Split) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for part in PARTS:
        official = part == "test" and split.official_test
        X, y = (data.X_test, data.y_test) if official else (data.X, data.y)
        assert X is not None and y is not None
        rows = getattr(split, part)
        found[f"X_{part}"], found[f"y_{part}"] = X[rows], y[rows]
    if config.dataset.n_pca:
        _project(found, config.dataset.n_pca, config.seed)
    return found


def _project(arrays: dict[str, np.ndarray], n: int, seed: int) -> None:
    """Replace inputs by their first n principal components; validation and test have no say in the axes."""
    from sklearn.decomposition import PCA

    limit = min(arrays["X_train"].shape)
    if n > limit:
        raise DataError(f'dataset.preprocess is "pca {n}"; allowed: at most pca {limit} for this training set.')
    pca = PCA(n, random_state=seed).fit(arrays["X_train"])
    for part in PARTS:
        arrays[f"X_{part}"] = pca.transform(arrays[f"X_{part}"]).astype(np.float32)


def _write(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    temporary = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}")
    try:
        temporary.mkdir(parents=True)
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", np.ascontiguousarray(array))
        (temporary / "sha256.json").write_text(json.dumps(_digests(temporary), indent=1), encoding="utf-8")
        os.rename(temporary, folder)
    except OSError as error:
        # Another run may have finished the same folder first; its content is the same by name.
        if not (folder.exists() and _intact(folder)):
            raise DataError(f"{folder}: the prepared data cannot be written ({error}).") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _digests(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.glob("*.npy"))}


def _intact(folder: Path) -> bool:
    try:
        promised = json.loads((folder / "sha256.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(promised == _digests(folder))
