"""What the tables are products of: the vectors that tokens become before attention, and the matrices that read them.

A token at a position is a row. Where position and token do not mix (learned positions, no norm) a row belongs to a token, and positions
have vectors of their own, which are added: one *sheet* of d_vocab rows serves every position. A norm of the inputs or rotary positions mix
them: then there is a sheet for every position, row i d_vocab + t being token t at position i, and nothing is left to the positions. Keys
and carriers may differ in this: how many sheets a table has is seen from its shape.

    scores = (queries W_Q) . (keys W_K) / sqrt(divisor)     values = carriers W_V W_O W_U     direct path = stream W_U

Everything before the attention-weighted sum is exact: it changes these arrays and loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float

from compactproofs.arrays import FlopCounter
from compactproofs.arrays.arithmetic import AbstractArithmetic, Counting
from compactproofs.errors import UnsupportedError
from compactproofs.form.block import normed
from compactproofs.form.rotary import turned
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network, NormKind


@dataclass(frozen=True)
class Embedded:
    """The factors of one network's tables, in some arithmetic. `rows` is d_vocab, or n_ctx * d_vocab."""

    queries: Any
    """(d_vocab, d): at the last position"""
    keys: Any
    """(rows, d)"""
    carriers: Any
    """(rows, e): what values are read from; often the keys themselves, but rotary positions turn only those"""
    positions: Any
    """(n_ctx, d): what positions add to keys and carriers; None with a sheet for every position"""
    W_Q: Any
    W_K: Any
    W_V: Any
    W_O: Any
    stream: Any
    """(d_vocab, f): the query's own residual stream, with b_O"""
    W_U: Any
    """(f, d_vocab_out): the readout up to a positive factor"""
    divisor: Fraction
    n_ctx: int
    recency: Any = None
    """(n_ctx,): ALiBi, added to scores"""

    @property
    def W_U_of_values(self) -> Any:
        """W_U without the row that b_U stands in."""
        return self.W_U[: self.W_O.shape[1]]


def position_centre(weights: Model) -> Float[np.ndarray, "d_model"]:
    """The vector that is moved from the position tables into the token tables: the mean of W_pos, in float32.

    Only the sums EQKE + EQKP and EVOU + PVOU enter the network, so any vector is exact; rounding it to float32 keeps
    every table a polynomial in float32 numbers.
    """
    if weights.W_pos is None:
        return np.zeros(weights.d_model)
    centre: Float[np.ndarray, "d_model"] = weights.W_pos.mean(axis=0, dtype=np.float64).astype(np.float32)
    return centre.astype(np.float64)


def embedded(model: Model, arithmetic: AbstractArithmetic, *, again: bool = False) -> Embedded:
    """The factors of a network with one head and an affine readout.

    Guarantee: in intervals, every entry encloses that of the real-number network; the logits' order is that of its outputs.
    Cost: O(n_ctx d_vocab d_model) with a norm. Counted once however often it is called, unless `again`: see `Counting`.
    """
    if isinstance(model, Network):
        return _of_network(model, arithmetic)
    W_E, W_pos, centre = arithmetic.array(model.W_E), arithmetic.array(model.W_pos), arithmetic.array(position_centre(model))
    with arithmetic.step("embeddings") if again else arithmetic.once("embeddings"):
        queries, keys, positions = W_E + W_pos[-1], W_E + centre, W_pos - centre
    W_Q, W_K, W_V, W_O, W_U = (arithmetic.array(model.tensors[name]) for name in ("W_Q", "W_K", "W_V", "W_O", "W_U"))
    return Embedded(queries, keys, keys, positions, W_Q, W_K, W_V, W_O, queries, W_U, model.score_divisor_squared, model.n_ctx)


def value_sheets(model: Model) -> int:
    """How many sheets the table of values has: 1, or one for every position."""
    rows = embedded(model, Counting(FlopCounter())).carriers.shape[0]
    return int(rows) // model.d_vocab


def is_affine(network: Network, *, by_margin: bool = False) -> bool:
    """Whether there is one head and what follows attention is affine, up to a positive factor common to all outputs: that of a final norm,
    which does not change which output wins, but by how much. So with `by_margin` there must be none."""
    return not _reasons(network, by_margin)


def require_affine(network: Network, *, by_margin: bool = False) -> None:
    """Raise unless the network is affine."""
    reasons = _reasons(network, by_margin)
    if reasons:
        raise UnsupportedError(
            f"this bound is about one head and an affine readout; the network has {' and '.join(reasons)}. `threshold-quartic` and "
            "`threshold-best` are about whole blocks"
        )


