"""Each bound of the subcubic proofs against what it bounds, by enumeration on small random tables; hints at random."""

from dataclasses import replace
from itertools import product
from math import comb

import numpy as np
import pytest

from compactproofs.arrays import Interval
from compactproofs.arrays.arithmetic import Float64, Rigorous
from compactproofs.bounds import row_spreads
from compactproofs.bounds.direct_path import direct_bound
from compactproofs.bounds.low_rank_scores import Directions, approximate_scores
from compactproofs.errors import StrategyError
from compactproofs.form.tables import float_circuits
from compactproofs.model.forward import forward
from compactproofs.strategies.shared import Shared
from compactproofs.strategies.subcubic import AttentionError, DirectPath, QueryHandling, Subcubic
from compactproofs.strategies.subcubic.counting import count_covered
from compactproofs.strategies.subcubic.entries import Entries, applicable
from compactproofs.strategies.subcubic.gap_bound import attention_bounds, attention_parts, output_parts, wrong_logit_gap_upper
from compactproofs.strategies.subcubic.search import Hints, breakpoints, smallest_gaps
from compactproofs.strategies.subcubic.workbench import Workbench
from compactproofs.tasks import task_for
from models import random_weights

SLACK = 1e-9  # float64 against float64; the rigorous versions are tested in soundness/


def random_directions(weights, seed):
    rng = np.random.default_rng(seed)
    return Directions(*(rng.normal(size=n) for n in [weights.d_vocab] * 4 + [weights.d_model] * 3))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mean", [False, True])
def test_spread_bounds_hold_for_every_product(seed, mean):
    rng = np.random.default_rng(seed)
    factors = (rng.normal(size=(6, 3)), rng.normal(size=(3, 4)), rng.normal(size=(4, 5)), rng.normal(size=(5, 7)))
    exact = row_spreads.spread(factors[0] @ factors[1] @ factors[2] @ factors[3])
    assert np.all(row_spreads.spread_of_product_upper(factors[0] @ factors[1] @ factors[2], factors[3], mean=mean) >= exact - SLACK)
    assert np.all(row_spreads.spread_of_split_product_upper(factors, mean=mean) >= exact - SLACK)
    for below in (False, True):
        assert np.all(row_spreads.spread_recursive_upper(factors, mean=mean, mean_below=below) >= exact - SLACK)


@pytest.mark.parametrize("seed", range(5))
def test_spread_by_singular_value_upper_bounds_the_singular_value_and_is_close_to_it(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(9, 4)), rng.normal(size=(4, 9))
    sigma = np.linalg.svd(X @ Y)[1][0] * 2**0.5
    bound = row_spreads.spread_by_singular_value_upper(Interval.exact(X), Interval.exact(Y))
    assert sigma - SLACK <= bound.upper <= sigma * 4 ** (1 / 32) * (1 + 1e-9)
    assert row_spreads.spread_by_singular_value_upper(Interval.exact(0 * X), Interval.exact(Y)).upper < 1e-5


