"""Threshold proofs that look at every query and label with all outputs: quartic, exact output, and the portfolio of the best."""

from __future__ import annotations

import heapq
import time
from collections.abc import Hashable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from compactproofs.model.weights import Weights
from compactproofs.strategies.base import AbstractStrategy, Bound, ProofLength, Request
from compactproofs.strategies.lengths import length_by_sizes
from compactproofs.strategies.threshold.engine import Effort, Engine, Failures, estimated_seconds, fraction_of, refuse_if_too_long
from compactproofs.strategies.threshold.tabled import Tabled, ThresholdCubic, ThresholdCubicPooled
from compactproofs.tasks import AbstractTask

ARITHMETIC = "float64 with a proven error bound over the reals, integer counting"

_SECONDS_IF_UNLIMITED = 60.0
_MOST_SEQUENCES = 2_000_000
_BATCH = 16

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
        engine.bound_all(first_effort(request.weights, joint=not self.apart, apart=self.apart), failures)
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
        Cost: at most about `request.seconds`.
        Source: docs/explanation/threshold-proofs.md.
        """
        started = time.perf_counter()
        deadline = started + (_SECONDS_IF_UNLIMITED if request.seconds is None else request.seconds)
        known = request.shared.known(_key(ThresholdQuartic.name))
        if known is None and request.seconds is not None and estimated_seconds(request.weights) > 0.5 * request.seconds:
            return self._from_tables(request, deadline)
        engine = Engine.of(request.weights, request.task)
        if known is None:
            failures = engine.unknown()
            engine.bound_all(first_effort(request.weights, lower=True), failures)
        else:
            failures, engine.operations = deepcopy(known)
            engine.looks = sum(len(f.totals) for f in failures.values())
        flops = pair_length(request.weights, request.task)
        if _enumerable(failures):
            engine.enumerate(_open_pairs(failures), _MOST_SEQUENCES, failures)
        refine(engine, failures, deadline)
        again = engine.looks - sum(len(f.totals) for f in failures.values())
        average = sum(flops.values()) // max(1, sum(len(f.totals) for f in failures.values()))
        return Bound(
            request.task.total - sum(sum(f.upper) for f in failures.values()),
            request.task.total - sum(sum(f.lower) for f in failures.values()) if request.upper else None,
            ARITHMETIC,
            measured={"terms again": average * again, "counting": engine.operations},
            integer_ops=engine.operations,
            details=failures,
            counting_seconds=time.perf_counter() - started,
        )

    def _from_tables(self, request: Request, deadline: float) -> Bound:
        """For vocabularies where looking at every pair takes too long."""
        used: Tabled = ThresholdCubicPooled()
        best = used.bound(request)
        if ThresholdCubic().estimated_seconds(request.weights) < deadline - time.perf_counter():
            other = ThresholdCubic().bound(request)
            if other.correct_at_least > best.correct_at_least:
                used, best = ThresholdCubic(), other
        return replace(best, length=length_by_sizes(used, request.weights, request.task), details=used)


def _open_pairs(failures: dict[int, Failures]) -> list[tuple[int, int]]:
    return [(label, q) for label, f in failures.items() for q in range(len(f.totals)) if f.gap(q) > 0]


def _enumerable(failures: dict[int, Failures]) -> bool:
    """Whether all sequences that may fail can be looked at one by one in a second or so."""
    return sum(f.upper[q] for f in failures.values() for q in range(len(f.totals)) if f.gap(q) > 0) <= _MOST_SEQUENCES


def refine(engine: Engine, failures: dict[int, Failures], deadline: float) -> None:
    """Look again, harder each time, at the pairs whose bounds are farthest apart, until they are close or the time is up."""
    total = engine.task.total
    queue = [(-f.gap(q), 0, label, q) for label, f in failures.items() for q in range(len(f.totals)) if f.gap(q) > 0]
    heapq.heapify(queue)
    gap = -sum(entry[0] for entry in queue)
    while queue and gap > fraction_of(total, NARROW) and time.perf_counter() < deadline:
        batch = [heapq.heappop(queue) for _ in range(min(_BATCH, len(queue)))]
        level = min(entry[1] for entry in batch)
        now = [entry for entry in batch if entry[1] == level]
        for entry in batch:
            if entry[1] != level:
                heapq.heappush(queue, entry)
        engine.bound_some([(label, q) for _, _, label, q in now], REFINEMENTS[level], failures)
        for before, _, label, q in now:
            after = failures[label].gap(q)
            gap += before + after
            if after > 0 and level + 1 < len(REFINEMENTS):
                heapq.heappush(queue, (-after, level + 1, label, q))
