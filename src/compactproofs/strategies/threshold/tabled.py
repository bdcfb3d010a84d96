"""Threshold proofs from harm tables that serve all outputs: cubic, cubic pooled, quadratic pooled, and blocks of tokens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from compactproofs.arrays import FlopCounter
from compactproofs.arrays.arithmetic import AbstractArithmetic, Counting, Rigorous
from compactproofs.arrays.environment import require_ieee754
from compactproofs.arrays.interval import Interval
from compactproofs.budget import Budget, in_threads
from compactproofs.circuits.tables import direct_table, score_tables, value_tables
from compactproofs.cores import available_cores
from compactproofs.counting.additive import count_exponent
from compactproofs.counting.grid import count_tables
from compactproofs.errors import StrategyError
from compactproofs.model.weights import Weights
from compactproofs.strategies.base import AbstractStrategy, Bound, ProofLength, Request
from compactproofs.strategies.subcubic.attention_scores import approximate_scores
from compactproofs.strategies.subcubic.direct_path import direct_bound
from compactproofs.strategies.subcubic.options import AttentionError, DirectPath
from compactproofs.strategies.threshold.engine import fraction_of, refuse_if_too_long, require_whole, usual_token
from compactproofs.strategies.threshold.harms import (
    AbstractOutputs,
    Attention,
    Brackets,
    Direct,
    Pools,
    RowMaxima,
    WeightedOutputs,
    Windows,
    dyadic_blocks,
    harms_by_query,
    harms_of_blocks,
    harms_of_factored_pools,
    harms_of_pools,
)
from compactproofs.strategies.threshold.hints import Hints, find_hints
from compactproofs.tasks import AbstractTask, MaxOfK
from compactproofs.tasks.label_automaton import LabelAutomaton

EXACT = "exact"
"""Direct path: EU itself, with the weights of the outputs."""

_CLASSES = 12
"""Tables of long sequences with many failures are counted again by so many classes of most harmful tokens."""

_IGNORE = 1e-6
_ENTRIES_AT_ONCE = 200_000


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
        return "ours; docs/explanation/threshold-proofs.md"

    @property
    def parameters(self) -> dict[str, Any]:
        return {"direct_path": str(self.direct_path), "attention_error": str(self.attention_error)}

    def bound(self, request: Request) -> Bound:
        """Search for hints, then count what the harm tables prove.

        Guarantee: correct_at_least is at most the number of correct sequences, for every weight setting and every task.
        Assumes: nothing.
        Cost: see `complexity`, and counting, which is measured.
        Source: docs/explanation/threshold-proofs.md.
        """
        require_ieee754()
        refuse_if_too_long(request, self.name, self.estimated_seconds(request.weights))
        started = time.perf_counter()
        hints = request.shared.get(
            ("threshold hints", self.pools),
            lambda: find_hints(request.weights, max(self.pools, 1)),
        )
        searched = time.perf_counter()
        failures, operations, counting = self.failures(request.weights, request.task, hints, Rigorous(), request.budget)
        return Bound(
            request.task.total - failures,
            None,
            "interval arithmetic over the reals, integer counting",
            measured={"counting": operations},
            integer_ops=operations,
            search_seconds=searched - started,
            counting_seconds=counting,
        )

    def by_pair(self, request: Request) -> dict[int, list[int]]:
        require_ieee754()
        weights, task = request.weights, request.task
        if weights.d_vocab_out == 1:
            return {label: task.label_automaton(label).totals_by_last(task.n_ctx) for label in task.labels}
        run = _Run(self, weights, task, find_hints(weights, max(self.pools, 1)).checked(weights), Rigorous())
        found = in_threads(run.proven_by_query, _groups(task.labels, self._labels_at_once(weights)))
        return {label: counts for _, group in found for label, counts in group.items()}

    def unproven(self, request: Request) -> dict[int, list[list[int] | None]] | None:
        """The most harmful token everywhere, the label where that costs least."""
        weights = request.weights
        if weights.d_vocab_out == 1 or not isinstance(request.task, MaxOfK):
            return None
        run = _Run(self, weights, request.task, find_hints(weights, max(self.pools, 1)).checked(weights), Rigorous())
        found: dict[int, list[list[int] | None]] = {label: [None] * (label + 1) for label in request.task.labels}
        for group in _groups(request.task.labels, self._labels_at_once(weights)):
            for label, h, last in run.tables(group):
                for pool, q in zip(*(x.tolist() for x in np.nonzero(last)), strict=True):
                    found[label][q] = _worst_sequence(_upper_end(h)[pool], label, q)
        return found

    def failures(
        self, weights: Weights, task: AbstractTask, hints: Hints, arithmetic: AbstractArithmetic, budget: Budget | None = None
    ) -> tuple[int, int, float]:
        """How many sequences are not proven correct, and the integer operations and seconds it took to count them.

        Guarantee (with `Rigorous` arithmetic): the first is at least the number of failures, whatever the hints are.
        """
        if weights.d_vocab_out == 1:
            return 0, 0, 0.0  # nothing to lose to
        proof = _Run(self, weights, task, hints.checked(weights), arithmetic)
        groups = _groups(task.labels, self._labels_at_once(weights))
        results = [result for _, result in in_threads(proof.failures_of_labels, groups, budget)]
        require_whole(len(results), len(groups), budget or Budget(), self.name)
        failures, operations, seconds = zip(*results, strict=True)
        return sum(failures), sum(operations), sum(seconds)

    def estimated_seconds(self, weights: Weights) -> float:
        """About how long the proof takes; decides only what is worth starting."""
        v, positions = weights.d_vocab, 0 if self.pools else weights.n_ctx
        tables = v * (self.pools or v / 2)
        counting = tables * 4e-9 * v * v * weights.n_ctx
        return (
            v**2 * (weights.d_vocab_out * (1e-7 if self.weighted else 0) + v * (5e-8 + 3e-8 * positions)) + counting
        ) / available_cores()

    def _labels_at_once(self, weights: Weights) -> int:
        """Labels to treat together: many for speed, few enough for memory and for stopping between them."""
        v, k, out = weights.d_vocab, weights.n_ctx, weights.d_vocab_out
        entries = max(v * max(v, out), v * v * k if self.pools == 0 else v * k * k)
        return int(np.clip(_ENTRIES_AT_ONCE // entries, 1, 16))

    def length(self, weights: Weights, task: AbstractTask) -> ProofLength:
        counter = FlopCounter()
        run = _Run(self, weights, task, Hints.blank(weights), Counting(counter))
        for group in _groups(task.labels, 1):
            for _ in run.tables(group):
                pass
        return ProofLength(dict(counter.steps), 0, self._unexplained_dimensions(weights))

    def _unexplained_dimensions(self, weights: Weights) -> int:
        """By the paper's principle: every number of a table that the proof looks up instead of explaining it."""
        v, d, k, out = weights.d_vocab, weights.d_model, weights.n_ctx, weights.d_vocab_out
        direct = {EXACT: v * out, DirectPath.MAX_DIFF_EXACT: 2 * v, DirectPath.GLOBAL_MAX_DIFF_EXACT: 2, DirectPath.MAX_DIFF: v * d + 2}
        exact_attention = self.attention_error is AttentionError.EXACT_EQKE
        attention = v * v if exact_attention else 4 * v if self.attention_error is AttentionError.MAX_DIFF_EXACT else 3 * v + 2 * d
        return v * out + k * out + k * v + direct.get(self.direct_path, v + v * d + 2) + attention


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


