"""The trivial proof: run the model on every input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from compactproofs.counting.brute_force import SHARED_KEY, brute_force
from compactproofs.model.kinds import Model
from compactproofs.strategies.base import AbstractStrategy, Bound, ProofLength, Request
from compactproofs.tasks import AbstractTask


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
        count = request.shared.get(
            SHARED_KEY,
            lambda: brute_force(request.weights, request.task, seconds=request.seconds, progress=request.progress, stop=request.stop),
        )
        most = count.correct + count.undecided if request.upper else None
        return Bound(count.correct, most, "float64 with a proven error bound, exact arithmetic where that does not decide")

    def length(self, weights: Model, task: AbstractTask) -> ProofLength:
        per_sequence = forward_pass_flops(weights)
        return ProofLength(
            flops_breakdown={step: flops * task.total for step, flops in per_sequence.items()},
            integer_ops=task.total * task.n_ctx,
            unexplained_dimensions=task.total * weights.d_vocab_out,
        )


def forward_pass_flops(weights: Model) -> dict[str, int]:
    """FLOPs of one forward pass as the paper counts them: a (r x n)(n x c) product costs r c (2 n - 1), all positions included."""
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
