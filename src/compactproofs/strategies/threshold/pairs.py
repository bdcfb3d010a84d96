"""Compiled parts of the proofs that look at one query and one label at a time.

Terms. For query q, label m, output o, position i and token t

    G_o(i, t) = A (B_o - B_m),   A = exp(EQKE[q, t] + EQKP[q, i] - shift_q),   B_o = EVOU[t, o] + PVOU[i, o] + EU[q, o],

and the network prefers m to o on a sequence exactly if the sum over positions of G_o is negative. `fill_terms` computes G in float64 from
an `Evaluation`. With its `tolerance` = 8 T, its `floor` and its computed attention A~,

    |computed G_o(i, t) - G_o(i, t)| <= 3 T A~ + floor / 4.                                                       (*)

Proof, in the notation of `counting.evaluation` (u = 2^-53; b bounds |B|; D >= radii + 4 u (magnitudes) bounds the error of one
computed B; A~ = A (1 + e), |e| <= t <= 0.12). The difference d = B_o - B_m is computed as dV + (dP + dE) from three rounded differences:
its error is at most twice the radii plus u (4 |V| + 6 |P| + 6 |E|) (1 + 4 u), hence at most 2 D. |d| <= 2 b and
|A~ - A| <= t A <= 1.14 t A~, so the product is off by at most A~ (2 D + 1.14 t 2 b + u (2 b + 2 D)) <= A~ (2.28 t b + 2.1 D + 2 u b)
<= 3 T A~, as T = (1.1 t + 2 u + 1.2 gamma_k) b + D. Where attention itself underflows, or its exponent is below
-800, A is off by at most 2^-1074, and the product underflows by at most as much: together (2 b + 1) 2^-1074 < floor / 4. QED.

So G + (tolerance A~ + floor), computed in floating point, is an upper bound, with at least 4 T A~ >= (8 u + 4.8 gamma_k) b A~ to spare:
room for the rounding of the margin, for one difference of two such bounds, and for adding up k of them. Likewise with minus for lower
bounds. If float64 knows nothing (`tolerance` infinite), nothing is claimed; a bound that is NaN becomes infinite.

Multiplying by a weight w > 0 keeps relative errors, but not absolute ones: the product may underflow, and the margin with it. The rounded
product is off by at most u |w x| + 2^-1075, so `worst_output` adds UNDERFLOW = 2^-1000 afterwards. Weights are kept within 1e-100 .. 1e100,
so that products do not overflow to minus infinity. In `difference` the margin is multiplied by 1 + mu >= 1: `floor`, which is at least
2^-999, covers the underflow of mu G as it is. Additions need nothing: a sum that is subnormal is exact.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.counting.grid import class_automaton, count_on_grid, dominant_tokens, natural_unit

UPPER, LOWER = 0, 1
"""What the entries of a `result` mean: bounds on the number of failures."""

ANY = (1 << 62) - 1
"""More than any count in its units; the sum of two such still fits."""

UNDERFLOW = 2.0**-1000
"""Added to a bound after multiplying by a weight: more than a thousand such products can lose by underflow."""

MULTIPLIERS = (0.3, 0.6, 0.8, 0.9)
PARENTS = 3
RANKING_STEPS = 8


@kernel
@no_type_check
def known(x: float) -> float:
    """The number, or infinity if it is none: what is not known could be anything."""
    return x if x == x else np.inf


@kernel
@no_type_check
def fill_terms(attention: Any, EVOU: Any, PVOU: Any, EU: Any, tokens: Any, label: int, query: int, G: Any, A: Any) -> None:
    """G[o, i, j] and A[i, j] for tokens[j], as in (*)."""
    n_out, k, n = G.shape
    for i in range(k):
        for j in range(n):
            A[i, j] = attention[query, i, tokens[j]]
    d = np.empty(n)
    for o in range(n_out):
        for j in range(n):
            d[j] = EVOU[tokens[j], o] - EVOU[tokens[j], label]
        for i in range(k):
            rest = (PVOU[i, o] - PVOU[i, label]) + (EU[query, o] - EU[query, label])
            row = G[o, i]
            a = A[i]
            for j in range(n):
                row[j] = a[j] * (d[j] + rest)


@kernel
@no_type_check
def largest_sum_upper(G: Any, A: Any, q: int, tolerance: float, floor: float, following: Any, accepting: Any, start: int) -> float:
    """Upper-bound the sum of one output's terms over all accepted sequences that end in token number q; -inf if there are none."""
    k, n = G.shape
    n_states = following.shape[0]
    best = np.full(n_states, -np.inf)
    new = np.empty(n_states)
    best[start] = 0.0
    for i in range(k):
        new[:] = -np.inf
        for s in range(n_states):
            if best[s] == -np.inf:
                continue
            for j in range(n) if i < k - 1 else range(q, q + 1):
                z = following[s, j]
                if z >= 0:
                    x = best[s] + (G[i, j] + (tolerance * A[i, j] + floor))
                    if not x <= new[z]:
                        new[z] = known(x)
        best, new = new, best
    result = -np.inf
    for s in range(n_states):
        if accepting[s]:
            result = max(result, best[s])
    return result


