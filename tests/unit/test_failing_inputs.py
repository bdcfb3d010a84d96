"""The search for failing inputs, part by part; `soundness/test_margins.py` looks at what it says in the end."""

from itertools import product

import numpy as np
import pytest

import compactproofs as cp
from compactproofs.budget import Budget
from compactproofs.counting.kernels import CORRECT, UNCERTAIN, WRONG
from compactproofs.errors import TaskError
from compactproofs.failing_inputs import _Paths, _Search
from models import mostly_right
from tasks import Random, mass_of


class Told:
    """A truth that says what it is told."""

    def __init__(self, verdict, right):
        self._verdict, self._right = verdict, right

    def verdicts(self, rows, labels):
        return np.full(len(rows), self._verdict)

    def is_correct(self, sequence, label):
        return self._right


def search(task, truth):
    return _Search(mostly_right(0, v=4, k=3), task, truth, np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(6))
def test_paths_are_the_sequences_of_a_label_that_have_mass(seed):
    task = Random(seed, 3, 4, 5)
    for label in task.labels:
        paths = _Paths.of(task.label_automaton(label), task)
        wanted = [x for x in product(range(4), repeat=3) if mass_of(task, x) and task.automaton.label(np.array([x]))[0] == label]
        assert sorted(tuple(row) for rows in paths.batches() for row in rows.tolist()) == wanted
        assert all(tuple(paths.drawn(np.random.default_rng(n))) in wanted for n in range(5))


def test_what_nobody_asked_about_is_no_counterexample():
    task = cp.task_for(mostly_right(0, v=4, k=3), distribution="product:1,0,2,1")
    rows = np.array([[1, 1, 3], [0, 3, 1], [2, 2, 2]])
    assert search(task, Told(WRONG, None)).first_wrong(rows, 3).example is None  # mass 0, or another label
    assert search(task, Told(WRONG, None)).first_wrong(rows, 2).example == [2, 2, 2]


@pytest.mark.parametrize(
    ("verdict", "right", "example", "all_right"),
    [
        (CORRECT, None, None, True),
        (WRONG, None, [0, 0, 1], False),
        (UNCERTAIN, None, None, False),
        (UNCERTAIN, True, None, True),
        (UNCERTAIN, False, [0, 0, 1], False),
    ],
)
def test_only_what_is_decided_counts(verdict, right, example, all_right):
    task = cp.MaxOfK(3, 4)
    looked = search(task, Told(verdict, right))
    found = looked.first_wrong(np.array([[0, 0, 1]]), 1)
    assert (found.example, found.all_right) == (example, all_right)
    assert looked.failing(1, task.label_automaton(1), [], Budget(5.0)).all_right == all_right
    assert not looked.failing(1, task.label_automaton(1), [], Budget(0.0)).all_right


def test_a_label_that_no_input_carries():
    with pytest.raises(TaskError, match="label 9: no input carries it; labels: 0, 1, 2, 3"):
        cp.counterexamples(mostly_right(0, v=4, k=3), label=9)
