"""Counting where positions are alike, against every sequence, and against `count_up`."""

from itertools import product
from math import comb

import numpy as np
import pytest

from compactproofs.counting.alike import count_where_alike
from compactproofs.counting.count_up import unit_exponents
from compactproofs.counting.grid import Grid, count_harms, initial_sum, on_grid
from compactproofs.counting.subject import for_queries, subject_of
from compactproofs.tasks import MaxOfK
from compactproofs.tasks.question import Question


def table(rng, k, n, span):
    """The same random harms at every position but the last."""
    row = rng.integers(-span, span + 1, size=n) + rng.choice([0.0, 0.4], size=n)
    row[-1] -= rng.choice([0, span])
    h = np.tile(row.astype(np.float64), (k, 1))
    h[-1] = rng.integers(-2 * span, 2 * span + 1)
    return h


def by_hand(D, start, label, query, k):
    """How many sequences of the label with this query have a sum of at least zero."""
    found = 0
    for x in product(range(label + 1), repeat=k - 1):
        if max(*x, query) == label and start + sum(D[i, t] for i, t in enumerate(x)) + D[k - 1, query] >= 0:
            found += 1
    return found


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6, 7])
def test_a_label_that_depends_on_the_position_is_counted_at_least(k):
    rng = np.random.default_rng(k)
    equal = 0
    for _ in range(60 if k < 6 else 15):
        label = int(rng.integers(1, 5 if k < 6 else 3))
        subject, query = subject_of(Question(MaxOfK(n_ctx=k, d_vocab=label + 1)), label), int(rng.integers(label + 1))
        h = table(rng, k, label + 1, int(rng.choice([1, 3, 40])))
        h[:-1, -1] -= rng.integers(0, 5, size=k - 1)
        grid = Grid(1, 0, 1000, np.zeros(k, dtype=np.int64))
        count, _ = count_where_alike(h, grid, for_queries(subject, np.array([query])), subject.automaton)
        exact = by_hand(on_grid(h, grid, 0)[:, 0], 0, label, query, k)
        assert exact <= count
        equal += exact == count
        once = h.copy()
        once[:-1, -1] = -1e6  # where two labels never fail, the count is exact
        once[int(rng.integers(k - 1)), -1] = h[0, -1]
        found, _ = count_where_alike(once, grid._replace(depth=10**7), for_queries(subject, np.array([query])), subject.automaton)
        assert found == by_hand(on_grid(once, grid._replace(depth=10**7), 0)[:, 0], 0, label, query, k)
    assert equal > 5


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6, 7])
def test_count_where_alike_is_the_count(k):
    rng = np.random.default_rng(k)
    for _ in range(60 if k < 6 else 15):
        label = int(rng.integers(1, 5 if k < 6 else 3))
        question = Question(MaxOfK(n_ctx=k, d_vocab=label + 1))
        subject, query = subject_of(question, label), int(rng.integers(label + 1))
        masses = for_queries(subject, np.array([query]))
        h, offset = table(rng, k, label + 1, int(rng.choice([1, 3, 40]))), int(rng.choice([0, 100]))
        grid = Grid(1, 0, 1000, np.array([offset] * (k - 1) + [int(rng.integers(256))]))
        count, operations = count_where_alike(h, grid, masses, subject.automaton)
        start = int(initial_sum(grid.offsets))
        assert count == by_hand(on_grid(h, grid, start)[:, 0], start, label, query, k)
        assert count == count_harms(h, grid, masses, subject.automaton, False)[0]
        assert operations > 0


def test_positions_that_differ_are_counted_as_ever():
    rng = np.random.default_rng(0)
    subject = subject_of(Question(MaxOfK(n_ctx=4, d_vocab=4)), 3)
    grid = Grid(1, 0, 1000, np.zeros(4, dtype=np.int64))
    for query in range(4):
        h = rng.integers(-3, 4, size=(4, 4)).astype(np.float64)
        count, _ = count_where_alike(h, grid, for_queries(subject, np.array([query])), subject.automaton)
        assert count == by_hand(on_grid(h, grid, 0)[:, 0], 0, 3, query, 4)


def test_the_label_zero_and_one_position():
    for k in (1, 3):
        subject = subject_of(Question(MaxOfK(n_ctx=k, d_vocab=4)), 0)
        for harm in (-1.0, 1.0):
            grid = Grid(1, 0, 10, np.zeros(k, dtype=np.int64))
            found, _ = count_where_alike(np.full((k, 1), harm), grid, for_queries(subject, np.array([0])), subject.automaton)
            assert found == (harm > 0)
    subject = subject_of(Question(MaxOfK(n_ctx=1, d_vocab=4)), 2)
    grid = Grid(1, 0, 10, np.zeros(1, dtype=np.int64))
    for query, expected in ((2, 1), (1, 0)):  # at one position the label is the query
        assert count_where_alike(np.ones((1, 3)), grid, for_queries(subject, np.array([query])), subject.automaton)[0] == expected


def test_counts_beyond_64_bits_are_rounded_up():
    k, v = 16, 100
    rng = np.random.default_rng(0)
    subject = subject_of(Question(MaxOfK(n_ctx=k, d_vocab=v)), v - 1)
    row = np.where(rng.random(v) < 0.1, 3.0, 0.0)
    row[-1] = -4.0
    h = np.tile(row, (k, 1))
    h[-1] = 1.0
    grid = Grid(1, 0, 100, np.zeros(k, dtype=np.int64))
    found, _ = count_where_alike(h, grid, for_queries(subject, np.array([5])), subject.automaton)
    high, exact = int((row == 3.0).sum()), 0
    low = v - 1 - high
    for c in range(1, k):
        others = k - 1 - c
        ways = sum(comb(others, j) * high**j * low ** (others - j) for j in range(others + 1) if 1 + 3 * j - 4 * c >= 0)
        exact += comb(k - 1, c) * ways
    assert exact > 2**80
    assert exact <= found <= exact + exact // 2**40


def test_where_positions_or_masses_differ_count_up_decides():
    k, label = 3, 3
    question = Question(MaxOfK(n_ctx=k, d_vocab=label + 1))
    subject = subject_of(question, label)
    rng = np.random.default_rng(3)
    grid = Grid(1, 0, 100, np.zeros(k, dtype=np.int64))
    masses = for_queries(subject, np.array([1]))
    for h, each in ((rng.integers(-3, 4, size=(k, label + 1)) * 1.0, masses), (table(rng, k, label + 1, 2), masses * 3)):
        count, units = count_harms(h, grid, each, subject.automaton, False)[0], int(unit_exponents(each).sum())
        assert count_where_alike(h, grid, each, subject.automaton)[0] == count << units
    several = for_queries(subject, np.array([1, 2]))
    h = table(rng, k, label + 1, 2)
    assert count_where_alike(h, grid, several, subject.automaton)[0] == count_harms(h, grid, several, subject.automaton, False)[0]


def test_fewer_distinct_harms_cost_less():
    k, label = 10, 40
    subject = subject_of(Question(MaxOfK(n_ctx=k, d_vocab=label + 1)), label)
    masses = for_queries(subject, np.array([3]))
    work = []
    for distinct in (2, 8):
        row = np.arange(label + 1) % distinct * 1.0
        row[-1] = -12.0
        grid = Grid(1, 0, 1000, np.zeros(k, dtype=np.int64))
        h = np.concatenate([np.tile(row, (k - 1, 1)), np.zeros((1, label + 1))])
        work.append(count_where_alike(h, grid, masses, subject.automaton)[1])
    assert work[0] < work[1]