@kernel
@no_type_check
def relevant_outputs(
    G: Any, A: Any, candidates: Any, q: int, tolerance: float, floor: float, following: Any, accepting: Any, start: int
) -> Any:
    """Candidates that may reach the label on some accepted sequence ending in token number q: against the others it certainly wins."""
    found = np.empty(candidates.shape[0], np.int64)
    n = 0
    for o in candidates:
        if not largest_sum_upper(G[o], A, q, tolerance, floor, following, accepting, start) < 0.0:
            found[n] = o
            n += 1
    return found[:n]


@kernel
@no_type_check
def bounded(G: Any, A: Any, tolerance: float, floor: float, up: bool) -> Any:
    """Upper or lower bounds of one output's terms."""
    k, n = G.shape
    h = np.empty((k, n))
    for i in range(k):
        for j in range(n):
            margin = tolerance * A[i, j] + floor
            h[i, j] = G[i, j] + margin if up else G[i, j] - margin
    return h


@kernel
@no_type_check
def worst_output(G: Any, A: Any, outputs: Any, weights: Any, tolerance: float, floor: float) -> Any:
    """Upper bounds of max_o weights[o] G_o over the given outputs. A weight outside 1e-100 .. 1e100 makes everything infinite."""
    k, n = A.shape
    h = np.full((k, n), -np.inf)
    for o in outputs:
        w = weights[o]
        if not 1e-100 <= w <= 1e100:
            h[:] = np.inf
            return h
        for i in range(k):
            for j in range(n):
                x = w * (G[o, i, j] + (tolerance * A[i, j] + floor)) + UNDERFLOW
                if not x <= h[i, j]:
                    h[i, j] = known(x)
    return h


@kernel
@no_type_check
def balanced(units: Any, outputs: Any) -> Any:
    """Hint: weights that make the units of all outputs equal; the largest weight is 1."""
    smallest = units[outputs].min()
    weights = np.ones(units.shape[0])
    for o in outputs:
        weights[o] = max(smallest / units[o], 1e-100)
    return weights


@kernel
@no_type_check
def difference(G: Any, A: Any, one: int, other: int, mu: float, tolerance: float, floor: float) -> Any:
    """Upper bounds of G_one - mu G_other, mu >= 0: where `one` spoils a sequence and `other` does not, these add up to at least zero."""
    k, n = A.shape
    h = np.empty((k, n))
    mu = min(max(mu, 0.0), 1e100)
    for i in range(k):
        for j in range(n):
            h[i, j] = (G[one, i, j] - mu * G[other, i, j]) + (1.0 + mu) * (tolerance * A[i, j] + floor)
    return h


