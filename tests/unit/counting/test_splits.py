from itertools import product

import numpy as np
import pytest

from compactproofs.counting.classes import in_class
from compactproofs.counting.count_up import Automaton, mass_up
from compactproofs.counting.splits import with_fewer, with_more


def random_automaton(rng, n_states, n_tokens):
    following = rng.integers(-1, n_states, size=(n_states, n_tokens))
    return Automaton(following, rng.random(n_states) < 0.6, int(rng.integers(n_states)))


def accepts(automaton, x):
    state = automaton.first
    for t in x:
        state = automaton.following[state, t]
        if state < 0:
            return False
    return bool(automaton.accepting[state])


@pytest.mark.parametrize("seed", range(40))
def test_splits_are_by_how_often_a_token_occurs(seed):
    rng = np.random.default_rng(seed)
    n_tokens, k = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    automaton = random_automaton(rng, int(rng.integers(1, 5)), n_tokens)
    (t, n), (u, m) = ((int(rng.integers(n_tokens)), int(rng.integers(1, k + 1))) for _ in range(2))
    halves = {True: with_more(automaton, t, n), False: with_fewer(automaton, t, n)}
    quarters = {(more, again): (with_more if again else with_fewer)(half, u, m) for more, half in halves.items() for again in (True, False)}
    for x in product(range(n_tokens), repeat=k):
        own = (x.count(t) >= n, x.count(u) >= m)
        assert [more for more, half in halves.items() if accepts(half, x)] == ([own[0]] if accepts(automaton, x) else [])
        assert [which for which, part in quarters.items() if accepts(part, x)] == ([own] if accepts(automaton, x) else [])


@pytest.mark.parametrize("seed", range(20))
def test_chains_of_classes_are_splits(seed):
    """What searches count is what `verify` counts: the same mass, rounded in the same way."""
    rng = np.random.default_rng(seed)
    n_tokens, k = 5, 30
    automaton = random_automaton(rng, 4, n_tokens)
    masses = rng.integers(0, 1 << 8, size=(k, n_tokens))
    order, rest = rng.permutation(n_tokens)[:3], automaton
    for c, token in enumerate(order.tolist()):
        assert mass_up(masses, in_class(automaton, order, c)) == mass_up(masses, with_more(rest, token, 1))
        rest = with_fewer(rest, token, 1)
    assert mass_up(masses, in_class(automaton, order, len(order))) == mass_up(masses, rest)
