"""What IEEE-754 double arithmetic guarantees, in the three forms that our bounds use.

Everything here holds for round-to-nearest binary64 with gradual underflow, which is what numpy, numba and every BLAS use unless
somebody switched the processor to flush-to-zero; `environment.require_ieee754` refuses to work then. Nothing rests on the order of
summation or on whether multiply-adds are fused: both only change constants that `gamma` already covers.
"""

import sys
from fractions import Fraction
from math import inf, isqrt, nextafter
from typing import Any

import numpy as np
from jaxtyping import Float

Ends = Float[np.ndarray, "..."]
Operand = Ends | np.float64  # numpy turns results without axes into scalars

UNIT_ROUNDOFF = 2.0**-53
"""u: a single operation returns (exact)(1 + e) with |e| <= u, barring underflow and overflow."""

SMALLEST_SUBNORMAL = 2.0**-1074
"""An underflowing operation is off by at most this much (in fact by half of it)."""


_MAX = sys.float_info.max


def gamma_upper(n: int) -> float:
    """Upper-bound Higham's gamma_n = n u / (1 - n u).

    Guarantee: a product of n factors (1 + e_i)^(+-1), |e_i| <= u, differs from 1 by at most the result;
    hence a sum of n products, in any order, fused or not, is off by at most gamma_n * sum |a_i b_i|.
    Assumes: n < 2^40, so that the slack of 2^-10 below covers the rounding of this very computation.
    Cost: O(1).
    Source: Higham, Accuracy and Stability of Numerical Algorithms, Lemma 3.1.
    """
    if not 0 <= n < 2**40:
        raise ValueError(f"gamma_upper needs 0 <= n < 2^40, got n={n}")
    return n * UNIT_ROUNDOFF * (1.0 + 2.0**-10)


def round_down(value: Fraction) -> float:
    """The largest float64 that is at most `value`."""
    try:
        nearest = float(value)
    except OverflowError:
        return _MAX if value > 0 else -inf
    return nearest if Fraction(nearest) <= value else nextafter(nearest, -inf)


def round_up(value: Fraction) -> float:
    """The smallest float64 that is at least `value`."""
    return -round_down(-value)


def inverse_sqrt_enclosure(square: Fraction) -> tuple[float, float]:
    """Enclose 1 / sqrt(square).

    Guarantee: lower <= 1 / sqrt(square) <= upper, and they are neighbouring floats or equal.
    Assumes: square > 0.
    Cost: O(1), exact integers.
    """
    if square <= 0:
        raise ValueError(f"inverse_sqrt_enclosure needs a positive number, got {square}")
    scale = 4 ** (128 + square.numerator.bit_length())
    # floor(sqrt(x)) / 2^j brackets 1/sqrt(square) = sqrt(denominator / numerator) from below, plus one from above.
    root = isqrt(square.denominator * scale // square.numerator)
    scale_root = isqrt(scale)
    return round_down(Fraction(root, scale_root)), round_up(Fraction(root + 1, scale_root))


def add_down(a: Operand, b: Operand) -> Ends:
    """A lower bound of the exact sum, a few units in the last place below it; a sum that is zero or subnormal is exact."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = a + b
        return np.asarray(np.minimum(total - _last_place(total), _MAX))


def add_up(a: Operand, b: Operand) -> Ends:
    """An upper bound of the exact sum; see `add_down`."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = a + b
        return np.asarray(np.maximum(total + _last_place(total), -_MAX))


def rounded_product(a: Operand, b: Operand) -> Ends:
    """The product to nearest, with 0 * inf = 0: the exact value behind an infinite end is a real number."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        product = a * b
    is_zero = ((a == 0) | (b == 0)) & ~(np.isnan(a) | np.isnan(b))
    return np.where(is_zero, 0.0, product)


def step_down(x: Operand) -> Ends:
    """A float at most the float below x, two or three units in the last place away; faster than `nextafter`.

    |x| 2^-52 is at least one unit in the last place of a normal x, so subtracting it and rounding (a monotone operation) cannot end
    above the next float. The second summand does the same for subnormal x. An infinite x stands for an overflow, so that the exact value
    is finite but beyond every float: the largest float is below it.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.minimum(x - (_last_place(x) + SMALLEST_SUBNORMAL), _MAX))


def step_up(x: Operand) -> Ends:
    """A float at least the float above x; see `step_down`."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.maximum(x + (_last_place(x) + SMALLEST_SUBNORMAL), -_MAX))


def _last_place(x: Operand) -> Any:
    """At least one unit in the last place of a normal x, and finite even where x is infinite."""
    return np.minimum(np.abs(x) * 2.0**-52, 2.0**972)
