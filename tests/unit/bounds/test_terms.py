"""Terms of one query and label: the compiled functions against intervals and exact fractions, and the walk against enumeration."""

from contextlib import suppress
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from compactproofs.arrays import FlopCounter
from compactproofs.arrays.arithmetic import Counting, Rigorous
from compactproofs.arrays.interval import Interval
from compactproofs.bounds import pairs
from compactproofs.bounds.terms import Terms
from compactproofs.counting.classes import in_class
from compactproofs.counting.grid import on_grid
from compactproofs.counting.subject import for_queries, subject_of
from compactproofs.errors import ModelError
from compactproofs.form.additive import Form, Head, Readout, additive_form
from compactproofs.form.evaluation import prepare
from compactproofs.search.grids import choose_grid, natural_unit
from compactproofs.tasks import MaxOfK, task_for
from compactproofs.tasks.question import Question
from models import random_weights
from tasks import Named


def both(weights, label, query, margin=0.0):
    """The terms by compiled functions and by array code in intervals."""
    subject = subject_of(Question(task_for(weights)), label)
    margins = np.full((weights.d_vocab, weights.d_vocab_out), margin)
    pair = pairs.pair_of(prepare(weights, margins), subject.tokens, label, query)
    form = additive_form(weights, Rigorous())
    return subject, pair, Terms.of(form, query, form.only_head().attention(query), subject, margin, Rigorous())


def upper(h):
    return h.upper if isinstance(h, Interval) else h


@pytest.mark.parametrize("seed", range(12))
def test_compiled_terms_are_within_the_proven_distance_of_the_exact_ones(seed):
    weights = random_weights(seed, n_ctx=3, d_vocab=5, d_vocab_out=6, scale=0.3 + seed % 6)
    _, pair, terms = both(weights, 4, seed % 5, margin=0.5 * (seed % 2))
    slack = pair.tolerance * pair.A + pair.floor
    assert (terms.G.upper <= (Interval.exact(pair.G) + slack).lower).all()
    assert (terms.G.lower >= (Interval.exact(pair.G) - slack).upper).all()


@pytest.mark.parametrize("seed", range(25))
def test_compiled_integers_are_never_below_the_intervals_and_rarely_above(seed):
    """On random blocks: the integers of every kind of term, on the grid that a search would choose."""
    rng = np.random.default_rng(seed)
    weights = random_weights(seed, n_ctx=int(rng.integers(1, 5)), d_vocab=6, d_vocab_out=7, d_model=5, scale=float(rng.choice([0.3, 1, 3])))
    label = int(rng.integers(1, 6))
    query = int(rng.integers(label + 1))
    subject, pair, terms = both(weights, label, query)
    others = np.array([o for o in range(7) if o != label])
    outputs = rng.choice(others, size=int(rng.integers(1, 4)), replace=False)
    w = rng.integers(1, 1 << 30, size=len(outputs))
    one, other = rng.choice(others, size=2, replace=False).tolist()
    n1, n2 = (int(x) for x in rng.integers(1, 1 << 30, size=2))
    masses = for_queries(subject, np.array([query]))
    above = total = 0
    for compiled, exact in (
        (pairs.joint_harms(pair, outputs, w), terms.joint(outputs, w)),
        (pairs.apart_harms(pair, one, other, n1, n2), terms.apart(one, other, n1, n2)),
        (pairs.spoiler_harms(pair, one), terms.spoiler(one)),
        (pairs.spoilers_harms(pair, one, other, n1, max(n2, 1)), terms.spoilers(one, other, n1, max(n2, 1))),
    ):
        grid = choose_grid(compiled, masses, natural_unit(compiled, masses, subject.usual, subject.usual), 200, subject.usual, 16)
        mine, low, high = (on_grid(np.ascontiguousarray(h), grid, 0) for h in (compiled, exact.lower, exact.upper))
        assert (mine >= low).all()
        above, total = above + int((mine > high).sum()), total + mine.size
    assert above <= 0.01 * total


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_where_products_underflow(seed):
    """Terms and attention at the edge of float64: whole factors do not shrink the margin."""
    rng = np.random.default_rng(seed)
    A = 2.0 ** rng.integers(-1074, -900, size=(3, 4))
    G = rng.choice([-1.0, 1.0], size=(2, 3, 4)) * A * 2.0 ** rng.integers(-30, 1, size=(2, 3, 4))
    tolerance, floor = 8 * 1.1 * 2.0**-45, 2.0**-999  # brackets up to 1
    pair = pairs.Pair(G, A, 5, tolerance, floor)
    w = np.array([1, int(rng.integers(1, 1 << 40))])
    h, less = pairs.joint_harms(pair, np.array([0, 1]), w), pairs.apart_harms(pair, 0, 1, int(w[0]), int(w[1]))

    def most(o, i, j):
        """The largest exact term that may stand behind G, by (*)."""
        return Fraction(G[o, i, j]) + Fraction(3, 8) * Fraction(tolerance) * Fraction(A[i, j]) + Fraction(floor) / 4

    for i, j in np.ndindex(A.shape):
        assert all(Fraction(h[i, j]) > int(w[o]) * most(o, i, j) for o in range(2))
        least = 2 * Fraction(G[1, i, j]) - most(1, i, j)
        assert Fraction(less[i, j]) > most(0, i, j) - int(w[1]) * least


