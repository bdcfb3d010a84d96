from itertools import product

import numpy as np
import pytest

from compactproofs.errors import TaskError
from compactproofs.tasks import LabellingAutomaton, MaxOfK, check_fits, task_for
from models import random_weights
from tasks import Named


@pytest.mark.parametrize(("n_ctx", "d_vocab"), [(1, 1), (1, 4), (3, 5), (4, 2)])
def test_max_of_k_labels_every_sequence_with_its_maximum(n_ctx, d_vocab):
    task = MaxOfK(n_ctx, d_vocab)
    sequences = np.array(list(product(range(d_vocab), repeat=n_ctx)))
    assert task.automaton.label(sequences).tolist() == sequences.max(axis=1).tolist()
    assert task.total == len(sequences)


@pytest.mark.parametrize(("n_ctx", "d_vocab"), [(1, 1), (4, 64), (20, 64), (20, 512)])
def test_label_totals_are_exact_at_any_size(n_ctx, d_vocab):
    totals = MaxOfK(n_ctx, d_vocab).automaton.label_totals(n_ctx)
    assert totals == {m: (m + 1) ** n_ctx - m**n_ctx for m in range(d_vocab)}
    assert sum(totals.values()) == MaxOfK(n_ctx, d_vocab).total


def parity(d_vocab):
    tokens = np.arange(d_vocab)
    return LabellingAutomaton(transitions=np.stack([tokens % 2, 1 - tokens % 2]), labels=np.array([0, 1]), start=0)


def test_other_automata_fit_the_interface():
    sequences = np.array(list(product(range(5), repeat=3)))
    assert parity(5).label(sequences).tolist() == (sequences.sum(axis=1) % 2).tolist()
    odd = int((sequences.sum(axis=1) % 2).sum())
    assert parity(5).label_totals(3) == {0: 125 - odd, 1: odd}


def test_automaton_refuses_states_out_of_range():
    with pytest.raises(TaskError, match="out of range"):
        LabellingAutomaton(transitions=np.array([[1]]), labels=np.array([0]), start=0)
    with pytest.raises(TaskError, match="out of range"):
        LabellingAutomaton(transitions=np.array([[0]]), labels=np.array([-2]), start=0)
    with pytest.raises(TaskError, match="expected"):
        LabellingAutomaton(transitions=np.array([[0, 1], [1, 0]]), labels=np.array([0]), start=0)
    with pytest.raises(TaskError, match="not integers"):
        LabellingAutomaton(transitions=np.array([[0.0]]), labels=np.array([0]), start=0)


def test_an_automaton_is_kept_in_the_byte_order_of_the_machine_and_cannot_change():
    transitions, labels = np.array([[0, 1], [1, 0]], dtype=">i4"), np.array([0, 1], dtype=">u2")
    automaton = LabellingAutomaton(transitions, labels, 0)
    transitions[:] = 0
    assert automaton.transitions.tolist() == [[0, 1], [1, 0]] and automaton.transitions.dtype == np.int64 == automaton.labels.dtype
    with pytest.raises(ValueError, match="read-only"):
        automaton.labels[0] = 1


@pytest.mark.parametrize(
    ("transitions", "labels", "message"),
    [
        ([[0]], np.array([0]), "transitions are a list"),
        (np.array([[0]]), (0,), "labels are a tuple"),
        (np.array(0), np.array([0]), r"transitions \(\)"),
        (np.array([[0]]), np.array([2**63], dtype=np.uint64), "out of range"),
    ],
)
def test_what_is_no_automaton_is_refused_in_words(transitions, labels, message):
    with pytest.raises(TaskError, match=message):
        LabellingAutomaton(transitions, labels, 0)


def test_a_task_is_named_by_its_question():
    class Renamed(MaxOfK):
        title = "the largest"

    assert MaxOfK(3, 5).sha256 == Renamed(3, 5).sha256
    assert len({MaxOfK(3, 5).sha256, MaxOfK(4, 5).sha256, MaxOfK(3, 6).sha256, Named("minimum", 3, 5).sha256}) == 4


def test_a_task_must_fit_the_model():
    weights = random_weights(0)
    assert task_for(weights) == MaxOfK(3, 5)
    with pytest.raises(TaskError, match="known tasks: max"):
        task_for(weights, "median")
    with pytest.raises(TaskError, match="n_ctx=4"):
        check_fits(MaxOfK(4, 5), weights)
    with pytest.raises(TaskError, match="d_vocab_out=3"):
        task_for(random_weights(0, d_vocab_out=3))

    class Narrow(MaxOfK):
        automaton = parity(2)

    with pytest.raises(TaskError, match="automaton reads 2 tokens"):
        check_fits(Narrow(3, 5), weights)
    with pytest.raises(TaskError, match="more than 10\\^4000"):
        task_for(random_weights(0, n_ctx=3000, d_vocab=64))
    with pytest.raises(TaskError, match="n_ctx=0"):
        MaxOfK(0, 3)
