"""Regions of failing inputs: which sequences they have, and that no automaton with fewer states has the same."""

from itertools import product

import numpy as np
import pytest

from compactproofs.failing_region import FailingRegion, smallest
from compactproofs.tasks import LabellingAutomaton, MaxOfK
from tasks import KINDS, Named, Random, mass_of


def kinds_by_words(automaton):
    """How many states there are that some word of up to so many tokens tells apart, of those that are reached."""
    states = {automaton.start}
    while (more := states | set(automaton.transitions[sorted(states)].reshape(-1).tolist())) != states:
        states = more
    telling = {state: (int(automaton.labels[state]),) for state in states}
    for _ in states:
        telling = {state: (telling[state], *(hash(telling[s]) for s in automaton.transitions[state].tolist())) for state in states}
    return len(set(telling.values()))


@pytest.mark.parametrize("kind", KINDS)
def test_the_region_is_what_is_left(kind):
    task = Named(kind, 3, 4)
    rng = np.random.default_rng(len(kind))
    left = {label: rng.choice(4, size=int(rng.integers(0, 3)), replace=False).tolist() for label in task.labels}
    region = FailingRegion.of(task, left)
    sequences = list(product(range(4), repeat=3))
    labels = task.automaton.label(np.array(sequences)).tolist()
    inside = [x[-1] in left.get(label, ()) for x, label in zip(sequences, labels, strict=True)]
    assert region.automaton.label(np.array(sequences)).tolist() == inside
    assert region.mass == sum(mass_of(task, x) for x, is_inside in zip(sequences, inside, strict=True) if is_inside)
    assert region.automaton.n_states == kinds_by_words(region.automaton)


@pytest.mark.parametrize("seed", range(6))
def test_the_smallest_automaton_says_the_same(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    automaton = LabellingAutomaton(rng.integers(0, n, size=(n, 3)), rng.integers(-1, 1, size=n), int(rng.integers(n)))
    found = smallest(automaton)
    for length in range(1, 6):
        words = np.array(list(product(range(3), repeat=length)), dtype=np.int64)
        assert np.array_equal(found.label(words), automaton.label(words))
    assert found.n_states == kinds_by_words(found) <= automaton.n_states


def test_masses_and_nothing_left():
    task = Random(0, 3, 4, 5)
    everything = FailingRegion.of(task, {label: range(4) for label in task.labels})
    assert everything.mass == task.total
    assert FailingRegion.of(MaxOfK(3, 4), {}).mass == 0 and FailingRegion.of(MaxOfK(3, 4), {}).automaton.n_states == 1
    some = FailingRegion.of(MaxOfK(3, 4), {3: [0]})
    assert some.mass == sum(max(x) == 3 and x[-1] == 0 for x in product(range(4), repeat=3))
