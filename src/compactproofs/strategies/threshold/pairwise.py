"""Threshold proofs that look at every query and label with all outputs: quartic, exact output, and the portfolio of the best."""

from __future__ import annotations

import heapq
import time
from collections.abc import Hashable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from compactproofs.budget import Budget
from compactproofs.errors import InfeasibleError
from compactproofs.model.weights import Weights
from compactproofs.strategies.base import AbstractStrategy, Bound, ProofLength, Request
from compactproofs.strategies.lengths import length_by_sizes
from compactproofs.strategies.threshold.engine import (
    Effort,
    Engine,
    Failures,
    by_weight,
    estimated_seconds,
    fraction_of,
    refuse_if_too_long,
    require_whole,
)
from compactproofs.strategies.threshold.tabled import Tabled, ThresholdCubic, ThresholdCubicPooled
from compactproofs.tasks import AbstractTask

ARITHMETIC = "float64 with a proven error bound over the reals, integer counting"

_SECONDS_IF_UNLIMITED = 60.0
_MOST_SEQUENCES = 2_000_000
_BATCH = 16
_SAMPLED_LABELS = 5
_FIRST_PASS = 0.8
"""Looking at every pair may take so much of the time."""

NARROW = 2e-5
"""Refinement ends when the bounds on accuracy are so close."""

REFINEMENTS = (
    Effort(50, classes=16, lower=True),
    Effort(50, classes=16, apart=True, lower=True),
    Effort(200, classes=24, lower=True),
    Effort(200, classes=24, apart=True, lower=True),
)
"""What to try, one after the other, where the bounds are far apart."""


def pair_length(weights: Weights, task: AbstractTask) -> dict[str, int]:
    """FLOPs of the terms and of the relevance filter, all outputs taken for relevant; the tables come on top."""
    k, out = weights.n_ctx, weights.d_vocab_out
    terms = relevance = worst = 0
    for label in task.labels:
        a = task.label_automaton(label)
        states, n = a.following.shape
        terms += n * out * (n + 3 * k + 2 * k * n)  # differences of V; of P and E, and their sum; sum and product
        relevance += n * out * 2 * k * states * n  # one addition and one comparison per state and token
        worst += n * out * 2 * k * n  # weight and maximum
    return {"terms": terms, "relevant outputs": relevance, "worst output": worst}


@dataclass(frozen=True)
class _Pairwise(AbstractStrategy):
    """What the strategies that look at every pair share."""

    family: ClassVar[str] = "threshold"
    apart: ClassVar[bool] = False

    @property
    def complexity(self) -> str:
        return "O(d_vocab^3 d_vocab_out n_ctx) and counting"

    @property
    def source(self) -> str:
        return "ours; docs/explanation/threshold-proofs.md"

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    def bound(self, request: Request) -> Bound:
        """Count, for every query and label, the sequences that may fail.

        Guarantee: correct_at_least is at most the number of correct sequences, for every weight setting and every task.
        Assumes: nothing.
        Cost: see `complexity`; counting is measured.
        Source: docs/explanation/threshold-proofs.md.
        """
        refuse_if_too_long(request, self.name, self.estimated_seconds(request.weights))
        started = time.perf_counter()
        engine = Engine.of(request.weights, request.task)
        failures = engine.unknown()
        labels = by_weight(failures)
        done = engine.bound_labels(labels, first_effort(request.weights, joint=not self.apart, apart=self.apart), failures, request.budget)
        require_whole(len(done), len(labels), request.budget, self.name)
        request.shared.get(_key(self.name), lambda: (deepcopy(failures), engine.operations))
        return Bound(
            request.task.total - sum(sum(f.upper) for f in failures.values()),
            None,
            ARITHMETIC,
            measured={"counting": engine.operations},
            integer_ops=engine.operations,
            details=failures,
            counting_seconds=time.perf_counter() - started,
        )

    def estimated_seconds(self, weights: Weights) -> float:
        """About how long the proof takes; decides only what is worth starting."""
        return estimated_seconds(weights) * (15 * max(1.0, weights.n_ctx / 10) ** 2.5 if self.apart else 1)

    def by_pair(self, request: Request) -> dict[int, list[int]] | None:
        details = self.bound(request).details
        if isinstance(details, Tabled):
            return details.by_pair(request)
        return {label: [total - failing for total, failing in zip(f.totals, f.upper, strict=True)] for label, f in details.items()}

    def length(self, weights: Weights, task: AbstractTask) -> ProofLength:
        return with_tables(weights, task, pair_length(weights, task))


