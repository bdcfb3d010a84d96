"""From real bounds to integers: count sequences whose bounded terms add up to at least zero.

`h[i, j]` bounds the term of token number j at position i, from above or from below. It is multiplied by a positive factor and rounded
in the same direction to an integer of a fine grid; `counting.additive` adds integers. Everything that only affects tightness (the unit,
the number of steps, the classes, the offsets) is a hint: any value gives a true bound.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.counting.additive import FORBIDDEN, count_at_least_zero

FINE = 256
"""Grid units per counting step."""

_DEEPEST = 16
"""Scores below so many negative units are clipped, or forbidden when counting from below."""

_DEEPER = 4
"""The last position may be so many times deeper."""

_MOST_STEPS = 1 << 14


@kernel
@no_type_check
def scores(h: Any, last: Any, factor: float, clip: int, up: bool, H: Any) -> None:
    """Integers H >= factor * h (up) or <= factor * h (down); tokens that are not in `last` are forbidden at the last position.

    Clipping is in the safe direction. Counting from above, a score below -clip is raised to it, and one so large that no other position
    can make up for it (or NaN) becomes just that large: such sequences are counted either way. Counting from below, a score below
    -clip is forbidden, which leaves sequences out, and large scores are lowered.
    """
    k, n = h.shape
    decisive = (k - 1 + _DEEPER) * clip
    for i in range(k):
        low = clip if i < k - 1 else _DEEPER * clip
        for j in range(n):
            if i == k - 1 and not last[j]:
                H[i, j] = FORBIDDEN
                continue
            y = h[i, j] * factor
            slack = abs(y) * 2.0**-50 + 2.0**-1000 if h[i, j] != 0.0 else 0.0  # rounding and underflow of the product
            if up:
                y = np.ceil(y + slack)
                H[i, j] = int(max(y, -low)) if y <= decisive else decisive
            else:
                y = np.floor(y - slack)
                H[i, j] = int(min(y, decisive)) if y >= -low else FORBIDDEN


@kernel
@no_type_check
def find_offsets(H: Any, usual: int, up: bool, offsets: Any) -> None:
    """Hints: offsets that make rounding to steps lose little, most of all for the usual token."""
    k, n = H.shape
    limit = 64 * FINE
    for i in range(k):
        best = 1 << 60
        for c in range(16):
            candidate = c * (FINE // 16)
            loss = 0
            for j in range(n):
                x = H[i, j]
                if abs(x) > limit:
                    continue
                rounding = (candidate - x) % FINE if up else (x - candidate) % FINE
                loss += rounding * (1 + n // 8) if j == usual else rounding
            if loss < best:
                best = loss
                offsets[i] = candidate


@kernel
@no_type_check
def natural_unit(h: Any, last: Any, usual: int, token: int) -> float:
    """Hint: a scale for terms. What the usual token takes off, or what a single last token does, whichever is more.

    If `token` (that the class is about) is another one, its weight counts too. If the usual token does not help, a part of what the most
    helpful token takes off.
    """
    k, n = h.shape
    unit = 0.0
    deepest = 1e-280
    for i in range(k - 1):
        unit -= h[i, usual] / (k - 1)
    if token != usual:
        other = 0.0
        for i in range(k - 1):
            other += abs(h[i, token]) / (k - 1)
        unit = max(abs(unit) / 24, other)
    else:
        for i in range(k - 1):
            for j in range(n):
                if -h[i, j] > deepest:
                    deepest = -h[i, j]
        if not unit > 0.05 * deepest:
            unit = 0.3 * deepest
    allowed = 0
    at_last = 0.0
    for j in range(n):
        if last[j]:
            allowed += 1
            at_last = abs(h[k - 1, j])
    if allowed == 1:
        unit = max(unit, at_last)
    return max(unit, 1e-280)


@kernel
@no_type_check
def count_on_grid(
    h: Any, last: Any, unit: float, steps: int, usual: int, following: Any, accepting: Any, start: int, up: bool, work: Any
) -> int:
    """Bound the number of accepted sequences, with their last token in `last`, whose terms add up to at least zero.

    Guarantee: in units of 2^count_exponent, the result is at least that number if `up` (h must bound the terms from above), at most if not
    (h must bound them from below).
    Assumes: nothing about `unit`, `steps`, `usual`, which are hints.
    Cost: what is added to work[0].
    """
    k, n = h.shape
    steps = min(max(steps, 1), _MOST_STEPS)
    factor = steps * FINE / unit if 1e-250 < unit < 1e250 else 1.0
    H = np.empty((k, n), np.int64)
    offsets = np.empty(k, np.int64)
    scores(h, last, factor, _DEEPEST * steps * FINE, up, H)
    find_offsets(H, usual, up, offsets)
    found, operations = count_at_least_zero(H, FINE, offsets, following, accepting, start, up)
    work[0] += operations
    return found


@kernel
@no_type_check
def class_automaton(following: Any, accepting: Any, order: Any, c: int) -> tuple[Any, Any]:
    """Accepts what the given automaton accepts, with order[c] among the tokens and none of order[:c] (c = len(order): none of order).

    These classes are disjoint and cover everything. State s + n_states means: order[c] has been seen.
    """
    n_states, n = following.shape
    product = np.full((2 * n_states, n), -1, np.int64)
    wanted = order[c] if c < order.shape[0] else -1
    for s in range(n_states):
        for j in range(n):
            z = following[s, j]
            if z >= 0:
                product[s, j] = z + n_states if j == wanted else z
                product[s + n_states, j] = z + n_states
    for x in range(c):
        product[:, order[x]] = -1
    accept = np.zeros(2 * n_states, np.bool_)
    for s in range(n_states):
        if c < order.shape[0]:
            accept[s + n_states] = accepting[s]
        else:
            accept[s] = accepting[s]
    return product, accept


@kernel
@no_type_check
def dominant_tokens(weight: Any, usual: int, most: int) -> Any:
    """Hint: the tokens with the largest weights, largest first; none that weighs much less than the usual one, which is left out."""
    order = np.argsort(-weight)
    kept = np.empty(min(most, order.shape[0]), np.int64)
    n = 0
    for j in order:
        if j != usual and n < kept.shape[0] and weight[j] * 1e4 > weight[usual]:
            kept[n] = j
            n += 1
    return kept[:n]


@kernel
@no_type_check
def count_failures(h: Any, last: Any, usual: int, order: Any, steps: int, following: Any, accepting: Any, start: int, work: Any) -> int:
    """Bound from above the number of accepted sequences whose terms add up to at least zero, class by class if `order` is not empty.

    Guarantee: as `count_on_grid` with up. The classes are "order[c] is the first token of `order` that occurs", and none occurs; in each of
    them the unit is what its token weighs, so that attention may range over many orders of magnitude.
    """
    if order.shape[0] == 0:
        unit = natural_unit(h, last, usual, usual)
        return count_on_grid(h, last, unit, steps, usual, following, accepting, start, True, work)
    total = 0
    for c in range(order.shape[0] + 1):
        product, accept = class_automaton(following, accepting, order, c)
        token = order[c] if c < order.shape[0] else usual
        unit = natural_unit(h, last, usual, token)
        total += count_on_grid(h, last, unit, steps, token, product, accept, start, True, work)
    return total


@kernel
@no_type_check
def count_tables(
    h: Any, last: Any, usual: int, steps: int, classes: int, small: int, following: Any, accepting: Any, start: int, counts: Any, work: Any
) -> None:
    """Bound the failures for each of several tables h[r] with its own last[r], in counts[r].

    Tables with more than `small` failures are counted again by class; the smaller bound stands.
    """
    none = np.empty(0, np.int64)
    n = h.shape[2]
    weight = np.empty(n)
    for r in range(h.shape[0]):
        found = count_failures(h[r], last[r], usual, none, steps, following, accepting, start, work)
        if found > small and classes > 0:
            for j in range(n):
                weight[j] = np.abs(h[r, : h.shape[1] - 1, j]).sum()
            order = dominant_tokens(weight, usual, classes)
            found = min(found, count_failures(h[r], last[r], usual, order, steps, following, accepting, start, work))
        counts[r] = found
