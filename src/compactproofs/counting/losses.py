"""Bounds of the mean cross-entropy from how often the label wins by which margin. Exact fractions; proofs in docs/explanation/margins.md.

The gap g of an input is the label's logit minus the largest other one, g_o the label's logit minus that of output o. With

    loss_lower(g) = log(1 + exp(-g)),    loss_upper(g) = log(1 + n exp(-g)),    n other outputs,

the cross-entropy lies between loss_lower(g) and loss_upper(g); and it is at most excess(g) + sum over o of share(g_o), where, with
x = exp(-y), share(y) = log((1 + 2 x) / (1 + x)) and excess(y) = log((1 + x)^2 / (1 + 2 x)). All of these decrease.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction

_CONTEXT = decimal.Context(prec=60, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])
_SLACK = Fraction(1, 10**50)
_EXTREME = 10**6

Ends = tuple[Fraction, Fraction]
"""A number between two fractions."""


def logarithm_of_sum(first: int, factor: int, gap: Fraction) -> Ends:
    """Bounds of log(first + factor exp(-gap)), integers of at least 1 and 0, up to 10^9.

    `decimal` rounds exp and ln correctly, so each of the four roundings errs by less than 10^-59 relatively, which a logarithm turns into
    an absolute error; the slack covers them, and the rounding of the gap, which is at most 10^6 in size.
    """
    if factor == 0:
        return _enclosed(_CONTEXT.ln(Decimal(first)))
    if gap < -_EXTREME:  # the exponential is all that matters
        return -gap, -gap + Fraction(_CONTEXT.ln(Decimal(first + factor))) + _SLACK
    if gap > _EXTREME:
        least, most = _enclosed(_CONTEXT.ln(Decimal(first)))
        return least, most + _SLACK
    exponent = _CONTEXT.divide(Decimal(-gap.numerator), Decimal(gap.denominator))
    power = _CONTEXT.exp(exponent)
    return _enclosed(_CONTEXT.ln(_CONTEXT.add(Decimal(first), _CONTEXT.multiply(Decimal(factor), power))))


def _enclosed(value: Decimal) -> Ends:
    exact = Fraction(value)
    slack = _SLACK * (1 + abs(exact))
    return max(Fraction(0), exact - slack), exact + slack


def loss_lower(gap: Fraction) -> Fraction:
    """At most the loss of an input with at most this gap."""
    return logarithm_of_sum(1, 1, gap)[0]


def loss_upper(gap: Fraction, others: int) -> Fraction:
    """At least the loss of an input with at least this gap."""
    return logarithm_of_sum(1, others, gap)[1]


def share_upper(gap: Fraction) -> Fraction:
    """At least share(g_o) for any g_o of at least this; never more than log 2 (and a little)."""
    return min(share_limit(), logarithm_of_sum(1, 2, gap)[1] - logarithm_of_sum(1, 1, gap)[0])


def share_limit() -> Fraction:
    """At least log 2, above which no share is."""
    return logarithm_of_sum(2, 0, Fraction(0))[1]


def excess_upper(gap: Fraction) -> Fraction:
    """At least excess(g) for any g of at least this."""
    return 2 * logarithm_of_sum(1, 1, gap)[1] - logarithm_of_sum(1, 2, gap)[0]


def mean_lower(margins: Sequence[float], shares_upper: Sequence[Fraction], greatest_upper: float) -> Fraction:
    """A lower bound of the mean loss. shares_upper[j] is at least the share of inputs with a gap above margins[j], ascending; no gap is
    above `greatest_upper`.

    Guarantee: by summation by parts, as loss_lower decreases. An input loses at least what any margin does that its gap does not exceed,
    and at least what the greatest gap does: also where some margins are above that.
    """
    after = Fraction(0) if greatest_upper == math.inf else loss_lower(Fraction(greatest_upper))
    total = after
    for margin, share in zip(reversed(margins), reversed(shares_upper), strict=True):
        here = max(loss_lower(Fraction(margin)), after)
        total += (1 - min(share, Fraction(1))) * (here - after)
        after = here
    return total


def mean_upper(
    margins: Sequence[float], shares_lower: Sequence[Fraction], smallest_lower: float, bound: Callable[[Fraction], Fraction]
) -> Fraction | None:
    """An upper bound of the mean of `bound`(gap), which decreases. shares_lower[j] is at most the share of inputs with a gap above
    margins[j], ascending; no gap is below `smallest_lower`. None if there is none.

    Guarantee: by summation by parts.
    """
    if smallest_lower == -math.inf and not (shares_lower and shares_lower[0] >= 1):
        return None
    start = Fraction(margins[0]) if shares_lower and shares_lower[0] >= 1 else Fraction(smallest_lower)
    before = bound(start)
    total = before
    for margin, share in zip(margins, shares_lower, strict=True):
        if margin <= start:
            continue
        here = min(bound(Fraction(margin)), before)
        total -= max(share, Fraction(0)) * (before - here)
        before = here
    return total


def mean_of_shares(margins: Sequence[float], within_upper: Sequence[Fraction], outputs: int) -> Fraction:
    """An upper bound of the mean of sum over o of share(g_o), o being one of so many other outputs. within_upper[j] is at least the mean
    number of outputs o with g_o <= margins[j], ascending.

    Guarantee: by summation by parts, as share decreases.
    """
    before = share_limit()
    total, most = Fraction(0), Fraction(outputs)
    for margin, within in zip(margins, within_upper, strict=True):
        here = min(share_upper(Fraction(margin)), before)
        total += min(within, most) * (before - here)
        before = here
    return total + most * before
