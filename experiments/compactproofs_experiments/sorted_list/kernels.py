"""Compiled functions: how many sets of a node may fail.

A *node* is the sets of a pair that contain certain numbers (IN) and do not contain others (OUT). On a node, with the notation of `problem`,
each number chosen adds to sigma (logit_o - logit_m) at most one number, its *harm*, so that failing sets are counted by sums (Theorem V).

1. `extreme_sums` finds the least and the greatest Z_h of the sets of the node that contain v with rank r: a walk over numbers in ascending
   order whose state is how many were chosen.
2. What v adds is n / Z_h, n = sum of a_h (X - d_h) over its places, d_h being a change of the centre. With n <= n' this is at most n' over
   the least Z_h if n' >= 0, and over the greatest if not. Numbers that are IN have places in the list on every set of the node: their
   products are added up with those of q, m and the separator before they are divided.
3. Harms become integers, rounded up, after multiplication by a power of two. If sigma (logit_o - logit_m) >= 0, the integers of the set
   add up to at least 0. `counts_by_sum` counts sets by their sums, exactly.

Rounding: weights are not negative and at most 1, fewer than 2^10 of them are added, so sums are off by a factor within 1 +- 2^-42; SLACK
covers that. Every sum of products gets STEP times the sum of magnitudes, and TINY for what underflows. What is not a number, or too large,
makes all sets of the node failing. All kernels are in this file, as numba's cache looks only at the file of a function.
"""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np
from numba import njit

FREE, IN, OUT = 0, 1, 2
"""What is known of a number on a node."""
SLACK = 1.0 + 2.0**-40
STEP = 2.0**-46
TINY = 2.0**-1000
LARGEST = 2.0**40
"""Integers beyond this are not added."""

kernel = njit(cache=True, nogil=True, error_model="numpy")
"""Compiled at the first call; a division by zero is infinite or not a number."""


class Side(NamedTuple):
    """The numbers less than the query, or greater than the label; a set contains `choose` of them."""

    first: int
    """The least of the numbers."""
    choose: int
    low: Any
    """(head, number): at most the weight of its place in the list, at any position"""
    high: Any
    upper: Any
    """(output, head, number): at least a_h X, at any position of the list"""
    place_low: Any
    """(head, rank, number): the same of the second place; one rank of zeros if there is none"""
    place_high: Any
    place_upper: Any
    """(output, head, rank, number)"""


class Problem(NamedTuple):
    """A pair of query and label."""

    below: Side
    above: Side
    fixed_low: Any
    """(head,): at most the weights of query, label and separator"""
    fixed_high: Any
    fixed_upper: Any
    """(output, head): at least their products"""
    constant: Any
    """(output,)"""


class Effort(NamedTuple):
    """How finely sets are counted. Any numbers are sound."""

    bins: int
    """Steps of a grid, about."""
    portion: float
    """A node is not split if at most this portion of it may fail ..."""
    few: int
    """... or at most so many sets."""
    nodes: int
    """How many nodes a pair may have."""


@kernel
@no_type_check
def extreme_sums(weight: Any, status: Any, choose: int, sign: float) -> Any:
    """(rank + 1, number): sums of weight[rank, number], least if `sign` is 1 and greatest if it is -1, over the choices of `choose` numbers
    that the node allows and that contain the number with the rank; in the last row over all. NaN where there is no such choice.

    Cost: O(numbers choose).
    """
    ranks, n = weight.shape
    forward, backward = np.full((n + 1, choose + 1), np.inf), np.full((n + 1, choose + 1), np.inf)
    forward[0, 0] = backward[n, choose] = 0.0
    for v in range(n):
        for c in range(choose + 1):
            if status[v] != IN:
                forward[v + 1, c] = forward[v, c]
            if status[v] != OUT and c > 0:
                through = forward[v, c - 1] + sign * weight[min(c, ranks) - 1, v]
                if through < forward[v + 1, c]:  # not where it is not a number
                    forward[v + 1, c] = through
    found = np.full((ranks + 1, n), np.nan)
    for v in range(n - 1, -1, -1):
        for c in range(choose + 1):
            if status[v] != IN:
                backward[v, c] = backward[v + 1, c]
            if status[v] != OUT and c < choose:
                r = min(c, ranks - 1)
                through = sign * weight[r, v] + backward[v + 1, c + 1]
                if through < backward[v, c]:
                    backward[v, c] = through
                through += forward[v, c]
                if through < np.inf and not sign * found[r, v] <= through:
                    found[r, v] = sign * through
    found[ranks] = sign * forward[n, choose] if forward[n, choose] < np.inf else np.nan
    return found


