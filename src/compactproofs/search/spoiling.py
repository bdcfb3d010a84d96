"""Bounds of right answers, compiled: which output, or which two at once, the right answers of a leaf are counted against."""

from __future__ import annotations

from typing import Any, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.bounds.pairs import spoiler_harms, spoilers_harms
from compactproofs.counting.count_up import mass_up
from compactproofs.search.covers import COARSE, FINER, HEAVIEST
from compactproofs.search.grids import count_on_grid, natural_unit
from compactproofs.search.writing import put, put_all

SPOILERS = 3
"""So many outputs are tried."""
SHARES = (1.0, 0.5, 2.0)
"""Of two spoilers, how much the other one counts: times what levels their sum, or in units of each."""
SPOILER_DEPTH = 64


@kernel
@no_type_check
def spoiled(pair: Any, ranking: Any, leaf: Any, steps: int, above: Any) -> int:
    """Bound right answers by those on which one output loses, one of the first of the ranking. What was chosen goes to the record."""
    k = leaf.masses.shape[0]
    everything = mass_up(leaf.masses, leaf.automaton)
    tried, grid = np.empty(3 + k, np.int64), np.empty(3 + k, np.int64)
    right, chosen = everything, -1
    for x in range(min(SPOILERS, ranking.outputs.shape[0])):
        if x > 0 and 0 <= ranking.rough[x] <= everything - right:  # it cannot spoil more
            continue
        found, _ = count_on_grid(spoiler_harms(pair, ranking.outputs[x]), leaf, ranking.units[x], steps, SPOILER_DEPTH, True, tried)
        if found < right:
            right, chosen = found, ranking.outputs[x]
            grid, tried = tried, grid
    put(above, chosen)
    if chosen >= 0:
        put(above, -1)
        put(above, 1)
        put(above, 1)
        put_all(above, grid)
    return right


@kernel
@no_type_check
def spoiled_by_two(pair: Any, ranking: Any, leaf: Any, steps: int, right: int, above: Any) -> int:
    """A better bound of right answers, if two outputs together give one: they then lose to both, or to a positive combination. A rough
    count chooses among some; what was chosen is what stands in the record."""
    outputs, units, k, seen = ranking.outputs, ranking.units, leaf.masses.shape[0], leaf.seen
    tried, grid = np.empty(3 + k, np.int64), np.empty(3 + k, np.int64)
    best, partner, n1, n2 = right, -1, 1, 1
    for x in range(1, min(SPOILERS, outputs.shape[0])):
        level = levelling(pair.G[outputs[0]], pair.G[outputs[x]], seen)
        for share in SHARES:
            ratio = share * (level if level > 0.0 else units[0] / units[x])
            a = HEAVIEST if ratio <= 1.0 else max(1, int(HEAVIEST / ratio))
            b = max(1, int(min(ratio, 1.0) * HEAVIEST))
            h = spoilers_harms(pair, outputs[0], outputs[x], a, b)
            unit = natural_unit(h, seen, leaf.usual, leaf.token)
            found, _ = count_on_grid(h, leaf, unit, min(steps, COARSE * FINER), SPOILER_DEPTH, True, tried)
            if found < best:
                best, partner, n1, n2 = found, x, a, b
                grid, tried = tried, grid
    if partner < 0:
        return right
    if best > 0 and steps > COARSE * FINER:
        h = spoilers_harms(pair, outputs[0], outputs[partner], n1, n2)
        found, _ = count_on_grid(h, leaf, natural_unit(h, seen, leaf.usual, leaf.token), steps, SPOILER_DEPTH, True, tried)
        if found < best:
            best = found
            grid, tried = tried, grid
    put(above, outputs[0])
    put(above, outputs[partner])
    put(above, n1)
    put(above, n2)
    put_all(above, grid)
    return best


@kernel
@no_type_check
def levelling(G: Any, other: Any, seen: Any) -> float:
    """How often to add another table so that sums vary least; 0 if it does not help."""
    k, n = seen.shape
    both = square = 0.0
    for i in range(k):
        count = mean = others = 0.0
        for j in range(n):
            if seen[i, j] > 0:
                count, mean, others = count + 1.0, mean + G[i, j], others + other[i, j]
        for j in range(n):
            if seen[i, j] > 0:
                both -= (G[i, j] - mean / count) * (other[i, j] - others / count)
                square += (other[i, j] - others / count) ** 2
    ratio = both / square if square > 0.0 else 0.0
    return ratio if 1e-9 < ratio < 1e9 else 0.0


@kernel
@no_type_check
def of_spoilers(pair: Any, record: Any) -> Any:
    """The harms of the spoilers that a record above begins with."""
    if record[1] < 0:
        return spoiler_harms(pair, record[0])
    return spoilers_harms(pair, record[0], record[1], record[2], record[3])
