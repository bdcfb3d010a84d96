"""`count_both`, compiled and in the checker, against enumeration."""

from itertools import product
from math import prod

import numpy as np
import pytest

from compactproofs import checker
from compactproofs.counting.count_both import MOST_REACH, count_both
from compactproofs.counting.count_up import Automaton, count_up, unit_exponents
from compactproofs.tasks import MaxOfK


def random_case(seed):
    rng = np.random.default_rng(seed)
    k, n, states = (int(rng.integers(1, 5)) for _ in range(3))
    automaton = Automaton(rng.integers(-1, states, (states, n)), rng.random(states) < 0.6, int(rng.integers(states)))
    D, E = rng.integers(-6, 7, (2, k, n))
    masses = rng.integers(0, 4, (k, n)) if seed % 3 else np.ones((k, n), dtype=np.int64)
    return D, E, masses, rng.integers(-5, 6, 2), automaton


def enumerated(case, reach=None):
    """The mass of the accepted sequences on which both sums are at least zero; sums that are kept within a reach, if there is one."""
    D, E, masses, starts, automaton = case
    k, n = masses.shape
    found = 0

    def kept(z):
        return z if reach is None else min(max(z, -reach), reach)

    for sequence in product(range(n), repeat=k):
        state, sums, mass = automaton.first, [kept(int(z)) for z in starts], 1
        for i, token in enumerate(sequence):
            if state < 0:
                break
            sums = [z if z == reach else kept(z + int(d)) for z, d in zip(sums, (D[i, token], E[i, token]), strict=True)]
            mass *= int(masses[i, token])
            state = automaton.following[state, token]
        found += mass if state >= 0 and automaton.accepting[state] and min(sums) >= 0 else 0
    return found


def by_the_checker(case, reach):
    D, E, masses, starts, automaton = case
    moves = [{t: z for t, z in enumerate(row) if z >= 0} for row in automaton.following.tolist()]
    same = checker.Automaton(moves, automaton.accepting.tolist(), int(automaton.first))
    (z, y), meter = starts.tolist(), checker.Meter()
    rows = [[dict(enumerate(row)) for row in table.tolist()] for table in (D, E)]
    return checker.count_up(z, rows[0], masses.tolist(), checker.Remembering(same, y, rows[1], reach, meter), meter)


@pytest.mark.parametrize("block", range(8))
def test_both_sums_are_counted(block):
    """Exactly, if the reach suffices; else what is raised and what is counted for good comes on top, and no more."""
    for seed in range(80 * block, 80 * block + 80):
        case = random_case(seed)
        exact = enumerated(case)
        assert exact == count_both(*case, 60)[0] == by_the_checker(case, 60), seed
        for reach in (1, 2, 3, 5, 8):
            most = enumerated(case, reach)
            assert exact <= count_both(*case, reach)[0] <= most, (seed, reach)
            assert exact <= by_the_checker(case, reach) <= most, (seed, reach)


def test_a_sum_that_has_come_to_its_reach_stays_there():
    """Else a sequence would be lost whose sum was cut off on the way up."""
    D = np.array([[9, 9], [-3, -3]])
    case = D, np.zeros((2, 2), dtype=np.int64), np.ones((2, 2), dtype=np.int64), np.zeros(2, dtype=np.int64)
    everything = Automaton(np.zeros((1, 2), dtype=np.int64), np.ones(1, dtype=np.bool_), 0)
    for reach in (1, 2, 3, 9, 10):
        assert count_both(*case, everything, reach)[0] == by_the_checker((*case, everything), reach) == 4
        turned = (case[1], D, *case[2:], everything)
        assert count_both(*turned, reach)[0] == by_the_checker(turned, reach) == 4


def test_the_order_of_the_sums_does_not_matter():
    for seed in range(200):
        D, E, masses, starts, automaton = random_case(seed)
        for reach in (2, 60):
            assert count_both(D, E, masses, starts, automaton, reach)[0] == count_both(E, D, masses, starts[::-1], automaton, reach)[0]


def test_it_is_monotone():
    for seed in range(200):
        D, E, masses, starts, automaton = random_case(seed)
        more = D + np.random.default_rng(seed).integers(0, 3, D.shape)
        for reach in (2, 60):
            assert count_both(D, E, masses, starts, automaton, reach)[0] <= count_both(more, E, masses, starts, automaton, reach)[0]


@pytest.mark.parametrize(("k", "v", "heaviest"), [(4, 9, 1), (10, 64, 1), (20, 64, 1), (6, 40, 1 << 30)])
def test_counts_are_in_the_units_of_one_sum_and_hardly_rounded(k, v, heaviest):
    """With a second sum that is always enough, both programmes count the same."""
    rng = np.random.default_rng(k)
    D, E = rng.integers(-30, 12, (k, v)), np.zeros((k, v), dtype=np.int64)
    masses = rng.integers(1, heaviest + 1, (k, v))
    a = MaxOfK(k, v).label_automaton(v - 1)
    automaton = Automaton(a.following, a.accepting, a.start)
    one = int(count_up(D[:, None], masses, 0, automaton)[0])
    both = int(count_both(D, E, masses, np.zeros(2, dtype=np.int64), automaton, MOST_REACH)[0])
    unit = int(unit_exponents(masses).sum())
    rounding = sum(map(int, masses.sum(axis=1))) * prod(map(int, masses.sum(axis=1))) >> 51
    assert one <= both <= one + (rounding >> unit) + 1
    assert both == one or prod(map(int, masses.sum(axis=1))) >= 1 << 53


def test_huge_integers_are_as_good_as_those_beyond_the_reach():
    for seed in range(100):
        D, E, masses, starts, automaton = random_case(seed)
        huge = np.sign(D) * (1 << 40)
        case = huge, E, masses, starts, automaton
        assert enumerated(case) <= count_both(*case, 30)[0] <= enumerated(case, 30)


def test_nothing_is_accepted():
    masses = np.ones((3, 2), dtype=np.int64)
    nobody = Automaton(np.zeros((1, 2), dtype=np.int64), np.zeros(1, dtype=np.bool_), 0)
    nothing = np.zeros((3, 2), dtype=np.int64)
    assert count_both(nothing, nothing, masses, np.zeros(2, dtype=np.int64), nobody, 4) == (0, 0)
