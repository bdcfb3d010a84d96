"""Elementary functions of fixed-point numbers, in Python integers, each off by at most one unit in the last place.

A number x is given as an integer X with x = X / 2^p. Every function here answers with an integer Y such that |Y / 2^p - f(x)| <= 2^-p.
Inside, w = p + g binary digits are carried. "Unit" below means 2^-w; a product or quotient that is cut off errs by at most one unit. The
guard digits g are chosen so that the errors add up to less than 2^(g-1) units; cutting off the guard digits costs the other half.

Everything is built from additions, multiplications, shifts and divisions of integers: nothing is trusted but those.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt


def exp_negative(x: int, p: int) -> int:
    """exp(-x) for x >= 0.

    Guarantee: |result / 2^p - exp(-x / 2^p)| <= 2^-p.
    Assumes: x >= 0.
    Cost: O(sqrt(p)) multiplications of p bits.

    Proof. If x >= (p + 1) then exp(-x) < 2^-p and 0 will do. Else x = n ln 2 + r with 0 <= r < 1 and n < 2 p + 2: ln 2 is known to one
    unit, so r to n + 1. With s halvings z = r / 2^s, known to n + 2 units. The terms of exp(-z) are at most 1; each is cut off twice, and
    its error does not grow by factors z / j < 1, so after J terms the sum is off by 2 J + (n + 2) units, and the rest of the alternating
    series by its first term, which is below one unit when the computed term is zero (its error, 2, included: 3). Each of s squarings of a
    number of at most 1 + 2^-s doubles the error, with room for its square and for the cut: e -> 3 e + 1, at most 3^s (e + 1). J <= w.
    """
    if x >= (p + 1) << p:
        return 0
    s = 8
    g = 24 + 2 * s + 2 * p.bit_length()  # 3^8 (2 w + 2 p + 10) < 2^13 * 2^7 * 2^(p.bit_length())
    w = p + g
    x <<= g
    log2 = ln2(w)
    n = x // log2
    z = (x - n * log2) >> s
    total = term = 1 << w
    j = 0
    while term:
        j += 1
        term = -((term * z) >> w) // j
        total += term
    for _ in range(s):
        total = (total * total) >> w
    return _cut(total >> n, g)


def ln(x: Fraction, p: int) -> int:
    """The natural logarithm of a rational x >= 1.

    Guarantee: |result / 2^p - ln(x)| <= 2^-p.
    Cost: O(p) divisions of p bits, for x of any size.

    Proof. x = 2^n m with 1 <= m < 2, and ln(x) = n ln 2 + 2 atanh((m - 1) / (m + 1)); n ln 2 is off by n units, the series by w.
    """
    if x < 1:
        raise ValueError(f"ln needs a number of at least 1, got {x}")
    n = (x.numerator // x.denominator).bit_length() - 1
    g = 16 + n.bit_length() + p.bit_length()
    m = x / 2**n
    return _cut(n * ln2(p + g) + 2 * _atanh((m - 1) / (m + 1), p + g), g)


def inverse_power(base: Fraction, exponent: Fraction, p: int) -> int:
    """base^-exponent.

    Guarantee: |result / 2^p - base^-exponent| <= 2^-p.
    Assumes: base >= 1, 0 <= exponent <= 1.
    Cost: that of `ln` and `exp_negative`.

    Proof. exp is 1-Lipschitz below zero; the logarithm is off by one unit of 2^-(p+4), its multiple by two, the exponential by one more.
    """
    if base < 1 or not 0 <= exponent <= 1:
        raise ValueError(f"inverse_power needs a base of at least 1 and an exponent in [0, 1], got {base} and {exponent}")
    logarithm = ln(base, p + 4)
    return _cut(exp_negative(logarithm * exponent.numerator // exponent.denominator, p + 4), 4)


def cos_sin(x: int, p: int) -> tuple[int, int]:
    """Cosine and sine of x >= 0.

    Guarantee: |results / 2^p - (cos, sin)(x / 2^p)| <= 2^-p.
    Assumes: x >= 0.
    Cost: O(p / log p) multiplications of p bits.

    Proof. x = n pi / 2 + r with 0 <= r < 1.6; pi / 2 is known to one unit, so r to n + 1, and cosine and sine are 1-Lipschitz. The terms
    r^j / j! are below 1.6; each is cut off twice and errors are multiplied by r / j <= 1.6, 0.8, ...: at most 8 units each, 8 w in all. The
    series are alternating and decreasing from the second term on.
    """
    g = 16 + p.bit_length() + max(0, x.bit_length() - p)
    w = p + g
    half_pi = pi(w) >> 1
    n, r = divmod(x << g, half_pi)
    parts = [1 << w, 0]
    term, j = 1 << w, 0
    while term:
        j += 1
        term = ((term * r) >> w) // j
        parts[j % 2] += term if j % 4 in (0, 1) else -term
    cosine, sine = (_cut(part, g) for part in parts)
    return ((cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine))[n % 4]


def erf(x: int, p: int) -> int:
    """The error function, of x of either sign.

    Guarantee: |result / 2^p - erf(x / 2^p)| <= 2^-p.
    Cost: O(p + x^2) multiplications of at most 2 p bits.

    Proof. erf is odd. If x^2 >= p + 1 then 1 - erf(x) <= exp(-x^2) < 2^-p. Else erf(x) = 2 / sqrt(pi) sum_n (-1)^n u_n / (2n + 1) with u_n
    = x^(2n+1) / n!, which is u_{n-1} x^2 / n. x^2 is known to one unit. Errors obey e_n <= e_{n-1} x^2 / n + u_{n-1} / n + 3, and u_{n-1} /
    n <= exp(x^2) (as x <= 1 + x^2); so e_n <= (exp(x^2) + 3) sum_m (x^2)^m / m! <= 4 exp(2 x^2), as n! >= m! (n-m)!. The loop ends at the
    first computed term that is zero with n >= 2 x^2, where the rest is at most twice u_n <= e_n + 1. With N terms the sum is off by less
    than (N + 4) 5 exp(2 x^2) units, and 2 x^2 log2(e) < 3 (x^2 + 1). N <= 2 x^2 + 2 + w, since from 2 x^2 on terms halve, from exp(x^2) on
    down: N < 2^(6 + p.bit_length()). The factor 2 / sqrt(pi) < 2 doubles that at most; itself known to 4 units, it adds 4 more.
    """
    if x < 0:
        return -erf(-x, p)
    square = (x * x) >> p
    if square >= (p + 2) << p:
        return 1 << p
    g = 3 * ((square >> p) + 2) + 2 * p.bit_length() + 24
    w = p + g
    x <<= g
    square = (x * x) >> w
    u, total, n = x, x, 0
    while u or n < 2 * (square >> w) + 2:
        n += 1
        u = ((u * square) >> w) // n
        total += u // (2 * n + 1) if n % 2 == 0 else -(u // (2 * n + 1))
    factor = (2 << (2 * w)) // isqrt(pi(w) << w)
    return _cut((total * factor) >> w, g)


@lru_cache(maxsize=64)
def pi(p: int) -> int:
    """pi = 16 atan(1/5) - 4 atan(1/239), to one unit: the two series err by 20 (w + 2) units at most."""
    g = 16 + p.bit_length()
    return _cut(16 * _atan_of_inverse(5, p + g) - 4 * _atan_of_inverse(239, p + g), g)


@lru_cache(maxsize=64)
def ln2(p: int) -> int:
    """ln 2 = 2 atanh(1/3), to one unit."""
    g = 16 + p.bit_length()
    return _cut(2 * _atanh(Fraction(1, 3), p + g), g)


def _atan_of_inverse(n: int, w: int) -> int:
    """atan(1 / n) to w + 2 units: each of at most w terms is cut off, and the powers' own error shrinks."""
    power, total, j = (1 << w) // n, 0, 0
    while power:
        total += power // (2 * j + 1) if j % 2 == 0 else -(power // (2 * j + 1))
        power //= n * n
        j += 1
    return total


def _atanh(z: Fraction, w: int) -> int:
    """atanh(z) for 0 <= z <= 1/3, to 2 w + 4 units: each of at most w terms is cut off twice, and the rest is below the last power."""
    power, total, j = (z.numerator << w) // z.denominator, 0, 0
    square = z * z
    while power:
        total += power // (2 * j + 1)
        power = power * square.numerator // square.denominator
        j += 1
    return total


def _cut(x: int, g: int) -> int:
    """Without the last g binary digits, to nearest."""
    return (x + (1 << (g - 1))) >> g
