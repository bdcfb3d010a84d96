"""Tasks: what the right output is."""

import math

from compactproofs.errors import TaskError
from compactproofs.model.weights import Weights
from compactproofs.tasks.automaton import AbstractTask, LabellingAutomaton
from compactproofs.tasks.max_of_k import MaxOfK

__all__ = ["AbstractTask", "LabellingAutomaton", "MaxOfK", "check_fits", "task_for"]

_TASKS = {"max": MaxOfK}
_MAX_DIGITS = 4000  # Python writes integers of up to 4300 digits


def task_for(weights: Weights, spec: str = "max") -> AbstractTask:
    """The task named `spec`, sized for the model."""
    if spec not in _TASKS:
        raise TaskError(f"unknown task {spec!r}; known tasks: {', '.join(sorted(_TASKS))}")
    task = _TASKS[spec](n_ctx=weights.n_ctx, d_vocab=weights.d_vocab)
    check_fits(task, weights)
    return task


def check_fits(task: AbstractTask, weights: Weights) -> None:
    """Raise unless the model reads the task's sequences and has an output for every label."""
    if (task.n_ctx, task.d_vocab) != (weights.n_ctx, weights.d_vocab):
        raise TaskError(
            f"the task has n_ctx={task.n_ctx}, d_vocab={task.d_vocab}; the model has n_ctx={weights.n_ctx}, d_vocab={weights.d_vocab}"
        )
    if task.automaton.transitions.shape[1] != task.d_vocab:
        raise TaskError(f"the task's automaton reads {task.automaton.transitions.shape[1]} tokens, the task has d_vocab={task.d_vocab}")
    if task.n_ctx * math.log10(max(2, task.d_vocab)) > _MAX_DIGITS:
        raise TaskError(f"{task.d_vocab}^{task.n_ctx} input sequences: more than 10^{_MAX_DIGITS} are not supported")
    largest = int(task.automaton.labels.max())
    if largest >= weights.d_vocab_out:
        raise TaskError(f"the task has a label {largest}, but the model has only d_vocab_out={weights.d_vocab_out} outputs")
