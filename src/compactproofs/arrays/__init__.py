"""Duck arrays for numpy code: what the array type is decides what running a proof means."""

from compactproofs.arrays.interval import Comparison, Interval
from compactproofs.arrays.phantom import FlopCounter, Phantom

__all__ = ["Comparison", "FlopCounter", "Interval", "Phantom"]
