"""Upper bounds on accuracy, for every strategy: sequences on which one output certainly is not below the label."""

from __future__ import annotations

from compactproofs.strategies.base import Request
from compactproofs.strategies.threshold.engine import Effort, Engine, Failures, by_weight


def correct_at_most(request: Request) -> int:
    """Bound the number of correct sequences from above, from as many labels as there is time for.

    Guarantee: at least the number of correct sequences.
    Assumes: nothing.
    Cost: O(d_vocab^3 d_vocab_out n_ctx) and counting.
    Source: docs/explanation/threshold-proofs.md, "The other side".
    """
    return request.shared.get(("correct at most", request.seconds), lambda: _correct_at_most(request))


def _correct_at_most(request: Request) -> int:
    failures = failures_at_least(request)
    return request.task.total - sum(sum(f.lower) for f in failures.values())


def failures_at_least(request: Request) -> dict[int, Failures]:
    """Bounds on the failures of every label, by query; their lower ends are what an upper bound on accuracy needs."""
    engine = Engine.of(request.weights, request.task)
    failures = engine.unknown()
    effort = Effort(steps=200 if request.weights.n_ctx <= 5 else 50, classes=12, lower=True)
    engine.bound_labels(by_weight(failures), effort, failures, request.budget)
    return failures