@kernel
@no_type_check
def totals(problem: Any, status: Any, greatest: bool) -> Any:
    """For each side and head (rank + 1, number): bounds of Z_h of the sets of the node that contain a number with a rank; in the last row
    of all sets of the node.

    Guarantee: at most Z_h, or at least Z_h for `greatest`; NaN where there is no such set.
    """
    sign = -1.0 if greatest else 1.0
    factor = SLACK if greatest else 1.0 / SLACK
    heads = len(problem.fixed_low)
    found = []
    for side in (problem.below, problem.above):
        own, place = (side.high, side.place_high) if greatest else (side.low, side.place_low)
        ranks, n = place.shape[1:]
        sums = np.empty((heads, ranks + 1, n + 1))  # one more column, as a side may have no numbers
        for h in range(heads):
            table = np.zeros((ranks, n + 1))
            table[:, :n] = own[h] + place[h]
            allowed = np.full(n + 1, OUT)
            allowed[:n] = status[side.first : side.first + n]
            sums[h] = extreme_sums(table, allowed, side.choose, sign)
        found.append(sums)
    below, above = found[0][:, -1, 0].copy(), found[1][:, -1, 0].copy()
    fixed = problem.fixed_high if greatest else problem.fixed_low
    for h in range(heads):
        found[0][h] = (found[0][h] + above[h] + fixed[h]) * factor
        found[1][h] = (found[1][h] + below[h] + fixed[h]) * factor
    return found[0], found[1]


@kernel
@no_type_check
def quotient(n: float, least: float, greatest: float) -> float:
    """At least n' / Z for all n' <= n and least <= Z <= greatest."""
    found = n / least if n >= 0.0 else n / greatest
    return found + STEP * abs(found)


@kernel
@no_type_check
def shifted(d: float, low: float, high: float) -> float:
    """At least -d a for all a between low and high."""
    return max(-d * low, -d * high)


@kernel
@no_type_check
def harms(side: Any, status: Any, output: int, shift: Any, bounds: Any) -> Any:
    """(rank, number): at least what a number of a side with a rank adds to the difference of logits on the sets of the node, besides the
    place in the list of numbers that are IN; NaN where no set contains it. `bounds`: of Z_h, least and greatest.

    Cost: O(heads ranks numbers).
    """
    least, greatest = bounds
    heads, ranks, n = side.place_low.shape
    found = np.full((ranks, n), np.nan)
    for r in range(ranks):
        for v in range(n):
            state = status[side.first + v]
            if np.isnan(least[0, r, v]) or state == OUT:
                continue
            total = TINY
            for h in range(heads):
                n_up = side.place_upper[output, h, r, v]
                low, high, size = side.place_low[h, r, v], side.place_high[h, r, v], abs(n_up)
                if state == FREE:
                    own = side.upper[output, h, v]
                    n_up, low, high, size = n_up + own, low + side.low[h, v], high + side.high[h, v], size + abs(own)
                n_up += shifted(shift[h], low, high) + STEP * (size + abs(shift[h]) * high)
                total += quotient(n_up, least[h, r, v], greatest[h, r, v])
            total += STEP * abs(total)
            found[r, v] = np.inf if np.isnan(total) else total
    return found


@kernel
@no_type_check
def fixed_part(problem: Any, status: Any, output: int, shift: Any, bounds: Any) -> float:
    """At least the rest of the difference: the constant, the new centre, and all places that every set of the node has.

    The sum of both heads' quotients cancels; STEP times all magnitudes is added.
    """
    least, greatest = bounds
    total = problem.constant[output]
    sizes = abs(total)
    for h in range(len(shift)):
        low, high, n_up = problem.fixed_low[h], problem.fixed_high[h], problem.fixed_upper[output, h]
        size = abs(n_up)
        for side in (problem.below, problem.above):
            for v in range(side.low.shape[1]):
                if status[side.first + v] == IN:
                    own = side.upper[output, h, v]
                    n_up, low, high, size = n_up + own, low + side.low[h, v], high + side.high[h, v], size + abs(own)
        n_up += shifted(shift[h], low, high) + STEP * (size + abs(shift[h]) * high)
        part = quotient(n_up, least[h], greatest[h])
        total += part + shift[h]
        sizes += abs(part) + abs(shift[h])
    return total + STEP * sizes + TINY


@kernel
@no_type_check
def typical_shift(problem: Any, status: Any, output: int) -> Any:
    """(head,): about what heads read on an average set of the node, relative to the centre. A hint."""
    heads = len(problem.fixed_low)
    found = np.empty(heads)
    for h in range(heads):
        n_up, a = problem.fixed_upper[output, h], problem.fixed_high[h]
        for side in (problem.below, problem.above):
            n, ranks = side.low.shape[1], side.place_low.shape[1]
            chosen = chance(side, status)
            before = 0.0
            for v in range(n):
                p = chosen if status[side.first + v] == FREE else (1.0 if status[side.first + v] == IN else 0.0)
                r = min(int(before + 0.5), ranks - 1)
                n_up += p * (side.upper[output, h, v] + side.place_upper[output, h, r, v])
                a += p * (side.high[h, v] + side.place_high[h, r, v])
                before += p
        found[h] = n_up / a if a > 0.0 else 0.0
        if not abs(found[h]) < LARGEST:
            found[h] = 0.0
    return found


