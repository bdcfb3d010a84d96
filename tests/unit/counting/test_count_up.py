"""`count_up` against enumeration, and against the same programme in Python's unbounded integers."""

from itertools import product

import numpy as np
import pytest
from numba import njit

from compactproofs.counting import count_up as module
from compactproofs.counting.count_up import Automaton, ascending, count_up, mass_up, unit_exponents
from compactproofs.tasks import MaxOfK


def random_case(seed):
    rng = np.random.default_rng(seed)
    k, n, states = (int(rng.integers(1, 5)) for _ in range(3))
    automaton = Automaton(rng.integers(-1, states, (states, n)), rng.random(states) < 0.6, int(rng.integers(states)))
    D = rng.integers(-6, 7, (k, states if seed % 2 else 1, n))
    masses = rng.integers(0, 4, (k, n)) if seed % 3 else np.ones((k, n), dtype=np.int64)
    return D, masses, int(rng.integers(-5, 6)), automaton


def enumerated(D, masses, start, automaton):
    """The mass of the accepted sequences with start + sum D >= 0, one by one."""
    k, n = masses.shape
    found = 0
    for sequence in product(range(n), repeat=k):
        state, total, mass = automaton.first, start, 1
        for i, token in enumerate(sequence):
            if state < 0:
                break
            total += D[i, state if D.shape[1] > 1 else 0, token]
            mass *= int(masses[i, token])
            state = automaton.following[state, token]
        found += mass if state >= 0 and automaton.accepting[state] and total >= 0 else 0
    return found


@pytest.mark.parametrize("block", range(10))
def test_count_up(block):
    for seed in range(100 * block, 100 * block + 100):
        case = random_case(seed)
        assert count_up(*case)[0] == enumerated(*case), seed


def test_count_up_is_monotone():
    for seed in range(200):
        D, masses, start, automaton = random_case(seed)
        more = D + np.random.default_rng(seed).integers(0, 3, D.shape)
        assert count_up(D, masses, start, automaton)[0] <= count_up(more, masses, start, automaton)[0]


def test_mass_up_is_the_count_of_everything():
    for seed in range(200):
        D, masses, _, automaton = random_case(seed)
        assert mass_up(masses, automaton) == count_up(np.zeros_like(D[:, :1]), masses, 0, automaton)[0]


def exact_count(D, masses, start, automaton):
    """The sums in a dictionary, the masses as Python integers."""
    counts = {(automaton.first, start): 1}
    for i, row in enumerate(D[:, 0].tolist()):
        after = {}
        for (state, total), count in counts.items():
            for token, d in enumerate(row):
                following = int(automaton.following[state, token])
                if following >= 0:
                    key = following, total + d
                    after[key] = after.get(key, 0) + count * int(masses[i, token])
        counts = after
    return sum(count for (state, total), count in counts.items() if automaton.accepting[state] and total >= 0)


def of_label(k, v):
    a = MaxOfK(k, v).label_automaton(v - 1)
    return Automaton(a.following, a.accepting, a.start)


@pytest.mark.parametrize(("k", "v", "heaviest"), [(10, 64, 1), (12, 50, 1), (20, 64, 1), (20, 512, 1), (40, 3, 1), (6, 40, 1 << 30)])
def test_counts_beyond_64_bits_are_rounded_up(k, v, heaviest):
    rng = np.random.default_rng(k)
    D, masses = rng.integers(-3, 3, size=(k, 1, v)), rng.integers(1, heaviest + 1, size=(k, v))
    true = exact_count(D, masses, 0, of_label(k, v))
    found = int(count_up(D, masses, 0, of_label(k, v))[0]) << int(unit_exponents(masses).sum())
    assert true <= found <= true + (true >> 20)
    assert (found == true) == (unit_exponents(masses).sum() == 0)


def test_numbers_stay_below_two_to_the_62():
    """The e_i are the least that keep every product below: one less would not."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        masses = rng.integers(1, 1 << int(rng.integers(1, 35)), size=(int(rng.integers(1, 40)), int(rng.integers(1, 30))))
        most = 1
        for row, e in zip(masses[::-1].tolist(), unit_exponents(masses)[::-1].tolist(), strict=True):
            assert sum(row) * -(-most >> e) < 1 << 62
            assert e == 0 or sum(row) * -(-most >> (e - 1)) >= 1 << 62
            most = sum(row) * -(-most >> e)


def test_where_windows_would_be_too_wide_everything_is_counted(monkeypatch):
    """The limit is compiled in; this is the same programme in Python."""
    monkeypatch.setattr(module, "_WIDEST", 2)
    for seed in range(60):
        case = random_case(seed)
        found = count_up.py_func(*case)[0]
        assert enumerated(*case) <= found <= mass_up(case[1], case[3])


def test_nothing_is_counted_where_nothing_is_accepted():
    automaton = of_label(3, 4)
    masses = np.ones((3, 4), dtype=np.int64)
    masses[:, 3] = 0
    assert count_up(np.zeros((3, 1, 4), dtype=np.int64), masses, 0, automaton) == (0, 0)


def test_ascending_is_the_compiled_argsort_of_ties_too():
    @njit
    def argsort(values):
        return np.argsort(values)

    rng = np.random.default_rng(5)
    for size in (*range(40), 1000, 5000):
        for values in (rng.integers(-3, 4, size), rng.integers(-(1 << 62), 1 << 62, size), np.arange(size), -np.arange(size)):
            found = ascending(values)
            assert (found == argsort(values)).all() and (np.sort(found) == np.arange(size)).all()