@kernel
@no_type_check
def failures(
    G: Any,
    A: Any,
    candidates: Any,
    q: int,
    usual: int,
    token: int,
    tolerance: float,
    floor: float,
    following: Any,
    accepting: Any,
    start: int,
    steps: int,
    joint: bool,
    apart: bool,
    lower: bool,
    result: Any,
    work: Any,
) -> None:
    """Bound the number of accepted sequences ending in token number q on which some candidate is not below the label.

    Write F_o for the sequences that output o spoils. `joint` bounds their union by the sequences on which the worst output of each token
    would win. `apart` bounds it by |F_1| + sum_j min(|F_j|, |F_j minus F_i|) over outputs j and an earlier i of each; on F_j minus F_i the
    sum of G_j - mu G_i is not negative, for every mu >= 0. `lower` counts the largest F_o from below.
    """
    n = A.shape[1]
    result[:] = 0
    outputs = relevant_outputs(G, A, candidates, q, tolerance, floor, following, accepting, start)
    m = outputs.shape[0]
    if m == 0:
        return
    last = np.zeros(n, np.bool_)
    last[q] = True
    units = np.ones(G.shape[0])
    for o in outputs:
        units[o] = natural_unit(G[o], last, usual, token)
    best = ANY
    if joint:
        h = worst_output(G, A, outputs, balanced(units, outputs), tolerance, floor)
        unit = natural_unit(h, last, usual, token)
        best = count_on_grid(h, last, unit, steps, token, following, accepting, start, True, work)
    result[UPPER] = best
    if best == 0 or not (apart or lower):
        return

    rough = np.zeros(m, np.int64)
    for x in range(m):
        h = bounded(G[outputs[x]], A, tolerance, floor, True)
        precision = steps if apart else min(steps, RANKING_STEPS)
        rough[x] = count_on_grid(h, last, units[outputs[x]], precision, token, following, accepting, start, True, work)
    order = np.argsort(-rough)
    if apart:
        total = 0
        for y in range(m):
            o = outputs[order[y]]
            term = rough[order[y]]
            for x in range(min(y, PARENTS)):
                p = outputs[order[x]]
                for mu in MULTIPLIERS:
                    if term <= total >> 10:
                        break
                    h = difference(G, A, o, p, mu * units[o] / units[p], tolerance, floor)
                    unit = natural_unit(h, last, usual, token)
                    term = min(term, count_on_grid(h, last, unit, steps, token, following, accepting, start, True, work))
            total = min(total + term, ANY)
            if total >= best:
                break
        result[UPPER] = min(best, total)
    if lower:
        for y in range(min(2, m)):
            o = outputs[order[y]]
            h = bounded(G[o], A, tolerance, floor, False)
            found = count_on_grid(h, last, units[o], steps, token, following, accepting, start, False, work)
            result[LOWER] = max(result[LOWER], found)


@kernel
@no_type_check
def failures_by_class(
    G: Any,
    A: Any,
    candidates: Any,
    q: int,
    usual: int,
    order: Any,
    tolerance: float,
    floor: float,
    following: Any,
    accepting: Any,
    start: int,
    steps: int,
    joint: bool,
    apart: bool,
    lower: bool,
    result: Any,
    work: Any,
) -> None:
    """`failures`, added up over the disjoint classes "order[c] is the first token of `order` that occurs", and none occurs."""
    part = np.zeros(2, np.int64)
    result[:] = 0
    for c in range(order.shape[0] + 1):
        product, accept = class_automaton(following, accepting, order, c)
        token = order[c] if c < order.shape[0] else usual
        failures(G, A, candidates, q, usual, token, tolerance, floor, product, accept, start, steps, joint, apart, lower, part, work)
        result[UPPER] = min(result[UPPER] + part[UPPER], ANY)
        result[LOWER] += part[LOWER]


@kernel
@no_type_check
def bound_queries(
    attention: Any,
    EVOU: Any,
    PVOU: Any,
    EU: Any,
    tokens: Any,
    queries: Any,
    label: int,
    usual: int,
    tolerance: float,
    floor: float,
    following: Any,
    accepting: Any,
    start: int,
    steps: int,
    classes: int,
    small: int,
    joint: bool,
    apart: bool,
    lower: bool,
    results: Any,
    work: Any,
) -> None:
    """Bound the failures for the given query tokens (numbered among `tokens`), in the rows of `results`.

    With `classes` > 0, a query with more than `small` failures is looked at again, by classes of the most attended tokens; of two bounds
    the better stands.
    """
    k = PVOU.shape[0]
    n = tokens.shape[0]
    G = np.empty((EVOU.shape[1], k, n))
    A = np.empty((k, n))
    wrong = np.array([o for o in range(EVOU.shape[1]) if o != label])
    if not tolerance < np.inf:  # float64 knows nothing about these weights
        results[:, UPPER] = ANY
        results[:, LOWER] = 0
        return
    weight = np.empty(n)
    again = np.zeros(2, np.int64)
    for x in range(queries.shape[0]):
        q = queries[x]
        result = results[x]
        fill_terms(attention, EVOU, PVOU, EU, tokens, label, tokens[q], G, A)
        candidates = relevant_outputs(G, A, wrong, q, tolerance, floor, following, accepting, start)
        failures(G, A, candidates, q, usual, usual, tolerance, floor, following, accepting, start, steps, joint, apart, lower, result, work)
        if classes > 0 and result[UPPER] - result[LOWER] > small:
            for j in range(n):
                weight[j] = A[: k - 1, j].sum()
            order = dominant_tokens(weight, usual, classes)
            failures_by_class(
                G, A, candidates, q, usual, order, tolerance, floor, following, accepting, start, steps, joint, apart, lower, again, work
            )
            result[UPPER] = min(result[UPPER], again[UPPER])
            result[LOWER] = max(result[LOWER], again[LOWER])
