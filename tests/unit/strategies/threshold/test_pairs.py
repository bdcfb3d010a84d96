import numpy as np
import pytest

from compactproofs.arrays.interval import Interval
from compactproofs.circuits.tables import interval_circuits
from compactproofs.counting.evaluation import prepare
from compactproofs.strategies.threshold import pairs
from compactproofs.tasks import task_for
from models import random_weights


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
    shift = (prepare_shift(weights, query),)
    exact_A = np.exp(scores - shift[0])
    for o in range(6):
        B = (t.EVOU[:, o] - t.EVOU[:, label])[None] + (t.PVOU[:, o] - t.PVOU[:, label])[:, None] + (t.EU[query, o] - t.EU[query, label])
        exact = exact_A * B
        margin = e.tolerance * A + e.floor
        assert ((Interval.exact(G[o]) - margin).upper < exact.lower + 1e-300).all() or np.isinf(e.tolerance)
        assert (exact.upper <= (Interval.exact(G[o]) + margin).lower).all()
        assert (exact.lower >= (Interval.exact(G[o]) - margin).upper).all()


def prepare_shift(weights, query):
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


def test_a_negative_multiplier_is_taken_for_zero():
    _, _, G, A = terms(random_weights(0, d_vocab_out=5), 2, 1)
    assert np.array_equal(pairs.difference(G, A, 0, 1, -3.0, 0.0, 0.0), G[0])
