"""Low-dimensional nonlinear SVMs, trained jointly by the method of auxiliary coordinates.

`LDSVMClassifier` is the classifier, of scikit-learn's kind. `fit_path` fits several values of C at the price of about
one; `size_path` several numbers of basis functions, and `smallest` chooses among them. `save`, `load` and `to_onnx` are
for files, `onnx_inputs` for the graph that `to_onnx` writes. `RowBlocks` are rows that need not fit into memory,
`Serial`, `Threads` and `OnRay` who works on them, and `BlockError` is what they raise.
"""

from ldsvm.blocks import BlockError, OnRay, RowBlocks, Serial, Threads
from ldsvm.estimator import LDSVMClassifier
from ldsvm.export import onnx_inputs, to_onnx
from ldsvm.path import fit_path
from ldsvm.saving import load, save
from ldsvm.sizes import size_path, smallest

__all__ = [
    "BlockError",
    "LDSVMClassifier",
    "OnRay",
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
