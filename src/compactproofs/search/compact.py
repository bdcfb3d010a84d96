"""Search for compact proofs under a budget of FLOPs: hints in float64; which labels, queries and grids are worth their cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import comb, frexp
from typing import Any, no_type_check

import numpy as np

from compactproofs.arrays import FlopCounter
from compactproofs.arrays.arithmetic import Counting, Float64
from compactproofs.arrays.compiling import kernel
from compactproofs.bounds.compact import CompactTables, LabelHarms, has_negative_margin
from compactproofs.bounds.compact_hints import Compact
from compactproofs.bounds.factors import HEAVIEST
from compactproofs.counting.alike import count_tuples
from compactproofs.counting.grid import FINE, MOST_EXPONENT, Grid, initial_sum, on_grid
from compactproofs.form.embedded import position_centre
from compactproofs.ledger.ledger import Factored, Leaf, Ledger, Part
from compactproofs.model.weights import Weights
from compactproofs.tasks.question import Question

_FLATTEST = 0.05
"""Weights of outputs are at most so many times above what the median margin would give, inverted."""

_DEPTH = 16
"""Integers reach so many labels deep."""


@dataclass(frozen=True)
class Sizes:
    """What a compact proof looks at: all that its cost depends on, but for labels and counting."""

    first_token: int
    near_tokens: int
    near_outputs: int
    """As many as there are outputs: a weight for each"""
    direct_outputs: int
    direct_rank: int | None
    """None: the direct path itself"""
    score_rank: int | None
    """None: the scores themselves"""
    label_by_position: bool = False


def find_hints(weights: Weights, sizes: Sizes) -> Compact:
    """Weights make one copy of the label worth about the same against every output; directions are the usual singular vectors."""
    T = {name: tensor.astype(np.float64) for name, tensor in weights.tensors.items()}
    with np.errstate(all="ignore"):
        e, u, c = T["W_E"].mean(axis=0), T["W_U"].mean(axis=1), position_centre(weights)
        Ec, Uc, Ph = T["W_E"] - e, T["W_U"] - u[:, None], T["W_pos"] - c
        VO = T["W_V"] @ T["W_O"]
        S = T["W_Q"] @ T["W_K"].T / float(weights.score_divisor_squared) ** 0.5
        Y, PV = ((Ec + e + c) @ VO + e + T["W_pos"][-1]) @ Uc, Ph @ VO @ Uc
        margins = np.diagonal(Y)[:, None] - Y - np.stack([(PV - PV[:, [m]]).max(axis=0) for m in range(weights.d_vocab)])
        U, values, Vh = _svd(S)
        keys, queries = np.concatenate([Ec[sizes.first_token :], Ph]) @ S.T, Ec + e + T["W_pos"][-1]
        return Compact(
            first_token=sizes.first_token,
            near_tokens=sizes.near_tokens,
            output_weights=_weights(margins, sizes.near_outputs),
            direct_outputs=sizes.direct_outputs,
            label_by_position=sizes.label_by_position,
            embedding_centre=e,
            readout_centre=u,
            direct_basis=None if sizes.direct_rank is None else _directions((Ec, Uc.T), sizes.direct_rank),
            score_basis=None if sizes.score_rank is None else _score_directions(queries, keys, sizes.score_rank),
            query_direction=U[:, 0] * values[0],
            key_direction=Vh[0],
        )


def _svd(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    try:
        U, values, Vh = np.linalg.svd(matrix, full_matrices=False)
    except np.linalg.LinAlgError:
        n, m = matrix.shape
        return np.zeros((n, min(n, m))), np.zeros(min(n, m)), np.zeros((min(n, m), m))
    return U, values, Vh


def _unit(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / max(float(np.linalg.norm(x)), 1e-300))


def _directions(matrices: Sequence[np.ndarray], rank: int) -> np.ndarray:
    """Orthonormal directions that hold most of several sets of vectors."""
    return _svd(np.concatenate([_unit(matrix) for matrix in matrices]))[2][:rank]


def _score_directions(queries: np.ndarray, keys: np.ndarray, rank: int) -> np.ndarray:
    """The main direction of the keys, then those that hold most of what is left of queries and keys."""
    first = _directions([keys], 1)[: min(rank, 1)]
    left, right = (x - x @ first.T @ first for x in (queries, keys))
    return np.concatenate([first, _directions([left, right], max(rank - 1, 0))])


def _weights(margins: np.ndarray, c: int) -> np.ndarray:
    """(label, 2 c + 2): integers about proportional to one over the margin; outputs that share a weight have the largest of theirs."""
    v, out = margins.shape
    found = np.zeros((v, 2 * c + 2))
    for m in range(v):
        others = np.delete(margins[m], m)
        usual = np.median(others) if len(others) else 1.0
        w = 1.0 / np.maximum(margins[m], max(_FLATTEST * usual, 1e-3 * np.abs(others).max(initial=0.0), 1e-100))
        near = np.arange(max(0, m - c), min(out, m + c + 1))
        below, above = near[near < m], near[near > m]
        found[m, below - m + c + 1], found[m, above - m + c] = w[below], w[above]
        found[m, 0] = w[: max(0, m - c)].max(initial=0.0)
        found[m, -1] = w[m + c + 1 :].max(initial=0.0)
    found = np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0)
    largest = np.maximum(found.max(axis=1, keepdims=True), 1e-300)
    return np.asarray(np.maximum(np.rint(found / largest * HEAVIEST), 1).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Cost:
    """FLOPs of tables: what every proof of these sizes pays, and what each label adds."""

    fixed: int
    labels: dict[int, int]


def table_flops(weights: Weights, question: Question, hints: Compact, labels: Sequence[int]) -> dict[str, int]:
    """FLOPs by step, by running the bound on arrays without values."""
    counter = FlopCounter()
    tables = CompactTables(weights, question, hints, Counting(counter))
    for label in labels:
        tables.harms(label)
    return dict(counter.steps)


@dataclass(frozen=True)
class Case:
    """What the cost of tables depends on, and a network that has these sizes."""

    sizes: Sizes
    network: tuple[int, ...]
    margin: tuple[bool, bool]
    """Whether there is one, and whether some are negative"""
    weights: Weights = field(compare=False)
    question: Question = field(compare=False)

    @classmethod
    def of(cls, weights: Weights, question: Question, sizes: Sizes) -> Case:
        network = weights.d_vocab, weights.d_vocab_out, weights.d_model, weights.d_head, weights.n_ctx
        return cls(sizes, network, (question.margin is not None, has_negative_margin(question)), weights, question)


@lru_cache(maxsize=4096)
def fixed_flops(case: Case) -> int:
    """What every proof of these sizes pays."""
    return sum(table_flops(case.weights, case.question, blank(case.weights, case.sizes), ()).values())


@lru_cache(maxsize=1024)
def cost_of(case: Case) -> Cost:
    """What tables cost."""
    counter, weights = FlopCounter(), case.weights
    tables = CompactTables(weights, case.question, blank(weights, case.sizes), Counting(counter))
    fixed, labels = sum(counter.steps.values()), {}
    before = fixed
    for label in range(case.sizes.first_token, weights.d_vocab):
        tables.harms(label)
        after = sum(counter.steps.values())
        labels[label], before = after - before, after
    return Cost(fixed, labels)


def blank(weights: Weights, sizes: Sizes) -> Compact:
    """Useless but valid hints of these sizes."""
    v, d = weights.d_vocab, weights.d_model
    bases = [None if rank is None else np.zeros((rank, d)) for rank in (sizes.direct_rank, sizes.score_rank)]
    ones = np.ones((v, 2 * sizes.near_outputs + 2), dtype=np.int64)
    looks = sizes.first_token, sizes.near_tokens, ones, sizes.direct_outputs, sizes.label_by_position
    return Compact(*looks, np.zeros(d), np.zeros(d), bases[0], bases[1], np.zeros(d), np.zeros(d))


@dataclass(frozen=True, eq=False)
class LabelOptions:
    """What can be done about the queries of a label: (query, option) failing mass and operations, and grids to do it."""

    label: int
    totals: np.ndarray
    failing: np.ndarray
    operations: np.ndarray
    grids: np.ndarray
    """(query, option, 5): mantissa, exponent, depth, offset before the last position, offset there"""


def options_of(weights: Weights, question: Question, hints: Compact, steps: Sequence[int]) -> list[LabelOptions]:
    """For every label that has rows: what counting with so many steps to a label would prove, in float64."""
    with np.errstate(all="ignore"):
        tables = CompactTables(weights, question, hints, Float64())
        found = []
        for label in range(hints.first_token, weights.d_vocab):
            totals = np.array([float(total) for total in question.totals_by_last(label)])
            rows = _rows(tables.harms(label), hints.first_token, weights.n_ctx - 1)
            failing, operations, grids = look(*rows, np.array(steps, dtype=np.int64), _binomials(weights.n_ctx - 1))
            found.append(LabelOptions(label, totals, np.minimum(failing, totals[:, None]), operations, grids))
        return found


def _rows(harms: LabelHarms, first: int, places: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(query, token), (query, position) and (query,): harms of other tokens and of the label before the last position, and at it."""
    Q, near = harms.near.shape
    parts = [np.repeat(harms.low[:, None], first, axis=1)] if harms.low is not None else []
    if harms.middle is not None:
        parts.append(np.repeat(harms.middle[:, None], Q - 1 - near - first, axis=1))
    rows = np.concatenate([*parts, harms.near, harms.label[:, :1]], axis=1)
    labels = harms.label if harms.label.shape[1] == places else np.repeat(harms.label[:, :1], places, axis=1)
    return np.ascontiguousarray(rows), np.ascontiguousarray(labels), np.ascontiguousarray(harms.own)


