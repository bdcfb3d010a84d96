"""Duck arrays for numpy code: what the array type is decides what running a proof means."""

from compactproofs.arrays.interval import Interval

__all__ = ["Interval"]
