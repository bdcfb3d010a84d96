"""The three meanings of running a proof, as objects: make an array of the right kind, then run the same numpy code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from compactproofs.arrays.interval import Comparison, Interval
from compactproofs.arrays.phantom import FlopCounter, Phantom
from compactproofs.arrays.rounding import inverse_sqrt_enclosure


class AbstractArithmetic(ABC):
    """How to turn exact floating-point inputs into arrays for a proof to work on."""

    @abstractmethod
    def array(self, values: np.ndarray) -> Any:
        """An array that stands for exactly these values."""

    @abstractmethod
    def inverse_sqrt(self, square: Fraction) -> Any:
        """1 / sqrt(square), as a scalar to multiply by."""

    @abstractmethod
    def enclosed(self, lower: np.ndarray, upper: np.ndarray) -> Any:
        """An array of constants that lie between these."""

    def step(self, name: str) -> AbstractContextManager[None]:
        """Name a part of the proof; only counting FLOPs takes notice."""
        del name
        return nullcontext()

    def once(self, name: str) -> AbstractContextManager[None]:
        """Like `step`, for a part that the program repeats but a proof would do once: its cost counts the first time only."""
        return self.step(name)


@dataclass(frozen=True)
class Float64(AbstractArithmetic):
    """Ordinary numpy arrays: fast, for search and exploration, proves nothing."""

    def array(self, values: np.ndarray) -> np.ndarray:
        return values.astype(np.float64)

    def inverse_sqrt(self, square: Fraction) -> float:
        return float(float(square) ** -0.5)

    def enclosed(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        return np.asarray(lower / 2 + upper / 2)


@dataclass(frozen=True)
class Rigorous(AbstractArithmetic):
    """Intervals: the result is a theorem about real numbers."""

    def array(self, values: np.ndarray) -> Interval:
        return Interval.exact(values)

    def inverse_sqrt(self, square: Fraction) -> Interval:
        lower, upper = inverse_sqrt_enclosure(square)
        return Interval(np.asarray(lower), np.asarray(upper))

    def enclosed(self, lower: np.ndarray, upper: np.ndarray) -> Interval:
        return Interval(lower, upper)


@dataclass(frozen=True)
class Counting(AbstractArithmetic):
    """Phantoms: the result is the number of FLOPs, by step, in `counter`."""

    counter: FlopCounter

    def array(self, values: np.ndarray) -> Phantom:
        return Phantom(values.shape, self.counter)

    def inverse_sqrt(self, square: Fraction) -> Phantom:
        del square
        return Phantom((), self.counter)

    def enclosed(self, lower: np.ndarray, upper: np.ndarray) -> Phantom:
        del upper
        return Phantom(lower.shape, self.counter)

    def step(self, name: str) -> AbstractContextManager[None]:
        return self.counter.step(name)

    def once(self, name: str) -> AbstractContextManager[None]:
        return self.counter.step(name, repeated=name in self.counter.steps)


def certain(condition: Any) -> np.ndarray:
    """The entries of a comparison that are certainly true, as an array of booleans (of phantoms: all)."""
    if isinstance(condition, Comparison):
        return condition.certain
    if isinstance(condition, Phantom):
        return np.ones(condition.shape, dtype=bool)
    return np.asarray(condition, dtype=bool)
