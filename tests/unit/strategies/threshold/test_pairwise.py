from fractions import Fraction

import numpy as np
import pytest

from compactproofs.arrays.interval import Interval
from compactproofs.budget import Budget
from compactproofs.counting.brute_force import brute_force
from compactproofs.errors import DisagreementError
from compactproofs.form.evaluation import prepare
from compactproofs.form.tables import interval_circuits
from compactproofs.strategies.base import Request
from compactproofs.strategies.threshold import ThresholdBest, ThresholdCubicPooled, ThresholdExactOutput, ThresholdQuartic, pairs
from compactproofs.strategies.threshold.engine import Effort, Engine, Failures
from compactproofs.strategies.threshold.pairwise import first_effort
from compactproofs.tasks import task_for
from models import random_weights, underflowing_weights, weights_from_tables
from tasks import Named


def terms(weights, label, query):
    e, a = prepare(weights), task_for(weights).label_automaton(label)
    G = np.empty((weights.d_vocab_out, weights.n_ctx, len(a.tokens)))
    A = np.empty(G.shape[1:])
    pairs.fill_terms(e.attention, e.EVOU, e.PVOU, e.EU, a.tokens, label, query, G, A)
    return e, a, G, A


@pytest.mark.parametrize("seed", range(6))
def test_terms_are_within_the_proven_distance_of_the_exact_ones(seed):
    weights = random_weights(seed, n_ctx=3, d_vocab=5, d_vocab_out=6, scale=0.3 + seed)
    t = interval_circuits(weights)
    label, query = 4, seed % 5
    e, _, G, A = terms(weights, label, query)
    scores = t.EQKE[query][None, :] + t.EQKP[query][:, None]
    exact_A = np.exp(scores - shift_of(weights, query))
    for o in range(6):
        B = (t.EVOU[:, o] - t.EVOU[:, label])[None] + (t.PVOU[:, o] - t.PVOU[:, label])[:, None] + (t.EU[query, o] - t.EU[query, label])
        exact = exact_A * B
        margin = e.tolerance * A + e.floor
        assert (exact.upper <= (Interval.exact(G[o]) + margin).lower).all()
        assert (exact.lower >= (Interval.exact(G[o]) - margin).upper).all()


def shift_of(weights, query):
    """The shift that the evaluation uses, read off its tables: its largest attention is exactly 1."""
    t = interval_circuits(weights)
    EQKE, EQKP = t.EQKE.midpoint_radius()[0], t.EQKP.midpoint_radius()[0]
    return float((EQKE[query][None, :] + EQKP[query][:, None]).max())


def test_outputs_that_cannot_win_are_dropped_and_no_others():
    weights = random_weights(3, n_ctx=3, d_vocab=4, d_vocab_out=5, scale=1.0)
    for label in range(4):
        for query in range(label + 1):
            e, a, G, A = terms(weights, label, query)
            wrong = np.array([o for o in range(5) if o != label])
            rest = (e.tolerance, e.floor, a.following, a.accepting, a.start)
            kept = pairs.relevant_outputs(G, A, wrong, query, *rest).tolist()
            for o in wrong.tolist():
                sums = [
                    G[o, 0, x] + G[o, 1, y] + G[o, 2, query]
                    for x in range(label + 1)
                    for y in range(label + 1)
                    if max(x, y, query) == label
                ]
                assert (o in kept) == (max(sums) > -1e-9), (label, query, o)


def test_weights_that_are_not_positive_prove_nothing():
    _, _, G, A = terms(random_weights(0, d_vocab_out=5), 2, 1)
    for bad in (0.0, -1.0, np.nan, np.inf):
        assert np.isposinf(pairs.worst_output(G, A, np.array([0, 1]), np.array([1.0, bad, 1, 1, 1]), 1e-9, 0.0)).all()


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_where_products_underflow(seed):
    """Terms, attention and weights at the edge of float64: an absolute error does not shrink with the weight that multiplies it."""
    rng = np.random.default_rng(seed)
    A = 2.0 ** rng.integers(-1074, -900, size=(3, 4))
    G = rng.choice([-1.0, 1.0], size=(2, 3, 4)) * A * 2.0 ** rng.integers(-30, 1, size=(2, 3, 4))
    tolerance, floor = 8 * 1.1 * 2.0**-45, 2.0**-999  # brackets up to 1
    weights = 10.0 ** rng.uniform(-100, [-80, 100])
    h = pairs.worst_output(G, A, np.array([0, 1]), weights, tolerance, floor)
    less = pairs.difference(G, A, 0, 1, weights[1], tolerance, floor)

    def most(o, i, j):
        """The largest exact term that may stand behind G, by (*)."""
        return Fraction(G[o, i, j]) + Fraction(3, 8) * Fraction(tolerance) * Fraction(A[i, j]) + Fraction(floor) / 4

    for i, j in np.ndindex(A.shape):
        assert all(Fraction(h[i, j]) > Fraction(weights[o]) * most(o, i, j) for o in range(2))
        least = 2 * Fraction(G[1, i, j]) - most(1, i, j)
        assert Fraction(less[i, j]) > most(0, i, j) - Fraction(weights[1]) * least


