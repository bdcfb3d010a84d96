"""The forward pass in plain numpy: the definition that every table and every bound must agree with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from compactproofs.model.network import Activation, Network, Norm, NormKind, Rotary
from compactproofs.model.weights import Weights


def forward(
    weights: Weights | Network, tokens: Int[np.ndarray, "batch n_ctx"], dtype: type[np.floating] = np.float64
) -> Float[np.ndarray, "batch d_vocab_out"]:
    """Logits at the last position, in floating point (an approximation; nothing is proven with it).

    Args:
        weights: the network.
        tokens: integer tokens in [0, d_vocab), one sequence per row; the last column is the query.
        dtype: float64 (default) or float32, the precision of every operation.
    """
    if tokens.ndim != 2 or tokens.shape[1] != weights.n_ctx:
        raise ValueError(f"tokens has shape {tokens.shape}; expected (batch, n_ctx={weights.n_ctx})")
    if tokens.size and not (int(tokens.min()) >= 0 and int(tokens.max()) < weights.d_vocab):
        raise ValueError(f"tokens must lie in [0, {weights.d_vocab}); got [{tokens.min()}, {tokens.max()}]")
    return _of_weights(weights, tokens, dtype) if isinstance(weights, Weights) else _of_network(weights, tokens, dtype)


def _of_weights(weights: Weights, tokens: np.ndarray, dtype: Any) -> np.ndarray:
    W_E, W_pos, W_Q, W_K, W_V, W_O, W_U = (tensor.astype(dtype) for tensor in weights.tensors.values())
    residual = W_E[tokens] + W_pos
    last = residual[:, -1]
    scores = np.einsum("bh,bih->bi", last @ W_Q, residual @ W_K) / dtype(float(weights.score_divisor_squared) ** 0.5)
    mixed = np.einsum("bi,bim->bm", _softmax(scores), residual)
    return np.asarray((mixed @ W_V @ W_O + last) @ W_U)


def _of_network(network: Network, tokens: np.ndarray, dtype: Any) -> np.ndarray:
    T = {name: tensor.astype(dtype) for name, tensor in network.tensors.items()}
    k = network.n_ctx
    x = T["W_E"][tokens]
    if network.W_pos is not None:
        x = x + T["W_pos"]
    n = _normed(network.norm_1, x)
    q, keys, values = (np.einsum("bid,hde->bhie", n, T[f"W_{X}"]) + _bias(T, f"b_{X}", dtype) for X in "QKV")
    if network.rotary is not None:
        q, keys = turned(q, network.rotary), turned(keys, network.rotary)
    scores = np.einsum("bhe,bhie->bhi", q[:, :, -1], keys) / dtype(float(network.score_divisor_squared) ** 0.5)
    if network.alibi is not None:
        scores = scores - np.array([2.0**-e for e in network.alibi], dtype)[:, None] * np.arange(k - 1, -1, -1, dtype=dtype)
    r = x[:, -1] + np.einsum("bhi,bhie,hed->bd", _softmax(scores), values, T["W_O"]) + T.get("b_O", dtype(0))
    if network.post_norm:
        r = _normed(network.norm_2, r)
    if network.mlp is not None:
        y = (r if network.post_norm else _normed(network.norm_2, r)) @ T["mlp.W_in"] + T.get("mlp.b_in", dtype(0))
        r = r + activated(network.mlp.act, y) @ T["mlp.W_out"] + T.get("mlp.b_out", dtype(0))
    return np.asarray(_normed(network.norm_final, r) @ T["W_U"] + T.get("b_U", dtype(0)))


def _bias(T: dict[str, np.ndarray], name: str, dtype: Any) -> Any:
    return T[name][None, :, None, :] if name in T else dtype(0)


def _softmax(scores: np.ndarray) -> np.ndarray:
    attention = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(attention / attention.sum(axis=-1, keepdims=True))


def _normed(norm: Norm | None, x: np.ndarray) -> np.ndarray:
    if norm is None:
        return x
    if norm.kind is NormKind.LN:
        x = x - x.mean(axis=-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + x.dtype.type(norm.eps))
    x = x if norm.weight is None else x * norm.weight.astype(x.dtype)
    return x if norm.bias is None else x + norm.bias.astype(x.dtype)


def turned(x: np.ndarray, rotary: Rotary) -> np.ndarray:
    """Rotary positions: x[..., i, :] turned by position i."""
    k, half = x.shape[-2], rotary.dim // 2
    angles = np.arange(k)[:, None] / float(rotary.base) ** (np.arange(half) / half)
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    first, second = rotary_pairs(rotary)
    out = x.copy()
    out[..., first] = x[..., first] * cos - x[..., second] * sin
    out[..., second] = x[..., second] * cos + x[..., first] * sin
    return out


def rotary_pairs(rotary: Rotary) -> tuple[np.ndarray, np.ndarray]:
    """The two coordinates of each pair that is turned, in the order of the angles."""
    j = np.arange(rotary.dim // 2)
    return (2 * j, 2 * j + 1) if rotary.adjacent else (j, j + rotary.dim // 2)


def activated(act: Activation, y: np.ndarray) -> np.ndarray:
    """What neurons answer to their inputs."""
    match act:
        case Activation.RELU:
            return np.asarray(np.maximum(y, 0))
        case Activation.GELU:
            erf = np.asarray(np.frompyfunc(math.erf, 1, 1)(y / math.sqrt(2)), dtype=y.dtype)
            return np.asarray(y * (1 + erf) / 2)
        case Activation.GELU_TANH:
            return np.asarray(y * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3))) / 2)
        case Activation.SILU:
            return np.asarray(y / (1 + np.exp(-y)))
