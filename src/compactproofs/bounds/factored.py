"""`factored`: harm tables that serve all outputs at once, and pools of queries. Array code that runs in any arithmetic.

The terms G_o = A (B_o - B_m + tau) of `bounds.terms` are bounded without looking at each output of each query. With positive weights w[o]
for the label m and any vector mu over outputs,

    w[o] (B_o - B_m + tau) <= r[t] + s[q] + p[i],
    r[t]  = max_{o != m} w[o] ((EVOU[t, o] + mu[o]) - (EVOU[t, m] + mu[m])),
    s[q] >= max_{o != m} w[o] ((EU[q, o] - mu[o]) - (EU[q, m] - mu[m]) + tau),
    p[i]  = max_{o != m} w[o] (PVOU[i, o] - PVOU[i, m]),

because the maximum of a sum is at most the sum of the maxima (Theorem 3). If attention lies in [A_lower, A_upper], then

    h(i, t) = A_upper (r + s + p) where r + s + p > 0, A_lower (r + s + p) elsewhere

bounds every w[o] G_o, and sum_i h(i, t_i) < 0 proves the sequence correct. Attention may be multiplied by a positive number for each
query. Without pools the attention to tokens is relative to the query's largest; with pools it is relative to a token `centre` of the label,
so that queries of a pool resemble each other. All hints (w, mu, centres, pools, directions) may be anything.

Where position and token mix (`form.embedded`), r and the attention to tokens have a sheet for every position instead of one for all; below,
the axis of sheets meets that of positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic
from compactproofs.bounds.excluding import max_excluding_label


@dataclass(frozen=True)
class Brackets:
    """r, s, p of some labels, for the tokens that occur with them."""

    r: Any
    """(label, sheet, token)"""
    s: Any
    """(label, query): the same tokens, as queries"""
    p: Any
    """(label, position)"""


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
    """(q, sheet, t)"""
    upper: Any
    """(q, sheet, t); the very same object as `lower` if the scores are exact"""
    positions: Any
    """(q, i)"""


class AbstractOutputs(Protocol):
    """A way to bound all outputs at once."""

    def brackets(self, labels: np.ndarray, tokens: np.ndarray) -> Brackets:
        """Guarantee: the inequality of the module's docstring for each label, for some positive weights."""
        ...


@dataclass(frozen=True)
class WeightedOutputs(AbstractOutputs):
    """A weight for each output of each label. Cost: O(d_vocab d_vocab_out) per label."""

    V: Any
    """(sheet, t, o): EVOU + mu"""
    PVOU: Any
    direct: Direct
    weights: np.ndarray
    """(label, o): integers from 1"""
    margin: np.ndarray | None
    """(q, label)"""
    arithmetic: AbstractArithmetic

    def brackets(self, labels: np.ndarray, tokens: np.ndarray) -> Brackets:
        sheets, n, outputs = self.V.shape[0], len(tokens), np.arange(self.V.shape[2])
        others = np.stack([outputs[outputs != label] for label in labels])
        w = np.take_along_axis(self.weights[labels], others, axis=1).astype(np.float64)

        def weighted_maximum(table: Any) -> Any:
            own = table[:, labels].T
            if others.shape[1] == 0:
                return own * 0.0 - np.inf
            differences = table.T[others] - own[:, None, :]
            return (differences * w[:, :, None]).max(axis=1)

        with self.arithmetic.step("token brackets"):
            r = weighted_maximum(self.V[:, tokens].reshape(sheets * n, -1)).reshape(-1, sheets, n)
        with self.arithmetic.step("position brackets"):
            p = weighted_maximum(self.PVOU)
        with self.arithmetic.step("query brackets"):
            if self.direct.table is not None:
                s = weighted_maximum(self.direct.table[tokens])
            else:
                s = self.direct.rest_upper[tokens] * w.max(axis=1, initial=0.0)[:, None]
            if self.margin is not None:
                tau = self.margin[np.ix_(tokens, labels)].T
                heaviest, lightest = w.max(axis=1, initial=0.0)[:, None], w.min(axis=1, initial=np.inf)[:, None]
                worst = np.where(tau >= 0.0, heaviest, np.where(np.isfinite(lightest), lightest, 0.0))
                s = s + self.arithmetic.array(tau) * worst
        return Brackets(r, s, p)


