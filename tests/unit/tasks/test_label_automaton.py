from itertools import product

import numpy as np
import pytest

from compactproofs.tasks import MaxOfK
from compactproofs.tasks.label_automaton import DEAD, minimal_automaton
from tasks import KINDS, Named


def accepts(automaton, sequence):
    state = automaton.start
    numbers = {int(t): j for j, t in enumerate(automaton.tokens)}
    for token in sequence:
        if token not in numbers:
            return False
        state = automaton.following[state, numbers[token]]
        if state == DEAD:
            return False
    return bool(automaton.accepting[state])


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_automaton_accepts_exactly_the_sequences_of_its_label(kind):
    task = Named(kind, 3, 4)
    for label in range(5):
        automaton = task.label_automaton(label)
        for sequence in product(range(4), repeat=3):
            assert accepts(automaton, sequence) == (task.label_of(sequence) == label), (label, sequence)


@pytest.mark.parametrize(("n_ctx", "d_vocab"), [(1, 1), (1, 3), (3, 4)])
def test_max_of_k_has_the_minimal_automata_at_hand(n_ctx, d_vocab):
    task = MaxOfK(n_ctx, d_vocab)
    a = task.automaton
    for label in range(d_vocab):
        quick, general = task.label_automaton(label), minimal_automaton(a.transitions, a.labels, a.start, label)
        assert quick.following.shape == general.following.shape
        for sequence in product(range(d_vocab), repeat=n_ctx):
            assert accepts(quick, sequence) == accepts(general, sequence) == (max(sequence) == label)


@pytest.mark.parametrize("kind", KINDS)
def test_totals_by_last_token_are_exact(kind):
    task = Named(kind, 3, 4)
    sequences = list(product(range(4), repeat=3))
    for label in task.labels:
        automaton = task.label_automaton(label)
        counted = dict(zip(automaton.tokens.tolist(), automaton.totals_by_last(3), strict=True))
        for last in range(4):
            assert counted.get(last, 0) == sum(task.label_of(x) == label and x[-1] == last for x in sequences)


def test_totals_of_long_sequences_do_not_overflow():
    automaton = MaxOfK(20, 512).label_automaton(511)
    assert sum(automaton.totals_by_last(20)) == 512**20 - 511**20


def test_a_label_that_no_sequence_carries_has_no_tokens():
    assert len(Named("parity", 3, 4).label_automaton(3).tokens) == 0
    assert np.array_equal(MaxOfK(2, 3).labels, [0, 1, 2])