@pytest.mark.parametrize("error", AttentionError)
@pytest.mark.parametrize("seed", range(4))
def test_approximate_scores_are_off_by_at_most_their_error_whatever_the_directions(error, seed):
    weights = random_weights(seed, n_ctx=3, d_vocab=6, d_model=4, d_head=5)
    exact = float_circuits(weights)
    scores = approximate_scores(error, weights, random_directions(weights, seed), Rigorous())
    middle = scores.approximate.midpoint_radius()[0]
    bound = scores.error_upper.upper if isinstance(scores.error_upper, Interval) else scores.error_upper
    assert np.all(row_spreads.spread(exact.EQKE - middle) <= bound * np.ones(6) + SLACK)
    np.testing.assert_allclose(scores.EQKP.midpoint_radius()[0], exact.EQKP, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("handling", DirectPath)
@pytest.mark.parametrize("seed", range(4))
def test_direct_bound_covers_every_query_output_and_label(handling, seed):
    weights = random_weights(seed, d_vocab=6, d_vocab_out=8, d_model=4)
    EU = float_circuits(weights).EU
    bound = direct_bound(handling, weights, np.random.default_rng(seed).normal(size=4), Float64())
    for q, o, m in product(range(6), range(8), range(6)):
        assert EU[q, o] - EU[q, m] <= bound.mu[o] - bound.mu[m] + bound.rest_upper[q] + SLACK


@pytest.mark.parametrize("handling", QueryHandling)
@pytest.mark.parametrize("seed", range(6))
def test_attention_bounds_and_wrong_logit_gap_upper_cover_every_sequence_of_an_entry(handling, seed):
    weights = random_weights(seed, n_ctx=3, d_vocab=4, d_vocab_out=5, d_model=3, d_head=2)
    rng = np.random.default_rng(seed)
    v, k = 4, 3
    errors, directs = list(AttentionError), list(DirectPath)
    attention = attention_parts(approximate_scores(errors[seed % 10], weights, random_directions(weights, seed), Float64()), k, Float64())
    outputs = output_parts(weights, direct_bound(directs[seed % 5], weights, rng.normal(size=3), Float64()), Float64())
    gaps = rng.integers(1, 4, size=(v, v, k))
    entries = Entries.applicable(gaps)
    hint = rng.uniform(size=(v, k)) if handling is QueryHandling.MEAN_QUERY_DIFF else np.tile([0.0, 0.3, 0.35, 1.0], (v, 1))
    with np.errstate(over="ignore", invalid="ignore"):  # 0 * inf at c = 0, where the entry is not used
        found = attention_bounds(attention, entries)
    nothing = np.full((v, v, k), np.nan)
    bound = entries.placed(wrong_logit_gap_upper(handling, found, outputs, entries, hint, Float64()), into=nothing)
    lower, upper = (entries.placed(side, into=nothing) for side in found)
    tables = float_circuits(weights)
    seen = 0
    for tokens in product(range(v), repeat=k):
        q, m = tokens[-1], max(tokens)
        c = sum(t != m for t in tokens)
        if not applicable(gaps)[q, m, c] or any(t != m and t > m - gaps[q, m, c] for t in tokens):
            continue
        seen += 1
        scores = np.array([tables.EQKE[q, t] + tables.EQKP[q, i] for i, t in enumerate(tokens)])
        weights_ = np.exp(scores - scores.max())
        on_label = weights_[[t == m for t in tokens]].sum() / weights_.sum()
        assert lower[q, m, c] - SLACK <= on_label <= upper[q, m, c] + SLACK or c == 0
        logits = forward(weights, np.array([tokens]))[0]
        assert np.delete(logits - logits[m], m).max() <= bound[q, m, c] + SLACK
    assert seen > 10


@pytest.mark.parametrize("seed", range(5))
def test_count_covered_counts_exactly_the_sequences_of_credited_entries(seed):
    rng = np.random.default_rng(seed)
    v, k = 4, 4
    gaps = rng.integers(-1, v + 2, size=(v, v, k))
    credited = rng.random((v, v, k)) < 0.7
    expected = 0
    for tokens in product(range(v), repeat=k):
        q, m = tokens[-1], max(tokens)
        c = sum(t != m for t in tokens)
        inside = all(t == m or t <= m - gaps[q, m, c] for t in tokens)
        expected += bool(credited[q, m, c] and applicable(gaps)[q, m, c] and inside)
    assert count_covered(gaps, credited) == expected


def test_count_covered_is_exact_beyond_every_float():
    v, k = 64, 20
    gaps = np.ones((v, v, k), dtype=np.int64)
    total = count_covered(gaps, np.ones((v, v, k), dtype=bool))
    assert total == v**k
    assert comb(19, 10) * 63**10 > 2**63


def test_count_covered_ignores_gaps_that_mean_nothing():
    v, k = 5, 3
    gaps = np.ones((v, v, k), dtype=np.int64)
    gaps[:, :, 0] = -(2**60)  # no other token, no gap to keep
    assert count_covered(gaps, np.ones((v, v, k), dtype=bool)) == v**k


def test_smallest_gaps_finds_the_smallest_working_gap_of_a_monotone_bound():
    rng = np.random.default_rng(0)
    v, k = 7, 2
    wanted = rng.integers(1, 9, size=(v, v, k))
    gaps = smallest_gaps(lambda e: wanted[e.query, e.label, e.others] - e.gap - 0.5, v, k)
    q, m, c = np.arange(v)[:, None, None], np.arange(v)[None, :, None], np.arange(k)[None, None]
    largest = np.where(q == m, m, m - q) + 0 * c
    expected = np.where(wanted <= largest, wanted, v)
    assert np.array_equal(gaps[:, :, 1:], expected[:, :, 1:])


@pytest.mark.parametrize("seed", range(5))
def test_breakpoints_make_the_chords_meet_the_envelope(seed):
    rng = np.random.default_rng(seed)
    x, delta = rng.normal(size=(3, 5)), 3 * rng.normal(size=(3, 5))
    points = breakpoints(x, delta, 8)
    assert np.all(points[:, 0] == 0) and np.all(points[:, -1] == 1) and np.all(np.diff(points) > 0)
    grid = np.linspace(0, 1, 1001)
    for m in range(3):
        exact = (x[m] + grid[:, None] * delta[m]).max(axis=1)
        heights = (x[m] + points[m][:, None] * delta[m]).max(axis=1)
        np.testing.assert_allclose(np.interp(grid, points[m], heights), exact, atol=1e-4)


def test_too_many_breakpoints_are_thinned_out():
    rng = np.random.default_rng(1)
    slopes = np.linspace(-9, 9, 40)
    x = -(slopes**2) / 20 + 0.001 * rng.normal(size=40)
    points = breakpoints(x[None], slopes[None], 6)
    assert points.shape == (1, 6) and np.all(np.diff(points) > 0)


def test_hints_of_the_wrong_shape_are_refused():
    weights = random_weights(0)
    bench = Workbench(weights, Shared(weights, task_for(weights)))
    good = Hints(Directions.blank(weights), np.ones((5, 5, 3), dtype=np.int64), np.tile([0.0, 1.0], (5, 1)))
    assert Subcubic().count(bench, good, Rigorous()) >= 0
    for bad in (
        replace(good, gaps=good.gaps[:, :, :2]),
        replace(good, gaps=good.gaps.astype(float)),
        replace(good, directions=replace(good.directions, query=np.zeros(3))),
        replace(good, outputs=np.zeros((4, 2))),
        replace(good, outputs=np.zeros(5)),
        replace(good, outputs=np.zeros((5, 0))),
    ):
        with pytest.raises(StrategyError, match="shape"):
            Subcubic().count(bench, bad, Rigorous())


def test_unknown_options_list_the_known_ones():
    with pytest.raises(StrategyError, match="attention_error='magic'; expected one of svd, max_diff"):
        Subcubic(attention_error="magic")
    with pytest.raises(StrategyError, match="exists repaired only"):
        Subcubic(query_handling="envelope", repaired=False)


@pytest.mark.parametrize("name", ["max-of-4", "max-of-20"])
def test_the_envelope_dominates_both_published_query_handlings(name):
    import compactproofs as cp

    weights = cp.zoo(name)
    bounds = {h: cp.prove(weights, Subcubic("max_diff_exact", "max_diff_subproduct", h)).lower for h in QueryHandling}
    assert bounds[QueryHandling.ENVELOPE] >= max(bounds.values())
