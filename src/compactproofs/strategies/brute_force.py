"""The trivial proof: run the model on every input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from compactproofs.arrays import FlopCounter
from compactproofs.arrays.arithmetic import Counting
from compactproofs.counting.brute_force import SHARED_KEY, brute_force
from compactproofs.counting.gaps import right_by_margin
from compactproofs.form.block import block_numbers, readout
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.strategies.base import AbstractStrategy, Bound, ProofLength, Request, require_plain
from compactproofs.tasks import AbstractTask
from compactproofs.tasks.margin import margin_of_question


@dataclass(frozen=True)
class BruteForce(AbstractStrategy):
    """Evaluate the network on all d_vocab^n_ctx sequences; nothing is lost and nothing is explained."""

    name: ClassVar[str] = "brute-force"
    family: ClassVar[str] = "brute-force"

    @property
    def complexity(self) -> str:
        return "O(d_vocab^(n_ctx+1) n_ctx d_model)"

    @property
    def source(self) -> str:
        return 'paper, "The brute-force baseline"'

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    def bound(self, request: Request) -> Bound:
        """Count the correct sequences.

        Guarantee: correct_at_least <= true count <= correct_at_most, with equality unless sequences stay undecided.
        Assumes: nothing.
        Cost: O(d_vocab^n_ctx d_vocab_out), sharing work between sequences; `length` charges a full forward pass each, as the paper does.
        Source: definition of accuracy.
        """
        if request.question.margin is None:
            count = request.shared.get(
                SHARED_KEY,
                lambda: brute_force(request.weights, request.task, seconds=request.seconds, progress=request.progress, stop=request.stop),
            )
        else:
            plain, margin = require_plain(request.weights, "brute-force with a margin"), margin_of_question(request.question)
            count = right_by_margin(plain, request.task, margin, seconds=request.seconds, progress=request.progress, stop=request.stop)
        most = count.correct + count.undecided if request.upper else None
        return Bound(count.correct, most, "float64 with a proven error bound, exact arithmetic where that does not decide")

    def length(self, weights: Model, task: AbstractTask) -> ProofLength:
        per_sequence = forward_pass_flops(weights)
        return ProofLength(
            flops_breakdown={step: flops * task.sequences for step, flops in per_sequence.items()},
            integer_ops=task.sequences * task.n_ctx,
            unexplained_dimensions=task.sequences * weights.d_vocab_out,
        )


def forward_pass_flops(weights: Model) -> dict[str, int]:
    """FLOPs of one forward pass as the paper counts them: a (r x n)(n x c) product costs r c (2 n - 1), all positions included.

    Of a network of another kind, as executed for the last position.
    """
    if isinstance(weights, Network):
        return _block_flops(weights)
    k, d, h, out = weights.n_ctx, weights.d_model, weights.d_head, weights.d_vocab_out
    return {
        "embedding": k * d,
        "queries, keys, values": 3 * k * h * (2 * d - 1),
        "attention": k * k * (2 * h - 1) + k * k + k * (5 * k - 2),
        "mixing": k * h * (2 * k - 1),
        "output": k * d * (2 * h - 1) + k * d,
        "unembedding": k * out * (2 * d - 1),
        "comparison": out - 1,
    }


def _block_flops(network: Network) -> dict[str, int]:
    counter = FlopCounter()
    arithmetic = Counting(counter)
    with arithmetic.step("before attention"):
        numbers = block_numbers(network, np.zeros((network.n_ctx, 1), dtype=np.int64), arithmetic)
    with arithmetic.step("attention"):
        r = numbers.base
        for scores, values in zip(numbers.scores, numbers.values, strict=True):
            weights = np.exp(scores - scores.max(axis=1)[:, None])
            r = r + (weights / weights.sum(axis=1)[:, None]) @ values
    with arithmetic.step("after attention"):
        logits = readout(network, r, arithmetic)
    with arithmetic.step("comparison"):
        logits.max(axis=1)
    return dict(counter.steps)
