"""The anytime portfolio: a ledger that gets better until the time is up."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import ClassVar

from compactproofs.budget import Budget
from compactproofs.errors import InfeasibleError
from compactproofs.ledger.ledger import Ledger
from compactproofs.model.kinds import Model
from compactproofs.search.engine import Cells, Claim, Effort, Engine, fraction_of
from compactproofs.search.growth import COUNTABLE, Growth
from compactproofs.strategies.base import Bound, Request
from compactproofs.strategies.lengths import length_by_sizes
from compactproofs.strategies.threshold.limits import seconds_for_pairs
from compactproofs.strategies.threshold.pairwise import Pairwise, ThresholdQuartic, claims_key, found
from compactproofs.strategies.threshold.tabled import PoolFound, Tabled, ThresholdCubic, ThresholdCubicPooled
from compactproofs.strategies.threshold.whole import is_whole_block, portfolio

_SECONDS_IF_UNLIMITED = 60.0
_FIRST_PASS = 0.5
"""If looking at every pair once takes more than this of the time, tables come first."""
_TABLES = 0.25
"""Tables may take so much of the time."""

_LONG = 10.0
"""Two sums at once are tried if there is so much time: what they win comes late, and they take long to compile."""

NARROW = 1e-12
"""The search ends when the bounds on accuracy are so close."""
NARROW_BY_DEFAULT = 1e-6
"""The same if nobody said how long it may take."""


@dataclass(frozen=True)
class ThresholdBest(Pairwise):
    """The portfolio: every pair at a glance, then whatever closes the gap between lower and upper bound, until the time is up.

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
        Cost: at most about `request.seconds`, compiling aside; if nobody said how long, at most `usual_seconds`.
        Source: docs/explanation/threshold-proofs.md, Theorem 4.
        """
        if is_whole_block(request.weights, request.question):
            return portfolio(request)
        started = time.perf_counter()
        seconds = _SECONDS_IF_UNLIMITED if request.seconds is None else request.seconds
        budget = Budget(seconds, request.stop)
        engine = Engine.of(request.weights, request.question)
        if request.usual and _is_known(engine):
            Growth(engine, glance(request.weights), 0).warm_up()
            budget = Budget(min(budget.left, usual_seconds(request.weights)), request.stop)
        known = request.shared.known(claims_key(ThresholdQuartic.name)) or {}
        for label, (failing, right) in known.items():
            engine.cells[label].failing, engine.cells[label].right = list(failing), list(right)
        tables = None
        if not known and seconds_for_pairs(request.weights) > _FIRST_PASS * budget.left:
            tables = _tables(request, budget)
        _grow(request, engine, budget)
        bound = found(request, engine, started, upper=request.upper) if tables is None else _merged(request, engine, tables, started)
        return replace(bound, advice=_advice(request, engine, bound, budget))


def usual_seconds(weights: Model) -> float:
    """How long to look if nobody said: most models are then known to 1e-4 or better, and those with short sequences exactly."""
    if weights.d_vocab**weights.n_ctx <= COUNTABLE:  # it ends by itself
        return 20.0
    return min(max(3.0 * (weights.n_ctx / 10) * (weights.d_vocab / 64) ** 2, 2.0), _SECONDS_IF_UNLIMITED)


def glance(weights: Model) -> Effort:
    """How to look at every pair for the first time. Short sequences are decided one by one next: a finer grid leaves fewer in doubt."""
    return Effort(400 if weights.n_ctx <= 5 else 25, upper=True, ignore=0.0 if weights.n_ctx <= 5 else 1e-7)


def _grow(request: Request, engine: Engine, budget: Budget) -> None:
    """Look at every pair and again where it is worth most, until the bounds are close or the time is up."""
    if not _is_known(engine):
        return
    narrow = fraction_of(request.question.total, NARROW_BY_DEFAULT if request.usual else NARROW)
    twos = not request.usual and (request.seconds is None or request.seconds >= _LONG)
    growth = Growth(engine, glance(request.weights), narrow, request.progress, twos=twos)
    growth.add_labels(label for label in engine.by_weight() if not engine.cells[label].known)
    for label, query in engine.open_pairs():
        if engine.cells[label].known:
            growth.add_pair(label, query)
    growth.run(budget)


def _is_known(engine: Engine) -> bool:
    """Whether float64 knows anything about these weights."""
    return engine.evaluation.tolerance < math.inf


def _advice(request: Request, engine: Engine, bound: Bound, budget: Budget) -> str:
    """How to get more, if there is more to get."""
    apart = (engine.right - bound.correct_at_least) / max(1, request.question.total)
    if not request.usual or not budget.over or apart <= 0:
        return ""
    return f"the search ended after {budget.used:.0f} s, with bounds {apart:.0e} apart; --seconds N allows more (in Python seconds=N)"


def _tables(request: Request, budget: Budget) -> tuple[Tabled, list[PoolFound]] | None:
    """For vocabularies where looking at every pair takes too long: tables for all labels, the better of those that there is time for."""
    best: tuple[Tabled, list[PoolFound]] | None = None
    candidates: tuple[Tabled, ...] = (ThresholdCubicPooled(), ThresholdCubic())
    for used in candidates:
        if used.estimated_seconds(request.weights) < (1.0 if best is None else _TABLES) * budget.left:
            try:
                pools, _ = used.found(request.weights, request.question, used.factors(request), Budget(budget.left, request.stop))
            except InfeasibleError:
                break
            if best is None or sum(pool.failing for pool in pools) < sum(pool.failing for pool in best[1]):
                best = used, pools
    return best


def _merged(request: Request, engine: Engine, tables: tuple[Tabled, list[PoolFound]], started: float) -> Bound:
    """Of each pool the better: its table, or its pairs."""
    used, pools = tables
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