def test_factors_that_cannot_be_prove_nothing():
    _, pair, _ = both(random_weights(0, d_vocab_out=5), 2, 1)
    for bad in (0, -1, pairs.LARGEST_FACTOR + 1):
        assert np.isposinf(pairs.joint_harms(pair, np.array([0, 1]), np.array([1, bad]))).all()
        assert np.isposinf(pairs.apart_harms(pair, 0, 1, bad, 1)).all() or bad == 0
        assert np.isposinf(pairs.spoilers_harms(pair, 0, 1, bad, 1)).all() and np.isposinf(pairs.spoilers_harms(pair, 0, 1, 1, bad)).all()
    assert np.isposinf(pairs.apart_harms(pair, 0, 1, 1, -1)).all()


def test_a_first_factor_of_zero_is_what_the_other_output_does_not_spoil():
    _, pair, _ = both(random_weights(0, d_vocab_out=5), 2, 1)
    harms = pairs.apart_harms(pair, 0, 1, 0, 1)
    assert (harms == pairs.spoiler_harms(pair, 1)).all() and not np.isinf(harms).any()
    assert not pairs.apart_harms(pair, 0, 1, 0, 0).any()  # adds up to zero on every sequence: all are counted


def sequences(subject, query):
    found = []
    for x in product(range(len(subject.tokens)), repeat=len(subject.masses) - 1):
        state = subject.automaton.first
        for token in (*x, query):
            state = subject.automaton.following[state, token] if state >= 0 else -1
        if state >= 0 and subject.automaton.accepting[state]:
            found.append((*x, query))
    return found


def test_walk_drops_outputs_that_cannot_win_and_no_others():
    weights = random_weights(3, n_ctx=3, d_vocab=4, d_vocab_out=5, scale=1.0)
    for label, query in ((m, q) for m in range(4) for q in range(m + 1)):
        subject, pair, terms = both(weights, label, query)
        wrong = np.array([o for o in range(5) if o != label])
        masses = for_queries(subject, np.array([query]))
        kept = pairs.harmful_outputs(pair, wrong, masses, subject.automaton).tolist()
        for o in wrong.tolist():
            largest = max(sum(pair.G[o, i, t] for i, t in enumerate(x)) for x in sequences(subject, query))
            assert (o in kept) == (largest > -1e-9) == (not terms.harmless(o, masses, subject.automaton)), (label, query, o)


@pytest.mark.parametrize("kind", ["max", "minimum", "parity", "first", "mostly zero"])
def test_rivals_are_what_walks_leave_and_their_terms_the_same_numbers(kind):
    """For every query and label, with fixed and forbidden tokens, large and tiny weights, margins, and tables that say nothing."""
    rng = np.random.default_rng(sum(map(ord, kind)))
    for scale in (1e-160, 0.3, 1.0, 3.0, 40.0):
        weights = random_weights(int(rng.integers(99)), n_ctx=3, d_vocab=4, d_vocab_out=6, scale=scale)
        task = MaxOfK(3, 4) if kind == "max" else Named(kind, 3, 4)
        masses = rng.integers(0, 3, size=(3, 4))
        masses[:, 0] = 1
        question = Question(task, masses)
        known = prepare(weights, rng.choice([-1.0, 0.0, 0.5], size=(4, 6)))
        for evaluation in (known, known._replace(tolerance=np.inf, floor=np.inf)):
            for label in task.labels:
                subject = subject_of(question, label)
                others = np.array([o for o in range(6) if o != label])
                for query, token in enumerate(subject.tokens.tolist()):
                    masses = for_queries(subject, np.array([query]))
                    whole = pairs.pair_of(evaluation, subject.tokens, label, token)
                    found = pairs.rivals(evaluation, subject, masses, subject.automaton, token)
                    assert found.tolist() == pairs.harmful_outputs(whole, others, masses, subject.automaton).tolist()
                    some = pairs.pair_for(evaluation, subject.tokens, label, token, found)
                    assert np.array_equal(some.G[found], whole.G[found]) and np.array_equal(some.A, whole.A)