def _key(name: str) -> Hashable:
    """Under which the bounds that a strategy has found for every pair are shared."""
    return ("failures by pair", name)


def with_tables(weights: Weights, task: AbstractTask, steps: dict[str, int]) -> ProofLength:
    """A proof that looks up all five tables: their cost, the cost of the steps, and their sizes as unexplained dimensions."""
    exact = length_by_sizes(ThresholdCubic(), weights, task)
    tables = {name: exact.flops_breakdown[name] for name in ("embeddings", "EQKE and EQKP", "EVOU and PVOU", "EU", "attention")}
    return ProofLength({**tables, **steps}, 0, exact.unexplained_dimensions)


def first_effort(weights: Weights, *, joint: bool = True, apart: bool = False, lower: bool = False) -> Effort:
    """How hard to look at first, so that counting is not the bottleneck."""
    if weights.n_ctx <= 5:
        return Effort(400, classes=12, joint=joint, apart=apart, lower=lower)
    if apart:
        return Effort(25, joint=joint, apart=True, lower=lower)
    steps = 50 if weights.n_ctx > 10 else 100
    return Effort(steps, classes=12, joint=joint, lower=lower, ignore=1e-6 if weights.d_vocab <= 64 else 1e-5)


@dataclass(frozen=True)
class ThresholdQuartic(_Pairwise):
    """For every query and label the worst of the outputs that matter, with a weight for each."""

    name: ClassVar[str] = "threshold-quartic"


@dataclass(frozen=True)
class ThresholdExactOutput(_Pairwise):
    """For every query, label and output the exact threshold; failures add up, those of earlier outputs taken off."""

    name: ClassVar[str] = "threshold-exact-output"
    apart: ClassVar[bool] = True


@dataclass(frozen=True)
class ThresholdBest(_Pairwise):
    """The portfolio: quartic first, then whatever closes the gap between lower and upper bound, until the time is up.

    What `threshold-quartic` has already found about the same model is where it starts, if results are shared.
    """

    name: ClassVar[str] = "threshold-best"

    @property
    def complexity(self) -> str:
        return "O(d_vocab^3 d_vocab_out n_ctx) and more for hard models, within the time allowed"

    def bound(self, request: Request) -> Bound:
        """Bound failures from both sides.

        Guarantee: correct_at_least <= number of correct sequences <= correct_at_most, for every weight setting and every task.
        Assumes: nothing.
        Cost: at most about `request.seconds`, compiling aside.
        Source: docs/explanation/threshold-proofs.md.
        """
        started = time.perf_counter()
        budget = Budget(_SECONDS_IF_UNLIMITED if request.seconds is None else request.seconds, request.stop)
        engine = Engine.of(request.weights, request.task)
        known = request.shared.known(_key(ThresholdQuartic.name))
        if known is None:
            failures = engine.unknown()
            if not _look_first(engine, failures, budget):
                return self._from_tables(request, engine, failures, budget)
        else:
            failures, engine.operations = deepcopy(known)
            engine.looks = sum(len(f.totals) for f in failures.values())
        if _enumerable(failures):
            engine.enumerate(_open_pairs(failures), _MOST_SEQUENCES, failures, budget)
        refine(engine, failures, budget)
        return _found(request, engine, failures, started)

    def _from_tables(self, request: Request, engine: Engine, failures: dict[int, Failures], budget: Budget) -> Bound:
        """For vocabularies where looking at every pair takes too long: tables for all labels, or pairs of as many labels as there is
        time for, whichever proves more. (A certificate follows one rule, so they are not mixed.)"""
        started = time.perf_counter()
        used: Tabled = ThresholdCubicPooled()
        bounds: list[tuple[Tabled, Bound]] = []
        for used in (ThresholdCubicPooled(), ThresholdCubic()):
            if used.estimated_seconds(request.weights) < (0.5 if bounds else 1.0) * budget.left:
                try:
                    bounds.append((used, used.bound(replace(request, seconds=budget.left))))
                except InfeasibleError:
                    break
        engine.bound_labels(_untouched(failures), first_effort(request.weights, lower=True), failures, budget)
        pairwise = _found(request, engine, failures, started)
        if not bounds:
            return pairwise
        used, best = max(bounds, key=lambda found: found[1].correct_at_least)
        if best.correct_at_least <= pairwise.correct_at_least:
            return pairwise
        length = length_by_sizes(used, request.weights, request.task)
        return replace(best, correct_at_most=pairwise.correct_at_most, length=length, details=used)


