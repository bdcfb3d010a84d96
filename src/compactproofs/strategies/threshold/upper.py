"""Upper bounds on accuracy, for every strategy: sequences on which one output certainly is not below the label."""

from __future__ import annotations

from compactproofs.ledger.ledger import Part
from compactproofs.search.engine import Effort, Engine
from compactproofs.search.forest import Forest
from compactproofs.strategies.base import Request
from compactproofs.strategies.threshold.whole import above, is_whole_block


def correct_at_most(request: Request) -> int:
    """Bound the mass answered right from above, from as many labels as there is time for.

    Guarantee: at least the mass answered right.
    Assumes: nothing.
    Cost: O(d_vocab^3 d_vocab_out n_ctx) and counting.
    Source: docs/explanation/threshold-proofs.md, "The other side".
    """
    return _found(request).right


def parts_above(request: Request) -> tuple[Part, ...]:
    """What proves that bound."""
    return _found(request).upper_parts()


def _found(request: Request) -> Engine | Forest:
    return request.shared.get(("correct at most", request.seconds), lambda: _searched(request))


def _searched(request: Request) -> Engine | Forest:
    if is_whole_block(request.weights, request.question):
        return above(request)
    engine = Engine.of(request.weights, request.question)
    effort = Effort(steps=200 if request.weights.n_ctx <= 5 else 50, classes=12, upper=True)
    engine.look_at_labels(engine.by_weight(), effort, request.budget)
    return engine
