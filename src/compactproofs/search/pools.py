"""Hints of factored terms: weights of outputs, what moves into EVOU, pools of queries; and the compiled search for grids and classes."""

from __future__ import annotations

from typing import Any, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.bounds.factors import HEAVIEST, Factors
from compactproofs.bounds.low_rank_scores import Directions, find_directions
from compactproofs.counting.classes import in_class
from compactproofs.counting.levels import levelled
from compactproofs.counting.subject import Subject
from compactproofs.form.tables import float_circuits
from compactproofs.model.kinds import Model
from compactproofs.search.grids import DEEPEST, Leaf, count_on_grid, dominant_tokens, natural_unit, occurring
from compactproofs.search.pairs import ANY
from compactproofs.search.writing import begin, put, put_all, replace

_DIGITS = 2.0**30
"""Hints that go into certificates are rounded to so many parts of their largest."""


def find_factors(weights: Model, *, weighted: bool, pooled: bool) -> Factors:
    """Search, in float64, uncharged. Weights make one copy of the label worth about the same against every output."""
    with np.errstate(all="ignore"):
        tables = float_circuits(weights)
        v, out = weights.d_vocab, weights.d_vocab_out
        mu = _rounded(tables.EU.mean(axis=0))
        V = (tables.EVOU + mu).reshape(-1, v, out).mean(axis=0)  # of all positions
        helpful = np.minimum(np.arange(out), v - 1)  # the label as a token
        margin = V[helpful, np.arange(out)][:, None] - V[helpful]
        w = 1.0 / np.maximum(margin, np.maximum(0.02 * margin.max(axis=1, keepdims=True), 1e-3))
        w = np.where((w > 1e-100) & (w < 1e100), w, 1.0)
        whole = np.maximum(np.rint(w / w.max(axis=1, keepdims=True) * HEAVIEST), 1).astype(np.int64)
        return Factors(
            mu=mu,
            output_weights=whole if weighted else None,
            centres=helpful if pooled else None,
            directions=_directions(weights) if out > 1 else Directions.blank(weights),
        )


def _directions(weights: Model) -> Directions:
    """Directions; blank ones where tables are not finite."""
    try:
        return find_directions(weights)
    except np.linalg.LinAlgError:
        return Directions.blank(weights)


def find_pools(direct: np.ndarray, factors: Factors, subject: Subject, pools: int) -> list[np.ndarray]:
    """Pools of token numbers of about equal size: queries with a similar direct path together. 0: every query by itself."""
    occurring = np.flatnonzero(subject.masses[-1] > 0)  # as queries
    n = len(occurring)
    if pools == 0 or n == 0:
        return [np.array([q]) for q in occurring]
    with np.errstate(all="ignore"):
        others = np.arange(direct.shape[1]) != subject.label
        w = 1.0 if factors.output_weights is None else factors.output_weights[subject.label].astype(np.float64)
        harm = ((direct - direct[:, [subject.label]]) * w)[:, others].max(axis=1, initial=-np.inf)
    order = occurring[np.argsort(np.nan_to_num(harm[subject.tokens[occurring]]), kind="stable")]
    numbers = np.arange(n) * pools // n
    return [np.sort(order[numbers == number]) for number in np.unique(numbers)]


def direct_path(weights: Model, factors: Factors) -> np.ndarray:
    """(query, output): what is left of the direct path, in float64; for choosing pools."""
    with np.errstate(all="ignore"):
        return np.asarray(float_circuits(weights).EU - factors.mu)


def counting_steps(n_ctx: int) -> int:
    """How finely to count: rounding loses a fraction of a step per position, and windows grow with both."""
    return 100 if n_ctx <= 10 else 50


def _rounded(x: np.ndarray) -> np.ndarray:
    """Numbers of few digits, for certificates."""
    if not np.isfinite(x).all() or not x.any():
        return np.zeros(x.shape)
    unit = 2.0 ** np.ceil(np.log2(np.abs(x).max())) / _DIGITS
    return np.asarray(np.rint(x / unit) * unit) if 1e-250 < unit < 1e250 else np.zeros(x.shape)


@kernel
@no_type_check
def look_at_tables(h: Any, subject: Any, masses: Any, steps: int, classes: int, small: int, records: Any) -> Any:
    """Bounds (failing, operations) of some tables of harms that cover every output, with the masses of each; and a record of each: the
    order of classes and their grids.

    A table with more than `small` failures is counted again, by classes of the most harmful tokens; the better bound stands.
    """
    tables, k, _ = h.shape
    bounds = np.empty((tables, 2), np.int64)
    grid = np.empty(3 + k, np.int64)
    for row in range(tables):
        order = grid[:0]
        failing = ANY
        operations = 0
        record = records[row]
        for turn in range(2):
            if turn == 1:
                if classes == 0 or failing <= small:
                    break
                order = dominant_tokens(harmfulness(h[row]), subject.usual, classes)
                record = np.empty(records.shape[1], np.int64)
            begin(record)
            put(record, order.shape[0])
            put_all(record, order)
            total = work = 0
            for c in range(order.shape[0] + 1):
                token = order[c] if c < order.shape[0] else subject.usual
                part = levelled(in_class(subject.automaton, order, c), masses[row])
                leaf = Leaf(masses[row], occurring(masses[row], part), part, subject.usual, token)
                unit = natural_unit(h[row], leaf.masses, leaf.usual, token)
                found, more = count_on_grid(h[row], leaf, unit, steps, DEEPEST, False, grid)
                total, work = min(total + found, ANY), work + more
                put_all(record, grid)
            if total < failing:
                failing, operations = total, work
                if turn == 1:
                    replace(records[row], record)
        bounds[row, 0] = failing
        bounds[row, 1] = operations
    return bounds


@kernel
@no_type_check
def harmfulness(h: Any) -> Any:
    """How large harms of each token are, at all positions but the last."""
    result = np.zeros(h.shape[1])
    for j in range(h.shape[1]):
        for i in range(h.shape[0] - 1):
            result[j] += abs(h[i, j])
    return result