@dataclass(frozen=True)
class RowMaxima(AbstractOutputs):
    """All weights one: the largest entry of a row, the label aside. Cost: O(d_vocab d_vocab_out) for all labels together."""

    V: Any
    PVOU: Any
    direct: Direct
    token_maxima: Any
    """(sheet, token, label): the largest entry of a row of V, the label aside"""
    position_maxima: Any
    """(position, label): the same of PVOU"""
    query_maxima: Any
    """(query, label): the same of the direct table; None without one"""
    margin: np.ndarray | None
    """(q, label)"""
    arithmetic: AbstractArithmetic

    @classmethod
    def of(cls, V: Any, PVOU: Any, direct: Direct, margin: np.ndarray | None, arithmetic: AbstractArithmetic) -> RowMaxima:
        labels = np.arange(V.shape[2])
        with arithmetic.step("row maxima"):
            tokens = max_excluding_label(V.reshape(-1, len(labels)), labels).reshape(*V.shape)
            positions = max_excluding_label(PVOU, labels)
            queries = None if direct.table is None else max_excluding_label(direct.table, labels)
        return cls(V, PVOU, direct, tokens, positions, queries, margin, arithmetic)

    def brackets(self, labels: np.ndarray, tokens: np.ndarray) -> Brackets:
        at = np.ix_(tokens, labels)
        with self.arithmetic.step("token brackets"):
            r = np.moveaxis((self.token_maxima[:, tokens] - self.V[:, tokens])[:, :, labels], 2, 0)
        with self.arithmetic.step("position brackets"):
            p = (self.position_maxima[:, labels] - self.PVOU[:, labels]).T
        with self.arithmetic.step("query brackets"):
            if self.direct.table is not None:
                s = (self.query_maxima[at] - self.direct.table[at]).T
            else:
                s = self.direct.rest_upper[np.broadcast_to(tokens, (len(labels), len(tokens)))]
            if self.margin is not None:
                s = s + self.margin[np.ix_(tokens, labels)].T
        return Brackets(r, s, p)


def signed(bracket: Any, lower: Any, upper: Any) -> Any:
    """Attention times bracket at its worst: the largest attention where the bracket is positive, the smallest elsewhere."""
    if lower is upper:
        return upper * bracket
    return np.where(bracket > 0.0, upper * bracket, lower * bracket)


def harms_by_query(b: Brackets, attention: Attention, tokens: np.ndarray, arithmetic: AbstractArithmetic) -> Any:
    """h[label, q, i, t]: each query has a table of its own.

    Guarantee: sum_i h[m, q, i, t_i] < 0 proves every sequence of label m with query q correct.
    Cost: O(labels tokens^2 n_ctx).
    """
    with arithmetic.step("harms"):
        upper = attention.upper[tokens][:, :, tokens][None]
        lower = upper if attention.lower is attention.upper else attention.lower[tokens][:, :, tokens][None]
        bracket = b.r[:, None] + (b.s[:, :, None] + b.p[:, None, :])[:, :, :, None]
        return attention.positions[tokens][None, :, :, None] * signed(bracket, lower, upper)


@dataclass(frozen=True)
class Pools:
    """For each label a partition of the queries."""

    members: np.ndarray
    """(label, pool, size): numbers among the tokens; a member may be repeated to fill up"""
    belongs: np.ndarray
    """(label, pool, token): booleans; each query of a label belongs to one pool"""
    tokens: np.ndarray
    """The tokens that are numbered"""
    centre: np.ndarray
    """(label,): a token to which attention is relative"""


def harms_of_pools(
    b: Brackets,
    scores: tuple[Any, Any],
    positions: Any,
    pools: Pools,
    arithmetic: AbstractArithmetic,
) -> Any:
    """h[label, pool, i, t]: each factor at its worst over the queries of the pool. At the last position each query has its own harm.

    `scores` (q, sheet, t) are lower and upper bounds, up to a constant per query; that of the token pools.centre[label] (on the first
    sheet) is subtracted. `positions` is the attention to positions (q, i).

    Guarantee: sum_i h[m, pool, i, t_i] < 0 proves every sequence of label m with its query in the pool correct.
    Cost: O(labels tokens^2).
    """
    tokens, centre = pools.tokens, pools.centre
    queries = tokens[pools.members]
    constant = scores[0][queries, 0, centre[:, None, None]]
    everywhere = queries[..., None, None], np.arange(scores[0].shape[1])[:, None], tokens
    with arithmetic.step("worst attention of a pool"):
        upper = scores[1][everywhere] - constant[..., None, None]
        lower = upper if scores[0] is scores[1] else scores[0][everywhere] - constant[..., None, None]
        most, least = np.exp(upper.max(axis=2)), np.exp(lower.min(axis=2))
    with arithmetic.step("harm of the query itself"):
        shift = scores[0][tokens[None], 0, centre[:, None]]
        own_upper = _own(scores[1], tokens)[None] - shift
        own_lower = own_upper if scores[0] is scores[1] else _own(scores[0], tokens)[None] - shift
    return _pooled(b, (least, most), (own_lower, own_upper), positions, pools, arithmetic)


