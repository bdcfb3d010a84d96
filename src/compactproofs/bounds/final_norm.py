"""Theorem F, the final norm behind an MLP from above: lengths of what heads add, and of what neurons are off their references.

x = s r_out, and s s_f = |(C x / sqrt(d), sqrt(eps) s)| is a length. Write s act(y_j / s) = l_j + xi_j with the reference l_j, a line, and
|xi_j| <= w_j, a blend (`Neurons.widths`). A length is at most the sum of the lengths of parts. So for given s, and any number c with
|s - c| <= half,

    s s_f <= |(C x' / sqrt(d), sqrt(eps) s)| + half sum_h mean_h |C d_h| / sqrt(d) + sum_j |C W_out[j]| / sqrt(d) w_j,

x' being x with references for neurons, and c (r - r^) for s (r - r^): a vector of blends. Its length is convex in what heads average, so
Theorem J bounds it. The right side is convex in s, so the larger of its values at the two ends of s will do (Theorem L).

Source: docs/explanation/blocks/final-norm.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic
from compactproofs.bounds.jensen import jensen
from compactproofs.bounds.neuron_bounds import Neurons
from compactproofs.bounds.scene import Blend
from compactproofs.form.whole_block import Sigma


def final_lengths_upper(neurons: Neurons, sigma: Sigma, shares: np.ndarray) -> list[Blend]:
    """One column at each end of s, the larger of which is at least s s_f.

    Guarantee: on every sequence of the leaf, for any shares (one for each head) that `jensen` accepts.
    Assumes: the premises of the neurons and of the norm before them.
    Cost: one table of d_model + 1 columns at each end of s.
    Source: docs/explanation/blocks/final-norm.md, Theorem F (3).
    """
    stream, mlp, ends, references = neurons.stream, neurons.mlp, neurons.ends, neurons.references
    arithmetic = stream.arithmetic
    shorter = arithmetic.inverse_sqrt(Fraction(mlp.W_out.shape[1]))
    at_once = _centred(mlp.W_out, sigma, arithmetic) * shorter
    slopes, rests = references.slope[:, None] * at_once, references.rest[None] @ at_once
    whole = _centred(stream.centre[None], sigma, arithmetic) * shorter
    spread = _centred(stream.spread, sigma, arithmetic) * shorter
    through = stream.linear(mlp.W_in @ slopes)
    times_s = whole + _centred(mlp.b_out[None], sigma, arithmetic) * shorter + mlp.b_in[None] @ slopes
    still, times_s = (rests, times_s) if neurons.homogeneous else (0.0, times_s + rests)
    weights, found = length(at_once, arithmetic), list[Blend]()
    lengths = length(spread, arithmetic) if ends.behind_norm else None
    root = arithmetic.sqrt(arithmetic.number(Fraction(sigma.eps)))
    for x, end in enumerate(ends.blends):
        middle, half = _middle(ends.low[x], ends.high[x])
        constant = through.constant + (times_s * end.constant + still)[0]
        parts = through.parts + end.parts * times_s[0] + spread * middle
        vector = Blend(np.concatenate([constant, end.constant * root]), np.concatenate([parts, end.parts * root], axis=-1))
        bound = jensen(lambda v, _: length(v, arithmetic), vector, shares[:, None])
        wide = neurons.widths(x, weights)
        parts = bound.parts + wide.parts
        found.append(Blend(bound.constant + wide.constant, parts if lengths is None else parts + lengths * half))
    return found


def length(x: Any, arithmetic: AbstractArithmetic) -> Any:
    """(..., 1): of vectors (..., d). Magnitudes: an interval times itself does not know that it is a square."""
    return arithmetic.sqrt((abs(x) * abs(x)) @ arithmetic.array(np.ones((x.shape[-1], 1))))


def _centred(x: Any, sigma: Sigma, arithmetic: AbstractArithmetic) -> Any:
    """C x, for rows x."""
    d = x.shape[-1]
    return x - (x @ arithmetic.array(np.ones((d, 1)))) * arithmetic.number(Fraction(1, d)) if sigma.centred else x


def _middle(low: float, high: float) -> tuple[float, float]:
    """A number c, and one that is at least |s - c| for low <= s <= high."""
    middle = 0.5 * low + 0.5 * high
    reach = max(high - middle, middle - low)
    return middle, float(np.nextafter(reach, np.inf))