@kernel
@no_type_check
def chance(side: Any, status: Any) -> float:
    """The portion of the free numbers of a side that a set of the node contains."""
    free, left = 0, side.choose
    for v in range(side.low.shape[1]):
        free += status[side.first + v] == FREE
        left -= status[side.first + v] == IN
    return left / free if free > 0 else 0.0


@kernel
@no_type_check
def upward(x: float, exponent: int) -> int:
    """At least x 2^exponent, |exponent| <= 60, and its ceiling unless that underflows; LARGEST if it is larger or not a number."""
    y = x * 2.0**exponent
    if not y < LARGEST:
        return int(LARGEST)
    if y == 0.0 and x > 0.0:
        return 1
    return int(np.ceil(max(y, -LARGEST)))


@kernel
@no_type_check
def on_grid(harm: Any, exponent: int) -> Any:
    """(rank, number): harms as integers, rounded up; LARGEST + 1 where there is no set."""
    found = np.empty(harm.shape, np.int64)
    for r in range(harm.shape[0]):
        for v in range(harm.shape[1]):
            found[r, v] = int(LARGEST) + 1 if np.isnan(harm[r, v]) else upward(harm[r, v], exponent)
    return found


@kernel
@no_type_check
def counts_by_sum(grid: Any, allowed: Any, choose: int, top: int) -> Any:
    """(sum,): how many choices of `choose` numbers have the sum of grid[rank, number] = 0 .. top - 1, and in the last entry top or more.

    Assumes: entries are not negative; LARGEST + 1 marks those that no choice has.
    Guarantee: exact, as there are fewer than 2^63 choices.
    Cost: O(numbers choose top).
    """
    ranks, n = grid.shape
    counts = np.zeros((choose + 1, top + 1), np.int64)
    counts[0, 0] = 1
    for v in range(n):
        if allowed[v] == OUT:
            continue
        for c in range(choose, -1, -1):
            if allowed[v] == IN:
                counts[c] = 0
            if c == 0 or grid[min(c, ranks) - 1, v] > LARGEST:
                continue
            by = min(grid[min(c, ranks) - 1, v], top)
            for s in range(top - by):
                counts[c, s + by] += counts[c - 1, s]
            rest = 0
            for s in range(top - by, top + 1):
                rest += counts[c - 1, s]
            counts[c, top] += rest
    return counts[choose]


@kernel
@no_type_check
def least_of_rank(grid: Any, choose: int) -> Any:
    """(rank,): the least integer that a choice can have there, and what that adds up to."""
    ranks, n = grid.shape
    least = np.zeros(ranks, np.int64)
    total = 0
    for c in range(choose):
        r = min(c, ranks - 1)
        least[r] = int(LARGEST)
        for v in range(n):
            least[r] = min(least[r], grid[r, v])
        total += least[r]
    return least, total


@kernel
@no_type_check
def count_failing(tables: Any, fixed: float, problem: Any, status: Any, bins: int) -> int:
    """How many sets of the node have harms (of each side) that add up with `fixed` to 0 or more; -1: all of them may.

    Guarantee: at least the number of sets whose exact sum is not negative. With H = ceil(2^e h) for every harm and for `fixed`, a sum that
    is not negative has integers that add up to 0 or more; subtracting from each the least of its rank, `top` or more.
    Cost: O((numbers below + numbers above) choose bins).
    """
    below, above = problem.below, problem.above
    lowest = fixed
    for side, table in ((below, tables[0]), (above, tables[1])):
        for c in range(side.choose):
            lowest += np.nanmin(table[min(c, len(table) - 1)])
    if not lowest < 0.0:
        return -1
    exponent = int(min(max(np.floor(np.log2(bins / -lowest)), -60.0), 60.0))
    first, second = on_grid(tables[0], exponent), on_grid(tables[1], exponent)
    least_first, sum_first = least_of_rank(first, below.choose)
    least_second, sum_second = least_of_rank(second, above.choose)
    top = -(sum_first + sum_second + upward(fixed, exponent))
    if top <= 0 or top > 4 * bins:
        return -1
    for grid, least in ((first, least_first), (second, least_second)):
        for r in range(len(grid)):
            for v in range(grid.shape[1]):
                if grid[r, v] <= LARGEST:
                    grid[r, v] -= least[r]
    counts = counts_by_sum(first, status[below.first : below.first + first.shape[1]], below.choose, top)
    others = counts_by_sum(second, status[above.first : above.first + second.shape[1]], above.choose, top)
    reaching, failing = 0, 0
    for s in range(top + 1):  # sums of the first side from 0, of the second side from top down
        reaching += others[top - s]
        failing += counts[s] * reaching
    return failing


