"""The anytime portfolio: a ledger that gets better until the time is up."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import ClassVar

from compactproofs.budget import Budget
from compactproofs.errors import InfeasibleError
from compactproofs.ledger.ledger import Ledger
from compactproofs.model.kinds import Model
from compactproofs.search.engine import Cells, Claim, Effort, Engine, fraction_of
from compactproofs.search.growth import Growth
from compactproofs.strategies.base import Bound, Request
from compactproofs.strategies.lengths import length_by_sizes
from compactproofs.strategies.threshold.limits import seconds_for_pairs
from compactproofs.strategies.threshold.pairwise import Pairwise, ThresholdQuartic, claims_key, first_effort, found
from compactproofs.strategies.threshold.tabled import PoolFound, Tabled, ThresholdCubic, ThresholdCubicPooled
from compactproofs.strategies.threshold.whole import is_whole_block, portfolio

_SECONDS_IF_UNLIMITED = 60.0
_SAMPLED_LABELS = 5
_FIRST_PASS = 0.8
"""Looking at every pair may take so much of the time."""

NARROW = 1e-12
"""The search ends when the bounds on accuracy are so close."""


@dataclass(frozen=True)
class ThresholdBest(Pairwise):
    """The portfolio: quartic first, then whatever closes the gap between lower and upper bound, until the time is up.

    What `threshold-quartic` has already found about the same model is where it starts, if results are shared.
    """

    name: ClassVar[str] = "threshold-best"

    @property
    def complexity(self) -> str:
        return "O(d_vocab^3 d_vocab_out n_ctx) and more for hard models, within the time allowed"

    def bound(self, request: Request) -> Bound:
        """Bound failures from both sides.

        Guarantee: correct_at_least <= mass answered right <= correct_at_most, for every weight setting and every task.
        Assumes: nothing.
        Cost: at most about `request.seconds`, compiling aside.
        Source: docs/explanation/threshold-proofs.md, Theorem 4.
        """
        if is_whole_block(request.weights):
            return portfolio(request)
        started = time.perf_counter()
        budget = Budget(_SECONDS_IF_UNLIMITED if request.seconds is None else request.seconds, request.stop)
        engine = Engine.of(request.weights, request.question)
        growth = Growth(engine, glance(request.weights), fraction_of(request.question.total, NARROW), request.progress)
        known = request.shared.known(claims_key(ThresholdQuartic.name))
        if known is not None:
            for label, (failing, right) in known.items():
                engine.cells[label].failing, engine.cells[label].right = list(failing), list(right)
            growth = Growth(engine, glance(request.weights), fraction_of(request.question.total, NARROW), request.progress)
            for label, query in engine.open_pairs():
                growth.add_pair(label, query)
        else:
            growth.add_labels(engine.by_weight())
        growth.run(budget)
        return found(request, engine, started, upper=request.upper)


def glance(weights: Model) -> Effort:
    """How to look at every pair for the first time."""
    return Effort(400 if weights.n_ctx <= 5 else 25, upper=True)


def _look_first(engine: Engine, budget: Budget) -> bool:
    """Look at every pair once, if that leaves time for anything else; a few labels first tell how long it takes."""
    effort, labels = first_effort(engine.weights, upper=True), engine.by_weight()
    if seconds_for_pairs(engine.weights) > budget.left:
        return False
    samples = labels[:: max(1, len(labels) // _SAMPLED_LABELS)]
    before = budget.used
    done = engine.look_at_labels(samples, effort, budget)
    cost = {label: len(engine.subjects[label].tokens) ** 2 for label in labels}
    whole = (budget.used - before) * sum(cost.values()) / max(1, sum(cost[label] for label in done))
    if len(done) < len(samples) or whole > _FIRST_PASS * budget.left:
        return False
    rest = [label for label in labels if label not in samples]
    return len(engine.look_at_labels(rest, effort, budget)) == len(rest)


def _with_tables(request: Request, engine: Engine, budget: Budget, started: float) -> Bound:
    """For vocabularies where looking at every pair takes too long: tables for all labels, and pairs of as many labels as there is time for;
    of each pool the better of the two."""
    best: tuple[Tabled, list[PoolFound]] | None = None
    candidates: tuple[Tabled, ...] = (ThresholdCubicPooled(), ThresholdCubic())
    for used in candidates:
        if used.estimated_seconds(request.weights) < (1.0 if best is None else 0.5) * budget.left:
            try:
                pools, _ = used.found(request.weights, request.question, used.factors(request), Budget(budget.left, request.stop))
            except InfeasibleError:
                break
            if best is None or sum(pool.failing for pool in pools) < sum(pool.failing for pool in best[1]):
                best = used, pools
    untouched = [label for label in engine.by_weight() if all(not claim.known for claim in engine.cells[label].failing)]
    engine.look_at_labels(untouched, first_effort(request.weights, upper=True), budget)
    if best is None:
        return found(request, engine, started, upper=request.upper)
    used, pools = best
    kept = [pool for pool in pools if pool.failing < _failing_by_pairs(engine.cells[pool.subject.label], pool)]
    for pool in kept:  # nothing is proven twice
        for q in pool.queries.tolist():
            cells = engine.cells[pool.subject.label]
            cells.failing[q] = Claim(cells.totals[q])
    pairwise = found(request, engine, started, upper=request.upper)
    claimed = sum(engine.cells[pool.subject.label].totals[q] for pool in kept for q in pool.queries.tolist())
    length = length_by_sizes(used, request.weights, request.task)
    operations = sum(pool.operations for pool in kept)
    measured = dict(pairwise.measured)
    measured["counting"] += operations
    if not kept:
        return pairwise

    def ledger() -> Ledger:
        upper = engine.upper_parts() if request.upper else None
        lower = (*engine.lower_parts(), *(pool.part() for pool in kept))
        return Ledger(request.question, request.weights.sha256, lower, upper, used.factors(request))

    terms = {} if pairwise.length is None else {"terms": pairwise.length.flops_breakdown.get("terms", 0)}
    return replace(
        pairwise,
        correct_at_least=pairwise.correct_at_least + claimed - sum(pool.failing for pool in kept),
        arithmetic=f"{pairwise.arithmetic}; tables in interval arithmetic",
        measured=measured,
        integer_ops=pairwise.integer_ops + operations,
        length=replace(length, flops_breakdown={**length.flops_breakdown, **terms}),
        make_ledger=ledger,
    )


def _failing_by_pairs(cells: Cells, pool: PoolFound) -> int:
    return sum(cells.failing[q].mass for q in pool.queries.tolist())
