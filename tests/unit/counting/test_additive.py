"""The counting programme against enumeration, and against the same programme in Python's unbounded integers."""

from itertools import product

import numpy as np
import pytest

from compactproofs.counting.additive import FORBIDDEN, count_at_least_zero, count_exponent
from compactproofs.tasks import MaxOfK
from tasks import KINDS, Named


def enumerated(H, automaton):
    """How many accepted sequences have a sum of at least zero."""
    found = 0
    for sequence in product(range(H.shape[1]), repeat=H.shape[0]):
        state, scores = automaton.start, [H[i, t] for i, t in enumerate(sequence)]
        for token in sequence:
            state = automaton.following[state, token] if state >= 0 else -1
        found += bool(state >= 0 and automaton.accepting[state] and FORBIDDEN not in scores and sum(scores) >= 0)
    return found


def exact_count(D, automaton):
    """The sums in a dictionary, the counts as Python integers."""
    counts = {(automaton.start, 0): 1}
    for row in D:
        after = {}
        for (state, total), count in counts.items():
            for token, d in enumerate(row.tolist()):
                following = int(automaton.following[state, token])
                if following >= 0 and d != FORBIDDEN:
                    key = following, total + d
                    after[key] = after.get(key, 0) + count
        counts = after
    return sum(count for (state, total), count in counts.items() if automaton.accepting[state] and total >= 0)


def count(H, coarse, offsets, automaton, up):
    return count_at_least_zero(H, coarse, offsets, automaton.following, automaton.accepting, automaton.start, up)[0]


@pytest.mark.parametrize("seed", range(60))
def test_count_at_least_zero_is_exact_in_single_steps_and_a_bound_in_coarse_ones(seed):
    rng = np.random.default_rng(seed)
    k, v = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    task = MaxOfK(k, v) if seed % 3 else Named(list(KINDS)[seed % len(KINDS)], k, v)
    label = int(rng.choice(task.labels))
    automaton = task.label_automaton(label)
    H = rng.integers(-40, 40, size=(k, len(automaton.tokens)))
    H[rng.random(H.shape) < 0.1] = FORBIDDEN
    offsets, coarse = rng.integers(-30, 30, size=k), int(rng.integers(2, 20))
    true = enumerated(H, automaton)
    for up in (True, False):
        assert count(H, 1, offsets, automaton, up) == true
    assert count(H, coarse, offsets, automaton, False) <= true <= count(H, coarse, offsets, automaton, True)


@pytest.mark.parametrize(("k", "v"), [(10, 64), (12, 50), (20, 64), (20, 512), (40, 3)])
def test_counts_beyond_64_bits_are_rounded_in_the_direction_of_the_bound(k, v):
    rng = np.random.default_rng(k)
    automaton = MaxOfK(k, v).label_automaton(v - 1)
    H = rng.integers(-3, 3, size=(k, v))
    unit = 2 ** count_exponent(k, v)
    true = exact_count(H, automaton)
    lower, upper = (count(H, 1, np.zeros(k, dtype=np.int64), automaton, up) * unit for up in (False, True))
    assert lower <= true <= upper
    assert (unit == 1) == (lower == upper)
    assert upper - lower <= v**k >> 30


def test_nothing_is_counted_where_nothing_is_accepted():
    automaton = MaxOfK(3, 4).label_automaton(2)
    H = np.zeros((3, 3), dtype=np.int64)
    H[:, 2] = FORBIDDEN
    assert count(H, 1, np.zeros(3, dtype=np.int64), automaton, True) == 0