def _binomials(n: int) -> np.ndarray:
    return np.array([float(comb(n, c)) for c in range(n + 1)])


@kernel
@no_type_check
def _largest(values: Any) -> float:
    """The largest number, or NaN if one is: numpy's `max`, and the assignment of rows, take seconds to compile."""
    result = -np.inf
    for value in values:
        if value != value:
            return np.nan
        result = max(result, value)
    return result


@kernel
@no_type_check
def look(rows: Any, labels: Any, own: Any, steps: Any, binomials: Any) -> tuple[Any, Any, Any]:
    """(query, option): failing mass, operations, and grids; of several offsets the one that proves most. The label is the last token."""
    Q, n = rows.shape
    k = binomials.shape[0]
    options = steps.shape[0]
    failing = np.full((Q, options), np.inf)
    operations = np.zeros((Q, options), np.int64)
    grids = np.zeros((Q, options, 5), np.int64)
    h = np.empty((k, n))
    tried = np.zeros(6, np.int64)
    for q in range(Q):
        row = rows[q]
        unit = -_largest(labels[q]) if k > 1 else abs(own[q])
        if not (unit > 1e-240 and unit < 1e240 and own[q] < 1e300 and own[q] > -1e300):
            continue
        for j in range(n):
            for i in range(k - 1):
                h[i, j] = row[j] if j < n - 1 else labels[q, i]
            h[k - 1, j] = own[q]
        for option in range(options):
            fraction, exponent = frexp(unit / steps[option])
            mantissa = min(max(int(fraction * 65536) - 1, 32768), 65535)
            exponent = min(max(exponent - 16, -MOST_EXPONENT), MOST_EXPONENT)
            step = mantissa * 2.0**exponent
            tried[:] = 0
            if steps[option] <= 64:
                for x in range(1, 6):
                    at = 0 if x == 1 else max(n - x - (0 if x < 5 else 1), 0)  # the lowest token, and some near ones
                    part = row[at] / step
                    part -= np.floor(part)
                    tried[x] = min(int(np.ceil(part * FINE)) + 1, FINE - 1) if part == part else 0
            for x in range(6 if steps[option] <= 64 else 1):
                offset = tried[x]
                offsets = np.full(k, offset)
                offsets[k - 1] = (-(k - 1) * offset) % FINE
                grid = Grid(mantissa, exponent, _DEPTH * steps[option], offsets)
                start = initial_sum(offsets)
                D = on_grid(h, grid, start)[:, 0]
                needed = 0 if q == n - 1 else 1
                mine = D[: k - 1, n - 1].copy()
                counts, ones, units, work = count_tuples(D[0, : n if k > 1 else 0], row, n - 1, mine, start + D[k - 1, 0], needed)
                mass = 0.0
                for c in range(needed, k):
                    if c != 1:
                        mass += binomials[c] * counts[c] * 2.0 ** units[k - 1 - c]
                for each in ones:
                    mass += each * 2.0 ** units[k - 2]
                if mass < failing[q, option]:
                    failing[q, option], operations[q, option] = mass, work
                    grids[q, option, 0], grids[q, option, 1], grids[q, option, 2] = mantissa, exponent, grid.depth
                    grids[q, option, 3], grids[q, option, 4] = offset, offsets[k - 1]
    return failing, operations, grids


