"""Sequences of any one-layer network, decided; the error bound is proved in `form.block_evaluation`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from compactproofs.arrays.environment import require_ieee754
from compactproofs.counting import block_kernels
from compactproofs.counting.choices import Choices
from compactproofs.counting.exact_block import is_correct, tied_labels
from compactproofs.counting.truth import AbstractTruth, Call, Limits
from compactproofs.form.block_evaluation import prepare_block
from compactproofs.model.network import Network
from compactproofs.tasks import AbstractTask

MAX_EXACT_DECISIONS = 20_000
"""In exact arithmetic a sequence takes about 10 ms, an exact tie twenty times that."""

_WORK_PER_CALL = 2**29
"""Multiplications."""

_BATCH = 2**13


class BlockTruth(AbstractTruth):
    """The truth about a `Network`.

    Cost: O(d_model d_mlp + d_model d_vocab_out) per sequence; without an MLP and norms after attention O(n_heads d_vocab_out).
    """

    def __init__(self, network: Network) -> None:
        self._network, self._evaluation = network, prepare_block(network, tied_labels(network))

    def limits(self, choices: Choices) -> Limits:
        work = self._work * choices.n_last
        return Limits(max(1, _WORK_PER_CALL // work), max(1, _WORK_PER_CALL // 4 // work), _BATCH, MAX_EXACT_DECISIONS)

    @property
    def _work(self) -> int:
        """Multiplications per sequence."""
        e = self._evaluation
        heads, d = len(e.values), len(e.base[0])
        return heads * d if e.affine else d * (heads + 8 + 2 * len(e.mlp.W_in) + len(e.W_U))

    def count(self, task: AbstractTask, choices: Choices, call: Call, buffer: Int[np.ndarray, "room"]) -> tuple[int, int]:
        require_ieee754()  # per thread
        walk = _walk(task, choices, call.query)
        correct, uncertain = block_kernels.count_block(self._evaluation, walk, call.start, call.stop, buffer)
        return int(correct), int(uncertain)

    def verdicts(self, sequences: Int[np.ndarray, "batch n_ctx"], labels: Int[np.ndarray, "batch"]) -> Int[np.ndarray, "batch"]:
        verdicts = np.empty(len(sequences), dtype=np.int64)
        block_kernels.decide_block(self._evaluation, sequences, labels, verdicts)
        return verdicts

    def is_correct(self, tokens: Sequence[int], label: int) -> bool | None:
        return is_correct(self._network, tokens, label)


def _walk(task: AbstractTask, choices: Choices, query: int) -> block_kernels.Walk:
    """What the kernel needs to know to go through the sequences of one query."""
    inner, machine = max(choices.last, 0), task.automaton
    fixed = np.array([*choices.tokens[:-1, 0], query], dtype=np.int64)
    table, counts = np.ascontiguousarray(choices.tokens[: inner + 1]), choices.sizes[: inner + 1]
    return block_kernels.Walk(fixed, inner, table, counts, machine.transitions, machine.labels, machine.start)
