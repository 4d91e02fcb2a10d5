"""Low-dimensional nonlinear SVMs, trained jointly by the method of auxiliary coordinates."""

from ldsvm.estimator import LDSVMClassifier
from ldsvm.export import to_onnx
from ldsvm.path import fit_path
from ldsvm.saving import load, save
from ldsvm.sizes import size_path, smallest

__all__ = ["LDSVMClassifier", "__version__", "fit_path", "load", "save", "size_path", "smallest", "to_onnx"]
__version__ = "0.1.0"
