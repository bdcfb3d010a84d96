"""Upper bounds on accuracy, for every strategy: sequences on which one output certainly is not below the label."""

from __future__ import annotations

from compactproofs.strategies.base import Request
from compactproofs.strategies.threshold.engine import Effort, Engine, estimated_seconds


def correct_at_most(request: Request) -> int:
    """Bound the number of correct sequences from above; the trivial bound where looking at every pair would take longer than allowed.

    Guarantee: at least the number of correct sequences.
    Assumes: nothing.
    Cost: O(d_vocab^3 d_vocab_out n_ctx) and counting.
    Source: docs/explanation/threshold-proofs.md, "The other side".
    """
    return request.shared.get(("correct at most", request.weights, request.task, request.seconds), lambda: _correct_at_most(request))


def _correct_at_most(request: Request) -> int:
    if request.seconds is not None and estimated_seconds(request.weights) > request.seconds:
        return request.task.total
    engine = Engine.of(request.weights, request.task)
    failures = engine.unknown()
    engine.bound_all(Effort(steps=200 if request.weights.n_ctx <= 5 else 50, classes=12, lower=True), failures)
    return request.task.total - sum(sum(f.lower) for f in failures.values())
