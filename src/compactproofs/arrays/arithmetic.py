"""The meanings of running a proof, as objects: make an array of the right kind, then run the same numpy code.

Functions that are not numpy's, and constants that are not floating-point numbers, come from the object too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import erf, pi
from typing import Any

import numpy as np

from compactproofs.arrays import elementary, interval, uniform
from compactproofs.arrays.ball import Ball
from compactproofs.arrays.interval import Comparison, Interval
from compactproofs.arrays.phantom import FlopCounter, Phantom
from compactproofs.arrays.rounding import inverse_sqrt_enclosure, round_down, round_up
from compactproofs.arrays.uniform import Uniform

_TURN_BITS = 128
"""Digits to which cosines and sines are known before they are rounded to float64."""


class AbstractArithmetic(ABC):
    """How to turn exact floating-point inputs into arrays for a proof to work on."""

    @abstractmethod
    def array(self, values: np.ndarray) -> Any:
        """An array that stands for exactly these values."""

    @abstractmethod
    def inverse_sqrt(self, square: Fraction) -> Any:
        """1 / sqrt(square), as a scalar to multiply by."""

    def number(self, value: Fraction) -> Any:
        """A rational number, as a scalar."""
        raise TypeError(f"{type(self).__name__} has no rational numbers")

    def between(self, low: Fraction, high: Fraction) -> Any:
        """A number that lies between these, as a scalar."""
        raise TypeError(f"{type(self).__name__} has no such numbers")

    def pi(self) -> Any:
        """pi, as a scalar."""
        raise TypeError(f"{type(self).__name__} has no pi")

    def turns(self, n: int, base: float, half: int) -> tuple[Any, Any]:
        """Cosines and sines of the angles i / base^(j / half), (n, half) each."""
        raise TypeError(f"{type(self).__name__} has no cosines")

    def sqrt(self, x: Any) -> Any:
        return np.sqrt(x)

    def over_positive(self, x: Any, divisor: Any) -> Any:
        """x / divisor, which is not defined (and no factor of zero makes it so) where the divisor is not certainly positive."""
        return x / divisor

    def relu(self, x: Any) -> Any:
        """max(x, 0)"""
        return np.maximum(x, 0.0)

    def sigmoid(self, x: Any) -> Any:
        """1 / (1 + exp(-x))"""
        return 1.0 / (1.0 + np.exp(-x))

    def erf(self, x: Any) -> Any:
        """The error function."""
        raise TypeError(f"{type(self).__name__} has no error function")

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

    def number(self, value: Fraction) -> float:
        return float(value)

    def between(self, low: Fraction, high: Fraction) -> float:
        return float((low + high) / 2)

    def pi(self) -> float:
        return pi

    def turns(self, n: int, base: float, half: int) -> tuple[np.ndarray, np.ndarray]:
        angles = np.arange(n)[:, None] / float(base) ** (np.arange(half) / half)
        return np.cos(angles), np.sin(angles)

    def sigmoid(self, x: np.ndarray) -> np.ndarray:
        e = np.exp(-np.abs(x))
        return np.asarray(np.where(x >= 0, 1.0, e) / (1.0 + e))

    def erf(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(np.frompyfunc(erf, 1, 1)(x), dtype=np.float64)


@dataclass(frozen=True)
class Rigorous(AbstractArithmetic):
    """Intervals: the result is a theorem about real numbers."""

    def array(self, values: np.ndarray) -> Interval:
        return Interval.exact(values)

    def inverse_sqrt(self, square: Fraction) -> Interval:
        lower, upper = inverse_sqrt_enclosure(square)
        return Interval(np.asarray(lower), np.asarray(upper))

    def number(self, value: Fraction) -> Interval:
        return self.between(value, value)

    def between(self, low: Fraction, high: Fraction) -> Interval:
        return Interval(np.asarray(round_down(low)), np.asarray(round_up(high)))

    def pi(self) -> Interval:
        return _rounded(np.array([elementary.pi(_TURN_BITS)], dtype=object))[0]

    def turns(self, n: int, base: float, half: int) -> tuple[Interval, Interval]:
        cosines, sines = _turns(n, base, half, _TURN_BITS)
        return _rounded(cosines), _rounded(sines)

    def over_positive(self, x: Interval, divisor: Interval) -> Interval:
        found: Interval = np.where(divisor > 0.0, x / divisor, np.nan)  # type: ignore[call-overload]
        return found

    def erf(self, x: Interval) -> Interval:
        return interval.erf(x)


@dataclass(frozen=True)
class Uniformly(AbstractArithmetic):
    """Arrays with one error each: the result is a theorem about real numbers, nearly as fast as float64."""

    def array(self, values: np.ndarray) -> Uniform:
        return Uniform.exact(values)

    def inverse_sqrt(self, square: Fraction) -> Uniform:
        return _uniform("inverse_sqrt", square)

    def number(self, value: Fraction) -> Uniform:
        return _uniform("number", value)

    def between(self, low: Fraction, high: Fraction) -> Uniform:
        return _uniform("between", low, high)

    def pi(self) -> Uniform:
        return _uniform("pi")

    def sigmoid(self, x: Uniform) -> Uniform:
        return uniform.sigmoid(x)

    def erf(self, x: Uniform) -> Uniform:
        return uniform.erf(x)


@lru_cache(maxsize=1024)
def _uniform(name: str, *numbers: Fraction) -> Uniform:
    """A scalar of `Rigorous`."""
    return Uniform.enclosing(getattr(Rigorous(), name)(*numbers))


@dataclass(frozen=True)
class Balls(AbstractArithmetic):
    """Integers over 2^bits with an error: the result is a theorem, as precise as one likes."""

    bits: int

    def array(self, values: np.ndarray) -> Ball:
        return Ball.exact(values, self.bits)

    def inverse_sqrt(self, square: Fraction) -> Ball:
        return self.sqrt(Ball.enclosing(1 / square, self.bits))

    def number(self, value: Fraction) -> Ball:
        return Ball.enclosing(value, self.bits)

    def pi(self) -> Ball:
        return Ball(np.array(elementary.pi(self.bits), dtype=object), 1, self.bits)

    def turns(self, n: int, base: float, half: int) -> tuple[Ball, Ball]:
        cosines, sines = _turns(n, base, half, self.bits)
        return Ball(cosines, 3, self.bits), Ball(sines, 3, self.bits)

    def sqrt(self, x: Ball) -> Ball:
        return x.sqrt()

    def relu(self, x: Ball) -> Ball:
        return x.relu()

    def sigmoid(self, x: Ball) -> Ball:
        return x.sigmoid()

    def erf(self, x: Ball) -> Ball:
        return x.erf()


@dataclass(frozen=True)
class Counting(AbstractArithmetic):
    """Phantoms: the result is the number of FLOPs, by step, in `counter`."""

    counter: FlopCounter

    def array(self, values: np.ndarray) -> Phantom:
        return Phantom(values.shape, self.counter)

    def inverse_sqrt(self, square: Fraction) -> Phantom:
        del square
        return Phantom((), self.counter)

    def number(self, value: Fraction) -> Phantom:
        del value
        return Phantom((), self.counter)

    def between(self, low: Fraction, high: Fraction) -> Phantom:
        del low, high
        return Phantom((), self.counter)

    def pi(self) -> Phantom:
        return Phantom((), self.counter)

    def erf(self, x: Phantom) -> Phantom:
        return -x  # one operation for each entry, as the exponential

    def turns(self, n: int, base: float, half: int) -> tuple[Phantom, Phantom]:
        del base
        return Phantom((n, half), self.counter), Phantom((n, half), self.counter)

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


def _turns(n: int, base: float, half: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Integers within three units of 2^-bits of the cosines and sines of i / base^(j / half).

    The power is known to one unit of 2^-(bits + g), its multiple by i < 2^g to one unit of 2^-bits; cutting that off costs another, and the
    functions err by one more.
    """
    g = n.bit_length()
    powers = [elementary.inverse_power(Fraction(base), Fraction(j, half), bits + g) for j in range(half)]
    found = np.array([[elementary.cos_sin((i * power) >> g, bits) for power in powers] for i in range(n)], dtype=object)
    return found[..., 0], found[..., 1]


def _rounded(values: np.ndarray) -> Interval:
    """Enclosures of numbers that are within three units of these, in units of 2^-_TURN_BITS."""
    lower = [round_down(Fraction(x - 3, 2**_TURN_BITS)) for x in values.flat]
    upper = [round_up(Fraction(x + 3, 2**_TURN_BITS)) for x in values.flat]
    return Interval(np.reshape(lower, values.shape), np.reshape(upper, values.shape))
