"""The answer read at another position than the last.

With causal attention position p depends on the tokens up to it only, so the network read there is the network on sequences of p + 1 tokens,
and every way to choose the later tokens gives the same answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from compactproofs.errors import TaskError
from compactproofs.model.kinds import Model, of_length
from compactproofs.tasks import AbstractTask, Framed, check_fits

Position = int | Literal["last", "every"]
"""Where the answer is read; positions count from 0."""

CAUSAL = "attention is causal: a position sees the tokens up to it"
"""What is assumed of a model that does not say so."""


@dataclass(frozen=True)
class Reading:
    """A network and its task as they are at one position.

    Law: of the inputs of the whole model, just `ways` times as many are answered right at the position as sequences of `task` by `network`.
    """

    network: Model
    task: AbstractTask
    ways: int = 1
    """In how many ways the later tokens can be chosen."""
    position: int | None = None
    """None: the last, without anybody asking for a position."""
    assumptions: tuple[str, ...] = ()
    """What the law assumes about the model, besides what its reader did."""


def read_at(weights: Model, task: AbstractTask, position: int | Literal["last"]) -> Reading:
    """The model as it is at one position."""
    if position == "last":
        return Reading(weights, task)
    if isinstance(position, bool) or not isinstance(position, int) or not 0 <= position < task.n_ctx:
        raise TaskError(f"position={position!r:.40}: expected 'last', 'every' or a number from 0 to {task.n_ctx - 1}")
    length = position + 1
    if length == task.n_ctx:
        return Reading(weights, task, position=position)
    if weights.causal is False:
        raise TaskError(
            f"position {position} was asked for, but the model's attention is not causal: what it answers there depends on later tokens "
            f"too. Only its last position, {task.n_ctx - 1}, can be read"
        )
    shorter = task.of_length(length)
    network = of_length(weights, length)
    check_fits(shorter, network)
    _require_same_inputs(task, shorter)
    later = task.n_ctx - length
    ways = task.d_vocab**later if task.masses is None else math.prod(sum(row) for row in task.masses[length:].tolist())
    if ways * shorter.total != task.total:
        raise TaskError(
            f"position {position} was asked for, but which sequences have a label there depends on the position: {task.title}, of "
            f"{task.inputs_in_words.rstrip(',')}. Only the last position, {task.n_ctx - 1}, can be read"
        )
    return Reading(network, shorter, ways, position, () if weights.causal else (CAUSAL,))


def readings(weights: Model, task: AbstractTask, position: Position) -> tuple[Reading, ...]:
    """The model at one position, or at every position of the input (not at those of a prefix), in order."""
    if position != "every":
        return (read_at(weights, task, position),)
    first = len(task.prefix) if isinstance(task, Framed) else 0
    return tuple(read_at(weights, task, p) for p in range(first, task.n_ctx))


def _require_same_inputs(task: AbstractTask, shorter: AbstractTask) -> None:
    """Raise unless the shorter task is about the first tokens of the same inputs."""
    everywhere = np.ones((task.n_ctx, task.d_vocab), dtype=np.int64)
    whole = everywhere if task.masses is None else task.masses
    own = everywhere[: shorter.n_ctx] if shorter.masses is None else shorter.masses
    if not np.array_equal(whole[: shorter.n_ctx], own):
        raise TaskError(f"{type(task).__name__}.of_length({shorter.n_ctx}) allows other tokens than the task does at these positions")
