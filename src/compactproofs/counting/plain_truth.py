"""Sequences of one head without norms and MLP (`Weights`), decided; the error bound is proved in `form.evaluation`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from jaxtyping import Int

from compactproofs.arrays.environment import require_ieee754
from compactproofs.counting import kernels
from compactproofs.counting.choices import Choices
from compactproofs.counting.exact_sign import ExactNetwork
from compactproofs.counting.truth import AbstractTruth, Call, Limits
from compactproofs.form.evaluation import prepare
from compactproofs.model.weights import Weights
from compactproofs.tasks import AbstractTask

MAX_EXACT_DECISIONS = 100_000
"""In exact arithmetic a sequence takes about 0.3 ms."""

_COMPARISONS_PER_CALL = 2**27
_BATCH = 2**16


class PlainTruth(AbstractTruth):
    """The truth about `Weights`. Cost: O(d_vocab_out) per sequence, work on prefixes being shared."""

    def __init__(self, weights: Weights) -> None:
        self._weights, self._evaluation = weights, prepare(weights)

    def limits(self, choices: Choices) -> Limits:
        work = choices.n_last * self._weights.d_vocab_out
        return Limits(max(1, _COMPARISONS_PER_CALL // work), max(1, 2**22 // work), _BATCH, MAX_EXACT_DECISIONS)

    def count(self, task: AbstractTask, choices: Choices, call: Call, buffer: Int[np.ndarray, "room"]) -> tuple[int, int]:
        require_ieee754()  # per thread
        machine = task.automaton
        labelling = (machine.transitions, machine.labels, machine.start)
        which = (choices.tokens, choices.sizes, choices.last)
        correct, uncertain = kernels.count_query(self._evaluation, labelling, which, call.query, call.start, call.stop, buffer)
        return int(correct), int(uncertain)

    def verdicts(self, sequences: Int[np.ndarray, "batch n_ctx"], labels: Int[np.ndarray, "batch"]) -> Int[np.ndarray, "batch"]:
        verdicts = np.empty(len(sequences), dtype=np.int64)
        kernels.decide_sequences(self._evaluation, sequences, labels, verdicts)
        return verdicts

    def is_correct(self, tokens: Sequence[int], label: int) -> bool | None:
        return self._exact.is_correct(tokens, label)

    @cached_property
    def _exact(self) -> ExactNetwork:
        return ExactNetwork(self._weights)
