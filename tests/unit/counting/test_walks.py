"""Walks against every sequence."""

from itertools import product

import numpy as np
import pytest

from compactproofs.counting.count_up import Automaton
from compactproofs.counting.walks import frequencies, heaviest_product, heaviest_quotient, heaviest_shares, heaviest_through, moves_of

K, N, COLUMNS = 3, 4, 2


class Walked:
    """A random automaton, places without mass, and the sequences that have one."""

    def __init__(self, seed):
        rng = self.rng = np.random.default_rng(seed)
        following = rng.integers(-1, 3, size=(3, N))
        following[:, 1] = following[:, 0]  # two tokens that move alike
        self.automaton = Automaton(following, np.array([True, seed % 2 == 0, False]), 0)
        masses = rng.integers(0, 4, size=(K, N))
        self.moves = moves_of(self.automaton, masses)
        self.masses = masses
        self.sequences = [x for x in product(range(N), repeat=K) if self._accepts(x) and all(masses[i, t] for i, t in enumerate(x))]

    def _accepts(self, x):
        state = 0
        for t in x:
            state = self.automaton.following[state, t]
            if state < 0:
                return False
        return bool(self.automaton.accepting[state])

    def largest(self, F):
        """(column,): of sums of F[i, x_i]."""
        return np.max([sum(F[i, t] for i, t in enumerate(x)) for x in self.sequences], axis=0, initial=-np.inf)


@pytest.mark.parametrize("seed", range(12))
def test_walks_find_the_largest_sums(seed):
    walked = Walked(seed)
    rng = walked.rng
    X, shift = rng.normal(size=(K, N, COLUMNS)), rng.normal(size=COLUMNS)
    low = rng.random((K, N))
    high = low + rng.random((K, N))
    F = np.maximum(low[..., None] * (X + shift), high[..., None] * (X + shift))
    most, size = heaviest_product(X, shift, low, high, walked.moves)
    assert np.allclose(most, walked.largest(F), rtol=0, atol=1e-12)
    assert (size >= most / K).all()
    c = rng.normal(size=COLUMNS)
    N_, D = low[..., None] * (X + shift), high[..., None]
    value, weight = heaviest_quotient(X, shift, low, high, c, walked.moves)
    assert np.allclose(value, walked.largest(N_ - c * D), rtol=0, atol=1e-12)
    for j in range(COLUMNS):
        reached = [sum(high[i, t] for i, t in enumerate(x)) for x in walked.sequences
                   if np.isclose(sum((N_ - c * D)[i, t, j] for i, t in enumerate(x)), value[j], rtol=0, atol=1e-12)]  # fmt: skip
        assert not walked.sequences or np.isclose(reached, weight[j]).any()
    through = heaviest_through(F, walked.moves)
    for i, t in product(range(K), range(N)):
        own = [x for x in walked.sequences if x[i] == t]
        expected = np.max([sum(F[j, s] for j, s in enumerate(x)) for x in own], axis=0, initial=-np.inf)
        assert np.allclose(through[i, t], expected, rtol=0, atol=1e-12)
    Y, p = rng.normal(size=(2, K, N, COLUMNS)), rng.random((2, K, N))
    q = p + rng.random((2, K, N))
    for side, found in zip((-Y, Y), heaviest_shares(Y, p, q, walked.moves), strict=True):
        table = np.maximum(p[..., None] * side, q[..., None] * side).sum(axis=0)
        assert np.allclose(found, walked.largest(table), rtol=0, atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("low", [0.0, 0.5])
def test_what_is_not_a_number_is_never_harmless(bad, low):
    """Whatever it is multiplied by: nothing is known then."""
    moves = moves_of(Automaton(np.zeros((1, N), np.int64), np.ones(1, bool), 0), np.ones((K, N), np.int64))
    X = np.full((K, N, 1), -1.0)
    X[1, 2] = bad
    most, size = heaviest_product(X, np.zeros(1), np.full((K, N), low), np.ones((K, N)), moves)
    assert not most + size <= 0.0


@pytest.mark.parametrize("seed", range(6))
def test_frequencies_are_those_of_sequences(seed):
    walked = Walked(seed)
    mass = {x: float(np.prod([walked.masses[i, t] for i, t in enumerate(x)])) for x in walked.sequences}
    expected = np.zeros((K, N))
    for x, m in mass.items():
        expected[np.arange(K), x] += m / sum(mass.values())
    with np.errstate(all="ignore"):
        found = frequencies(walked.masses, walked.moves)
    assert not mass or np.allclose(found, expected)
