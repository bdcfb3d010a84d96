"""The exponential function with a proven error, from additions and multiplications alone.

No vendor's `exp` is trusted: the vectorised ones in numpy and in compilers promise different
accuracies on different machines. This one needs only IEEE-754 addition, multiplication and scaling by
a power of two, and its error is bounded on paper:

Reduction. n = rint(x / ln 2), |n| <= 1155 because |x| <= 800 after clipping. LN2_HIGH has at most 40
significant bits, so n * LN2_HIGH is exact. With |r| <= 0.36, each of the two subtractions errs by at
most u * 0.36, and n * LN2_LOW (below 2^-28) errs by at most 2^-80 including the error of LN2_LOW itself.
So the computed r is off by at most 2^-53, and exp(r) by a factor within 1 +- 1.01 * 2^-53.

Polynomial. The Taylor remainder of degree 13 is at most 0.36^14 / 14! * 1.5 < 2^-56 absolutely. Horner's
rule with rounded coefficients errs by at most gamma_28 * exp(|r|) <= 28.1 u * 1.44 < 2^-47.6. Since
exp(r) > 0.69, the relative error of the polynomial is below 2^-47.

Together the relative error is below 2^-46 = RELATIVE_ERROR. Scaling by 2^n is exact except in the
subnormal range and at overflow, where one step of `nextafter` covers the rounding.
"""

from math import factorial

import numpy as np
from jaxtyping import Float

RELATIVE_ERROR = 2.0**-46
"""Proven bound on the relative error of the reduced polynomial, before scaling."""

LN2_HIGH = float.fromhex("0x1.62e42fefa0000p-1")
LN2_LOW = float.fromhex("0x1.cf79abc9e3b3ap-40")
INVERSE_LN2 = float.fromhex("0x1.71547652b82fep+0")
POLYNOMIAL = tuple(1.0 / factorial(j) for j in range(13, -1, -1))
_CLIP = 800.0


def exp_approximation(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Approximate exp(x), x of any sign and size.

    Guarantee: |result - exp(x)| <= RELATIVE_ERROR * exp(x) + 2^-1074 wherever the result is finite.
    Cost: O(size), about thirty elementwise operations.
    Source: the proof in this module's docstring.
    """
    polynomial, exponent = _reduced(x)
    with np.errstate(under="ignore", over="ignore"):
        return np.asarray(np.ldexp(polynomial, exponent))


def exp_lower(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Lower-bound exp(x).

    Guarantee: 0 <= result <= exp(x), for x = -inf and +inf too; NaN stays NaN.
    Cost: O(size).
    Source: the proof in this module's docstring.
    """
    polynomial, exponent = _reduced(x)
    with np.errstate(under="ignore", over="ignore"):
        scaled = np.ldexp(polynomial * (1.0 - 2.0 * RELATIVE_ERROR), exponent)
    return np.asarray(np.maximum(np.nextafter(scaled, -np.inf), 0.0))


def exp_upper(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Upper-bound exp(x).

    Guarantee: exp(x) <= result, strictly positive even where exp(x) underflows; NaN stays NaN.
    Cost: O(size).
    Source: the proof in this module's docstring.
    """
    polynomial, exponent = _reduced(x)
    with np.errstate(under="ignore", over="ignore"):
        scaled = np.ldexp(polynomial * (1.0 + 2.0 * RELATIVE_ERROR), exponent)
    return np.asarray(np.nextafter(scaled, np.inf))


def _reduced(x: Float[np.ndarray, "..."]) -> tuple[np.ndarray, np.ndarray]:
    """Polynomial value and power of two with exp(clip(x)) = value * 2^power up to RELATIVE_ERROR."""
    clipped = np.clip(np.asarray(x, dtype=np.float64), -_CLIP, _CLIP)
    n = np.rint(clipped * INVERSE_LN2)
    r = (clipped - n * LN2_HIGH) - n * LN2_LOW
    value = np.full_like(r, POLYNOMIAL[0])
    for coefficient in POLYNOMIAL[1:]:
        value = value * r + coefficient
    return np.asarray(value), np.where(np.isnan(n), 0, n).astype(np.int32)
