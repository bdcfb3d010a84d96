"""The harm tables of factored terms about one network: the inequalities of `bounds.factored`, put together as the hints say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic
from compactproofs.bounds.direct_path import DirectPath, direct_bound
from compactproofs.bounds.factored import (
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
from compactproofs.bounds.factors import EXACT, Factors
from compactproofs.bounds.low_rank_scores import AttentionError, approximate_scores
from compactproofs.counting.subject import Subject
from compactproofs.form.embedded import embedded, require_affine
from compactproofs.form.tables import direct_table, score_tables, value_tables
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.tasks.question import Question


class FactoredTables:
    """The harm tables of factored terms about one network, in one arithmetic."""

    def __init__(self, weights: Model, question: Question, factors: Factors, arithmetic: AbstractArithmetic) -> None:
        if question.margin is not None and isinstance(weights, Network):
            require_affine(weights, by_margin=True)
        self.factors, self.arithmetic = factors.checked(weights), arithmetic
        self._weights, self._rows = weights, embedded(weights, arithmetic)
        EVOU, PVOU = value_tables(self._rows, arithmetic)
        direct = self._direct()
        with arithmetic.step("token brackets"):
            V = (EVOU + direct.mu).reshape(-1, weights.d_vocab, weights.d_vocab_out)
        self._outputs: AbstractOutputs = (
            RowMaxima.of(V, PVOU, direct, question.margin, arithmetic)
            if self.factors.output_weights is None
            else WeightedOutputs(V, PVOU, direct, self.factors.output_weights, question.margin, arithmetic)
        )
        v, (lower, upper, EQKP) = weights.d_vocab, self._scores()
        self._lower = lower.reshape(v, -1, v)
        self._upper = self._lower if lower is upper else upper.reshape(v, -1, v)
        with arithmetic.step("attention"):
            self._positions = np.exp(EQKP)
            if self.factors.centres is None:
                top = self._lower.max(axis=(1, 2))[:, None, None]
                most = np.exp(self._upper - top)
                least = most if self._lower is self._upper else np.exp(self._lower - top)
                self._attention = Attention(least, most, self._positions)
        if self.factors.blocks:
            with arithmetic.step("windows"):
                self._windows = Windows.of(self._attention.lower, np.minimum), Windows.of(self._attention.upper, np.maximum)

    def _direct(self) -> Direct:
        if self.factors.direct_path == EXACT:
            EU = direct_table(self._rows, self.arithmetic)
            with self.arithmetic.step("query brackets"):
                return Direct(self.factors.mu, table=EU - self.factors.mu)
        summary = self.factors.known_directions.query_summary
        bound = direct_bound(DirectPath(self.factors.direct_path), self._weights, summary, self.arithmetic)
        return Direct(bound.mu, rest_upper=bound.rest_upper)

    def _scores(self) -> tuple[Any, Any, Any]:
        if self.factors.attention_error is AttentionError.EXACT_EQKE:
            EQKE, EQKP = score_tables(self._rows, self.arithmetic)
            return EQKE, EQKE, EQKP
        scores = approximate_scores(self.factors.attention_error, self._weights, self.factors.known_directions, self.arithmetic)
        with self.arithmetic.step("attention scores"):
            self._summands, self._error = scores.factors, scores.error_upper * np.ones(self._weights.d_vocab)
            return scores.approximate, scores.approximate + self._error[:, None], scores.EQKP

    def tables(self, subjects: Sequence[Subject], pools_of: Sequence[Sequence[np.ndarray]]) -> Iterator[tuple[Subject, Any]]:
        """For each subject the harms (pool, position, token number) of its pools, which are arrays of token numbers.

        Guarantee: sum_i h[pool, i, t_i] < 0 proves every sequence of the label with its query in the pool correct; without centres a pool
        has one query.
        Cost: O(tokens (outputs + tokens)) per label with pools, O(tokens^2 n_ctx) without.
        """
        pairs = [(subject, pools) for subject, pools in zip(subjects, pools_of, strict=True) if len(subject.tokens) and len(pools)]
        if not pairs:
            return
        labels = np.array([subject.label for subject, _ in pairs])
        tokens = np.unique(np.concatenate([subject.tokens for subject, _ in pairs]))
        own = [np.searchsorted(tokens, subject.tokens) for subject, _ in pairs]
        brackets = self._outputs.brackets(labels, tokens)
        centres = self.factors.centres
        if centres is not None:
            numbered = [[here[pool] for pool in pools] for here, (_, pools) in zip(own, pairs, strict=True)]
            harms = self._of_pools(brackets, _padded(numbered, tokens, centres[labels]))
        elif not self.factors.blocks:
            harms = harms_by_query(brackets, self._attention, tokens, self.arithmetic)
        for row, ((subject, pools), here) in enumerate(zip(pairs, own, strict=True)):
            if centres is not None:
                yield subject, harms[row][: len(pools)][:, :, here]
                continue
            queries = np.array([pool[0] for pool in pools])
            if self.factors.blocks:
                one = Brackets(brackets.r[[row]][:, :, here], brackets.s[[row]][:, here], brackets.p[[row]])
                yield subject, self._blocked(one, subject)[queries]
            else:
                yield subject, harms[row][here[queries]][:, :, here]

    def _of_pools(self, brackets: Brackets, pools: Pools) -> Any:
        if self.factors.output_weights is not None or self.factors.attention_error is AttentionError.EXACT_EQKE:
            return harms_of_pools(brackets, (self._lower, self._upper), self._positions, pools, self.arithmetic)
        return harms_of_factored_pools(brackets, self._summands, self._error, self._positions, pools, self.arithmetic)

    def _blocked(self, brackets: Brackets, subject: Subject) -> Any:
        n = len(subject.tokens)
        blocks = dyadic_blocks(n, subject.usual)
        table, itself = harms_of_blocks(brackets, self._attention, self._windows, subject.tokens, blocks, self.arithmetic)
        table = table[:, :, np.repeat(np.arange(len(blocks)), [end - first for first, end in blocks])]
        last = np.where(np.eye(n, dtype=bool)[:, None, :], itself[:, None, None], table[:, -1:])
        return np.concatenate([table[:, :-1], last], axis=1)


def _padded(pools_of: Sequence[Sequence[np.ndarray]], tokens: np.ndarray, centre: np.ndarray) -> Pools:
    """Pools as lists of equal length; missing pools repeat the first."""
    most, size = max(len(pools) for pools in pools_of), max(len(pool) for pools in pools_of for pool in pools)
    members = np.zeros((len(pools_of), most, size), dtype=np.int64)
    belongs = np.zeros((len(pools_of), most, len(tokens)), dtype=bool)
    for row, pools in enumerate(pools_of):
        for number in range(most):
            pool = pools[number] if number < len(pools) else pools[0]
            members[row, number] = np.concatenate([pool, np.full(size - len(pool), pool[0])])
            belongs[row, number, pool] = True
    return Pools(members, belongs, tokens, centre)