@kernel
@no_type_check
def harmless(tables: Any, fixed: float, problem: Any, status: Any) -> bool:
    """Whether no set of the node has harms that add up with `fixed` to 0 or more: by the greatest sums, with room for their rounding."""
    total, sizes = fixed, abs(fixed)
    for side, table in ((problem.below, tables[0]), (problem.above, tables[1])):
        if side.choose == 0:
            continue
        ranks, n = table.shape
        total += extreme_sums(table, status[side.first : side.first + n], side.choose, -1.0)[ranks, 0]
        sizes += side.choose * np.nanmax(np.abs(table))
    return total + STEP * sizes < 0.0


@kernel
@no_type_check
def node_sets(problem: Any, status: Any, binomial: Any) -> int:
    """How many sets a node has."""
    found = 1
    for side in (problem.below, problem.above):
        free, left = 0, side.choose
        for v in range(side.low.shape[1]):
            free += status[side.first + v] == FREE
            left -= status[side.first + v] == IN
        found *= binomial[free, left] if 0 <= left <= free else 0
    return found


@kernel
@no_type_check
def failing_sets(problem: Any, status: Any, relevant: Any, bins: int, patience: int) -> int:
    """How many sets of a node may fail: the sum over outputs that are `relevant`; -1: all of them.

    Guarantee: at least the number of sets of the node for which some order of the list is answered wrong, if outputs that are not relevant
    never win there; or more than `patience`, and then counting was stopped. Outputs that turn out harmless are no longer relevant.
    """
    low, high = totals(problem, status, False), totals(problem, status, True)
    all_low, all_high = low[0][:, -1, 0], high[0][:, -1, 0]
    found = 0
    for o in range(len(problem.constant)):
        if not relevant[o]:
            continue
        shift = typical_shift(problem, status, o)
        fixed = fixed_part(problem, status, o, shift, (all_low, all_high))
        tables = (
            harms(problem.below, status, o, shift, (low[0], high[0])),
            harms(problem.above, status, o, shift, (low[1], high[1])),
        )
        if harmless(tables, fixed, problem, status):
            relevant[o] = False
            continue
        count = count_failing(tables, fixed, problem, status, bins)
        if count < 0:
            return -1
        found += count
        if found > patience:
            return found
    return found


@kernel
@no_type_check
def number_to_split(problem: Any, status: Any) -> int:
    """The free number that attracts most attention, with regard to how often sets contain it; -1 if there is nothing to split. A hint."""
    best, found = 0.0, -1
    for side in (problem.below, problem.above):
        p = chance(side, status)
        if not 0.0 < p < 1.0:
            continue
        for v in range(side.low.shape[1]):
            if status[side.first + v] != FREE:
                continue
            score = 0.0
            for h in range(len(problem.fixed_low)):
                a = side.high[h, v] + side.place_high[h, :, v].max()
                score += a / (a + problem.fixed_high[h])
            score *= min(p, 1.0 - p) ** 0.5
            if score > best or found < 0:
                best, found = score, side.first + v
    return found


@kernel
@no_type_check
def grown(problem: Any, n_values: int, binomial: Any, effort: Any) -> tuple[int, int]:
    """How many sets of a pair may fail, and how many nodes were looked at.

    The two halves of a node, with a number and without it, are disjoint and contain all its sets. Which number is a matter of taste, and so
    is when to stop: a node that is not split is counted with what may fail of it.
    """
    waiting, depth, nodes, failing = np.zeros((n_values + 2, n_values), np.int8), 1, 0, 0
    relevant = np.ones((n_values + 2, len(problem.constant)), np.bool_)
    while depth > 0:
        depth -= 1
        nodes += 1
        status, outputs = waiting[depth].copy(), relevant[depth].copy()
        sets = node_sets(problem, status, binomial)
        if sets == 0:
            continue
        number = number_to_split(problem, status) if nodes < effort.nodes and sets > effort.few else -1
        enough = max(int(effort.portion * sets), effort.few)
        count = failing_sets(problem, status, outputs, effort.bins, enough if number >= 0 else sets)
        count = sets if count < 0 else min(count, sets)
        if count <= enough or number < 0:
            failing += count
            continue
        for known in (OUT, IN):
            waiting[depth], relevant[depth] = status, outputs
            waiting[depth, number] = known
            depth += 1
    return failing, nodes
