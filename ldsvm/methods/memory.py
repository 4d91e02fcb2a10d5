"""Check, before anything is allocated, whether a method fits into the memory that is left.

The estimates below are bytes at the peak beside the data themselves, from (params, n, m, d): parameters that differ
from the defaults, training rows, rows predicted at once, inputs. They were measured at 2,000 to 3,000 rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ldsvm.memory import GIB, MIB
from ldsvm.methods.svm import CACHE_MB

Params = Mapping[str, Any]
Needs = Callable[[Params, int, int, int], int]

MOST_FEATURES = 4096  # that our classifier tries when it is to choose
N_FEATURES = 300  # of a kernel's approximation, where no number is given
PAIRS = "the kernel matrix"
WHAT = {
    "kpca_nn": PAIRS,
    "klda_nn": PAIRS,
    "nca_nn": "matrices of all pairs",
    "xrfm": "matrices of all pairs",
}  # of n rows; else its arrays


class NotRun(ValueError):
    """A fit that is not even tried, for want of memory or inputs that it can take; the message is one sentence."""


def refuse(name: str, needed: int, available: int, n: int) -> None:
    """Raise NotRun when a method of n training rows needs more bytes than are available."""
    if needed <= available:
        return
    instead = " or nystroem_svm" if name in WHAT else ""
    raise NotRun(
        f"not run: needs {_size(needed)} for {WHAT.get(name, 'its arrays')} of {n:,} rows, "
        f"but {_size(available)} are available; use fewer rows{instead}"
    )


def _size(n_bytes: int) -> str:
    return f"{n_bytes / GIB:.1f} GiB" if n_bytes >= GIB else f"{n_bytes / MIB:.1f} MiB"


def nothing(params: Params, n: int, m: int, d: int) -> int:
    """Return 0: no matrix worth mentioning, such as a few copies of data that may be sparse."""
    return 0


def copies(number: int) -> Needs:
    """Return the estimate for so many float64 copies of training inputs, for methods that take dense ones only."""
    return lambda params, n, m, d: number * 8 * n * d


def kernel_pca(params: Params, n: int, m: int, d: int) -> int:
    """Return the kernel matrix, centred in place, or two of a prediction, which scikit-learn makes in one piece.

    For inputs in float64; those in float32 need down to half of it.
    """
    return max(8 * n * n, 12 * m * n)  # between the 8 and 16 bytes a pair that were measured for the prediction


def kernel_discriminant(params: Params, n: int, m: int, d: int) -> int:
    """Return the kernel matrix, factored in place, copies of the inputs, and blocks of rows."""
    return 8 * n * n + 24 * n * d + 32 * MIB


def all_pairs(params: Params, n: int, m: int, d: int) -> int:
    """Return the matrices of all pairs that neighbourhood components takes: four in float64, half for float32."""
    return 25 * n * n  # between the 17 and 33 bytes a pair that were measured


def recursive_features(params: Params, n: int, m: int, d: int) -> int:
    """Return the kernel matrices of xRFM and of the gradients by which it learns, in float32."""
    return 32 * n * n  # between the 27 and 32 bytes a pair that were measured


def kernel_svm(params: Params, n: int, m: int, d: int) -> int:
    """Return libsvm's cache of the kernel, beside a few copies of data that may be sparse.

    It is filled by two overlapping classes or one against the rest; one against one has a smaller matrix per pair.
    """
    cache = next((value for key, value in params.items() if key.split("__")[-1] == "cache_size"), CACHE_MB)
    return int(min(cache * MIB, 4 * n * n))


def features(params: Params, n: int, m: int, d: int) -> int:
    """Return M features of all rows, as they are made and as liblinear or the least squares copy them."""
    size = int(params.get("reduce__n_components", N_FEATURES))
    return max(36 * n, 16 * m) * size


def of_step(name: str, needs: Needs) -> Needs:
    """Return the estimate of a pipeline, whose parameters begin with the names of its steps, by that of one step."""
    start = f"{name}__"

    def of_pipeline(params: Params, n: int, m: int, d: int) -> int:
        return needs({k.removeprefix(start): v for k, v in params.items() if k.startswith(start)}, n, m, d)

    return of_pipeline


def ours(params: Params, n: int, m: int, d: int) -> int:
    """Return the features in float32 of training and validation rows, and three M x M matrices; 0 for a linear map.

    A map that learns its centres keeps no features, but makes more matrices.
    """
    from ldsvm.maps.families import MOST_OF_ALL

    kind = params.get("map", "rbf")
    if kind not in ("rbf", "adaptive_rbf"):
        return 0
    asked = params.get("n_basis", "scale")
    size = min({"auto": MOST_FEATURES, "scale": MOST_OF_ALL}.get(asked, asked or n), n)
    if kind == "adaptive_rbf":
        return 48 * size * size
    return 4 * (n + m) * size + 24 * size * size
