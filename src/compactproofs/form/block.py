"""A whole block in any arithmetic: the numbers before the attention-weighted sum, and the readout after it.

Everything before the sum depends on one position and one token (and the query): that is what `block_numbers` computes. With weights a_h =
exp(scores), the residual stream of a sequence is base_q + sum_h (sum_i a_h v_h) / (sum_i a_h), and `readout` makes logits of it. Both are
ordinary array code: float64 gives an estimate, `Interval` and `Ball` enclosures of the exact numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np
from jaxtyping import Int

from compactproofs.arrays.arithmetic import AbstractArithmetic
from compactproofs.form.rotary import turned
from compactproofs.model.network import Activation, Mlp, Network, Norm, NormKind

Array = TypeVar("Array")

CUBIC = Fraction(44715, 10**6)
"""The coefficient of y^3 in the tanh approximation of GELU: this decimal number exactly."""


@dataclass(frozen=True)
class BlockNumbers(Generic[Array]):
    """What attention adds up, for n candidate tokens at each of k positions. Flat axes run over positions first: i n + j."""

    scores: list[Array]
    """Per head (n, k n): the query is candidate j of the last position."""
    values: list[Array]
    """Per head (k n, d_model), after W_O."""
    base: Array
    """(n, d_model): the query's own residual stream, with b_O."""


def block_numbers(network: Network, tokens: Int[np.ndarray, "n_ctx n"], arithmetic: AbstractArithmetic) -> BlockNumbers[Any]:
    """Scores, values and bases of the candidate tokens (one row for each position).

    Guarantee: in a rigorous arithmetic every entry contains the exact number of the real network.
    Cost: O(n_heads n_ctx n (d_model d_head + n d_head)).
    Source: the docstring of `model.network`.
    """
    k, n = tokens.shape
    x = arithmetic.array(network.W_E[tokens.ravel()])
    if network.W_pos is not None:
        x = x + arithmetic.array(np.repeat(network.W_pos, n, axis=0))
    read = normed(network.norm_1, x, arithmetic)
    scale = arithmetic.inverse_sqrt(network.score_divisor_squared)
    scores, values = [], []
    for h in range(network.n_heads):
        q, keys, v = (_affine(read[-n:] if X == "Q" else read, network, X, h, arithmetic) for X in "QKV")
        if network.rotary is not None:
            rows = np.repeat(np.arange(k), n)
            keys, q = turned(keys, network.rotary, rows, arithmetic), turned(q, network.rotary, rows[-n:], arithmetic)
        s = (q @ keys.T) * scale
        if network.alibi is not None:
            back = np.repeat(np.arange(k - 1, -1, -1).astype(np.float32) * np.float32(2.0 ** -network.alibi[h]), n)  # exact below 2^24
            s = s - arithmetic.array(back)
        scores.append(s)
        values.append(v @ arithmetic.array(network.W_O[h]))
    base = x[-n:]
    if network.b_O is not None:
        base = base + arithmetic.array(network.b_O)
    return BlockNumbers(scores, values, base)


def readout(network: Network, r: Any, arithmetic: AbstractArithmetic) -> Any:
    """Logits of residual streams after attention, one per row."""
    if network.post_norm:
        r = normed(network.norm_2, r, arithmetic)
    if network.mlp is not None:
        r = r + neurons(network.mlp, r if network.post_norm else normed(network.norm_2, r, arithmetic), arithmetic)
    r = normed(network.norm_final, r, arithmetic) @ arithmetic.array(network.W_U)
    return r if network.b_U is None else r + arithmetic.array(network.b_U)


def neurons(mlp: Mlp, x: Any, arithmetic: AbstractArithmetic) -> Any:
    """What the hidden layer adds to the stream when it reads x."""
    y = x @ arithmetic.array(mlp.W_in)
    if mlp.b_in is not None:
        y = y + arithmetic.array(mlp.b_in)
    out = activated(mlp.act, y, arithmetic) @ arithmetic.array(mlp.W_out)
    return out if mlp.b_out is None else out + arithmetic.array(mlp.b_out)


def activated(act: Activation, y: Any, arithmetic: AbstractArithmetic) -> Any:
    """What neurons answer to their inputs. As 1 + tanh(z) = 2 sigmoid(2 z), the tanh approximation is y sigmoid(sqrt(8 / pi) (...))."""
    match act:
        case Activation.RELU:
            return arithmetic.relu(y)
        case Activation.GELU:
            half, root = arithmetic.number(Fraction(1, 2)), arithmetic.inverse_sqrt(Fraction(2))
            return y * ((arithmetic.erf(y * root) + arithmetic.number(Fraction(1))) * half)
        case Activation.GELU_TANH:
            inner = y + arithmetic.number(CUBIC) * (y * (y * y))
            return y * arithmetic.sigmoid(inner * arithmetic.sqrt(arithmetic.number(Fraction(8)) / arithmetic.pi()))
        case Activation.SILU:
            return y * arithmetic.sigmoid(y)


def normed(norm: Norm | None, x: Any, arithmetic: AbstractArithmetic) -> Any:
    """Each row of x, normalised."""
    if norm is None:
        return x
    if norm.kind is NormKind.LN:
        x = x - x.mean(axis=1)[:, None]
    mean_square = (abs(x) * abs(x)).mean(axis=1)  # magnitudes: an interval times itself does not know that it is a square
    x = arithmetic.over_positive(x, arithmetic.sqrt(mean_square + arithmetic.number(Fraction(norm.eps)))[:, None])
    x = x if norm.weight is None else x * arithmetic.array(norm.weight)
    return x if norm.bias is None else x + arithmetic.array(norm.bias)


def _affine(x: Any, network: Network, letter: str, head: int, arithmetic: AbstractArithmetic) -> Any:
    """x W_Q + b_Q of one head, or keys, or values."""
    y = x @ arithmetic.array(network.tensors[f"W_{letter}"][head])
    bias = network.tensors.get(f"b_{letter}")
    return y if bias is None else y + arithmetic.array(bias[head])
