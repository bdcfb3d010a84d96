"""The compiled search over one query and one label: it tries terms and classes, counts them, and writes down what it chose.

What it writes is a sequence of integers that `search.records` reads back into the ledger. The counts come from the very functions that
`verify` calls, so they are what the ledger proves.
"""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.bounds.pairs import apart_harms, harmful_outputs, joint_harms, pair_of, spoiler_harms, walk_operations
from compactproofs.counting.classes import in_class
from compactproofs.counting.count_up import mass_up
from compactproofs.counting.grid import Grid, count_harms, initial_sum, on_grid
from compactproofs.search.grids import DEEPEST, choose_grid, dominant_tokens, natural_unit
from compactproofs.search.listing import Counted, list_counted

ANY = (1 << 62) - 1
"""More than any count in its units; the sum of two such still fits."""

JOINT, APART = 0, 1
"""Kinds of terms in records."""

LEAVES = 2
"""Where leaves begin in a record below, without classes."""

MULTIPLIERS = (0.3, 0.6, 0.8, 0.9)
PARENTS = 3
RANKING_STEPS = 8
HEAVIEST = 1 << 30
"""The largest weight of an output."""

SPOILER_DEPTH = 64


class Tries(NamedTuple):
    """What to try."""

    steps: int
    classes: int
    small: int
    """No classes where the bounds are as near as this, in units of counts."""
    joint: bool
    apart: bool
    upper: bool
    most: int
    """List up to so many sequences one by one, instead of trying classes; 0: none."""


class Leaf(NamedTuple):
    """Some sequences of one query and label, and the token (besides the usual one) that they are about."""

    masses: Any
    automaton: Any
    usual: int
    token: int


@kernel
@no_type_check
def write_grid(record: Any, grid: Any) -> None:
    """mantissa, exponent, depth, offsets"""
    record.append(grid.mantissa)
    record.append(grid.exponent)
    record.append(grid.depth)
    for offset in grid.offsets:
        record.append(offset)


@kernel
@no_type_check
def write_joint(record: Any, outputs: Any, weights: Any, grid: Any, operations: int) -> None:
    """JOINT, number of outputs, outputs, weights, grid, operations of counting"""
    record.append(JOINT)
    record.append(outputs.shape[0])
    for o in outputs:
        record.append(o)
    for w in weights:
        record.append(w)
    write_grid(record, grid)
    record.append(operations)


@kernel
@no_type_check
def balanced(units: Any) -> Any:
    """Weights that make the units of all outputs about equal."""
    smallest = units.min()
    weights = np.ones(units.shape[0], np.int64)
    for x in range(units.shape[0]):
        weights[x] = max(1, int(HEAVIEST * (smallest / units[x])))
    return weights


