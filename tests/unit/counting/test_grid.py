"""From harms to integers: hints may be anything, and the count stays on its side."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from compactproofs.counting.classes import in_class
from compactproofs.counting.count_up import Automaton, mass_up
from compactproofs.counting.grid import Grid, count_harms, initial_sum, on_grid
from compactproofs.search.grids import choose_grid, natural_unit
from compactproofs.tasks import MaxOfK


def case(seed):
    rng = np.random.default_rng(seed)
    k, v = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    a = MaxOfK(k, v).label_automaton(int(rng.integers(v)))
    n = len(a.tokens)
    h = rng.normal(size=(k, n)) * 10.0 ** rng.integers(-3, 4, size=(k, n))
    if seed % 4 == 0:
        h = np.round(h)  # ties
    masses = np.ones((k, n), dtype=np.int64)
    masses[-1] = rng.random(n) < 0.6
    return rng, Automaton(a.following, a.accepting, a.start), h, masses


def truth(h, masses, automaton, strict=False):
    """Accepted sequences with mass whose harms add up to at least zero, or to more."""
    found = 0
    for x in product(range(h.shape[1]), repeat=h.shape[0]):
        state = automaton.first
        for token in x:
            state = automaton.following[state, token] if state >= 0 else -1
        total = sum(Fraction(h[i, t]) for i, t in enumerate(x))
        found += bool(state >= 0 and automaton.accepting[state] and masses[-1, x[-1]] and (total > 0 if strict else total >= 0))
    return found


def random_grid(rng, h):
    size = int(np.clip(np.ceil(np.log2(max(np.abs(h).max(), 1e-300))), -800, 800))
    exponent = size - int(rng.integers(0, 14)) - 8
    return Grid(int(rng.integers(1, 1 << 16)), exponent, int(rng.choice([1, 3, 100, 10**6])), rng.integers(0, 256, size=len(h)))


@pytest.mark.parametrize("seed", range(80))
@pytest.mark.parametrize("strict", [False, True])
def test_count_harms_bounds_the_mass_whatever_the_grid(seed, strict):
    rng, automaton, h, masses = case(seed)
    true = truth(h, masses, automaton, strict)
    for _ in range(5):
        assert count_harms(h, random_grid(rng, h), masses, automaton, strict)[0] >= true
    steps, usual = int(rng.choice([-1, 0, 1, 7, 300])), int(rng.integers(h.shape[1]))
    unit = natural_unit(h, masses, usual, int(rng.integers(h.shape[1])))
    assert count_harms(h, choose_grid(h, masses, unit, steps, usual, 16), masses, automaton, strict)[0] >= true


@pytest.mark.parametrize("seed", range(40))
def test_lemma_g(seed):
    """start + sum D is at least the sum of harms over the step, or as large as it needs to be."""
    rng, _, h, _ = case(seed)
    grid = random_grid(rng, h)
    start = int(initial_sum(grid.offsets))
    D, step = on_grid(h, grid, start)[:, 0], grid.mantissa * Fraction(2) ** grid.exponent
    for x in product(range(h.shape[1]), repeat=h.shape[0]):
        total = start + sum(int(D[i, t]) for i, t in enumerate(x))
        assert total >= sum(Fraction(h[i, t]) for i, t in enumerate(x)) / step or total >= 0


@pytest.mark.parametrize("tiny", [5e-324, 1e-310, 2.0**-1000])
def test_a_positive_harm_that_underflows_on_the_grid_stays_positive(tiny):
    h = np.array([[tiny], [0.0]])
    grid = Grid(1, 900, 10, np.zeros(2, dtype=np.int64))
    assert on_grid(h, grid, 0)[0, 0, 0] == 1


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_what_is_not_known_counts(poison):
    a = MaxOfK(3, 3).label_automaton(2)
    h = np.full((3, 3), -1.0)
    h[1, 0] = poison
    grid = Grid(1, -6, 6400, np.zeros(3, dtype=np.int64))
    masses = np.ones((3, 3), dtype=np.int64)
    found, _ = count_harms(h, grid, masses, Automaton(a.following, a.accepting, a.start), False)
    assert found == 5  # token 0 at position 1, the label elsewhere: 9 - 4


def test_fine_steps_make_the_count_exact():
    a = MaxOfK(4, 6).label_automaton(5)
    automaton, masses = Automaton(a.following, a.accepting, a.start), np.ones((4, 6), dtype=np.int64)
    h = np.random.default_rng(0).integers(-99, 100, size=(4, 6)) / 100 + 0.003
    grid = choose_grid(h, masses, 1.0, 16000, 5, 16)
    assert count_harms(h, grid, masses, automaton, False)[0] == truth(h, masses, automaton)


@pytest.mark.parametrize("seed", range(40))
def test_classes_cover_every_sequence_once(seed):
    rng, automaton, h, masses = case(seed)
    order = rng.permutation(h.shape[1])[: rng.integers(0, 4)]
    parts = [mass_up(masses, in_class(automaton, order, c)) for c in range(len(order) + 1)]
    assert sum(parts) == mass_up(masses, automaton)
    for c in range(len(order) + 1):
        inside = in_class(automaton, order, c)
        for x in product(range(h.shape[1]), repeat=h.shape[0]):
            first = next((place for place, token in enumerate(order.tolist()) if token in x), len(order))
            assert accepts(inside, x) == (accepts(automaton, x) and first == c)


def accepts(automaton, sequence):
    state = automaton.first
    for token in sequence:
        state = automaton.following[state, token] if state >= 0 else -1
    return bool(state >= 0 and automaton.accepting[state])
