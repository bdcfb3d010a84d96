"""Witnesses of rule `pools`: weights, harms and pools of the tabled threshold strategies, as integers.

Everything here is a search for numbers that the checker will not take on trust; the harms are made with its own exact tables, so that
they are as small as they can be.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compactproofs import checker
from compactproofs.certificates.steps import count_by_class
from compactproofs.form.tables import position_centre
from compactproofs.model.weights import Weights
from compactproofs.strategies.threshold.hints import Hints, find_hints
from compactproofs.strategies.threshold.tabled import Tabled

GRID = 32
"""Centres and harms are integers over 2^GRID (harms also times the weights)."""

_HEAVIEST = 1 << 30
"""The largest weight of a label."""


def pool_witness(strategy: Tabled, weights: Weights, T: checker.Tables) -> dict[str, Any]:
    """Harm tables with the strategy's weights and pools."""
    hints = find_hints(weights, max(strategy.pools, 1)).checked(weights)
    mu, nu = _on_grid(hints.mu), _on_grid(_position_values(weights))
    up = T.scale - GRID
    V = [[x + (a + b << up) for x, a, b in zip(row, mu, nu, strict=True)] for row in T.EVOU]
    P = [[x - (b << up) for x, b in zip(row, nu, strict=True)] for row in T.PVOU]
    EU = [[x - (a << up) for x, a in zip(row, mu, strict=True)] for row in T.EU]
    labels = []
    for m in range(T.v):
        w = _output_weights(hints.output_weights[m]) if strategy.weighted else [_HEAVIEST] * T.out
        r = [_harm(w, row, row[m], m, up) for row in V[: m + 1]]
        p = [_harm(w, row, row[m], m, up) for row in P]
        s = [_harm(w, EU[q], T.own[q][m] - (mu[m] << up), m, up) for q in range(m + 1)]
        pools = [_pool(T, m, queries, r, p, [s[q] for q in queries], hints.steps) for queries in _pools(strategy, hints, m)]
        labels.append({"weights": w, "token_harms": r, "position_harms": p, "pools": pools})
    return {"grid": GRID, "direct_centre": mu, "position_centre": nu, "labels": labels}


def _pool(T: checker.Tables, m: int, queries: list[int], r: list[int], p: list[int], s: list[int], steps: int) -> dict[str, Any]:
    token_scales = [_inverse(T.A_high[q][m], T.bits) for q in queries]
    position_scales = [_inverse(_geometric_mean(T.b_high[q]), T.bits) for q in queries]
    harms = checker.pool_harms(T, m, queries, token_scales, position_scales, r, p, s)
    total = sum(T.sequences(m, q) for q in queries)
    return {
        "queries": queries,
        "token_scales": token_scales,
        "position_scales": position_scales,
        "query_harms": s,
        "counting": count_by_class(harms, m, steps, small=total >> 20),
    }


def _inverse(x: int, bits: int) -> int:
    """About 2^32 / (x / 2^bits)."""
    return max(1, (1 << bits + 32) // max(1, x))


def _geometric_mean(numbers: list[int]) -> int:
    mean = math.fsum(math.log2(max(1, x)) for x in numbers) / len(numbers)
    return int(2.0 ** (mean - int(mean)) * 2**53) << int(mean) >> 53


def _pools(strategy: Tabled, hints: Hints, m: int) -> list[list[int]]:
    """The queries of each pool; every query alone if the strategy has no pools."""
    if strategy.pools == 0:
        return [[q] for q in range(m + 1)]
    numbers = np.unique(hints.pool_of[m, : m + 1], return_inverse=True)[1].reshape(-1) % strategy.pools
    return [np.flatnonzero(numbers == number).tolist() for number in np.unique(numbers)]


def _harm(weights: list[int], row: list[int], own: int, m: int, up: int) -> int:
    """The smallest harm on the grid that the checker accepts; a negative one where there is no output to lose to."""
    terms = [w * (x - own) for w, x in zip(weights, row, strict=True)]
    return -(-max(checker.others(terms, m), default=-1 << up) >> up)


def _output_weights(w: np.ndarray) -> list[int]:
    w = np.where((w > 1e-100) & (w < 1e100), w, 1.0)
    return [max(1, round(x)) for x in (w / w.max() * _HEAVIEST).tolist()]


def _on_grid(x: np.ndarray) -> list[int]:
    return [round(y * 2**GRID) for y in x.tolist()]


def _position_values(weights: Weights) -> np.ndarray:
    """What the mean position adds to each output."""
    W_V, W_O, W_U = (weights.tensors[name].astype(np.float64) for name in ("W_V", "W_O", "W_U"))
    return np.asarray(position_centre(weights) @ W_V @ W_O @ W_U)
