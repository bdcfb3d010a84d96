"""The error function in float64 with a proven error, from additions and multiplications alone.

On each of 48 cells of width 1/8 that cover [0, 6), erf is its Taylor polynomial of degree 11 about the cell's centre c. With h = x - c:

    erf(c + h) = a_0 + a_1 h + ... + a_11 h^11 + R,    a_0 = erf(c),    a_{n+1} = 2 / sqrt(pi) exp(-c^2) (-1)^n H_n(c) / (n + 1)!

Remainder. |f^(12)| = 2 / sqrt(pi) |H_11| exp(-x^2) and Cramer's inequality |H_n(x)| exp(-x^2 / 2) <= 1.0865 sqrt(2^n n!) give
|R| <= 1.2260 sqrt(2^11 11!) / 12! |h|^12 < 2^-58 for |h| <= 1/16 + 2^-40.

Rounding. c is a multiple of 1/16 and h is computed with relative error u. The coefficients come from integers and are rounded once.
Horner's rule errs by at most gamma_26 sum |a_n| |h|^n, and the sum is at most 1 + 1.13/16 + ... < 1.2: less than 2^-48. Beyond 6, 1 -
erf(x) < 2^-55. Together the absolute error is below 2^-47 = ABSOLUTE_ERROR. Nothing underflows that matters: a product that does is off by
2^-1075.
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial, isqrt

import numpy as np
from jaxtyping import Float

from compactproofs.arrays import elementary

ABSOLUTE_ERROR = 2.0**-47
"""Proven bound on |erf_approximation(x) - erf(x)|."""

CELLS_PER_UNIT = 8
LAST = 6.0
"""From here on erf is 1, up to 2^-55."""
DEGREE = 11
_BITS = 192


def _coefficients() -> Float[np.ndarray, "cells degree_and_one"]:
    """a_n of each cell, highest first, correctly rounded but for an error of 2^-100."""
    table = []
    for cell in range(int(LAST) * CELLS_PER_UNIT):
        c = Fraction(2 * cell + 1, 2 * CELLS_PER_UNIT)
        scaled_down = elementary.exp_negative(int(c * c * 2**_BITS), _BITS)  # c^2 is a multiple of 2^-8
        factor = Fraction(2 * scaled_down, isqrt(elementary.pi(_BITS) << _BITS))
        hermite = [Fraction(1), 2 * c]
        for n in range(1, DEGREE):
            hermite.append(2 * c * hermite[n] - 2 * n * hermite[n - 1])
        a = [Fraction(elementary.erf(int(c * 2**_BITS), _BITS), 2**_BITS)]
        a += [factor * (-1) ** n * hermite[n] / factorial(n + 1) for n in range(DEGREE)]
        table.append([float(value) for value in reversed(a)])
    return np.array(table)


COEFFICIENTS = _coefficients()
COEFFICIENTS.setflags(write=False)


def erf_approximation(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Approximate erf(x).

    Guarantee: |result - erf(x)| <= ABSOLUTE_ERROR, for infinite x too; NaN stays NaN.
    Cost: O(size), about thirty elementwise operations.
    Source: the proof in this module's docstring.
    """
    size = np.minimum(np.abs(np.asarray(x, dtype=np.float64)), LAST)
    cell = np.where(size < LAST, size * CELLS_PER_UNIT, 0.0).astype(np.int64)
    h = size - (2 * cell + 1) / (2.0 * CELLS_PER_UNIT)
    value = COEFFICIENTS[cell, 0]
    for j in range(1, DEGREE + 1):
        value = value * h + COEFFICIENTS[cell, j]
    value = np.where(size == LAST, 1.0, np.where(np.isnan(size), np.nan, value))
    return np.asarray(np.copysign(value, x))


def erf_lower(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Lower-bound erf(x).

    Guarantee: -1 <= result <= erf(x); NaN stays NaN.
    Cost: O(size).
    Source: `erf_approximation`; and for |x| <= 1/64 also 2 / sqrt(pi) (1 - x^2 / 3) <= erf(x) / x <= 2 / sqrt(pi) = 1.1283791...,
    so that erf(x) >= 1.12838 x for x < 0 and erf(x) >= 1.128 x for x >= 0.
    """
    value = erf_approximation(x) - 2 * ABSOLUTE_ERROR
    small = np.where(x < 0, 1.12838 * x, 1.128 * x) * np.where(x < 0, 1 + 2.0**-50, 1 - 2.0**-50) - 2.0**-1070
    return np.asarray(np.maximum(np.where(np.abs(x) <= 1 / 64, np.maximum(value, small), value), -1.0))


def erf_upper(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Upper-bound erf(x): the mirror image of `erf_lower`."""
    return -erf_lower(-np.asarray(x))