class _Run:
    """One pass of a tabled proof over one model in one arithmetic."""

    def __init__(self, strategy: Tabled, weights: Weights, task: AbstractTask, hints: Hints, arithmetic: AbstractArithmetic) -> None:
        self.strategy, self.weights, self.task, self.hints, self.arithmetic = strategy, weights, task, hints, arithmetic
        self.automata = {label: task.label_automaton(label) for label in task.labels}
        EVOU, PVOU = value_tables(weights, arithmetic)
        direct = self._direct()
        with arithmetic.step("token brackets"):
            V = EVOU + direct.mu
        self.outputs: AbstractOutputs = (
            WeightedOutputs(V, PVOU, direct, hints.output_weights, arithmetic)
            if strategy.weighted
            else RowMaxima.of(V, PVOU, direct, arithmetic)
        )
        self.lower, self.upper, self.EQKP = self._scores()
        if strategy.pools == 0:
            with arithmetic.step("attention"):
                upper = np.exp(self.upper - hints.shift[:, None])
                lower = upper if self.lower is self.upper else np.exp(self.lower - hints.shift[:, None])
                self.attention = Attention(lower, upper, np.exp(self.EQKP))
        if strategy.blocks:
            with arithmetic.step("windows"):
                self.windows = Windows.of(self.attention.lower, np.minimum), Windows.of(self.attention.upper, np.maximum)

    def _direct(self) -> Direct:
        if self.strategy.direct_path == EXACT:
            EU = direct_table(self.weights, self.arithmetic)
            with self.arithmetic.step("query brackets"):
                return Direct(self.hints.mu, table=EU - self.hints.mu)
        handling = DirectPath(self.strategy.direct_path)
        bound = direct_bound(handling, self.weights, self.hints.directions.query_summary, self.arithmetic)
        return Direct(bound.mu, rest_upper=bound.rest_upper)

    def _scores(self) -> tuple[Any, Any, Any]:
        if self.strategy.attention_error is AttentionError.EXACT_EQKE:
            EQKE, EQKP = score_tables(self.weights, self.arithmetic)
            return EQKE, EQKE, EQKP
        kind = AttentionError(self.strategy.attention_error)
        scores = approximate_scores(kind, self.weights, self.hints.directions, self.arithmetic)
        with self.arithmetic.step("attention scores"):
            self.factors, self.error = scores.factors, scores.error_upper * np.ones(self.weights.d_vocab)
            return scores.approximate, scores.approximate + self.error[:, None], scores.EQKP

    def failures_of_labels(self, labels: list[int]) -> tuple[int, int, float]:
        """Sequences of these labels that are not proven correct, and the operations and seconds of counting them."""
        k = self.weights.n_ctx
        work = np.zeros(1, dtype=np.int64)
        failures, seconds = 0, 0.0
        for label, h, last in self.tables(labels):
            started = time.perf_counter()
            a = self.automata[label]
            scale, totals = count_exponent(k, len(a.tokens)), a.totals_by_last(k)
            small = min(fraction_of(self.weights.d_vocab ** (k - 1), _IGNORE) >> scale, 2**61)
            counts = np.zeros(len(h), dtype=np.int64)
            count_tables(
                *(np.ascontiguousarray(_upper_end(h)), last, usual_token(a, label), self.hints.steps, _CLASSES if k > 5 else 0, small),
                *(a.following, a.accepting, a.start, counts, work),
            )
            for found, row in zip(counts.tolist(), last, strict=True):
                failures += min(found << scale, sum(totals[q] for q in np.flatnonzero(row)))
            seconds += time.perf_counter() - started
        return failures, int(work[0]), seconds

    def proven_by_query(self, labels: list[int]) -> dict[int, list[int]]:
        """For each of these labels, by query: the sequences that are proven correct."""
        k = self.weights.n_ctx
        result = {label: [0] * len(self.automata[label].tokens) for label in labels}
        for label, h, last in self.tables(labels):
            a = self.automata[label]
            scale, totals = count_exponent(k, len(a.tokens)), a.totals_by_last(k)
            pool, query = np.nonzero(last)
            harms = np.ascontiguousarray(_upper_end(h)[pool])
            small = min(fraction_of(self.weights.d_vocab ** (k - 1), _IGNORE) >> scale, 2**61)
            counts, work = np.zeros(len(harms), dtype=np.int64), np.zeros(1, dtype=np.int64)
            count_tables(
                *(
                    harms,
                    np.eye(len(a.tokens), dtype=bool)[query],
                    usual_token(a, label),
                    self.hints.steps,
                    _CLASSES if k > 5 else 0,
                    small,
                ),
                *(a.following, a.accepting, a.start, counts, work),
            )
            for q, found in zip(query.tolist(), counts.tolist(), strict=True):
                result[label][q] = max(result[label][q], totals[q] - min(found << scale, totals[q]))
        return result

    def tables(self, labels: list[int]) -> Iterator[tuple[int, Any, np.ndarray]]:
        """Of each label the harm tables (tables, position, token) and which tokens may stand last in each (tables, token)."""
        labels = [label for label in labels if len(self.automata[label].tokens)]
        if not labels:
            return
        tokens = np.unique(np.concatenate([self.automata[label].tokens for label in labels]))
        rows = np.array(labels)
        brackets = self.outputs.brackets(rows, tokens)
        if self.strategy.pools:
            pools = self._pools(labels, tokens)
            harms, belongs = self._pooled(brackets, rows, tokens, pools), pools.belongs
        elif not self.strategy.blocks:
            harms = harms_by_query(brackets, self.attention, tokens, self.arithmetic)
        for row, label in enumerate(labels):
            own = np.searchsorted(tokens, self.automata[label].tokens)
            single = np.eye(len(own), dtype=bool)
            if self.strategy.pools:
                yield label, harms[row][:, :, own], belongs[row][:, own]
            elif self.strategy.blocks:
                one = Brackets(brackets.r[[row]][:, own], brackets.s[[row]][:, own], brackets.p[[row]])
                yield label, self._blocked(one, self.automata[label], label), single
            else:
                yield label, harms[row][own][:, :, own], single

    def _pools(self, labels: list[int], tokens: np.ndarray) -> Pools:
        """The hinted pools, as lists of equal length."""
        of = np.zeros((len(labels), len(tokens)), dtype=np.int64)
        for row, label in enumerate(labels):
            own = np.searchsorted(tokens, self.automata[label].tokens)
            numbers = np.unique(self.hints.pool_of[label, self.automata[label].tokens], return_inverse=True)[1]
            of[row, own] = numbers.reshape(-1) % self.strategy.pools
        occurs = np.stack([np.isin(tokens, self.automata[label].tokens) for label in labels])
        numbers = np.unique(of[occurs])
        belongs = (of[:, None, :] == numbers[None, :, None]) & occurs[:, None, :]
        size = max(1, int(belongs.sum(axis=2).max()))
        first = np.argsort(~belongs, axis=2, kind="stable")[:, :, :size]
        members = np.where(np.take_along_axis(belongs, first, axis=2), first, first[:, :, :1])
        return Pools(members, belongs)

    def _pooled(self, brackets: Brackets, labels: np.ndarray, tokens: np.ndarray, pools: Pools) -> Any:
        if self.strategy.weighted or self.strategy.attention_error is AttentionError.EXACT_EQKE:
            shift = self.hints.label_shift[np.ix_(labels, tokens)]
            return harms_of_pools(brackets, (self.lower, self.upper), self.EQKP, shift, tokens, pools, self.arithmetic)
        centre = np.minimum(labels, self.weights.d_vocab - 1)
        return harms_of_factored_pools(brackets, self.factors, self.error, self.EQKP, centre, tokens, pools, self.arithmetic)

    def _blocked(self, brackets: Brackets, automaton: LabelAutomaton, label: int) -> Any:
        n = len(automaton.tokens)
        blocks = dyadic_blocks(n, usual_token(automaton, label))
        table, itself = harms_of_blocks(brackets, self.attention, self.windows, automaton.tokens, blocks, self.arithmetic)
        table = table[:, :, np.repeat(np.arange(len(blocks)), [end - first for first, end in blocks])]
        last = np.where(np.eye(n, dtype=bool)[:, None, :], itself[:, None, None], table[:, -1:])
        return np.concatenate([table[:, :-1], last], axis=1)


def _worst_sequence(h: np.ndarray, m: int, q: int) -> list[int] | None:
    """The sequence of label m and query q with the largest harm, if that is not negative."""
    h = np.clip(np.where(np.isnan(h), np.inf, h), -1e300, 1e300)
    tokens = h[:-1].argmax(axis=1)
    if q != m and m not in tokens:
        if len(tokens) == 0:
            return None
        tokens[int(np.argmin(h[np.arange(len(tokens)), tokens] - h[:-1, m]))] = m
    total = h[np.arange(len(tokens)), tokens].sum() + h[-1, q]
    return None if total < 0 else [*tokens.tolist(), q]


def _groups(labels: list[int], size: int) -> list[list[int]]:
    return [labels[start : start + size] for start in range(0, len(labels), size)]


def _upper_end(h: Any) -> np.ndarray:
    return np.asarray(h.upper if isinstance(h, Interval) else h)
