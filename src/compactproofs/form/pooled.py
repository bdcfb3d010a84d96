"""Several queries at once: one form that encloses those of all of them.

The query of a sequence is its last token. So the base of the stream, which depends on the query alone, is what one more head writes that
attends to the last position only: its shares are 1 there and 0 elsewhere, and its value at token q is base[q]. Nothing is lost by that.

Shares of the other heads do not change if all weights of a head and a query are multiplied by one positive number. So for any numbers
c(h, q) > 0 the weights c(h, q) a_h(q, i, t) may stand for a_h, and over a pool they lie between their least and their largest. At the last
position only the token's own weights count. Every theorem about several heads (docs/explanation/blocks/heads.md) uses bounds of
weights only; the pool's bounds hold for each of its sequences, whichever query it ends in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic
from compactproofs.form.whole_block import WholeBlock

_WIDER = 2.0**-50
"""More than the relative rounding of a product."""
_TINY = 2.0**-1000
"""More than what underflows in it."""
_MOST = 2.0**400
"""No weight is multiplied by more."""


def pooled(form: WholeBlock, queries: np.ndarray, reference: int, arithmetic: AbstractArithmetic) -> WholeBlock:
    """The form of a pool of query tokens: it has one query, number 0, and one head more, the first. `reference` is a token whose weight is
    made about 1 for each head and query; any will do.

    Guarantee: for every sequence that ends in a query of the pool, shares of attention and the stream are those of some weights between
    these bounds.
    Assumes: the bounds of `form`.
    Cost: O(n_heads n_ctx d_vocab) for each query.
    Source: docs/explanation/blocks/pools.md.
    """
    (low, high), (_, v, k, _) = form.attention, form.attention[0].shape
    scale = _scales(low[:, queries], high[:, queries], reference)
    low, high = low[:, queries] * scale, high[:, queries] * scale
    low, high = np.maximum(low * (1.0 - _WIDER) - _TINY, 0.0), high * (1.0 + _WIDER) + _TINY
    least, most = low.min(axis=1), high.max(axis=1)
    least[:, -1, queries], most[:, -1, queries] = (end[:, np.arange(len(queries)), -1, queries] for end in (low, high))
    last = np.zeros((1, k, v))
    last[0, -1] = 1.0
    return replace(
        form,
        attention=(np.concatenate([last, least])[:, None], np.concatenate([last, most])[:, None]),
        values=_values(form, arithmetic),
        base=arithmetic.array(np.zeros((1, form.base.shape[1]))),
    )


def _scales(low: np.ndarray, high: np.ndarray, reference: int) -> np.ndarray:
    """(head, query, 1, 1): about one over the weight of the reference, at most _MOST."""
    middle = (0.5 * low + 0.5 * high)[:, :, :-1, reference] if low.shape[2] > 1 else np.ones((*low.shape[:2], 1))
    with np.errstate(all="ignore"):
        found = 1.0 / middle.mean(axis=2)
    return np.where((found > 0.0) & (found < _MOST), found, 1.0)[:, :, None, None]


def _values(form: WholeBlock, arithmetic: AbstractArithmetic) -> Any:
    """(head, position, token, d_model): the base at the last position, then what heads write. All pools have the same."""
    if "values of pools" not in form.memory:
        _, k, v, d = form.values.shape
        base = np.concatenate([arithmetic.array(np.zeros((k - 1, v, d))), form.base[None]])
        form.memory["values of pools"] = np.concatenate([base[None], form.values])
    return form.memory["values of pools"]