def test_no_branch_is_left_because_a_sum_underflowed():
    """The first edition's false theorem: two sequences were claimed, one is right."""
    weights = underflowing_weights()
    request = Request(weights, task_for(weights), upper=True)
    assert brute_force(weights, request.task).correct == 1
    bound = ThresholdBest().bound(request)
    assert (bound.correct_at_least, bound.correct_at_most) == (1, 1)


def test_a_negative_multiplier_is_taken_for_zero():
    _, _, G, A = terms(random_weights(0, d_vocab_out=5), 2, 1)
    assert np.array_equal(pairs.difference(G, A, 0, 1, -3.0, 0.0, 0.0), G[0])


def test_bounds_that_contradict_each_other_are_an_error_not_a_theorem():
    failures = Failures(totals=[5], upper=[5], lower=[0])
    failures.tighten(0, 4, 2)
    assert (failures.upper, failures.lower, failures.gap(0)) == ([4], [2], 2)
    with pytest.raises(DisagreementError, match="ALARM: .*at least 2 and at most 1.*Please report this"):
        failures.tighten(0, 1, 0)


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("apart", [True, False])
def test_no_effort_overflows_its_counts(joint, apart):
    """Without joint and apart nothing is known, in every class: adding that up must not wrap around."""
    weights = random_weights(0)
    task = task_for(weights)
    engine = Engine.of(weights, task)
    failures = engine.unknown()
    engine.bound_labels(failures, Effort(5, classes=4, joint=joint, apart=apart, lower=True, ignore=0.0), failures, Budget())
    right = brute_force(weights, task, threads=1).correct
    assert task.total - sum(sum(f.upper) for f in failures.values()) <= right
    assert all(0 <= low <= up <= total for f in failures.values() for low, up, total in zip(f.lower, f.upper, f.totals, strict=True))


def test_a_model_that_is_always_wrong_in_many_ways_gets_no_credit():
    """Three hundred outputs beat every label: the union bound exceeds 64 bits."""
    v = k = 16
    EVOU = np.zeros((v, 300))
    EVOU[:, 16:] = 1.0
    weights = weights_from_tables(np.zeros((v, v)), np.zeros((v, k)), EVOU, np.zeros((k, 300)), np.zeros((v, 300)))
    engine = Engine.of(weights, task_for(weights))
    failures = engine.unknown()
    engine.bound_some([(15, 0)], first_effort(weights, joint=False, apart=True), failures, Budget())
    assert failures[15].upper[0] == failures[15].totals[0]


def test_weights_beyond_float64_prove_nothing_about_tasks_with_several_accepting_states():
    weights = random_weights(1, n_ctx=2, d_vocab=3, d_vocab_out=3, d_model=3, d_head=2, scale=1e9)
    task = Named("mostly zero", 2, 3)
    right = brute_force(weights, task, threads=1).correct
    for strategy in (ThresholdBest(), ThresholdQuartic(), ThresholdExactOutput()):
        bound = strategy.bound(Request(weights, task, upper=True))
        assert bound.correct_at_least <= right
        assert bound.correct_at_most is None or right <= bound.correct_at_most


def test_a_network_of_zeros_is_never_right_and_nothing_divides_by_zero():
    weights = weights_from_tables(np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3)))
    for strategy in (ThresholdBest(), ThresholdQuartic(), ThresholdExactOutput()):
        assert strategy.bound(Request(weights, task_for(weights))).correct_at_least == 0


@pytest.mark.parametrize("strategy", [ThresholdQuartic(), ThresholdCubicPooled(), ThresholdBest()])
def test_sequences_may_be_long(strategy):
    """2^1030 sequences are beyond floating point."""
    weights = random_weights(0, n_ctx=1030, d_vocab=2, d_vocab_out=2)
    bound = strategy.bound(Request(weights, task_for(weights), seconds=30.0))
    assert 0 <= bound.correct_at_least <= 2**1030
