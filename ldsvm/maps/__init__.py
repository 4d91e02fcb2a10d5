"""F: the families of maps from the inputs to the latent space."""

from ldsvm.maps.adaptive_rbf import AdaptiveRBF
from ldsvm.maps.base import Family, Map
from ldsvm.maps.linear import Linear
from ldsvm.maps.rbf import RBF

__all__ = ["RBF", "AdaptiveRBF", "Family", "Linear", "Map"]
