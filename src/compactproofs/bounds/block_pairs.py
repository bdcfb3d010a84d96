"""From majorants of a leaf to the tables that terms are made of: `bounds.pairs` then takes them for the terms of any query and label.

Let G_o be the table of output o: for several heads the harms of Theorem P, for one head attention times the blend. If o reaches the label
on a sequence of the leaf, G_o adds up to at least zero. The functions of `bounds.pairs` need computed G~ with |G~ - G| <= tolerance A~ +
floor, and as much again for their own rounding: joint and apart harms and walks round a few times for each of k positions.

Several heads: G is known up to one error; A~ = 0, and `floor` is that error and 4 (k + 8) u times the largest G.
One head: G = a X with low <= a <= high, A~ = (low + high) / 2, |a - A~| <= t A~ + 2^-900 for the largest t found. X = X~ up to an error e
and at most x large: |A~ X~ - a X| <= A~ (e + t (x + e) + 2 u x) + 2^-900 (x + e).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compactproofs.arrays.rounding import UNIT_ROUNDOFF
from compactproofs.arrays.uniform import LARGEST, Uniform
from compactproofs.bounds.majorants import Majorants
from compactproofs.bounds.pairs import Pair

_SMALL = 2.0**-900


def pair_of_leaf(majorants: Majorants, label: int, margin: float, *, spoiled: np.ndarray | None = None) -> Pair:
    """Tables of every output against the label; or, with `spoiled`, of the label against these outputs, in this order.

    Guarantee: where output o is not certainly below the label by more than the margin, G_o adds up to at least zero (with `spoiled`: where
    the label beats o by more than the margin, to more than zero), over the sequences of the leaf.
    Assumes: the majorants' premises.
    """
    form, arithmetic = majorants.stream.form, majorants.stream.arithmetic
    outputs = np.arange(form.b_U.shape[0]) if spoiled is None else spoiled
    D, db = form.W_U[:, outputs] - form.W_U[:, [label]], form.b_U[outputs] - form.b_U[[label]]
    db = db + arithmetic.array(np.array([margin])) if margin else db
    blend = majorants.differences_upper(D, db) if spoiled is None else majorants.differences_upper(-D, -db)
    k, scene = majorants.stream.spread.shape[1], majorants.stream.scene
    if scene.n_heads > 1:
        G = majorants.harms(blend)
        zero = np.zeros(scene.attention[0].shape[1:])
        return Pair(_known(G), zero, label, 0.0, (G.error + 4.0 * (k + 8) * UNIT_ROUNDOFF * G.size) * (1.0 + 2.0**-20))
    X = blend.parts[0] + blend.constant
    A, t = _middle(scene.attention[0][0], scene.attention[1][0])
    with np.errstate(all="ignore"):
        G = np.ascontiguousarray(np.moveaxis(X.value * A[:, :, None], 2, 0))
    error = X.error + t * (X.size + X.error) + 4.0 * (k + 8) * UNIT_ROUNDOFF * X.size
    return Pair(G, A, label, error * (1.0 + 2.0**-20), 4.0 * _SMALL * (X.size + X.error + 1.0))


def usable(pair: Pair) -> bool:
    """Whether anything is known."""
    return bool(pair.tolerance < LARGEST and pair.floor < LARGEST)


def _known(G: Uniform) -> np.ndarray:
    return np.ascontiguousarray(G.value)


def _middle(low: np.ndarray, high: np.ndarray) -> tuple[Any, float]:
    """A~ and t."""
    A = np.ascontiguousarray(0.5 * low + 0.5 * high)
    half = (high - low) * (0.5 + 2.0**-40)
    large = A > _SMALL
    t = float((half[large] / A[large]).max(initial=0.0)) + 4.0 * UNIT_ROUNDOFF
    small = bool((high[~large] <= 2.0 * _SMALL).all())
    return A, t * (1.0 + 2.0**-40) if small else np.inf
