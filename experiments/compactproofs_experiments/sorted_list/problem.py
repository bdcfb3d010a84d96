"""What the sets of one pair (query, label) do to the differences of logits, number by number.

The sets of a pair are A + {q, m} + B: A has `below` numbers less than q, B has `above` numbers greater than m. A number v of A with the
rank r stands at two places: somewhere in the list, and at position length + r. A number of B stands in the list only. Where in the list a
number stands is not looked at: bounds are the worst over all its positions.

Let D = U_o - U_m, u_h any numbers (the centre), X = v_h . D - u_h. For any list, with Z_h the sum of all weights of attention of head h,

    sigma (logit_o - logit_m) = base_q . D + sigma (b_o - b_m) + sum_h u_h + sum_h (1 / Z_h) sum over places of a_h X,

because shares of attention add up to 1. The first three summands are bounded by `constant`. The weights and the products a_h X of single
places are bounded here, of a place in the list over all positions; `kernels` bounds the quotients.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compactproofs_experiments.sorted_list.kernels import Problem, Side
from compactproofs_experiments.sorted_list.lists import Pair
from compactproofs_experiments.sorted_list.reading import Reading

STEP = 2.0**-48
"""Relative rounding of the few operations on an entry, and more."""
TINY = 2.0**-1000
"""More than what underflows."""


class _Places(NamedTuple):
    """Weights of attention and products at single places, for one query and label."""

    low: np.ndarray
    """(head, position, token)"""
    high: np.ndarray
    upper: np.ndarray
    """(output, head, position, token): at least a_h X"""

    def in_list(self, length: int) -> _Places:
        """(..., token): the same over all positions of the list."""
        return _Places(self.low[:, :length].min(axis=1), self.high[:, :length].max(axis=1), self.upper[:, :, :length].max(axis=2))

    def at(self, position: int, token: int) -> _Places:
        return _Places(self.low[:, position, token], self.high[:, position, token], self.upper[:, :, position, token])


def problem_of(reading: Reading, pair: Pair) -> Problem:
    """The tables of a pair.

    Guarantee: for every list whose set belongs to the pair, sigma (logit_o - logit_m) is what the module says; `low` and `high` enclose
    weights, `upper` and `constant` are at least the exact numbers.
    Cost: O(n_heads n_ctx d_vocab d_vocab_out).
    """
    lists, (q, m) = reading.lists, pair[:2]
    length, output = lists.length, reading.output
    others = np.array([o for o in range(reading.base.shape[1]) if o != m])
    low, high = reading.low[:, q], reading.high[:, q]
    difference = reading.readouts[..., others] - reading.readouts[..., m : m + 1]
    centre = _centre(reading, pair, difference.value)
    X = np.moveaxis((difference - centre[:, None, None]).upper, 3, 0)
    places = _Places(low, high, _upwards(np.maximum(low * X, high * X)))
    in_list = places.in_list(length)
    smaller = 0 if output == 0 else q
    below = _side(in_list, places, (0, smaller), (length + 1, length + 1 + pair.below))
    above = _side(in_list, places, (m + 1, lists.n_values), (0, 0))
    fixed = [places.at(length, lists.separator), _Places(*(x[..., m] for x in in_list))]
    if output > 0:
        fixed += [places.at(length + output, q), _Places(*(x[..., q] for x in in_list))]
    total = sum(each.upper for each in fixed) + STEP * sum(abs(each.upper) for each in fixed)
    return Problem(
        below._replace(choose=pair.below),
        above._replace(choose=pair.above),
        np.asarray(sum(each.low for each in fixed)),
        np.asarray(sum(each.high for each in fixed)),
        np.ascontiguousarray(total),
        _constant(reading, pair, others, centre),
    )


def _constant(reading: Reading, pair: Pair, others: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """(output,): at least base_q . D + sigma (b_o - b_m) + sum_h u_h."""
    q, m = pair[:2]
    total = reading.base[q][others] - reading.base[q, m]
    for u in centre:
        total = total + u
    bias = (reading.biases[others] - reading.biases[m]).upper
    least, most = reading.divisor
    part = _upwards(np.maximum(bias * least, bias * most[q]))
    return np.asarray(_upwards(total.upper + part) + STEP * (abs(total.upper) + abs(part)))


def _side(in_list: _Places, places: _Places, values: tuple[int, int], ranks: tuple[int, int]) -> Side:
    """Numbers from values[0] to before values[1]; those of rank r have a second place at position ranks[0] + r, if there is one."""
    v, r = slice(*values), slice(*ranks)
    if ranks[1] > ranks[0]:
        place = [places.low[:, r, v], places.high[:, r, v], places.upper[:, :, r, v]]
    else:
        heads, width = in_list.low[:, v].shape
        place = [np.zeros((heads, 1, width)), np.zeros((heads, 1, width)), np.zeros((len(in_list.upper), heads, 1, width))]
    arrays = [in_list.low[:, v], in_list.high[:, v], in_list.upper[..., v], *place]
    return Side(values[0], 0, *(np.ascontiguousarray(x) for x in arrays))


def _centre(reading: Reading, pair: Pair, difference: np.ndarray) -> np.ndarray:
    """(head, output): about what heads read on an average set. A hint: any finite numbers would do."""
    lists, (q, m) = reading.lists, pair[:2]
    length = lists.length
    weight = np.zeros((reading.low.shape[0], *difference.shape[1:3]))
    middle = (reading.low[:, q] + reading.high[:, q]) / 2
    chosen = np.zeros(lists.n_values)
    chosen[m + 1 :] = pair.above / max(1, lists.n_values - 1 - m)
    chosen[m] = 1.0
    if q != lists.separator:
        chosen[:q] = pair.below / max(1, q)
        chosen[q] = 1.0
        weight[:, length + reading.output, q] = middle[:, length + reading.output, q]
    weight[:, :length, : lists.n_values] = middle[:, :length, : lists.n_values] * chosen / length
    weight[:, length, lists.separator] = middle[:, length, lists.separator]
    with np.errstate(all="ignore"):
        found = np.einsum("hit,hito->ho", weight, difference) / weight.sum(axis=(1, 2))[:, None]
    return np.asarray(np.where(np.isfinite(found), found, 0.0))


def _upwards(x: np.ndarray) -> np.ndarray:
    """At least the exact result of an operation whose computed result is x."""
    return np.asarray(x + (STEP * np.abs(x) + TINY))
