"""Low-dimensional nonlinear SVMs, trained jointly by the method of auxiliary coordinates.

`LDSVMClassifier` is the classifier, a scikit-learn estimator; `ClassPlane` shows all classes in two dimensions.
`RelevanceScaler` is a transformer that learns how much each input counts.
`fit_path` fits several values of C for about the cost of one, `size_path` several numbers of basis functions, and
`smallest` chooses among these. `save` and `load` write and read files; `to_onnx` writes an ONNX graph, and
`onnx_inputs` returns its inputs. `RowBlocks` hold rows that need not fit into memory; `Serial`, `Threads` and `OnRay`
are executors for them, and `BlockError` is the error that they raise.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldsvm.blocks import BlockError, OnRay, RowBlocks, Serial, Threads
    from ldsvm.class_plane import ClassPlane
    from ldsvm.datasets.relevance import RelevanceScaler
    from ldsvm.estimator import LDSVMClassifier
    from ldsvm.export import onnx_inputs, to_onnx
    from ldsvm.path import fit_path
    from ldsvm.saving import load, save
    from ldsvm.sizes import size_path, smallest

__all__ = [
    "BlockError",
    "ClassPlane",
    "LDSVMClassifier",
    "OnRay",
    "RelevanceScaler",
    "RowBlocks",
    "Serial",
    "Threads",
    "__version__",
    "fit_path",
    "load",
    "onnx_inputs",
    "save",
    "size_path",
    "smallest",
    "to_onnx",
]
__version__ = "0.1.0"

_HOMES = {
    "ldsvm.blocks": ("BlockError", "OnRay", "RowBlocks", "Serial", "Threads"),
    "ldsvm.class_plane": ("ClassPlane",),
    "ldsvm.datasets.relevance": ("RelevanceScaler",),
    "ldsvm.estimator": ("LDSVMClassifier",),
    "ldsvm.export": ("onnx_inputs", "to_onnx"),
    "ldsvm.path": ("fit_path",),
    "ldsvm.saving": ("load", "save"),
    "ldsvm.sizes": ("size_path", "smallest"),
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: scikit-learn takes seconds to import, and not every process needs it."""
    for home, names in _HOMES.items():
        if name in names:
            globals()[name] = found = getattr(import_module(home), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
