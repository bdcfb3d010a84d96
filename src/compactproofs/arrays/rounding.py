"""What IEEE-754 double arithmetic guarantees, in the three forms that our bounds use.

Everything here holds for round-to-nearest binary64 with gradual underflow, which is what numpy, numba and every BLAS use unless
somebody switched the processor to flush-to-zero; `environment.require_ieee754` refuses to work then. Nothing rests on the order of
summation or on whether multiply-adds are fused: both only change constants that `gamma` already covers.
"""

import sys
from fractions import Fraction
from math import inf, isqrt, nextafter

import numpy as np
from jaxtyping import Float

Ends = Float[np.ndarray, "..."]
Operand = Ends | np.float64  # numpy turns results without axes into scalars

UNIT_ROUNDOFF = 2.0**-53
"""u: a single operation returns (exact)(1 + e) with |e| <= u, barring underflow and overflow."""

SMALLEST_SUBNORMAL = 2.0**-1074
"""An underflowing operation is off by at most this much (in fact by half of it)."""


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
        return sys.float_info.max if value > 0 else -inf
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
    """The exact sum rounded towards minus infinity (see `_directed_sum`)."""
    return _directed_sum(a, b, -np.inf)


def add_up(a: Operand, b: Operand) -> Ends:
    """The exact sum rounded towards plus infinity (see `_directed_sum`)."""
    return _directed_sum(a, b, np.inf)


def multiply_down(a: Operand, b: Operand) -> Ends:
    """A lower bound of the exact product, one unit in the last place below the rounded one; 0 * x is 0."""
    return _directed_product(a, b, -np.inf)


def multiply_up(a: Operand, b: Operand) -> Ends:
    """An upper bound of the exact product, one unit in the last place above the rounded one; 0 * x is 0."""
    return _directed_product(a, b, np.inf)


def _directed_sum(a: Operand, b: Operand, towards: float) -> Ends:
    # Knuth's TwoSum: total + error is exactly a + b as long as nothing overflows. An overflow makes the
    # error NaN; then the comparison below is False and we step outward, which is always allowed.
    with np.errstate(over="ignore", invalid="ignore"):
        total = a + b
        b_part = total - a
        error = (a - (total - b_part)) + (b - b_part)
        exact_or_inside = (error >= 0) if towards < 0 else (error <= 0)
        return np.where(exact_or_inside, total, np.nextafter(total, towards))


def _directed_product(a: Operand, b: Operand, towards: float) -> Ends:
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        product = a * b
        widened = np.nextafter(product, towards)
    is_zero = ((a == 0) | (b == 0)) & ~(np.isnan(a) | np.isnan(b))
    return np.where(is_zero, 0.0, widened)
