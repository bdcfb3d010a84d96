"""The network as it answers one output: what it attends to, and what that adds to logits.

With causal attention the answer at position p depends on positions up to p only, so this is the network on sequences of p + 1 tokens. Let
a_h be the weights of attention and v_h the values of head h, and W_U, b_U the readout with the final norm folded in (`form.whole_block`).
The stream after attention is r = base_q + sum_h sum_i p^h_i v_h(i, x_i), and with sigma > 0, what the final norm divides by,

    sigma logit_o = r . U_o + sigma b_o.

Everything here is an enclosure of the exact numbers of the real network.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from compactproofs.arrays.uniform import Uniform
from compactproofs.errors import UnsupportedError
from compactproofs.form.whole_block import WholeBlock, uniform_block
from compactproofs.model.kinds import of_length
from compactproofs.model.network import Network
from compactproofs_experiments.sorted_list.lists import Lists

MORE = 1.0 + 2.0**-40
"""More than the rounding of a few hundred operations on numbers that are not negative."""


@dataclass(frozen=True, eq=False)
class Reading:
    """A network at the position of one output."""

    lists: Lists
    output: int
    low: np.ndarray
    """(head, query, position, token): at most the weight of attention, not negative"""
    high: np.ndarray
    """at least that weight"""
    readouts: Uniform
    """(head, position, token, output): v_h . U_o"""
    base: Uniform
    """(query, output): base_q . U_o"""
    biases: Uniform
    """(output,): b_o"""
    divisor: tuple[float, np.ndarray]
    """At most sigma; (query,) and at least sigma, on every sequence"""


def read(network: Network, lists: Lists, output: int) -> Reading:
    """The network at one output.

    Guarantee: arrays enclose the exact numbers, and sigma lies between the numbers of `divisor`.
    Assumes: attention is causal.
    Cost: O(n_heads n_ctx d_vocab (d_vocab d_head + d_model (d_head + d_vocab))).
    Source: docs/explanation/blocks.md, section 1.
    """
    if network.mlp is not None or network.causal is False or network.d_vocab != lists.n_values + 1:
        raise UnsupportedError("expected causal attention without an MLP, and one token besides the numbers")
    if network.norm_final is not None and not network.norm_final.eps > 0.0:
        raise UnsupportedError("a final norm without eps may divide by zero")
    form = uniform_block(of_length(network, lists.length + output + 1))
    low, high = form.attention
    return Reading(lists, output, low, high, form.values @ form.W_U, form.base @ form.W_U, form.b_U, _divisor(form))


def _divisor(form: WholeBlock) -> tuple[float, np.ndarray]:
    """Shares add up to 1, so |C r| <= |C base_q| + sum_h max |C v_h|; and sqrt(eps) <= sigma <= |C r| / sqrt(d) + sqrt(eps)."""
    sigma = form.sigma_final
    if sigma is None:
        return 1.0, np.ones(form.base.shape[0])
    lengths = _lengths(form.base, sigma.centred)
    for h in range(form.n_heads):
        lengths = lengths + float(_lengths(form.values[h], sigma.centred).max())
    root = sqrt(sigma.eps)
    return root / MORE, (lengths / sqrt(form.base.shape[-1]) + root) * MORE


def _lengths(x: Uniform, centred: bool) -> np.ndarray:
    """At least the lengths of vectors, centred or not."""
    x = x - x.mean(axis=x.ndim - 1)[..., None] if centred else x
    return np.asarray(np.sqrt((x * x).sum(axis=x.ndim - 1)).upper)
