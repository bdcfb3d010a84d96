"""Automata with states of their own for each position: the same sequences, the same counts, and no state too many."""

from itertools import product

import numpy as np
import pytest

from compactproofs.bounds.pairs import Pair, walk_upper
from compactproofs.counting.count_up import Automaton, count_up, mass_up
from compactproofs.counting.levels import MANY, levelled
from compactproofs.tasks import task_of_size


def random_case(seed):
    """A small automaton written down many times over: which copy comes next is chance."""
    rng = np.random.default_rng(seed)
    k, n, states = int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(2, 6))
    small = rng.integers(-1, states, (states, n))
    copies = MANY // states + 2
    copy = rng.integers(0, copies, (copies * states, n))
    following = np.where(np.tile(small, (copies, 1)) >= 0, np.tile(small, (copies, 1)) + states * copy, -1)
    automaton = Automaton(following, np.tile(rng.random(states) < 0.6, copies), int(rng.integers(states)))
    masses = rng.integers(0, 3, (k, n)) if seed % 3 else np.ones((k, n), dtype=np.int64)
    return automaton, masses, rng


def rest(automaton, state, x):
    for token in x:
        state = -1 if state < 0 else automaton.following[state, token]
    return bool(state >= 0 and automaton.accepting[state])


@pytest.mark.parametrize("seed", range(120))
def test_it_accepts_the_same_sequences_with_as_few_states_as_there_can_be(seed):
    automaton, masses, _ = random_case(seed)
    k, n = masses.shape
    found = levelled(automaton, masses)
    with_mass = [x for x in product(range(n), repeat=k) if all(masses[i, t] for i, t in enumerate(x))]
    assert all(rest(found, found.first, x) == rest(automaton, automaton.first, x) for x in with_mass)
    different = set()  # what may follow what was read so far
    for i in range(k + 1):
        for x in {x[:i] for x in with_mass}:
            ends = frozenset(y for y in {y[i:] for y in with_mass} if rest(automaton, automaton.first, (*x, *y)))
            different |= {(i, ends)} if ends else set()
    assert len(found.following) == max(len(different), 1)


@pytest.mark.parametrize("seed", range(120))
def test_counts_and_walks_are_the_same(seed):
    automaton, masses, rng = random_case(seed)
    k, n = masses.shape
    if seed % 2:
        masses = masses << int(rng.integers(0, 38))  # counts are rounded
    found = levelled(automaton, masses)
    for _ in range(5):
        D, start = rng.integers(-6, 7, (k, 1, n)), int(rng.integers(-5, 6))
        assert count_up(D, masses, start, found)[0] == count_up(D, masses, start, automaton)[0]
        pair = Pair(rng.normal(size=(2, k, n)), np.ones((k, n)), 0, 1e-9, 0.0)
        assert walk_upper(pair, 1, masses, found) == walk_upper(pair, 1, masses, automaton)
    assert mass_up(masses, found) == mass_up(masses, automaton)


def test_small_automata_are_left_as_they_are():
    a = task_of_size("max", 4, 8).label_automaton(5)
    automaton, masses = Automaton(a.following, a.accepting, a.start), np.ones((4, 6), dtype=np.int64)
    assert levelled(automaton, masses).following is automaton.following


def test_what_is_remembered_in_vain_is_forgotten():
    """Which token was the largest before the query does not matter once it is known whether the query is larger."""
    a = task_of_size("argmax", 6, 16).label_automaton(2)
    automaton, masses = Automaton(a.following, a.accepting, a.start), np.ones((6, 16), dtype=np.int64)
    masses[-1] = np.arange(16) == 9
    assert len(levelled(automaton, masses).following) < len(a.following) // 2
