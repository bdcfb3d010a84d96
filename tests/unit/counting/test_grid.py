"""From real bounds to counts: hints may be anything, and the count stays on its side."""

from itertools import product

import numpy as np
import pytest

from compactproofs.counting import grid
from compactproofs.tasks import MaxOfK


def truth(h, last, automaton):
    """Accepted sequences whose terms add up to at least zero; NaN and positive infinity count as at least zero."""
    found = 0
    for sequence in product(range(h.shape[1]), repeat=h.shape[0]):
        state = automaton.start
        for token in sequence:
            state = automaton.following[state, token] if state >= 0 else -1
        total = sum(h[i, t] for i, t in enumerate(sequence))
        found += bool(state >= 0 and automaton.accepting[state] and last[sequence[-1]] and not total < 0)
    return found


def case(seed):
    rng = np.random.default_rng(seed)
    k, v = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    automaton = MaxOfK(k, v).label_automaton(int(rng.integers(v)))
    n = len(automaton.tokens)
    h = rng.normal(size=(k, n)) * 10.0 ** rng.integers(-3, 4, size=(k, n))
    if seed % 4 == 0:
        h = np.round(h)  # ties
    return rng, automaton, h, rng.random(n) < 0.6


@pytest.mark.parametrize("seed", range(80))
def test_count_on_grid_bounds_the_number_whatever_the_hints(seed):
    rng, automaton, h, last = case(seed)
    true, work = truth(h, last, automaton), np.zeros(1, dtype=np.int64)
    for _ in range(5):
        unit, steps = float(rng.choice([0.0, np.nan, 1e-300, 0.01, 1.0, 1e5, np.inf])), int(rng.choice([-1, 0, 1, 7, 300]))
        rest = (int(rng.integers(h.shape[1])), automaton.following, automaton.accepting, automaton.start)
        assert grid.count_on_grid(h, last, unit, steps, *rest, True, work) >= true, (unit, steps)
        assert grid.count_on_grid(h, last, unit, steps, *rest, False, work) <= true, (unit, steps)
    assert work[0] >= 0


@pytest.mark.parametrize("seed", range(40))
def test_counting_by_class_covers_every_sequence_once(seed):
    rng, automaton, h, last = case(seed)
    n = h.shape[1]
    true, work = truth(h, last, automaton), np.zeros(1, dtype=np.int64)
    order = rng.integers(n, size=rng.integers(0, 4))
    rest = (automaton.following, automaton.accepting, automaton.start)
    assert grid.count_failures(h, last, int(rng.integers(n)), order, 50, *rest, work) >= true
    everything = np.zeros_like(h)
    total = sum(t for t, allowed in zip(automaton.totals_by_last(h.shape[0]), last, strict=True) if allowed)
    assert grid.count_failures(everything, last, 0, rng.permutation(n)[:3], 50, *rest, work) == total


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_unknown_terms_fail_from_above_and_are_left_out_from_below(poison):
    automaton = MaxOfK(3, 3).label_automaton(2)
    h, last, work = np.full((3, 3), -1.0), np.ones(3, dtype=bool), np.zeros(1, dtype=np.int64)
    h[1, 0] = poison
    rest = (1.0, 10, 2, automaton.following, automaton.accepting, automaton.start)
    assert grid.count_on_grid(h, last, *rest, True, work) == 5  # token 0 at position 1, the label elsewhere: 9 - 4
    h[1, 0] = np.nan
    assert grid.count_on_grid(h, last, *rest, False, work) == 0


def test_fine_steps_make_the_count_exact():
    automaton = MaxOfK(4, 6).label_automaton(5)
    h = np.random.default_rng(0).integers(-99, 100, size=(4, 6)) / 100 + 0.003
    last, work = np.ones(6, dtype=bool), np.zeros(1, dtype=np.int64)
    rest = (1.0, 16000, 5, automaton.following, automaton.accepting, automaton.start)
    assert grid.count_on_grid(h, last, *rest, True, work) == truth(h, last, automaton) == grid.count_on_grid(h, last, *rest, False, work)
