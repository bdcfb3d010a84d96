"""Bounds of the mean cross-entropy against inputs that were made up, in 200 bits."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from compactproofs.counting.losses import (
    excess_upper,
    logarithm_of_sum,
    loss_lower,
    loss_upper,
    mean_lower,
    mean_of_shares,
    mean_upper,
    share_upper,
)


@pytest.fixture(autouse=True)
def precision():
    previous, ctx.prec = ctx.prec, 400
    yield
    ctx.prec = previous


def ball(x):
    x = Fraction(x)
    return arb(x.numerator) / x.denominator


def loss(leads):
    """Of an input whose label leads the other outputs by so much."""
    return sum(((-ball(lead)).exp() for lead in leads), arb(1)).log()


@pytest.mark.parametrize("gap", [0, 1e-300, -1e-300, 0.1, -0.1, 40.0, -40.0, 1e3, -1e3, 1e6, -1e6, 1.1e6, -1.1e6, 1e30, -1e30])
def test_logarithms_are_enclosed(gap):
    for first, factor in ((1, 1), (1, 2), (1, 10**9), (2, 0), (10**9, 7)):
        least, most = logarithm_of_sum(first, factor, Fraction(gap))
        if abs(gap) < 1e4:
            exact = (arb(first) + factor * (-ball(gap)).exp()).log()
            assert not exact < ball(least) and not exact > ball(most) and most - least < Fraction(1, 10**40)
        else:
            true = math.log(first) if gap > 0 or not factor else -gap + math.log(factor)
            assert float(least) - 1e-9 <= true <= float(most) + 1e-9 and most - least < 25


def test_the_loss_is_at_most_its_excess_and_its_shares():
    """Theorem L, output by output; with one other output it is an equation."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        leads = (rng.normal(size=rng.integers(1, 7)) * rng.choice([0.1, 2.0, 30.0])).tolist()
        least = Fraction(min(leads))
        bound = excess_upper(least) + sum(share_upper(Fraction(lead)) for lead in leads)
        assert not loss(leads) > ball(bound) and not loss(leads) > ball(loss_upper(least, len(leads)))
        assert not loss(leads) < ball(loss_lower(least))
        if len(leads) == 1:
            assert abs(loss(leads) - ball(bound)) < arb(10) ** -40


@pytest.mark.parametrize("seed", range(20))
def test_means_hold_whatever_the_margins_are(seed):
    """Also where all margins are above the greatest gap or below the smallest, or at gaps themselves."""
    rng = np.random.default_rng(seed)
    inputs, others = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    leads = rng.choice([0.01, 1.0, 10.0]) * rng.normal(size=(inputs, others))
    gaps = leads.min(axis=1)
    pool = np.concatenate([leads.ravel(), rng.normal(size=4), [0.0, 12.0, -12.0]])
    margins = sorted(set(rng.choice(pool, size=int(rng.integers(1, 9))).tolist()))
    slack = rng.choice([0.0, 0.2])
    exact = sum((loss(row) for row in leads.tolist()), arb(0)) / inputs

    def share(values, margin, by):
        return Fraction(int((values > margin).sum()), inputs) + Fraction(by)

    ends = [(float(gaps.min()), float(gaps.max())), (float(gaps.min()) - 1, float(gaps.max()) + 1), (-math.inf, math.inf)][seed % 3]
    least = mean_lower(margins, [share(gaps, m, slack) for m in margins], ends[1])
    assert not exact < ball(least)
    above = [share(gaps, m, -slack) for m in margins]
    plain = mean_upper(margins, above, ends[0], lambda gap: loss_upper(gap, others))
    excess = mean_upper(margins, above, ends[0], excess_upper)
    assert (plain is None) == (excess is None) == (ends[0] == -math.inf and above[0] < 1)
    if plain is not None:
        within = [others - share(leads, m, -slack) for m in margins]
        assert not exact > ball(plain) and not exact > ball(excess + mean_of_shares(margins, within, others))


def test_fine_margins_give_fine_bounds():
    """Two outputs, gaps known at every hundredth: both sides are close to the truth."""
    gaps = np.random.default_rng(1).normal(size=50)
    margins = np.arange(-3, 3, 0.01).tolist()
    shares = [Fraction(int((gaps > m).sum()), 50) for m in margins]
    exact = sum((loss([g]) for g in gaps.tolist()), arb(0)) / 50
    least, most = mean_lower(margins, shares, 3.0), mean_upper(margins, shares, -3.0, lambda gap: loss_upper(gap, 1))
    assert exact - arb("0.01") < ball(least) < exact < ball(most) < exact + arb("0.01")


def test_margins_above_the_greatest_gap_add_nothing():
    """All gaps are 0 or 1: the loss is log(1 + 1/e) or log 2, however many margins are beyond."""
    for gaps, margins in (([0.0], [0.0, 10.0]), ([0.0, 1.0], [0.0, 2.0, 5.0]), ([1.0], [3.0]), ([-2.0], [-3.0, 4.0])):
        shares = [Fraction(sum(g > m for g in gaps), len(gaps)) for m in margins]
        exact = sum((loss([g]) for g in gaps), arb(0)) / len(gaps)
        assert not exact < ball(mean_lower(margins, shares, 1.0))
