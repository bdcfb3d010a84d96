"""Threshold proofs from tables that serve all outputs: cubic, cubic pooled, quadratic pooled, and blocks of tokens."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from compactproofs.arrays import FlopCounter
from compactproofs.arrays.arithmetic import Counting, Rigorous
from compactproofs.arrays.environment import require_ieee754
from compactproofs.bounds.direct_path import DirectPath
from compactproofs.bounds.factored_tables import FactoredTables
from compactproofs.bounds.factors import EXACT, Factors
from compactproofs.bounds.low_rank_scores import AttentionError
from compactproofs.budget import Budget, in_threads
from compactproofs.cores import available_cores
from compactproofs.counting.count_up import unit_exponents
from compactproofs.counting.subject import Subject, for_queries, subject_of
from compactproofs.errors import StrategyError
from compactproofs.ledger.harms import upper_end, with_slack
from compactproofs.ledger.ledger import Leaf, Ledger, Part
from compactproofs.ledger.verify import INTERVALS
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.search.engine import fraction_of
from compactproofs.search.pools import counting_steps, direct_path, find_factors, find_pools, look_at_tables
from compactproofs.search.records import part_of_pool
from compactproofs.search.writing import written
from compactproofs.strategies.base import AbstractStrategy, Bound, ProofLength, Request
from compactproofs.strategies.threshold.limits import refuse_if_too_long, require_whole
from compactproofs.strategies.threshold.whole import is_whole_block, pooled_pass
from compactproofs.strategies.threshold.whole import length as length_of_block
from compactproofs.tasks import AbstractTask
from compactproofs.tasks.question import Question

_CLASSES = 12
"""Tables of long sequences with many failures are counted again by so many classes of most harmful tokens."""

_IGNORE = 1e-6
_ENTRIES_AT_ONCE = 200_000


@dataclass(frozen=True, eq=False)
class PoolFound:
    """What was found about one pool of queries of one label."""

    subject: Subject
    queries: np.ndarray
    failing: int
    operations: int
    record: np.ndarray

    def part(self) -> Part:
        return part_of_pool(self.subject, self.queries, self.record)


@dataclass(frozen=True)
class Tabled(AbstractStrategy):
    """A threshold proof in three choices; the names below are its useful combinations."""

    direct_path: DirectPath | str = EXACT
    """`exact`, or one of the paper's five ways to bound the direct path."""
    attention_error: AttentionError | str = AttentionError.EXACT_EQKE
    """`exact_EQKE`, or one of the paper's ways to replace it by few directions and bound the error."""

    family: ClassVar[str] = "threshold"
    weighted: ClassVar[bool] = True
    pools: ClassVar[int] = 0
    """0: every query by itself"""
    blocks: ClassVar[bool] = False

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "attention_error", AttentionError(self.attention_error))
            if self.direct_path != EXACT:
                object.__setattr__(self, "direct_path", DirectPath(self.direct_path))
        except ValueError as error:
            known = f"direct_path: {EXACT}, {', '.join(DirectPath)}; attention_error: {', '.join(AttentionError)}"
            raise StrategyError(f"{error}; expected {known}") from None

    @property
    def label(self) -> str:
        plain = type(self)()
        return self.name if self == plain else f"{self.name}/{self.direct_path}/{self.attention_error}"

    @property
    def source(self) -> str:
        return "ours; docs/explanation/threshold-proofs.md, Theorem 3"

    @property
    def parameters(self) -> dict[str, Any]:
        return {"direct_path": str(self.direct_path), "attention_error": str(self.attention_error)}

    def bound(self, request: Request) -> Bound:
        """Search for hints, then count what the harm tables prove.

        Guarantee: correct_at_least is at most the mass answered right, for every weight setting and every task.
        Assumes: nothing.
        Cost: see `complexity`, and counting, which is measured.
        Source: docs/explanation/threshold-proofs.md, Theorem 3.
        """
        require_ieee754()
        if self._about_blocks(request.weights, request.question):
            return pooled_pass(request, self.name, self.pools)
        refuse_if_too_long(request, self.name, self.estimated_seconds(request.weights))
        started = time.perf_counter()
        factors = self.factors(request)
        searched = time.perf_counter()
        found, seconds = self.found(request.weights, request.question, factors, request.budget)
        operations = sum(pool.operations for pool in found)
        return Bound(
            request.question.total - sum(pool.failing for pool in found),
            None,
            INTERVALS,
            measured={"counting": operations},
            integer_ops=operations,
            make_ledger=lambda: self._ledger(request, factors, found),
            search_seconds=searched - started,
            counting_seconds=seconds,
        )

    def _about_blocks(self, weights: Model, question: Question | None = None) -> bool:
        """Whether the network is a whole block, and the strategy has pools and none of the paper's replacements."""
        return self.pools > 1 and self == type(self)() and is_whole_block(weights, question)

    def factors(self, request: Request) -> Factors:
        """Hints for this model."""
        pooled = self.pools > 0
        found = request.shared.get(
            ("factors", self.weighted, pooled), lambda: find_factors(request.weights, weighted=self.weighted, pooled=pooled)
        )
        return self.with_choices(found)

    def with_choices(self, factors: Factors) -> Factors:
        """Hints, with this strategy's enclosures."""
        return replace(factors, direct_path=str(self.direct_path), attention_error=AttentionError(self.attention_error), blocks=self.blocks)

    def found(self, weights: Model, question: Question, factors: Factors, budget: Budget | None = None) -> tuple[list[PoolFound], float]:
        """What these hints prove about every pool of every label; and the seconds of counting, summed over threads.

        Guarantee: the mass of a pool that fails is at most its `failing`, whatever the hints are.
        """
        subjects = [subject_of(question, label) for label in question.task.labels]
        if weights.d_vocab_out == 1:
            return [], 0.0  # nothing to lose to
        tables = FactoredTables(weights, question, factors, Rigorous())
        direct = direct_path(weights, tables.factors) if self.pools > 1 else np.zeros((weights.d_vocab, weights.d_vocab_out))
        size = self._labels_at_once(weights)
        groups = [subjects[start : start + size] for start in range(0, len(subjects), size)]

        def work(group: list[Subject]) -> tuple[list[PoolFound], float]:
            pools = [find_pools(direct, tables.factors, subject, self.pools) for subject in group]
            by_label = dict(zip((subject.label for subject in group), pools, strict=True))
            found, seconds = [], 0.0
            for subject, h in tables.tables(group, pools):
                harms = with_slack(upper_end(h))
                started = time.perf_counter()
                found += self._look(question, subject, by_label[subject.label], harms)
                seconds += time.perf_counter() - started
            return found, seconds

        results = [result for _, result in in_threads(work, groups, budget)]
        require_whole(len(results), len(groups), budget or Budget(), self.name)
        return [pool for found, _ in results for pool in found], sum(seconds for _, seconds in results)

    def _look(self, question: Question, subject: Subject, pools: list[np.ndarray], harms: np.ndarray) -> list[PoolFound]:
        masses, k = np.stack([for_queries(subject, pool) for pool in pools]), question.task.n_ctx
        units = [int(unit_exponents(each).sum()) for each in masses]
        small = min(fraction_of(question.total, _IGNORE) // question.task.d_vocab >> min(units), 1 << 61)
        steps, classes = counting_steps(k), _CLASSES if k > 5 else 0
        records = np.empty((len(pools), 2 + classes + (1 + classes) * (3 + k)), dtype=np.int64)
        bounds = look_at_tables(harms, subject, masses, steps, classes, small, records)
        totals, found = question.totals_by_last(subject.label), []
        for pool, unit, (failing, operations), record in zip(pools, units, bounds.tolist(), records, strict=True):
            failing = min(failing << unit, sum(totals[q] for q in pool.tolist()))
            found.append(PoolFound(subject, pool, failing, operations, written(record)))
        return found

    def _ledger(self, request: Request, factors: Factors, found: list[PoolFound]) -> Ledger:
        parts = tuple(pool.part() for pool in found)
        if request.weights.d_vocab_out == 1:
            return trivial_ledger(request)
        return Ledger(request.question, request.weights.sha256, parts, factors=factors)

    def estimated_seconds(self, weights: Model) -> float:
        """About how long the proof takes; decides only what is worth starting."""
        v, positions = weights.d_vocab, 0 if self.pools else weights.n_ctx
        tables = v * (self.pools or v / 2)
        counting = tables * 4e-9 * v * v * weights.n_ctx
        brackets = weights.d_vocab_out * (1e-7 if self.weighted else 0) + v * (5e-8 + 3e-8 * positions)
        return (v**2 * brackets + counting) / available_cores()

    def _labels_at_once(self, weights: Model) -> int:
        """Labels to treat together: many for speed, few enough for memory and for stopping between them."""
        v, k, out = weights.d_vocab, weights.n_ctx, weights.d_vocab_out
        entries = max(v * max(v, out), v * v * k if self.pools == 0 else v * k * k)
        return int(np.clip(_ENTRIES_AT_ONCE // entries, 1, 16))

    def length(self, weights: Model, task: AbstractTask) -> ProofLength:
        if self._about_blocks(weights) and isinstance(weights, Network):
            return length_of_block(weights)
        counter = FlopCounter()
        question, out = Question(task), weights.d_vocab_out
        factors = self.with_choices(Factors.blank(weights, weighted=self.weighted, pooled=self.pools > 0))
        tables = FactoredTables(weights, question, factors, Counting(counter))
        for label in task.labels:
            subject = subject_of(question, label)
            for _ in tables.tables([subject], [find_pools(np.zeros((weights.d_vocab, out)), factors, subject, self.pools)]):
                pass
        return ProofLength(dict(counter.steps), 0, self._unexplained_dimensions(weights))

    def _unexplained_dimensions(self, weights: Model) -> int:
        """By the paper's principle: every number of a table that the proof looks up instead of explaining it."""
        v, d, k, out = weights.d_vocab, weights.d_model, weights.n_ctx, weights.d_vocab_out
        direct = {EXACT: v * out, DirectPath.MAX_DIFF_EXACT: 2 * v, DirectPath.GLOBAL_MAX_DIFF_EXACT: 2, DirectPath.MAX_DIFF: v * d + 2}
        exact_attention = self.attention_error is AttentionError.EXACT_EQKE
        attention = v * v if exact_attention else 4 * v if self.attention_error is AttentionError.MAX_DIFF_EXACT else 3 * v + 2 * d
        return v * out + k * out + k * v + direct.get(self.direct_path, v + v * d + 2) + attention


def trivial_ledger(request: Request) -> Ledger:
    """Of a network with one output, which is always right."""
    parts = tuple(Part(label, tuple(request.question.label_automaton(label).tokens.tolist()), Leaf(())) for label in request.task.labels)
    return Ledger(request.question, request.weights.sha256, tuple(part for part in parts if part.queries))


@dataclass(frozen=True)
class ThresholdCubic(Tabled):
    """Every query by itself, a weight for every output of every label."""

    name: ClassVar[str] = "threshold-cubic"

    @property
    def complexity(self) -> str:
        return "O(d_vocab^2 (d_vocab + d_model) + d_vocab^3 n_ctx) and counting"


@dataclass(frozen=True)
class ThresholdCubicPooled(Tabled):
    """A weight for every output of every label; queries in a few pools, each factor at its worst over the pool."""

    name: ClassVar[str] = "threshold-cubic-pooled"
    pools: ClassVar[int] = 4

    @property
    def complexity(self) -> str:
        return "O(d_vocab^2 (d_vocab + d_model)) and counting"


@dataclass(frozen=True)
class ThresholdQuadraticPooled(Tabled):
    """Row maxima instead of weights, all queries of a label in one pool, attention from a few directions: no cubic step."""

    attention_error: AttentionError | str = AttentionError.MAX_DIFF_EXACT

    name: ClassVar[str] = "threshold-quadratic-pooled"
    weighted: ClassVar[bool] = False
    pools: ClassVar[int] = 1

    @property
    def complexity(self) -> str:
        return "O(d_vocab^2 (d_model + n_ctx)) and counting"


@dataclass(frozen=True)
class ThresholdBlocks(Tabled):
    """Row maxima; every query by itself, but tokens in blocks of 1, 1, 2, 4, ... below the label that share their worst harm."""

    name: ClassVar[str] = "threshold-blocks"
    weighted: ClassVar[bool] = False
    blocks: ClassVar[bool] = True

    @property
    def complexity(self) -> str:
        return "O(d_vocab^2 (d_model + n_ctx log d_vocab)) and counting"
