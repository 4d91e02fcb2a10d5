"""The method of auxiliary coordinates: alternate Z, g and F on the penalised objective (Algorithm a:drsvm)."""

from ldsvm.mac.loop import solve
from ldsvm.mac.problem import Problem, Validation
from ldsvm.mac.state import Reason, Solution, Start

__all__ = ["Problem", "Reason", "Solution", "Start", "Validation", "solve"]