@kernel
@no_type_check
def failures(pair: Any, candidates: Any, leaf: Any, tries: Any, below: Any, above: Any) -> Any:
    """Bound one leaf: (mass that may fail, mass that may be right), both from above. Terms go to the records.

    Write F_o for the sequences that output o spoils. `joint` bounds their union by the sequences on which the worst output of each token
    would win. `apart` bounds it by |F_1| + sum_j min(|F_j|, |F_j minus F_i|) over outputs j and an earlier i of each; on F_j minus F_i the
    sum of n1 G_j - n2 G_i is not negative. Right answers are bounded by those on which one output loses.
    """
    masses, automaton, usual, token = leaf
    everything = mass_up(masses, automaton)
    outputs = harmful_outputs(pair, candidates, masses, automaton)
    m = outputs.shape[0]
    walking = walk_operations(masses, automaton) * (candidates.shape[0] - m)
    if m == 0:
        below.append(0)
        below.append(walking)
        above.append(-1)
        return 0, everything
    units = np.empty(m)
    for x in range(m):
        units[x] = natural_unit(pair.G[outputs[x]], masses, usual, token)
    best = everything
    before = len(below)
    if tries.joint:
        weights = balanced(units)
        h = joint_harms(pair, outputs, weights)
        grid = choose_grid(h, masses, natural_unit(h, masses, usual, token), tries.steps, token, DEEPEST)
        best, work = count_harms(h, grid, masses, automaton, False)
        below.append(1)
        below.append(walking)
        write_joint(below, outputs, weights, grid, work)
    if best == 0 or not (tries.apart or tries.upper):
        above.append(-1)
        return best, everything

    rough = np.zeros(m, np.int64)
    works = np.zeros(m, np.int64)
    one = np.ones(1, np.int64)
    grids = [choose_grid(pair.A, masses, 1.0, 1, token, DEEPEST) for _ in range(0)]
    for x in range(m):
        h = joint_harms(pair, outputs[x : x + 1], one)
        precision = tries.steps if tries.apart else min(tries.steps, RANKING_STEPS)
        grid = choose_grid(h, masses, units[x], precision, token, DEEPEST)
        rough[x], works[x] = count_harms(h, grid, masses, automaton, False)
        grids.append(grid)
    order = np.argsort(-rough)
    if tries.apart:
        trial = [0 for _ in range(0)]
        total = 0
        used = 0
        for y in range(m):
            x = order[y]
            o = outputs[x]
            term = rough[x]
            parent, factor, less, grid, used_work = -1, 1, 0, grids[x], works[x]
            for v in range(min(y, PARENTS)):
                p = order[v]
                for mu in MULTIPLIERS:
                    if term <= total >> 10:
                        break
                    ratio = mu * units[x] / units[p]
                    n1 = HEAVIEST if ratio <= 1.0 else max(1, int(HEAVIEST / ratio))
                    n2 = int(min(ratio, 1.0) * HEAVIEST)
                    h = apart_harms(pair, o, outputs[p], n1, n2)
                    steps = choose_grid(h, masses, natural_unit(h, masses, usual, token), tries.steps, token, DEEPEST)
                    found, work = count_harms(h, steps, masses, automaton, False)
                    if found < term:
                        term, parent, factor, less, grid, used_work = found, outputs[p], n1, n2, steps, work
            total = min(total + term, everything)
            used += 1
            if parent < 0:
                write_joint(trial, outputs[x : x + 1], one, grid, used_work)
            else:
                trial.append(APART)
                trial.append(o)
                trial.append(parent)
                trial.append(factor)
                trial.append(less)
                write_grid(trial, grid)
                trial.append(used_work)
            if total >= best and tries.joint:
                break
        if total < best or not tries.joint:
            best = total
            while len(below) > before:
                below.pop()
            below.append(used)
            below.append(walking)
            for x in trial:
                below.append(x)
    right = everything
    if tries.upper:
        chosen = -1
        kept = grids[0]
        for y in range(min(2, m)):
            x = order[y]
            h = spoiler_harms(pair, outputs[x])
            grid = choose_grid(h, masses, units[x], tries.steps, token, SPOILER_DEPTH)
            found, work = count_harms(h, grid, masses, automaton, True)
            if found < right:
                right, chosen, kept = found, outputs[x], grid
        above.append(chosen)
        if chosen >= 0:
            write_grid(above, kept)
    else:
        above.append(-1)
    return best, right


@kernel
@no_type_check
def read_grid(record: Any, at: int, k: int) -> Any:
    """What `write_grid` wrote there."""
    offsets = np.empty(k, np.int64)
    for i in range(k):
        offsets[i] = record[at + 3 + i]
    return Grid(record[at], record[at + 1], record[at + 2], offsets)


@kernel
@no_type_check
def counted(h: Any, grid: Any, strict: bool) -> Any:
    """The integers that `count_harms` adds up."""
    start = initial_sum(grid.offsets) - (1 if strict else 0)
    return Counted(on_grid(h, grid, start)[:, 0].copy(), start)


