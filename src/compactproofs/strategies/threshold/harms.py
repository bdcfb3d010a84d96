"""Harm tables that serve all outputs at once: array code that runs in any arithmetic.

The terms G_o = A (B_o - B_m) of `pairs` are bounded without looking at each output of each query. With positive weights w[o] for the label m
and any vector mu over outputs,

    w[o] (B_o - B_m) <= r[t] + s[q] + p[i],
    r[t]  = max_{o != m} w[o] ((EVOU[t, o] + mu[o]) - (EVOU[t, m] + mu[m])),
    s[q] >= max_{o != m} w[o] ((EU[q, o] - mu[o]) - (EU[q, m] - mu[m])),
    p[i]  = max_{o != m} w[o] (PVOU[i, o] - PVOU[i, m]),

because the maximum of a sum is at most the sum of the maxima. If attention lies in [A_lower, A_upper], then

    h(i, t) = A_upper (r + s + p) where r + s + p > 0, A_lower (r + s + p) elsewhere

bounds every w[o] G_o, and sum_i h(i, t_i) < 0 proves the sequence correct. Attention may be multiplied by a positive number for each
query, so scores matter only up to a constant per query. All hints (w, mu, shifts, pools, blocks) may be anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic
from compactproofs.strategies.parts import max_excluding_label


@dataclass(frozen=True)
class Brackets:
    """r, s, p of one label, for the tokens that occur with it."""

    r: Any
    """(token,)"""
    s: Any
    """(query,): the same tokens, as queries"""
    p: Any
    """(position,)"""


@dataclass(frozen=True)
class Direct:
    """The direct path: EU = mu + table, or EU[q, o] - EU[q, m] <= mu[o] - mu[m] + rest_upper[q] with rest_upper >= 0."""

    mu: Any
    table: Any = None
    """(q, o), or None"""
    rest_upper: Any = None
    """(q,), or None"""


@dataclass(frozen=True)
class Attention:
    """Bounds on attention, up to a positive factor per query: exp(score - shift)."""

    lower: Any
    """(q, t)"""
    upper: Any
    """(q, t); the very same object as `lower` if the scores are exact"""
    positions: Any
    """(q, i)"""


class AbstractOutputs(Protocol):
    """A way to bound all outputs at once."""

    def brackets(self, label: int, tokens: np.ndarray) -> Brackets:
        """Guarantee: the inequality of the module's docstring, for some positive weights."""
        ...


@dataclass(frozen=True)
class WeightedOutputs(AbstractOutputs):
    """A weight for each output of each label. Cost: O(d_vocab d_vocab_out) per label."""

    V: Any
    """(t, o): EVOU + mu"""
    PVOU: Any
    direct: Direct
    weights: np.ndarray
    """(label, o): positive; others are taken for 1"""
    arithmetic: AbstractArithmetic

    def brackets(self, label: int, tokens: np.ndarray) -> Brackets:
        others = np.flatnonzero(np.arange(self.V.shape[1]) != label)
        w = self.weights[label, others]
        w = np.where((w > 1e-100) & (w < 1e100), w, 1.0)

        def weighted_maximum(table: Any) -> Any:
            if len(others) == 0:
                return table[:, label] * 0.0 - np.inf
            return ((table[:, others] - table[:, [label]]) * w).max(axis=1)

        with self.arithmetic.step("token brackets"):
            r = weighted_maximum(self.V[tokens])
        with self.arithmetic.step("position brackets"):
            p = weighted_maximum(self.PVOU)
        with self.arithmetic.step("query brackets"):
            if self.direct.table is not None:
                s = weighted_maximum(self.direct.table[tokens])
            else:
                s = self.direct.rest_upper[tokens] * float(w.max() if len(w) else 1.0)
        return Brackets(r, s, p)


@dataclass(frozen=True)
class RowMaxima(AbstractOutputs):
    """All weights one: the largest entry of a row, the label aside. Cost: O(d_vocab d_vocab_out) for all labels together."""

    V: Any
    PVOU: Any
    direct: Direct
    rows: tuple[Any, Any, Any]
    """Row maxima without the label, (row, label): of V, of PVOU and of the direct table (None without one)"""
    arithmetic: AbstractArithmetic

    @classmethod
    def of(cls, V: Any, PVOU: Any, direct: Direct, arithmetic: AbstractArithmetic) -> RowMaxima:
        labels = np.arange(V.shape[1])
        with arithmetic.step("row maxima"):
            rows = tuple(None if x is None else max_excluding_label(x, labels) for x in (V, PVOU, direct.table))
        return cls(V, PVOU, direct, (rows[0], rows[1], rows[2]), arithmetic)

    def brackets(self, label: int, tokens: np.ndarray) -> Brackets:
        of_V, of_PVOU, of_direct = self.rows
        with self.arithmetic.step("token brackets"):
            r = of_V[tokens][:, label] - self.V[tokens][:, label]
        with self.arithmetic.step("position brackets"):
            p = of_PVOU[:, label] - self.PVOU[:, label]
        with self.arithmetic.step("query brackets"):
            if self.direct.table is not None:
                s = of_direct[tokens][:, label] - self.direct.table[tokens][:, label]
            else:
                s = self.direct.rest_upper[tokens]
        return Brackets(r, s, p)


