"""Deciding sequences of one network: what brute force and sampling need to know of it, whatever its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from compactproofs.arrays.environment import require_ieee754
from compactproofs.budget import Budget
from compactproofs.counting.choices import Choices
from compactproofs.counting.kernels import CORRECT, UNCERTAIN
from compactproofs.counting.outcome import ExactCount
from compactproofs.tasks import AbstractTask


@dataclass(frozen=True)
class Call:
    """Sequences that end in a query, by the numbers of what stands before the last choice: one call of a kernel."""

    query: int
    start: int
    stop: int


@dataclass(frozen=True)
class Limits:
    """How much is done at a time."""

    per_call: int
    """Prefixes in one call of a kernel: about a tenth of a second."""
    trial: int
    """Prefixes that tell how long the rest takes."""
    batch: int
    """Samples in one call."""
    exact: int
    """At most so many sequences are decided again in exact arithmetic; the rest stays undecided."""


class AbstractTruth(ABC):
    """Decides sequences: in float64 with a proven error bound, and exactly where that cannot tell.

    Law: what is reported as correct or wrong is so over the real numbers.
    """

    @abstractmethod
    def limits(self, choices: Choices) -> Limits:
        """How much to do at a time."""

    @abstractmethod
    def count(self, task: AbstractTask, choices: Choices, call: Call, buffer: Int[np.ndarray, "room"]) -> tuple[int, int]:
        """How many sequences of a call are certainly correct, how many uncertain; codes of these go into the buffer, if it has room."""

    @abstractmethod
    def verdicts(self, sequences: Int[np.ndarray, "batch n_ctx"], labels: Int[np.ndarray, "batch"]) -> Int[np.ndarray, "batch"]:
        """CORRECT, WRONG or UNCERTAIN."""

    @abstractmethod
    def is_correct(self, tokens: Sequence[int], label: int) -> bool | None:
        """The last word; None if undecided."""

    def decide(self, task: AbstractTask, sequences: Int[np.ndarray, "batch n_ctx"]) -> ExactCount:
        """Count the correct ones among the given sequences (one per row).

        Guarantee: correct <= (true number of correct sequences) <= correct + undecided.
        """
        require_ieee754()  # per thread
        sequences = np.ascontiguousarray(sequences, dtype=np.int64)
        verdicts = self.verdicts(sequences, task.automaton.label(sequences))
        uncertain = sequences[verdicts == UNCERTAIN]
        again = self.decide_exactly(task, uncertain[: self.limits(Choices.of(task)).exact])
        return ExactCount(
            correct=int((verdicts == CORRECT).sum()) + again.correct,
            total=len(sequences),
            undecided=len(uncertain) - again.total + again.undecided,
            decided_exactly=again.decided_exactly,
        )

    def decide_exactly(self, task: AbstractTask, sequences: Int[np.ndarray, "batch n_ctx"], budget: Budget | None = None) -> ExactCount:
        """Decide in exact arithmetic while there is time; the rest stays undecided."""
        labels = task.automaton.label(sequences)
        verdicts = [
            None if budget is not None and budget.over else self.is_correct(row, label)
            for row, label in zip(sequences.tolist(), labels.tolist(), strict=True)
        ]
        undecided = verdicts.count(None)
        return ExactCount(verdicts.count(True), len(verdicts), undecided, len(verdicts) - undecided)