@dataclass(frozen=True, eq=False)
class Plan:
    """Labels, queries and grids that fit a budget."""

    proven: float
    flops: int
    chosen: list[tuple[LabelOptions, np.ndarray]]
    """Labels with the option of each query; -1: given up"""

    @property
    def labels(self) -> list[int]:
        return [options.label for options, _ in self.chosen]


def plan(options: list[LabelOptions], cost: Cost, most: float) -> Plan:
    """The best that `most` FLOPs allow, by one price for a FLOP: labels, queries and grids that are worth it."""
    market = _Market.of(options, cost)
    free = market.at(0.0)
    if free.flops <= most:
        return free
    high, best = max(float(market.totals.sum()), 1.0), Plan(0.0, 0, [])
    low = high * 1e-14
    while high > 1.001 * low:
        price = (low * high) ** 0.5
        found = market.at(price)
        if found.flops > most:
            low = price
            continue
        high, best = price, found if found.proven > best.proven else best
    return best


@dataclass(frozen=True, eq=False)
class _Market:
    """All pairs of a query and a label, with what can be done about them."""

    options: list[LabelOptions]
    cost: Cost
    totals: np.ndarray
    proven: np.ndarray
    """(pair, option)"""
    operations: np.ndarray
    number: np.ndarray
    """(pair,): of the label among `options`"""

    @classmethod
    def of(cls, options: list[LabelOptions], cost: Cost) -> _Market:
        totals = np.concatenate([each.totals for each in options])
        proven = totals[:, None] - np.concatenate([each.failing for each in options])
        operations = np.concatenate([each.operations for each in options])
        return cls(options, cost, totals, proven, operations, np.repeat(np.arange(len(options)), [len(each.totals) for each in options]))

    def at(self, price: float) -> Plan:
        """What is worth its price."""
        worth = self.proven - price * self.operations
        which, rows = worth.argmax(axis=1), np.arange(len(worth))
        kept = worth[rows, which] > 0
        which = np.where(kept, which, -1)
        gain = np.bincount(self.number, np.where(kept, worth[rows, which], 0.0), len(self.options))
        proven = np.bincount(self.number, np.where(kept, self.proven[rows, which], 0.0), len(self.options))
        work = np.bincount(self.number, np.where(kept, self.operations[rows, which], 0), len(self.options))
        own = np.array([self.cost.labels[each.label] for each in self.options])
        chosen = (gain > price * own) & (proven > 0)
        flops = self.cost.fixed + int(own[chosen].sum() + work[chosen].sum())
        parts = np.split(which, np.cumsum([len(each.totals) for each in self.options])[:-1])
        return Plan(float(proven[chosen].sum()), flops, [(self.options[x], parts[x]) for x in np.flatnonzero(chosen)])


def ledger_of(weights: Weights, question: Question, hints: Compact, found: Plan) -> Ledger:
    """The plan as a ledger."""
    parts = []
    for options, which in found.chosen:
        for query, option in enumerate(which.tolist()):
            if option < 0:
                continue
            mantissa, exponent, depth, offset, last = options.grids[query, option].tolist()
            grid = Grid(mantissa, exponent, depth, (*(offset for _ in range(weights.n_ctx - 1)), last))
            parts.append(Part(options.label, (query,), Leaf((Factored(grid),))))
    return Ledger(question, weights.sha256, tuple(parts), factors=hints)
