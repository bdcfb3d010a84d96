"""Upper bounds on accuracy, for every strategy: sequences on which one output certainly is not below the label."""

from __future__ import annotations

from compactproofs.model.weights import Weights
from compactproofs.strategies.base import Request
from compactproofs.strategies.threshold.engine import Effort, Engine, Failures, estimated_seconds
from compactproofs.tasks import AbstractTask


def correct_at_most(request: Request) -> int:
    """Bound the number of correct sequences from above; the trivial bound where looking at every pair would take longer than allowed.

    Guarantee: at least the number of correct sequences.
    Assumes: nothing.
    Cost: O(d_vocab^3 d_vocab_out n_ctx) and counting.
    Source: docs/explanation/threshold-proofs.md, "The other side".
    """
    return request.shared.get(("correct at most", request.seconds), lambda: _correct_at_most(request))


def _correct_at_most(request: Request) -> int:
    if request.seconds is not None and estimated_seconds(request.weights) > request.seconds:
        return request.task.total
    failures = failures_at_least(request.weights, request.task)
    return request.task.total - sum(sum(f.lower) for f in failures.values())


def failures_at_least(weights: Weights, task: AbstractTask) -> dict[int, Failures]:
    """Bounds on the failures of every label, by query; their lower ends are what an upper bound on accuracy needs."""
    engine = Engine.of(weights, task)
    failures = engine.unknown()
    engine.bound_all(Effort(steps=200 if weights.n_ctx <= 5 else 50, classes=12, lower=True), failures)
    return failures
