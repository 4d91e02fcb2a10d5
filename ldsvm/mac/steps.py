"""What the loop needs of whoever holds the rows: one array in memory, or blocks of them in several places."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ldsvm.mac.state import Info, Model


class Steps(ABC):
    """The three steps of an iteration and their measurement, with the coordinates Z wherever they are kept."""

    model: Model  # of the last step

    @abstractmethod
    def begin(self, mu: float) -> Info:
        """Take g and F for the starting coordinates, or keep those of a warm start."""

    @abstractmethod
    def iterate(self, mu: float) -> Info:
        """Take one pass over Z, g and F. Info: ``kkt``, ``gap``, ``seconds_z``, ``seconds_g``, ``seconds_f``."""

    @abstractmethod
    def measure(self, mu: float) -> tuple[Info, float]:
        """Return ``nested, penalised, distance, train_error, valid_error`` of the current state, and |F(X)|."""

    @abstractmethod
    def restore(self, model: Model) -> None:
        """Continue from a model of this problem, as if an iteration had just ended with it; Z follows from it."""