def _reasons(network: Network, by_margin: bool) -> list[str]:
    reasons = []
    if network.n_heads != 1:
        reasons.append(f"{network.n_heads} heads")
    if network.mlp is not None:
        reasons.append("an MLP")
    if network.post_norm:
        reasons.append("norms on the stream (post-norm)")
    elif network.norm_final is not None and by_margin:
        reasons.append("a final norm, whose size matters where a margin is asked for")
    elif network.norm_final is not None and not _harmless_biases(network):
        reasons.append("a final norm whose bias, or b_U behind it, tells outputs apart")
    return reasons


def _harmless_biases(network: Network) -> bool:
    """Whether nothing is added behind the final norm but the same number for all outputs: then its size does not matter."""
    norm, b_U = network.norm_final, network.b_U
    no_bias = norm is None or norm.bias is None or not norm.bias.any()
    return no_bias and (b_U is None or bool((b_U == b_U[0]).all()))


def _of_network(network: Network, arithmetic: AbstractArithmetic) -> Embedded:
    require_affine(network)
    T = {name: arithmetic.array(tensor) for name, tensor in network.tensors.items()}
    W_Q, W_K, W_V, W_O = (T[f"W_{x}"][0] for x in "QKVO")
    d, k, separable = network.d_model, network.n_ctx, network.norm_1 is None and network.rotary is None
    positions = None
    with arithmetic.once("embeddings"):
        if network.W_pos is None:
            rows, stream = normed(network.norm_1, T["W_E"], arithmetic), T["W_E"]
        elif separable:
            centre = arithmetic.array(position_centre(network))
            rows, positions, stream = T["W_E"] + centre, T["W_pos"] - centre, T["W_E"] + T["W_pos"][-1]
        else:
            x = (T["W_E"][None] + T["W_pos"][:, None]).reshape(-1, d)
            rows, stream = normed(network.norm_1, x, arithmetic), x[-network.d_vocab :]
        queries = stream if separable else rows[-network.d_vocab :]
        stream = stream + T["b_O"] if network.b_O is not None else stream
    if any(name in T for name in ("b_Q", "b_K", "b_V")):
        W_Q, W_K, W_V = (_above(W, T[b][0] if b in T else None, arithmetic) for W, b in ((W_Q, "b_Q"), (W_K, "b_K"), (W_V, "b_V")))
        queries, rows = _beside(queries, 1.0, arithmetic), _beside(rows, 1.0, arithmetic)
        positions = None if positions is None else _beside(positions, 0.0, arithmetic)
    keys = rows
    if network.rotary is not None:
        with arithmetic.step("rotary positions"):
            places, own = np.repeat(np.arange(k), network.d_vocab), rows @ W_K
            own = own if own.shape[0] == len(places) else np.concatenate([own] * k, axis=0)
            keys = turned(own, network.rotary, places, arithmetic)
            queries = turned(queries @ W_Q, network.rotary, places[-network.d_vocab :], arithmetic)
            W_Q = W_K = arithmetic.array(np.eye(network.d_head))
    W_U = _readout(network, T)
    if network.b_U is not None and network.norm_final is None:
        W_U, stream = _above(W_U, T["b_U"], arithmetic), _beside(stream, 1.0, arithmetic)
    recency = None if network.alibi is None else arithmetic.array(-np.arange(k - 1, -1, -1) * 2.0 ** -network.alibi[0])
    return Embedded(queries, keys, rows, positions, W_Q, W_K, W_V, W_O, stream, W_U, network.score_divisor_squared, k, recency)


def _readout(network: Network, T: dict[str, Any]) -> Any:
    """W_U with what a final norm does besides dividing by a positive number; times d_model, to subtract the mean without dividing."""
    norm, W = network.norm_final, T["W_U"]
    if norm is None:
        return W
    W = W if norm.weight is None else T["norm_final.weight"][:, None] * W
    return W * float(network.d_model) - W.sum(axis=0) if norm.kind is NormKind.LN else W


def _above(W: Any, bias: Any, arithmetic: AbstractArithmetic) -> Any:
    """A matrix with its bias as a last row, zero if it has none."""
    return np.concatenate([W, arithmetic.array(np.zeros((1, W.shape[1]))) if bias is None else bias[None]], axis=0)


def _beside(x: Any, constant: float, arithmetic: AbstractArithmetic) -> Any:
    """A matrix with a last column that is constant."""
    return np.concatenate([x, arithmetic.array(np.full((x.shape[0], 1), constant))], axis=1)
