"""Compact harm tables: near tokens and near outputs one by one, everything else at its worst. Array code that runs in any arithmetic.

For max-of-K and one head without norms. With any vectors e and u, E = e + Ec, U = u + Uc, P = c + Ph:

    scores   a[q, t] + b[q, i],        a = (Ec + e + P_last) S Ec^T,  b = (Ec + e + P_last) S Ph^T,  S = W_Q W_K^T / sqrt(divisor),
    outputs  Y[t, o] + PV[i, o] + D[q, o],  Y = (Ec VO + x0) Uc,  x0 = (e + c) VO + e + P_last,  PV = Ph VO Uc,  D = Ec Uc,

up to a number for each query, which attention does not see, and one for all outputs. Only rows of tokens from `first_token` on are
computed. For a label m, a query q <= m and positive weights w,

    the label itself, at each position or at all:   h(i) = max(A_lower(i) b, A_upper(i) b),  b = r[m] + s[q],
    other near tokens t (label - near_tokens ...):  h(t) = A_upper (max(r[t], 0) + max(s[q], 0)),
    tokens below, whose row is computed:            h = (largest attention to one of them) (r' + max(s[q], 0)),
    tokens whose row is not computed:               h = (attention by one direction and lengths) (r'' + max(s[q], 0)),

where r bounds w_o (Y[t, o] + PV[i, o] - Y[t, m] - PV[i, m]) for all outputs o and positions i, and s the direct path likewise. Outputs near
the label have weights of their own; those farther below share one, and those farther above. docs/explanation/compact-end.md has the proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic
from compactproofs.bounds.compact_hints import Compact
from compactproofs.counting.subject import Subject
from compactproofs.form.embedded import position_centre
from compactproofs.model.weights import Weights
from compactproofs.tasks.question import Question


@dataclass(frozen=True)
class LabelHarms:
    """The harms of one label, for the queries 0 .. label."""

    label: Any
    """(query, position before the last), or (query, 1) if it is the same at all of them: of the label itself"""
    near: Any
    """(query, token): of the other near tokens"""
    middle: Any
    """(query,): of every token between; None if there is none"""
    low: Any
    """(query,): of every token whose row is not computed; None if there is none"""
    own: Any
    """(query,): of the query itself at the last position"""


@dataclass(frozen=True)
class Scores:
    """Bounds (query, row) on scores, those of tokens relative to `last`; the same object if the scores are exact."""

    lower: Any
    upper: Any
    last: Any
    """(query,): about the last token's"""


@dataclass(frozen=True)
class Projected:
    """Vectors x as coordinates c = B x in some directions, and how long the rest is.

    Guarantee: for the projections of x and y by the same B, |x y - c_x c_y| <= rest_x rest_y, for any B at all.
    Proof: docs/explanation/compact-end.md, Lemma P.
    """

    along: Any
    """(vector, direction); None if there is no direction"""
    rest: Any
    """(vector,)"""
    kept: Any
    """1 - 2 |B B^T - 1|, which is about 1 if the directions are orthonormal"""

    @classmethod
    def of(cls, x: Any, squared: Any, directions: np.ndarray, arithmetic: AbstractArithmetic) -> Projected:
        """`squared` are the squares of the vectors' lengths. Cost: O(vectors d_model rank)."""
        if len(directions) == 0:
            return cls(None, np.sqrt(squared), None)
        B = arithmetic.array(directions)
        along = x @ B.T
        kept = 1.0 - 2.0 * np.abs(B @ B.T - np.eye(len(directions))).sum(axis=1).max()
        return cls(along, np.sqrt(np.maximum(squared - (along * along).sum(axis=1) * kept, 0.0)), kept)


def signed(bracket: Any, lower: Any, upper: Any) -> Any:
    """Attention between two ends times bracket, at its worst."""
    return bracket * upper if lower is upper else np.maximum(bracket * lower, bracket * upper)


@dataclass(frozen=True)
class Crude:
    """What is known about tokens whose rows are not computed."""

    attention_upper: Any
    """(query,): relative to the last token's"""
    size_upper: Any
    """Of what such a token and a position add to the stream"""
    readout_upper: Any
    """Of a row of the readout"""


def has_negative_margin(question: Question) -> bool:
    """Whether the label may lose somewhere and count as right."""
    return question.margin is not None and bool((question.margin < 0.0).any())