def signed(bracket: Any, lower: Any, upper: Any) -> Any:
    """Attention times bracket at its worst: the largest attention where the bracket is positive, the smallest elsewhere."""
    if lower is upper:
        return upper * bracket
    return np.where(bracket > 0.0, upper * bracket, lower * bracket)


def harms_by_query(b: Brackets, attention: Attention, tokens: np.ndarray, arithmetic: AbstractArithmetic) -> Any:
    """h[q, i, t] for one label: each query has a table of its own.

    Guarantee: sum_i h[q, i, t_i] < 0 proves every sequence of the label with query q correct.
    Cost: O(tokens^2 n_ctx).
    """
    with arithmetic.step("harms"):
        grid = np.ix_(tokens, tokens)
        upper = attention.upper[grid][:, None, :]
        lower = upper if attention.lower is attention.upper else attention.lower[grid][:, None, :]
        bracket = b.r[None, None, :] + (b.s[:, None] + b.p[None, :])[:, :, None]
        return attention.positions[tokens][:, :, None] * signed(bracket, lower, upper)


def harms_of_pool(
    b: Brackets, scores: tuple[Any, Any], EQKP: Any, shift: np.ndarray, tokens: np.ndarray, pool: np.ndarray, arithmetic: AbstractArithmetic
) -> tuple[Any, Any]:
    """h[i, t] for one label and a pool of queries (numbers among `tokens`): each factor at its worst over the pool; and the harm of
    each query itself, (pool,).

    `scores` are lower and upper bounds, up to a constant per query; `shift` is any such constant. At the last position the query meets
    itself: the second result serves there.

    Guarantee: sum_i h[i, t_i] < 0 proves every sequence of the label with its query in the pool correct.
    Cost: O(pool tokens).
    """
    queries = tokens[pool]
    with arithmetic.step("worst attention of a pool"):
        upper = scores[1][np.ix_(queries, tokens)] - shift[:, None]
        lower = upper if scores[0] is scores[1] else scores[0][np.ix_(queries, tokens)] - shift[:, None]
        most, least = np.exp(upper.max(axis=0)), np.exp(lower.min(axis=0))
        positions = EQKP[queries]
        most_at, least_at = np.exp(positions.max(axis=0)), np.exp(positions.min(axis=0))
    with arithmetic.step("harms"):
        bracket = b.r[None, :] + (b.s[pool].max(axis=0) + b.p)[:, None]
        table = signed(bracket, least_at[:, None] * least[None], most_at[:, None] * most[None])
    with arithmetic.step("harm of the query itself"):
        own = np.arange(len(pool)), pool
        bracket = b.r[pool] + b.s[pool] + b.p[-1]
        at_query = np.exp(positions[:, -1])
        greatest = at_query * np.exp(upper[own])
        smallest = greatest if lower is upper else at_query * np.exp(lower[own])
        itself = signed(bracket, smallest, greatest)
    return table, itself


def harms_of_factored_pool(
    b: Brackets,
    factors: tuple[tuple[Any, Any], ...],
    error_upper: Any,
    EQKP: Any,
    centre: int,
    tokens: np.ndarray,
    pool: np.ndarray,
    arithmetic: AbstractArithmetic,
) -> tuple[Any, Any]:
    """`harms_of_pool` without a table of scores: they are a sum of outer products c[q] d[t] plus an error in [0, error_upper[q]].

    Relative to the score of the token `centre`, c[q] (d[t] - d[centre]) lies between its values at the least and the greatest c of the
    pool, so the worst over the pool needs no look at each query.

    Guarantee: as `harms_of_pool`.
    Cost: O((pool + tokens) factors + tokens n_ctx).
    """
    queries = tokens[pool]
    with arithmetic.step("worst attention of a pool"):
        upper = error_upper[queries].max(axis=0)
        lower: Any = 0.0
        own: Any = 0.0
        for column, row in factors:
            c, d = column[queries], row - row[centre]
            ends = c.max(axis=0) * d[tokens], c.min(axis=0) * d[tokens]
            upper = np.maximum(*ends) + upper
            lower = np.minimum(*ends) + lower
            own = c * d[queries] + own
        most, least = np.exp(upper), np.exp(lower)
        positions = EQKP[queries]
        most_at, least_at = np.exp(positions.max(axis=0)), np.exp(positions.min(axis=0))
    with arithmetic.step("harms"):
        bracket = b.r[None, :] + (b.s[pool].max(axis=0) + b.p)[:, None]
        table = signed(bracket, least_at[:, None] * least[None], most_at[:, None] * most[None])
    with arithmetic.step("harm of the query itself"):
        bracket = b.r[pool] + b.s[pool] + b.p[-1]
        at_query = np.exp(positions[:, -1])
        itself = signed(bracket, at_query * np.exp(own), at_query * np.exp(own + error_upper[queries]))
    return table, itself