def harms_of_factored_pools(
    b: Brackets,
    factors: tuple[tuple[Any, Any], ...],
    error_upper: Any,
    positions: Any,
    pools: Pools,
    arithmetic: AbstractArithmetic,
) -> Any:
    """`harms_of_pools` without a table of scores: they are a sum of outer products c[q] d[t] plus an error in [0, error_upper[q]].

    The constant c[q] d[centre], with centre a token for each label, is subtracted from the scores of query q (and the least error of the
    query with it). What remains, c[q] (d[t] - d[centre]), lies between its values at the least and the greatest c of the pool, so the
    worst over the pool needs no look at each query.

    Guarantee: as `harms_of_pools`.
    Cost: O(labels tokens (factors + n_ctx)).
    """
    tokens, centre = pools.tokens, pools.centre
    queries = tokens[pools.members]
    with arithmetic.step("worst attention of a pool"):
        upper = error_upper[queries].max(axis=2)[:, :, None, None]
        lower, own_lower = np.zeros((1, 1, 1, 1)), np.zeros((1, 1))
        for pair in factors:
            column, row = (arithmetic.array(x) if isinstance(x, np.ndarray) else x for x in pair)  # hints are exact numbers
            row = row.reshape(-1, column.shape[0])
            distance = row[:, tokens][None] - row[0, centre][:, None, None]
            c = column[queries]
            ends = c.max(axis=2)[:, :, None, None] * distance[:, None], c.min(axis=2)[:, :, None, None] * distance[:, None]
            upper, lower = np.maximum(*ends) + upper, np.minimum(*ends) + lower
            own_lower = column[tokens][None] * distance[:, -1] + own_lower
        own_upper = own_lower + error_upper[tokens][None]
        most, least = np.exp(upper), np.exp(lower)
    return _pooled(b, (least, most), (own_lower, own_upper), positions, pools, arithmetic)


def _own(scores: Any, tokens: np.ndarray) -> Any:
    return scores[tokens, -1, tokens]


def _pooled(
    b: Brackets,
    ends: tuple[Any, Any],
    own: tuple[Any, Any],
    positions: Any,
    pools: Pools,
    arithmetic: AbstractArithmetic,
) -> Any:
    """Attention between the ends (label, pool, sheet, token) for other tokens, and by its scores for the query itself."""
    (least, most), at = ends, positions[pools.tokens]
    with arithmetic.step("worst attention of a pool"):
        of_pool = at[pools.members]
        most_at, least_at = of_pool.max(axis=2), of_pool.min(axis=2)
    with arithmetic.step("harms"):
        worst_query = b.s[np.arange(b.s.shape[0])[:, None, None], pools.members].max(axis=2)
        bracket = b.r[:, None] + (worst_query[:, :, None] + b.p[:, None, :])[:, :, :, None]
        table = signed(bracket, least_at[..., None] * least, most_at[..., None] * most)
    with arithmetic.step("harm of the query itself"):
        itself = _itself(b, *own, at[:, -1])
        last = np.where(pools.belongs[:, :, None, :], itself[:, None, None, :], table[:, :, -1:])
    return np.concatenate([table[:, :, :-1], last], axis=2)


def _itself(b: Brackets, score_lower: Any, score_upper: Any, at_last: Any) -> Any:
    """(label, query): the harm of the query token at its own position."""
    upper = at_last * np.exp(score_upper)
    lower = upper if score_lower is score_upper else at_last * np.exp(score_lower)
    return signed(b.r[:, -1] + b.s + b.p[:, -1:], lower, upper)


@dataclass(frozen=True)
class Windows:
    """Maxima (or minima) over windows of 1, 2, 4, ... neighbours along the last axis, so that any window costs one comparison."""

    levels: list[Any]
    larger: Any
    """np.maximum or np.minimum"""

    @classmethod
    def of(cls, x: Any, larger: Any) -> Windows:
        """Cost: O(size log length)."""
        levels, length = [x], 1
        while 2 * length <= x.shape[-1]:
            levels.append(larger(levels[-1][..., :-length], levels[-1][..., length:]))
            length *= 2
        return cls(levels, larger)

    def over(self, first: int, end: int) -> Any:
        """Over the entries first .. end - 1 of the last axis."""
        level = (end - first).bit_length() - 1
        table = self.levels[level]
        return table[..., first] if end - first == 2**level else self.larger(table[..., first], table[..., end - 2**level])


def harms_of_blocks(
    b: Brackets, attention: Attention, windows: tuple[Windows, Windows], tokens: np.ndarray, blocks: list[tuple[int, int]], arithmetic: Any
) -> tuple[Any, Any]:
    """h[q, i, block] for one label: the tokens of a block share their worst harm; and the harm (q,) of the query itself, for the end.

    `blocks` are ranges (first, end) of tokens numbered among `tokens`; `windows` are minima and maxima of attention over tokens.

    Guarantee: sum_i h[q, i, block of t_i] < 0, with the second result at the last position, proves the sequences correct.
    Cost: O(tokens blocks n_ctx).
    """
    with arithmetic.step("harms"):
        r = np.stack([b.r[0][:, first:end].max(axis=1) for first, end in blocks], axis=1)
        ends = [(int(tokens[first]), int(tokens[end - 1]) + 1) for first, end in blocks]
        lower, upper = (np.stack([w.over(*block) for block in ends], axis=2)[tokens] for w in windows)
        bracket = r[None] + (b.s[0][:, None] + b.p[0][None])[:, :, None]
        table = attention.positions[tokens][:, :, None] * signed(bracket, lower, upper)
    with arithmetic.step("harm of the query itself"):
        own_upper = _own(attention.upper, tokens)
        own_lower = own_upper if attention.lower is attention.upper else _own(attention.lower, tokens)
        itself = attention.positions[tokens][:, -1] * signed(b.r[0, -1] + b.s[0] + b.p[0, -1], own_lower, own_upper)
    return table, itself


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