def _look_first(engine: Engine, failures: dict[int, Failures], budget: Budget) -> bool:
    """Look at every pair once, if that leaves time for anything else; a few labels first tell how long it takes."""
    effort, labels = first_effort(engine.weights, lower=True), by_weight(failures)
    if estimated_seconds(engine.weights) > budget.left:
        return False
    samples = labels[:: max(1, len(labels) // _SAMPLED_LABELS)]
    before = budget.used
    done = engine.bound_labels(samples, effort, failures, budget)
    cost = {label: len(engine.automata[label].tokens) ** 2 for label in labels}
    whole = (budget.used - before) * sum(cost.values()) / max(1, sum(cost[label] for label in done))
    if len(done) < len(samples) or whole > _FIRST_PASS * budget.left:
        return False
    rest = [label for label in labels if label not in samples]
    return len(engine.bound_labels(rest, effort, failures, budget)) == len(rest)


def _untouched(failures: dict[int, Failures]) -> list[int]:
    return [label for label in by_weight(failures) if not failures[label].upper_by]


def _found(request: Request, engine: Engine, failures: dict[int, Failures], started: float) -> Bound:
    """What the bounds on failures prove. Pairs that were not looked at count as failing, and for the upper bound as right."""
    flops = pair_length(request.weights, request.task)
    pairs = sum(len(f.totals) for f in failures.values())
    average = sum(flops.values()) // max(1, pairs)
    return Bound(
        request.task.total - sum(sum(f.upper) for f in failures.values()),
        request.task.total - sum(sum(f.lower) for f in failures.values()) if request.upper else None,
        ARITHMETIC,
        measured={"terms again": average * max(0, engine.looks - pairs), "counting": engine.operations},
        integer_ops=engine.operations,
        details=failures,
        counting_seconds=time.perf_counter() - started,
    )


def _open_pairs(failures: dict[int, Failures]) -> list[tuple[int, int]]:
    return [(label, q) for label, f in failures.items() for q in range(len(f.totals)) if f.gap(q) > 0]


def _enumerable(failures: dict[int, Failures]) -> bool:
    """Whether all sequences that may fail can be looked at one by one in a second or so."""
    return sum(f.upper[q] for f in failures.values() for q in range(len(f.totals)) if f.gap(q) > 0) <= _MOST_SEQUENCES


def refine(engine: Engine, failures: dict[int, Failures], budget: Budget) -> None:
    """Look again, harder each time, at the pairs whose bounds are farthest apart, until they are close or the time is up."""
    total = engine.task.total
    queue = [(-f.gap(q), 0, label, q) for label, f in failures.items() for q in range(len(f.totals)) if f.gap(q) > 0]
    heapq.heapify(queue)
    gap = -sum(entry[0] for entry in queue)
    while queue and gap > fraction_of(total, NARROW) and not budget.over:
        batch = [heapq.heappop(queue) for _ in range(min(_BATCH, len(queue)))]
        level = min(entry[1] for entry in batch)
        now = [entry for entry in batch if entry[1] == level]
        for entry in batch:
            if entry[1] != level:
                heapq.heappush(queue, entry)
        engine.bound_some([(label, q) for _, _, label, q in now], REFINEMENTS[level], failures, budget)
        for before, _, label, q in now:
            after = failures[label].gap(q)
            gap += before + after
            if after > 0 and level + 1 < len(REFINEMENTS):
                heapq.heappush(queue, (-after, level + 1, label, q))