def harms_of_blocks(
    b: Brackets, windows: Windows, positions: Any, tokens: np.ndarray, blocks: list[tuple[int, int]], arithmetic: AbstractArithmetic
) -> tuple[Any, Any]:
    """h[q, i, block] for one label: the tokens of a block share their worst harm; and the harm of the query itself, (q,).

    `blocks` are ranges (first, end) of tokens numbered among `tokens`, which must be consecutive numbers.

    Guarantee: sum_i h[q, i, block of t_i] < 0, with the second result at the last position, proves the sequences correct.
    Cost: O(tokens (blocks n_ctx + 1)).
    """
    with arithmetic.step("harms"):
        r = np.stack([b.r[first:end].max(axis=0) for first, end in blocks], axis=0)
        start = int(tokens[0])
        upper = np.stack([windows.maximum(start + first, start + end)[tokens] for first, end in blocks], axis=1)
        lower = np.stack([windows.minimum(start + first, start + end)[tokens] for first, end in blocks], axis=1)
        bracket = r[None, None, :] + (b.s[:, None] + b.p[None, :])[:, :, None]
        table = positions[tokens][:, :, None] * signed(bracket, lower[:, None, :], upper[:, None, :])
    with arithmetic.step("harm of the query itself"):
        bracket = b.r + b.s + b.p[-1]
        itself = positions[tokens][:, -1] * signed(bracket, windows.lower[tokens, tokens], windows.upper[tokens, tokens])
    return table, itself


@dataclass(frozen=True)
class Windows:
    """Maxima and minima of attention over windows of 1, 2, 4, ... consecutive tokens, so that any window costs one comparison."""

    upper: Any
    lower: Any
    maxima: list[Any]
    minima: list[Any]

    @classmethod
    def of(cls, attention: Attention, arithmetic: AbstractArithmetic) -> Windows:
        """Cost: O(d_vocab^2 log d_vocab)."""
        with arithmetic.step("windows"):
            maxima, minima, length = [attention.upper], [attention.lower], 1
            while 2 * length <= attention.upper.shape[1]:
                maxima.append(np.maximum(maxima[-1][:, :-length], maxima[-1][:, length:]))
                minima.append(np.minimum(minima[-1][:, :-length], minima[-1][:, length:]))
                length *= 2
        return cls(attention.upper, attention.lower, maxima, minima)

    def maximum(self, first: int, end: int) -> Any:
        """(q,): the maximum over tokens first .. end - 1."""
        level = (end - first).bit_length() - 1
        table = self.maxima[level]
        return table[:, first] if end - first == 1 else np.maximum(table[:, first], table[:, end - 2**level])

    def minimum(self, first: int, end: int) -> Any:
        """(q,): the minimum over tokens first .. end - 1."""
        level = (end - first).bit_length() - 1
        table = self.minima[level]
        return table[:, first] if end - first == 1 else np.minimum(table[:, first], table[:, end - 2**level])


def dyadic_blocks(n: int, centre: int) -> list[tuple[int, int]]:
    """Hint: ranges of 1, 1, 2, 4, ... tokens going away from the centre on both sides, together 0 .. n - 1.

    Example:
        >>> dyadic_blocks(8, 6)
        [(0, 3), (3, 5), (5, 6), (6, 7), (7, 8)]
    """
    below, above, length = [], [], 1
    end, first = centre, centre + 1
    while end > 0 or first < n:
        if end > 0:
            below.append((max(0, end - length), end))
        if first < n:
            above.append((first, min(n, first + length)))
        end, first, length = max(0, end - length), min(n, first + length), 2 * length
    return [*below[::-1], (centre, centre + 1), *above]
