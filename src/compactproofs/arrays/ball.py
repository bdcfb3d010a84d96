"""Ball: a numpy-like array of real numbers that are known to any precision wanted, in Python integers.

Each entry is an integer over 2^bits; `radius` units of 2^-bits bound the error of every entry. The same numpy code that runs on float64 and
on `Interval` runs on these, only slower and as precisely as one likes. What cannot be enclosed at this precision (a divisor that may be
zero) raises `UndecidableError`: more bits may help.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from compactproofs.arrays import elementary

Place = int | slice | np.ndarray | None
Index = Place | tuple[Place, ...]


LEAST_BITS = 172
"""With these every float32 number is exact."""


class UndecidableError(Exception):
    """At this precision a divisor may be zero, or an error is larger than anything that is known."""


@dataclass(frozen=True, eq=False)
class Ball:
    """Array of balls.

    Law: for every operation f that is defined here and all reals x in X, y in Y, f(x, y) lies in f(X, Y), entry by entry.
    """

    middle: np.ndarray
    """Integers (dtype object): the entries times 2^bits, up to `radius`."""
    radius: int
    """No entry is off by more than this many units of 2^-bits."""
    bits: int

    @classmethod
    def exact(cls, values: np.ndarray, bits: int) -> Ball:
        """Exactly these float32 numbers: integers below 2^24 times a power of two that is at least 2^-172."""
        if values.dtype != np.float32 or bits < LEAST_BITS:
            raise TypeError(f"Ball.exact expects float32 numbers and at least {LEAST_BITS} bits, got {values.dtype} and {bits}")
        fraction, exponent = np.frexp(values.astype(np.float64))
        integers = (fraction * 2.0**24).astype(np.int64).astype(object)
        return cls(np.asarray(integers << (exponent.astype(object) + (bits - 24)), dtype=object), 0, bits)

    @classmethod
    def enclosing(cls, value: Fraction, bits: int) -> Ball:
        """A rational number, as an array without axes."""
        scaled = value * 2**bits
        down = scaled.numerator // scaled.denominator
        return cls(_objects([down], ()), int(scaled.denominator != 1), bits)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.middle.shape

    @property
    def T(self) -> Ball:
        return self._with(self.middle.T, self.radius)

    def __len__(self) -> int:
        return len(self.middle)

    def __getitem__(self, index: Index) -> Ball:
        return self._with(self.middle[index], self.radius)

    def reshape(self, *shape: int) -> Ball:
        return self._with(self.middle.reshape(*shape), self.radius)

    def lower(self) -> np.ndarray:
        """Integers below the entries, in units of 2^-bits."""
        return np.asarray(self.middle - self.radius)

    def upper(self) -> np.ndarray:
        """Integers above the entries, in units of 2^-bits."""
        return np.asarray(self.middle + self.radius)

    def __add__(self, other: Ball) -> Ball:
        return self._with(self.middle + other.middle, self.radius + other.radius)

    def __neg__(self) -> Ball:
        return self._with(-self.middle, self.radius)

    def __abs__(self) -> Ball:
        return self._with(np.abs(self.middle), self.radius)

    def __sub__(self, other: Ball) -> Ball:
        return self + (-other)

    def __mul__(self, other: Ball) -> Ball:
        """|x y - X Y| <= |X| s + |Y| r + r s."""
        spread = _largest(self.middle) * other.radius + _largest(other.middle) * self.radius + self.radius * other.radius
        return self._shifted(self.middle * other.middle, spread)

    def __matmul__(self, other: Ball) -> Ball:
        """As for products, n times; |X| s is then at most s times the largest sum of a row's magnitudes."""
        n = self.shape[-1]
        rows, columns = np.abs(self.middle).sum(axis=-1), np.abs(other.middle).sum(axis=0)
        spread = _largest(rows) * other.radius + _largest(columns) * self.radius + n * self.radius * other.radius
        return self._shifted(self.middle @ other.middle, spread)

    def __truediv__(self, other: Ball) -> Ball:
        """|x / y - X / Y| <= (r + |X / Y| s) / |y|, where |y| >= |Y| - s must be positive."""
        least = _least(other.middle) - other.radius
        if least <= 0:
            raise UndecidableError("a divisor may be zero")
        quotient = np.asarray((self.middle << self.bits) // other.middle)
        spread = ((self.radius << self.bits) + (_largest(quotient) + 1) * other.radius) // least
        return self._with(quotient, spread + 2)

    def sum(self, axis: int) -> Ball:
        return self._with(self.middle.sum(axis=axis), self.radius * self.shape[axis])

    def mean(self, axis: int) -> Ball:
        n = self.shape[axis]
        return self._with(np.asarray(self.middle.sum(axis=axis) // n), self.radius + 1)

    def relu(self) -> Ball:
        """max(x, 0), which is 1-Lipschitz."""
        return self._with(np.maximum(self.middle, 0), self.radius)

    def sqrt(self) -> Ball:
        """Of numbers that are not negative: |sqrt(x) - sqrt(X)| <= r / sqrt(X), and <= sqrt(r)."""
        if any(x < -self.radius for x in self.middle.flat):
            raise ValueError("square root of a negative ball")
        roots = [isqrt(max(x, 0) << self.bits) for x in self.middle.flat]
        spread = isqrt(self.radius << self.bits) + 1
        least = min(roots)
        if least > 0:
            spread = min(spread, (self.radius << self.bits) // least + 1)
        return self._with(_objects(roots, self.shape), spread + 1)

    def exp_below(self) -> Ball:
        """exp of numbers whose middles are at most zero: |exp(x + r) - exp(x)| <= 2 r if x <= 0 and r <= 1."""
        if self.radius > 1 << self.bits:
            raise UndecidableError("an exponent is not known to 1")
        values = [elementary.exp_negative(-x, self.bits) for x in self.middle.flat]
        return self._with(_objects(values, self.shape), 2 * self.radius + 1)

    def sigmoid(self) -> Ball:
        """1 / (1 + exp(-x)), 1/4-Lipschitz. With e = exp(-|x|) to one unit, each of 1 / (1 + e) and e / (1 + e) is off by two."""
        one, values = 1 << self.bits, []
        for x in self.middle.flat:
            e = elementary.exp_negative(abs(x), self.bits)
            values.append(((one if x >= 0 else e) << self.bits) // (one + e))
        return self._with(_objects(values, self.shape), self.radius // 4 + 3)

    def erf(self) -> Ball:
        """The error function; its slope is at most 2 / sqrt(pi) < 1.25."""
        values = [elementary.erf(x, self.bits) for x in self.middle.flat]
        return self._with(_objects(values, self.shape), (5 * self.radius) // 4 + 2)

    def _shifted(self, product: Any, spread: int) -> Ball:
        """A product in units of 2^-2bits, cut off; exact where no digit is lost."""
        product = np.asarray(product, dtype=object)
        cut = product >> self.bits
        exact = spread == 0 and not any((product - (cut << self.bits)).flat)
        return self._with(cut, 0 if exact else (spread >> self.bits) + 2)

    def _with(self, middle: Any, radius: int) -> Ball:
        return Ball(np.asarray(middle, dtype=object), radius, self.bits)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function not in (np.concatenate, np.stack):
            return NotImplemented
        parts: Sequence[Ball] = args[0]
        return self._with(function([part.middle for part in parts], **kwargs), max(part.radius for part in parts))

    __array_ufunc__ = None
    """Numbers of other kinds are not mixed in silently."""


def _largest(middle: np.ndarray) -> int:
    return max((abs(x) for x in np.asarray(middle, dtype=object).flat), default=0)


def _least(middle: np.ndarray) -> int:
    return int(min(abs(x) for x in middle.flat))


def _objects(values: Sequence[int], shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)
