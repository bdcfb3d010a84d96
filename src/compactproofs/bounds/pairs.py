"""One query and one label, compiled: the terms of every output, and harms made of them. Stands in for the array code of `bounds.terms`.

Terms. For query q, label m, output o, position i and token t

    G_o(i, t) = A (B_o - B_m + tau),   A = exp(EQKE[q, t] + EQKP[q, i] - shift_q),   B_o = EVOU[t, o] + PVOU[i, o] + EU[q, o],

and the network prefers m to o by more than tau on a sequence exactly if the sum over positions of G_o is negative (Theorem 1; tau is 0
unless the question says otherwise). `pair_of` computes G in float64 from an `Evaluation`. With its `tolerance` = 8 T, its `floor` and its
computed attention A~,

    |computed G_o(i, t) - G_o(i, t)| <= 3 T A~ + floor / 4.                                                       (*)

Proof, in the notation of `form.evaluation` (u = 2^-53; b bounds |B| + |tau|; D >= radii + 4 u (magnitudes) bounds the error of one
computed B; A~ = A (1 + e), |e| <= t <= 0.12). The difference d = B_o - B_m + tau is computed as dV + (dP + (dE + tau)) from three rounded
differences: its error is at most twice the radii plus u (4 |V| + 6 |P| + 8 |E| + 3 |tau|) (1 + 4 u), hence at most 2 D. |d| <= 2 b and
|A~ - A| <= t A <= 1.14 t A~, so the product is off by at most A~ (2 D + 1.14 t 2 b + u (2 b + 2 D)) <= A~ (2.28 t b + 2.1 D + 2 u b)
<= 3 T A~, as T = (1.1 t + 2 u + 1.2 gamma_k) b + D. Where attention itself underflows, or its exponent is below
-800, A is off by at most 2^-1074, and the product underflows by at most as much: together (2 b + 1) 2^-1074 < floor / 4. QED.

So G + (tolerance A~ + floor), computed in floating point, is an upper bound, with at least 4 T A~ >= (8 u + 4.8 gamma_k) b A~ to spare:
room for the rounding of the margin, for a whole multiple or the sum or difference of two whole multiples of such bounds, and for adding up
k of them. Factors are integers up to 2^40, weights from 1: nothing underflows when multiplied by them. If float64 knows
nothing (`tolerance` infinite), nothing is claimed; a bound that is NaN becomes infinite.

The spare also covers the difference between shift_q, a rounded number, and the exact largest score, which the checker subtracts: both are
within the error d of an exponent, so A differs by a factor between 1 - 1.1 d and 1 + 1.1 d, and G by at most 2.2 d b A~ <= 2 T A~. The
checker's own enclosures are far tighter than what is left. So a harm of this module is at least what the checker computes for it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.counting.count_up import how_many, numbers, token_kinds

LARGEST_FACTOR = 1 << 40
"""Weights and factors of terms are integers up to this."""


class Pair(NamedTuple):
    """The terms of one query and one label, as in (*)."""

    G: Any
    """(output, position, token)"""
    A: Any
    """(position, token)"""
    label: int
    tolerance: float
    floor: float


@kernel
@no_type_check
def known(x: float) -> float:
    """The number, or infinity if it is none: what is not known could be anything."""
    return x if x == x else np.inf


@kernel
@no_type_check
def pair_of(evaluation: Any, tokens: Any, label: int, query: int) -> Any:
    """The terms for a query token and a label, tokens numbered as given."""
    return pair_for(evaluation, tokens, label, query, numbers(0, evaluation.EVOU.shape[2]))


@kernel
@no_type_check
def pair_for(evaluation: Any, tokens: Any, label: int, query: int, outputs: Any) -> Any:
    """The same with the terms of some outputs alone. Those of others are arbitrary numbers, and must not be asked for."""
    k = evaluation.PVOU.shape[0]
    n = tokens.shape[0]
    sheets, _, n_out = evaluation.EVOU.shape
    G = np.empty((n_out, k, n))
    A = np.empty((k, n))
    for i in range(k):
        for j in range(n):
            A[i, j] = evaluation.attention[query, i, tokens[j]]
    tau = evaluation.margin[query, label]
    EVOU, PVOU, EU = evaluation.EVOU, evaluation.PVOU, evaluation.EU
    d = np.empty(n)
    for o in outputs:
        for i in range(k):
            if i < sheets:
                for j in range(n):
                    d[j] = EVOU[i, tokens[j], o] - EVOU[i, tokens[j], label]
            rest = (PVOU[i, o] - PVOU[i, label]) + ((EU[query, o] - EU[query, label]) + tau)
            row = G[o, i]
            a = A[i]
            for j in range(n):
                row[j] = a[j] * (d[j] + rest)
    return Pair(G, A, label, evaluation.tolerance, evaluation.floor)


@kernel
@no_type_check
def rivals(evaluation: Any, subject: Any, masses: Any, automaton: Any, query: int) -> Any:
    """Outputs that may reach the label on some accepted sequence with a mass: those that `walk_upper` does not rule out, all at once.

    Every sum is the same as there, number by number: adding one number rounds monotonically, so the largest of some sums is the sum with
    the largest. What takes the time are loops over outputs, which lie side by side.

    Guarantee: the label beats every output that is not here, on every accepted sequence.
    Cost: a product, four additions and two comparisons per output, position and token.
    """
    tokens, label = subject.tokens, subject.label
    following, accepting, first = automaton
    n_states = following.shape[0]
    k, n = masses.shape
    sheets, _, n_out = evaluation.EVOU.shape
    EVOU, PVOU, EU, attention = evaluation.EVOU, evaluation.PVOU, evaluation.EU, evaluation.attention
    tau, tolerance, floor = evaluation.margin[query, label], evaluation.tolerance, evaluation.floor
    kinds = token_kinds(automaton)
    n_kinds = how_many(kinds)
    best, new = np.empty((n_states, n_out)), np.empty((n_states, n_out))
    best[first] = 0.0
    reached = np.zeros(n_states, np.bool_)
    reached[first] = True
    largest, rest = np.empty((n_kinds, n_out)), np.empty(n_out)
    for i in range(k):
        for o in range(n_out):
            rest[o] = (PVOU[i, o] - PVOU[i, label]) + ((EU[query, o] - EU[query, label]) + tau)
        occurs, example = np.zeros(n_kinds, np.bool_), np.zeros(n_kinds, np.int64)
        for j in range(n):
            if masses[i, j] <= 0:
                continue
            values = EVOU[min(i, sheets - 1), tokens[j]]
            own, a = values[label], attention[query, i, tokens[j]]
            spare = tolerance * a + floor
            row = largest[kinds[j]]
            if not occurs[kinds[j]]:
                occurs[kinds[j]], example[kinds[j]] = True, j
                row[:] = -np.inf
            for o in range(n_out):
                y = a * ((values[o] - own) + rest[o]) + spare
                row[o] = row[o] if y <= row[o] else (y if y > row[o] else np.inf)
        after = np.zeros(n_states, np.bool_)
        for c in range(n_kinds):
            if not occurs[c]:
                continue
            row = largest[c]
            for s in range(n_states):
                z = following[s, example[c]]
                if z < 0 or not reached[s]:
                    continue
                before, sums = best[s], new[z]
                if not after[z]:
                    after[z] = True
                    sums[:] = -np.inf
                for o in range(n_out):
                    x = before[o] + row[o]
                    sums[o] = sums[o] if x <= sums[o] else (x if x > sums[o] else np.inf)
        best, new = new, best
        reached = after
    found = np.empty(n_out, np.int64)
    m = 0
    for o in range(n_out):
        top = -np.inf
        for s in range(n_states):
            if accepting[s] and reached[s]:
                top = max(top, best[s, o])
        if o != label and not top < 0.0:
            found[m] = o
            m += 1
    return found[:m]


@kernel
@no_type_check
def walk_upper(pair: Any, o: int, masses: Any, automaton: Any) -> float:
    """`walk`: upper-bound the sum of one output's terms over all accepted sequences that have mass; -inf if there are none.

    Guarantee: at least the largest sum of G_o.
    Cost: one addition and one comparison per position, state and token.
    """
    following, accepting, first = automaton
    G, A, tolerance, floor = pair.G[o], pair.A, pair.tolerance, pair.floor
    k, n = A.shape
    n_states = following.shape[0]
    best = np.full(n_states, -np.inf)
    new = np.empty(n_states)
    best[first] = 0.0
    for i in range(k):
        new[:] = -np.inf
        for s in range(n_states):
            if best[s] == -np.inf:
                continue
            for j in range(n):
                z = following[s, j]
                if z >= 0 and masses[i, j] > 0:
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
def walk_operations(masses: Any, automaton: Any) -> int:
    """How many additions and comparisons a walk takes: one addition for each move, one comparison where two moves meet."""
    following, _, first = automaton
    k, n = masses.shape
    n_states = following.shape[0]
    reached = np.zeros(n_states, np.bool_)
    reached[first] = True
    operations = 0
    for i in range(k):
        after = np.zeros(n_states, np.bool_)
        for s in range(n_states):
            if reached[s]:
                for j in range(n):
                    z = following[s, j]
                    if z >= 0 and masses[i, j] > 0:
                        operations += 2 if after[z] else 1
                        after[z] = True
        reached = after
    return operations


@kernel
@no_type_check
def harmful_outputs(pair: Any, candidates: Any, masses: Any, automaton: Any) -> Any:
    """Candidates that may reach the label on some accepted sequence; against the others a walk shows that it wins (`each`)."""
    found = np.empty(candidates.shape[0], np.int64)
    n = 0
    for o in candidates:
        if not walk_upper(pair, o, masses, automaton) < 0.0:
            found[n] = o
            n += 1
    return found[:n]


@kernel
@no_type_check
def joint_harms(pair: Any, outputs: Any, weights: Any) -> Any:
    """`joint`: upper bounds of max_o weights[o] G_o over the given outputs, weights being integers from 1.

    Guarantee: where an output of them reaches the label, these add up to at least zero.
    Cost: a product, an addition and a comparison per output, position and token.
    """
    k, n = pair.A.shape
    tolerance, floor = pair.tolerance, pair.floor
    h = np.full((k, n), -np.inf)
    for x in range(outputs.shape[0]):
        G = pair.G[outputs[x]]
        w = float(weights[x])
        if not 1.0 <= w <= LARGEST_FACTOR:
            h[:] = np.inf
            return h
        for i in range(k):
            for j in range(n):
                y = w * (G[i, j] + (tolerance * pair.A[i, j] + floor))
                if not y <= h[i, j]:
                    h[i, j] = known(y)
    return h


@kernel
@no_type_check
def apart_harms(pair: Any, one: int, other: int, factor: int, less: int) -> Any:
    """`apart`: upper bounds of factor G_one - less G_other.

    Guarantee: where the table of `one` adds up to at least zero and that of `other` to less, these add up to at least zero.
    Cost: three operations per position and token.
    """
    k, n = pair.A.shape
    h = np.empty((k, n))
    if not (0 <= factor <= LARGEST_FACTOR and 0 <= less <= LARGEST_FACTOR):
        h[:] = np.inf
        return h
    a, b = float(factor), float(less)
    G, P = pair.G[one], pair.G[other]
    for i in range(k):
        for j in range(n):
            h[i, j] = known((a * G[i, j] - b * P[i, j]) + (a + b) * (pair.tolerance * pair.A[i, j] + pair.floor))
    return h


@kernel
@no_type_check
def spoiler_harms(pair: Any, o: int) -> Any:
    """Upper bounds of -G_o, for bounding right answers from above.

    Guarantee: where the label beats o, these add up to more than zero.
    Cost: one operation per position and token.
    """
    k, n = pair.A.shape
    h = np.empty((k, n))
    for i in range(k):
        for j in range(n):
            h[i, j] = known((pair.tolerance * pair.A[i, j] + pair.floor) - pair.G[o, i, j])
    return h


@kernel
@no_type_check
def spoilers_harms(pair: Any, one: int, other: int, factor: int, more: int) -> Any:
    """Upper bounds of -(factor G_one + more G_other), rounded like those of `apart_harms`, which differ by a sign.

    Guarantee: where the label beats both outputs, these add up to more than zero.
    Cost: three operations per position and token.
    """
    k, n = pair.A.shape
    h = np.empty((k, n))
    if not (1 <= factor <= LARGEST_FACTOR and 1 <= more <= LARGEST_FACTOR):
        h[:] = np.inf
        return h
    a, b = float(factor), float(more)
    G, P = pair.G[one], pair.G[other]
    for i in range(k):
        for j in range(n):
            h[i, j] = known((a + b) * (pair.tolerance * pair.A[i, j] + pair.floor) - (a * G[i, j] + b * P[i, j]))
    return h


RIGHT, WRONG, UNDECIDED = 1, -1, 0


@kernel
@no_type_check
def decide(pair: Any, outputs: Any, sequence: Any) -> int:
    """RIGHT if every given output certainly stays below the label on a sequence of token numbers, WRONG if one certainly does not.

    Guarantee: by (*), sums of computed terms are off by less than tolerance (sum of A~) + k floor.
    Cost: one addition per output and position.
    """
    k = sequence.shape[0]
    mass = 0.0
    for i in range(k):
        mass += pair.A[i, sequence[i]]
    margin = pair.tolerance * mass + k * pair.floor
    verdict = RIGHT
    for o in outputs:
        total = 0.0
        for i in range(k):
            total += pair.G[o, i, sequence[i]]
        if total > margin:
            return WRONG
        if not total < -margin:
            verdict = UNDECIDED
    return verdict
