"""Sequences drawn near where an output begins to spoil, compiled: they tell how much of what one output spoils others spoil too.

Most sequences of a leaf are right, and plain draws would hardly ever be spoiled. Tokens are drawn as if each weighed e^(theta h) times as
much, h being what it adds to the sum of the output; the automaton of the leaf is kept to. Each draw then counts e^-(theta sum of h). What
is drawn is a hint: it decides what is counted, and never what a count is.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel

MOST_DRAWS = 512
STEEPEST = 16.0
"""The largest theta, in units of the output"""
_HALVINGS = 9
_DEEPEST, _HIGHEST = -16.0, 8.0
"""Harms beyond these, in units, are as good as these."""


@kernel
@no_type_check
def in_units(h: Any, unit: float) -> Any:
    """Harms in units, none very large or small."""
    found = np.empty(h.shape)
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            found[i, j] = min(max(h[i, j] / unit, _DEEPEST), _HIGHEST)
    return found


@kernel
@no_type_check
def steepness(y: Any, seen: Any, centre: float) -> float:
    """About the theta with which sums are this much on average, positions by themselves."""
    low, high = 0.0, STEEPEST
    for _ in range(_HALVINGS):
        theta = (low + high) / 2
        mean = 0.0
        for i in range(y.shape[0]):
            whole = part = 0.0
            for j in range(y.shape[1]):
                if seen[i, j] > 0:
                    w = np.exp(theta * (y[i, j] - _HIGHEST)) * seen[i, j]
                    whole, part = whole + w, part + w * y[i, j]
            mean += part / whole if whole > 0.0 else 0.0
        if mean < centre:
            low = theta
        else:
            high = theta
    return low


@kernel
@no_type_check
def rests(w: Any, automaton: Any) -> Any:
    """(position, state, token): what a token weighs there with all ways to go on, and all tokens before it; in units of each position."""
    following, accepting, _ = automaton
    k, n = w.shape
    n_states = following.shape[0]
    found, ahead = np.zeros((k, n_states, n)), np.zeros(n_states)
    for s in range(n_states):
        ahead[s] = 1.0 if accepting[s] else 0.0
    for i in range(k - 1, -1, -1):
        most, here = 0.0, np.zeros(n_states)
        for s in range(n_states):
            for j in range(n):
                z = following[s, j]
                if z >= 0:
                    here[s] += w[i, j] * ahead[z]
                found[i, s, j] = here[s]
            most = max(most, here[s])
        for s in range(n_states):
            ahead[s] = here[s] / most if most > 0.0 else 0.0
    return found


@kernel
@no_type_check
def draw(y: Any, theta: float, leaf: Any, seed: int, tokens: Any, weights: Any) -> None:
    """Draw sequences of the leaf, a row of `tokens` each, and what each counts; nothing (all weights 0) if there are none."""
    following, _, first = leaf.automaton
    k, n = y.shape
    w = np.empty((k, n))
    for i in range(k):
        for j in range(n):
            w[i, j] = np.exp(theta * (y[i, j] - _HIGHEST)) * leaf.masses[i, j]
    up_to = rests(w, leaf.automaton)
    state = np.uint64(seed * 2 + 1)
    for d in range(weights.shape[0]):
        s, total = first, 0.0
        for i in range(k):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            sums = up_to[i, s]
            mark = float(state >> np.uint64(11)) * 2.0**-53 * sums[n - 1]
            low, high = 0, n - 1  # the first token whose sum is above the mark
            while low < high:
                middle = (low + high) // 2
                if sums[middle] > mark:
                    high = middle
                else:
                    low = middle + 1
            if not sums[low] > mark or following[s, low] < 0:
                s = -1
                break
            tokens[d, i] = low
            s = following[s, low]
            total += y[i, low]
        weights[d] = np.exp(-theta * max(total, 0.0)) if s >= 0 else 0.0


@kernel
@no_type_check
def spoiled_draws(pair: Any, ranking: Any, few: int, leaf: Any, number: int) -> Any:
    """For each of the first few outputs of a ranking, so many draws: which of the few spoil each, and what it counts (0 if the output
    itself does not spoil it); counts of an output add up to 1, if anything was found."""
    k = leaf.masses.shape[0]
    spoils, weights = np.zeros((few, number, few), np.bool_), np.zeros((few, number))
    tokens = np.empty((number, k), np.int64)
    for x in range(few):
        y = in_units(pair.G[ranking.outputs[x]], ranking.units[x])
        theta = steepness(y, leaf.seen, 0.5)
        draw(y, theta, leaf, x, tokens, weights[x])
        whole = 0.0
        for d in range(number):
            if weights[x, d] > 0.0:
                spoils[x, d, x] = along(pair.G[ranking.outputs[x]], tokens[d]) >= 0.0
                if not spoils[x, d, x]:
                    weights[x, d] = 0.0
                    continue
                for p in range(few):
                    if p != x:
                        spoils[x, d, p] = along(pair.G[ranking.outputs[p]], tokens[d]) >= 0.0
                whole += weights[x, d]
        for d in range(number):
            weights[x, d] = weights[x, d] / whole if whole > 0.0 else 0.0
    return spoils, weights


@kernel
@no_type_check
def along(h: Any, tokens: Any) -> float:
    """What a sequence adds up to."""
    total = 0.0
    for i in range(h.shape[0]):
        total += h[i, tokens[i]]
    return total