class CompactTables:
    """The harms of compact proofs about one network, in one arithmetic.

    Guarantee: if every sequence's harms are added up, a sum below zero proves it correct, for all hints (`tables`).
    Assumes: max-of-K.
    Cost: with R = d_vocab - first_token, O(R d_model (d_model + d_vocab)) for the rows, and O(near_tokens + direct_outputs) per query and
    label.
    Source: docs/explanation/compact-end.md.
    """

    def __init__(self, weights: Weights, question: Question, hints: Compact, arithmetic: AbstractArithmetic) -> None:
        self.factors, self.arithmetic = hints.checked(weights), arithmetic
        self._margin, self._k, self._out = question.margin, weights.n_ctx, weights.d_vocab_out
        self._may_be_negative = has_negative_margin(question)
        self._first, self._c = self.factors.first_token, min(self.factors.near_outputs, self._out)
        self._weights = arithmetic.array(self.factors.output_weights.astype(np.float64))
        W = {name: arithmetic.array(tensor) for name, tensor in weights.tensors.items()}
        e, c = (arithmetic.array(x) for x in (self.factors.embedding_centre, position_centre(weights)))
        with arithmetic.step("embeddings"):
            self._Ec = W["W_E"] - e
            constant = W["W_pos"][-1] + e
            queries = self._Ec + constant
            self._Uc = W["W_U"] - arithmetic.array(self.factors.readout_centre)[:, None]
            rows = np.concatenate([self._Ec[self._first :], W["W_pos"] - c], axis=0)
        with arithmetic.step("EVOU and PVOU"):
            VO = W["W_V"] @ W["W_O"]
            x0 = (e + c) @ VO + constant
            moved = rows @ VO
            R = weights.d_vocab - self._first
            self._Y, self._PV = (moved[:R] + x0) @ self._Uc, moved[R:] @ self._Uc
        with arithmetic.step("EQKE and EQKP"):
            S = (W["W_Q"] * arithmetic.inverse_sqrt(weights.score_divisor_squared)) @ W["W_K"].T
            keys = rows @ S.T
        with arithmetic.step("lengths"):
            lengths = self._squares(queries, keys)
        with arithmetic.step("EQKE and EQKP"):
            scores = self._scores(queries, keys, lengths, R)
        crude = None
        if self._first > 0:
            with arithmetic.step("low tokens"):
                crude = self._crude((queries, lengths[0]), S, scores.last, (VO, x0, moved[R:]))
        with arithmetic.step("attention"):
            self._attend(scores, R, crude)
        with arithmetic.step("row maxima"):
            self._positions_lower, positions_upper = self._PV.min(axis=0), self._PV.max(axis=0)
            self._row_maxima = _Sides.of(self._Y + positions_upper, self._c < self._out)
            self._largest_of_row = self._row_maxima.largest()
        with arithmetic.step("direct path"):
            self._direct()

    def _squares(self, queries: Any, keys: Any) -> tuple[Any, Any]:
        """Squares of lengths, of those vectors for which they are needed; each once."""
        low, short = self._first > 0, self.factors.direct_basis is not None
        self._readout_squares: Any = (self._Uc * self._Uc).sum(axis=0) if low or short else None
        rows = self._Ec if short else self._Ec[: self._first]
        self._embedding_squares: Any = (rows * rows).sum(axis=1) if low or short else None
        projected = self.factors.score_basis is not None
        return (queries * queries).sum(axis=1) if low or projected else None, (keys * keys).sum(axis=1) if projected else None

    def _crude(self, asked: tuple[Any, Any], S: Any, last: Any, moving: tuple[Any, Any, Any]) -> Crude:
        """Tokens below `first_token`: S = l k^T + rest, so that a[q, t] <= max over t of (q l)(k t) + |q| |rest| |t|; and by norms."""
        hints, low, (queries, squares) = self.factors, self._Ec[: self._first], asked
        left, right = self.arithmetic.array(hints.query_direction), self.arithmetic.array(hints.key_direction)
        rest = S - left[:, None] * right
        along = low @ right
        query = queries @ left
        longest = np.sqrt(self._embedding_squares[: self._first].max())
        self._readout_norms = np.sqrt(self._readout_squares)
        error = np.sqrt(squares) * (np.sqrt((rest * rest).sum(axis=1).sum(axis=0)) * longest)
        score = np.maximum(query * along.max(), query * along.min()) + error
        VO, x0, positions = moving
        sizes = np.sqrt((x0 * x0).sum(axis=0)), np.sqrt((VO * VO).sum(axis=1).sum(axis=0)) * longest
        moved = np.sqrt((positions * positions).sum(axis=1).max())
        return Crude(np.exp(score - last), sizes[0] + sizes[1] + moved, self._readout_norms.max())

    def _scores(self, queries: Any, keys: Any, squares: tuple[Any, Any], R: int) -> Scores:
        """Products of queries and keys, or those in some directions and lengths of what is left."""
        basis = self.factors.score_basis
        if basis is None:
            products = queries @ keys.T
        else:
            left, right = (Projected.of(x, squared, basis, self.arithmetic) for x, squared in zip((queries, keys), squares, strict=True))
            products = left.along @ right.along.T
        last = products[:, R - 1]
        relative = np.concatenate([products[:, :R] - last[:, None], products[:, R:]], axis=1)
        if basis is None:
            return Scores(relative, relative, last)
        error = left.rest[:, None] * right.rest
        return Scores(relative - error, relative + error, last)

    def _attend(self, scores: Scores, R: int, crude: Crude | None) -> None:
        """Attention relative to what the last token would get at the least attended position before the last."""
        low, high, before = scores.lower[:, R:], scores.upper[:, R:], max(self._k - 1, 1)
        least = low[:, :before].min(axis=1)
        spread = np.exp(high[:, :before].max(axis=1) - least)
        self._lower = np.exp(scores.lower[:, :R])
        highest = self._lower if scores.lower is scores.upper else np.exp(scores.upper[:, :R])
        self._upper = highest * spread[:, None]
        self._at, self._label_upper = None, self._upper
        if self.factors.label_by_position:
            self._at = np.exp(low[:, :before] - least[:, None])
            self._label_upper = self._lower
        if self.factors.label_by_position and scores.lower is not scores.upper:
            wider = (np.exp(high[:, :before] - least[:, None]) / self._at).max(axis=1)
            self._label_upper = highest * wider[:, None]
        self._largest = np.maximum.accumulate(self._upper, axis=1)
        number = np.arange(R)
        at_last = np.exp(high[:, -1] - least)
        own_upper = own_lower = highest[number + self._first, number] * at_last[self._first :]
        if scores.lower is not scores.upper:
            own_lower = self._lower[number + self._first, number] * np.exp(low[:, -1] - least)[self._first :]
        self._own_attention = own_lower, own_upper
        if crude is not None:
            self._low, self._size, self._longest = crude.attention_upper * spread, crude.size_upper, crude.readout_upper
            self._own_low = (crude.attention_upper * at_last)[: self._first]

    def _direct(self) -> None:
        """D, or its product in some directions and the lengths of what is left: |(D - computed)[q, o]| <= rest[q] readout_rest[o]."""
        self._D: _Sides | None
        few = self.factors.direct_outputs < self._out
        if self.factors.direct_basis is None:
            self._D, self._rest = _Sides.of(self._Ec @ self._Uc, few), None
            return
        pairs, basis = ((self._Ec, self._embedding_squares), (self._Uc.T, self._readout_squares)), self.factors.direct_basis
        left, right = (Projected.of(x, squared, basis, self.arithmetic) for x, squared in pairs)
        self._D = None if left.along is None else _Sides.of(left.along @ right.along.T, few)
        self._rest, self._readouts = left.rest, right
        self._readout_rest = _Sides.of(right.rest[None], few)

    def harms(self, label: int) -> LabelHarms:
        """The harms of a label, at least `first_token`.

        Guarantee: h of a token bounds w_o gamma_q G_o(i, t) for every output o and position i before the last, and `own` the same for the
        query at the last position, with weights w_o > 0 of the label and gamma_q > 0 of the query.
        """
        Q, lowest = label + 1, max(self._first, label - self.factors.near_tokens)
        near = slice(lowest - self._first, label - self._first + 1)
        heaviest = self._heaviest(label)
        with self.arithmetic.step("token brackets"):
            r = self._token_brackets(label, near)
        with self.arithmetic.step("query brackets"):
            s = self._query_brackets(label)
            if self._margin is not None:
                s = s + self._weighted_margin(self._margin[: label + 1, label], label, heaviest)
        with self.arithmetic.step("harms"):
            positive = s if self._D is None and not self._may_be_negative else np.maximum(s, 0.0)
            of_label = s + r[-1]
            of_others = positive[:, None] + np.maximum(r[:-1], 0.0)
            column = near.stop - 1
            lower = self._lower[:Q, column]
            itself = signed(of_label, lower, lower if self._label_upper is self._lower else self._label_upper[:Q, column])
            harm = of_others * self._upper[:Q, near][:, :-1]
            alone = itself[:, None] if self._at is None else itself[:, None] * self._at[:Q]
            number = np.arange(label - lowest)
            mine = of_others[number + lowest, number] * self._own_attention[1][near][:-1]
            own = [mine, signed(of_label[-1:], *(end[near.stop - 1 : near.stop] for end in self._own_attention))]
        middle = low = None
        if lowest > self._first:
            with self.arithmetic.step("token brackets"):
                gap = self._largest_of_row[: near.start] - self._Y[: near.start, label]
                worst = (gap.max() - self._positions_lower[label]) * heaviest
            with self.arithmetic.step("harms"):
                between = positive + worst
                middle = between * self._largest[:Q, near.start - 1]
                own.insert(0, between[self._first : lowest] * self._own_attention[1][: lowest - self._first])
        if self._first > 0:
            with self.arithmetic.step("low tokens"):
                differing = self._readout_norms[label] + self._longest
                outside = positive + self._size * differing * heaviest
                low = outside * self._low[:Q]
                own.insert(0, outside[: self._first] * self._own_low)
        return LabelHarms(alone, harm, middle, low, np.concatenate(own, axis=0))

    def _singles(self, label: int, c: int) -> np.ndarray:
        """The outputs near the label."""
        around = np.arange(max(0, label - c), min(self._out, label + c + 1))
        return np.asarray(around[around != label])

    def _numbers(self, label: int, outputs: np.ndarray) -> np.ndarray:
        """Where the weights of near outputs stand."""
        return np.asarray(outputs - label + self.factors.near_outputs + (outputs < label))

    def _weighted_margin(self, tau: np.ndarray, label: int, heaviest: Any) -> Any:
        """(query,): at least w_o tau for all o; a negative margin counts with the least weight."""
        most = self.arithmetic.array(np.maximum(tau, 0.0)) * heaviest
        return most if not self._may_be_negative else most + self.arithmetic.array(np.minimum(tau, 0.0)) * self._weights[label].min()

    def _heaviest(self, label: int) -> Any:
        with self.arithmetic.step("query brackets"):
            return self._weights[label].max()

    def _token_brackets(self, label: int, near: slice) -> Any:
        """(near token,): at least w_o (Y[t, o] + PV[i, o] - Y[t, m] - PV[i, m]) for all o and i."""
        Y, singles, c = self._Y[near], self._singles(label, self._c), self._c
        own = Y[:, label][:, None]
        parts = []
        if len(singles):
            at = (self._PV[:, singles] - self._PV[:, label][:, None]).max(axis=0)
            parts.append(((Y[:, singles] - own) + at) * self._weights[label, self._numbers(label, singles)])
        for side, number in self._row_maxima.sides(label, c, near):
            parts.append((side[:, None] - (own + self._positions_lower[label])) * self._weights[label, number])
        if not parts:
            return own[:, 0] * 0.0 - np.inf
        return np.concatenate(parts, axis=1).max(axis=1)

    def _query_brackets(self, label: int) -> Any:
        """(query,): at least w_o (D[q, o] - D[q, m]) for all o."""
        Q, c = slice(0, label + 1), min(self.factors.direct_outputs, self._c)
        singles, sides = self._singles(label, c), self._side_weights(label, c)
        parts: list[Any] = []
        if self._D is not None:
            own = self._D.table[Q, label][:, None]
            if len(singles):
                parts.append((self._D.table[Q][:, singles] - own) * self._weights[label, self._numbers(label, singles)])
            for (side, _), (weight, shared) in zip(self._D.sides(label, c, Q), sides, strict=True):
                gap = side[:, None] - own
                parts.append((gap if shared else np.maximum(gap, 0.0)) * weight)
        s = None if not parts else np.concatenate(parts, axis=1).max(axis=1)
        if self._rest is None:
            return self._lower[Q, 0] * 0.0 - np.inf if s is None else s
        rest, own = self._readout_rest, self._readout_rest.table[0, label]
        sizes = [self._lengths(label, singles) * self._weights[label, self._numbers(label, singles)]] if len(singles) else []
        sizes += [(side + own) * weight for (side, _), (weight, _) in zip(rest.sides(label, c, slice(0, 1)), sides, strict=True)]
        if not sizes:
            return self._lower[Q, 0] * 0.0 - np.inf
        error = self._rest[Q] * np.concatenate(sizes, axis=0).max()
        return error if s is None else s + error

    def _lengths(self, label: int, outputs: np.ndarray) -> Any:
        """(output,): at least the lengths of what is left of the differences between readouts and the label's."""
        apart = self._Uc[:, outputs] - self._Uc[:, label][:, None]
        squared, readouts = (apart * apart).sum(axis=0), self._readouts
        if readouts.along is not None:
            along = readouts.along[outputs] - readouts.along[label]
            squared = np.maximum(squared - (along * along).sum(axis=1) * readouts.kept, 0.0)
        return np.sqrt(squared)

    def _side_weights(self, label: int, c: int) -> list[tuple[Any, bool]]:
        """For the outputs below label - c and above label + c, where there are any: their largest weight, and whether they share it."""
        first, last = self.factors.near_outputs + 1 - c, self.factors.near_outputs + c
        found = []
        if label - c > 0:
            found.append((self._weights[label, :first].max(), first == 1))
        if label + c + 1 < self._out:
            found.append((self._weights[label, last + 1 :].max(), last + 2 == self._weights.shape[1]))
        return found

    def tables(self, subjects: Sequence[Subject], pools_of: Sequence[Sequence[np.ndarray]]) -> Iterator[tuple[Subject, Any]]:
        """For each subject the harms (pool, position, token number) of its queries, which are the first of each pool.

        Guarantee: sum_i h[q, i, t_i] < 0 proves every sequence of the label with this query correct. At the last position the harm is the
        query's own, whatever the token.
        """
        for subject, pools in zip(subjects, pools_of, strict=True):
            queries = np.array([pool[0] for pool in pools], dtype=np.int64)
            if not len(queries):
                continue
            if subject.label < self._first:
                nothing = np.full((len(queries), self._k, len(subject.tokens)), np.inf)
                yield subject, self.arithmetic.array(nothing)
                continue
            yield subject, self.expanded(self.harms(subject.label))[queries]

    def expanded(self, found: LabelHarms) -> Any:
        """(query, position, token)"""
        label = found.near.shape[0] - 1
        lowest = label - found.near.shape[1]
        columns = [each[:, None] for each in (found.low, found.middle) if each is not None]
        numbers = np.arange(label + 1) - lowest + len(columns)
        numbers[self._first : lowest] = len(columns) - 1
        numbers[: self._first] = 0
        places = [0] * (self._k - 1) if found.label.shape[1] == 1 else range(self._k - 1)
        rows = [np.concatenate([*columns, found.near, found.label[:, [i]]], axis=1)[:, numbers] for i in places]
        return np.stack([*rows, found.own[:, None][:, np.zeros(label + 1, dtype=np.int64)]], axis=1)


@dataclass(frozen=True)
class _Sides:
    """A table, and maxima of its rows over the columns from either end."""

    table: Any
    from_left: Any
    from_right: Any
    """None if nobody will ask for sides"""

    @classmethod
    def of(cls, table: Any, wanted: bool) -> _Sides:
        """Cost: O(size)."""
        if not wanted:
            return cls(table, None, None)
        return cls(table, np.maximum.accumulate(table, axis=1), np.maximum.accumulate(table[:, ::-1], axis=1))

    def largest(self) -> Any:
        """(row,): the largest entries"""
        return self.table.max(axis=1) if self.from_left is None else self.from_left[:, -1]

    def sides(self, label: int, c: int, rows: slice) -> list[tuple[Any, int]]:
        """The largest entries below label - c and above label + c, where there are any, with the number of their weight."""
        n, found = self.table.shape[1], []
        if label - c > 0:
            found.append((self.from_left[rows, label - c - 1], 0))
        if label + c + 1 < n:
            found.append((self.from_right[rows, n - label - c - 2], -1))
        return found
