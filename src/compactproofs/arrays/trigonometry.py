"""Cosines and sines of the angles i / base^x that rotary positions use, enclosed.

All steps are in `decimal` with 100 digits. Its ln, exp and division are correctly rounded, so ln(base) x, below 1000, and exp of it are off
by less than 10^-95 relatively, and the angle, at most 2^20, by less than 10^-88. With z = angle / 2^h <= 1/16 the two series alternate and
are cut where terms are below 10^-99. Doubling, (c, s) -> (2 c^2 - 1, 2 s c), makes an error at most about four times larger, and happens at
most 24 times: less than 10^16. What comes out is off by less than 10^-70. `_SLACK` is far more than that.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from compactproofs.arrays.rounding import round_down, round_up

_CONTEXT = decimal.Context(prec=100, rounding=decimal.ROUND_HALF_EVEN, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_SLACK = Fraction(1, 10**40)
LARGEST_POSITION = 1 << 20


@lru_cache(maxsize=1 << 16)
def cos_sin_enclosure(position: int, base: float, exponent: Fraction) -> tuple[tuple[float, float], tuple[float, float]]:
    """(lower, upper) of cos and of sin of position / base^exponent.

    Guarantee: encloses the real numbers.
    Assumes: 0 <= position <= 2^20, base >= 1, 0 <= exponent <= 1.
    """
    if not (0 <= position <= LARGEST_POSITION and 1 <= base < float("inf") and 0 <= exponent <= 1):
        raise ValueError(f"the angle {position} / {base}^{exponent} is out of range")
    if position == 0:
        return (1.0, 1.0), (0.0, 0.0)
    with decimal.localcontext(_CONTEXT):
        power = (Decimal(base).ln() * exponent.numerator / exponent.denominator).exp()
        angle = Decimal(position) / power
        halvings = 0
        while angle > Decimal(1) / 16:
            angle, halvings = angle / 2, halvings + 1
        cos, sin, term, n = Decimal(1), angle, angle, 1
        while abs(term) > Decimal(10) ** -99:
            term = -term * angle / (n + 1) if n % 2 else term * angle / (n + 1)
            n += 1
            cos, sin = (cos, sin + term) if n % 2 else (cos + term, sin)
        for _ in range(halvings):
            cos, sin = 2 * cos * cos - 1, 2 * sin * cos
    return _around(cos), _around(sin)


def _around(x: Decimal) -> tuple[float, float]:
    middle = Fraction(x)
    return max(-1.0, round_down(middle - _SLACK)), min(1.0, round_up(middle + _SLACK))