def test_kinds_of_tokens_move_every_state_alike():
    for kind in ("minimum", "parity", "first"):
        automaton = subject_of(Question(Named(kind, 3, 4)), Named(kind, 3, 4).labels[0]).automaton
        kinds, columns = pairs.token_kinds(automaton).tolist(), automaton.following.T.tolist()
        assert all((kinds[a] == kinds[b]) == (columns[a] == columns[b]) for a in range(len(kinds)) for b in range(len(kinds)))


@pytest.mark.parametrize("kind", ["minimum", "parity", "first", "mostly zero"])
def test_walk_operations_are_what_the_array_code_executes(kind):
    question = Question(Named(kind, 3, 4))
    for label in question.task.labels:
        subject = subject_of(question, label)
        for order in ([], [0], [1, 0]):
            numbers = np.searchsorted(subject.tokens, [t for t in order if t in subject.tokens])
            for c in range(len(numbers) + 1):
                automaton, counter = in_class(subject.automaton, numbers, c), FlopCounter()
                arithmetic = Counting(counter)
                terms = Terms(arithmetic.array(np.zeros((1, 3, len(subject.tokens)))), 5, arithmetic)
                masses = for_queries(subject, np.array([0]))
                with suppress(TypeError):  # a phantom has no sign
                    terms.harmless(0, masses, automaton)
                assert counter.steps.get("walks", 0) == pairs.walk_operations(masses, automaton)


def test_decide_is_right_wrong_or_undecided():
    weights = random_weights(3, n_ctx=3, d_vocab=4, d_vocab_out=5, scale=1.0)
    for label, query in ((m, q) for m in range(4) for q in range(m + 1)):
        subject, pair, _ = both(weights, label, query)
        wrong = np.array([o for o in range(5) if o != label])
        for x in sequences(subject, query):
            largest = max(sum(pair.G[o, i, t] for i, t in enumerate(x)) for o in wrong)
            assert pairs.decide(pair, wrong, np.array(x)) == (pairs.RIGHT if largest < 0 else pairs.WRONG)


def test_a_head_with_a_sheet_for_every_position_has_the_same_terms():
    """Attention and values may depend on position and token in any way: here, the same way as before."""
    weights = random_weights(2, n_ctx=3, d_vocab=4, d_vocab_out=5)
    _, _, terms = both(weights, 3, 1)
    form = additive_form(weights, Rigorous())
    head = form.only_head()
    scores = head.token_scores + head.position_scores[:, :, None]
    values = head.token_values + head.position_values[:, None, :]
    nothing = head.position_scores * 0.0, head.position_values * 0.0
    dense = Form((Head(scores, nothing[0], values, nothing[1]),), form.base)
    subject = subject_of(Question(MaxOfK(3, 4)), 3)
    again = Terms.of(dense, 1, dense.only_head().attention(1), subject, 0.0, Rigorous())
    before, after = (np.abs(x.G.lower).max(axis=0) for x in (terms, again))  # attention is relative to another score
    factor = after.max() / before.max()
    assert np.allclose(again.G.lower, factor * terms.G.lower) and np.allclose(again.G.upper, factor * terms.G.upper)


def test_forms_that_no_bound_is_about_yet_are_refused():
    form = additive_form(random_weights(0), Rigorous())
    for wider in (Form(form.heads * 2, form.base), Form(form.heads, form.base, Readout.CONVEX)):
        with pytest.raises(ModelError, match="one head and an affine readout"):
            wider.only_head()