@kernel
@no_type_check
def look(evaluation: Any, subject: Any, queries: Any, tries: Any, totals: Any) -> Any:
    """Look at some queries (numbered among the tokens): bounds (failing, right) as in `failures`, one row for each; and four pairs of
    (numbers one after the other, how many belong to each query): the records below and above, and the sequences listed as right and as
    wrong.

    If the bounds are far apart (`totals`, about the mass of each pair, is failing plus right if they meet), classes of the most attended
    tokens are tried too; below and above, the better stands. A record is the order of classes (before it, below, the operations of the
    walks of all outputs) and then what `failures` writes for each class: below, the number of terms, the operations of further walks, and
    the terms; above, an output or -1, and its grid. With `tries.most`, sequences are listed instead; the mass of a listed sequence must
    be 1.
    """
    bounds = np.empty((queries.shape[0], 2), np.int64)
    sizes = np.zeros((4, queries.shape[0]), np.int64)
    all_below, all_above = [0 for _ in range(0)], [0 for _ in range(0)]
    all_right, all_wrong = [0 for _ in range(0)], [0 for _ in range(0)]
    for number in range(queries.shape[0]):
        q = queries[number]
        masses = last_token(subject.masses, q)
        pair = pair_of(evaluation, subject.tokens, subject.label, subject.tokens[q])
        wrong = np.array([o for o in range(pair.G.shape[0]) if o != subject.label])
        candidates = harmful_outputs(pair, wrong, masses, subject.automaton)
        order = np.empty(0, np.int64)
        failing = right = ANY
        best_below, best_above = [0 for _ in range(0)], [0 for _ in range(0)]
        for turn in range(2):
            if turn == 1:
                if tries.most > 0 or tries.classes == 0 or failing + right - totals[number] <= tries.small:
                    break
                order = dominant_tokens(pair.A[:-1].sum(axis=0), subject.usual, tries.classes)
            below, above = [walk_operations(masses, subject.automaton) * wrong.shape[0], order.shape[0]], [order.shape[0]]
            for t in order:
                below.append(t)
                above.append(t)
            more = some = 0
            for c in range(order.shape[0] + 1):
                token = order[c] if c < order.shape[0] else subject.usual
                leaf = Leaf(masses, in_class(subject.automaton, order, c), subject.usual, token)
                x, y = failures(pair, candidates, leaf, tries, below, above)
                more, some = min(more + x, ANY), min(some + y, ANY)
            if more < failing:
                failing, best_below = more, below
            if some < right:
                right, best_above = some, above
        if tries.most > 0 and best_below[LEAVES] == 1:
            k, m, at = masses.shape[0], best_below[LEAVES + 3], LEAVES + 4
            outputs, weights = np.array(best_below[at : at + m]), np.array(best_below[at + m : at + 2 * m])
            may_fail = counted(joint_harms(pair, outputs, weights), read_grid(best_below, at + 2 * m, k), False)
            may_be_right = Counted(np.zeros(masses.shape, np.int64), 0)  # without a spoiler, all may be right
            if best_above[1] >= 0:
                may_be_right = counted(spoiler_harms(pair, best_above[1]), read_grid(best_above, 2, k), True)
            leaf = Leaf(masses, subject.automaton, subject.usual, subject.usual)
            whole, surely_right, surely_wrong = list_counted(pair, leaf, outputs, may_fail, may_be_right, tries.most)
            if whole:
                failing -= len(surely_right) // k
                right -= len(surely_wrong) // k
                sizes[2, number], sizes[3, number] = len(surely_right), len(surely_wrong)
                all_right.extend(surely_right)
                all_wrong.extend(surely_wrong)
        bounds[number, 0] = failing
        bounds[number, 1] = right
        sizes[0, number], sizes[1, number] = len(best_below), len(best_above)
        all_below.extend(best_below)
        all_above.extend(best_above)
    return bounds, sizes, np.array(all_below), np.array(all_above), np.array(all_right), np.array(all_wrong)


@kernel
@no_type_check
def last_token(masses: Any, q: int) -> Any:
    """The masses, with token q alone at the last position."""
    result = masses.copy()
    result[-1] = 0
    result[-1, q] = masses[-1, q]
    return result
