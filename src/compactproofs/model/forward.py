"""The forward pass in plain numpy: the definition that every table and every bound must agree with."""

import numpy as np
from jaxtyping import Float, Int

from compactproofs.model.weights import Weights


def forward(
    weights: Weights, tokens: Int[np.ndarray, "batch n_ctx"], dtype: type[np.floating] = np.float64
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
    W_E, W_pos, W_Q, W_K, W_V, W_O, W_U = (tensor.astype(dtype) for tensor in weights.tensors.values())
    residual = W_E[tokens] + W_pos
    last = residual[:, -1]
    scores = np.einsum("bh,bih->bi", last @ W_Q, residual @ W_K) / dtype(float(weights.score_divisor_squared) ** 0.5)
    attention = np.exp(scores - scores.max(axis=1, keepdims=True))
    attention /= attention.sum(axis=1, keepdims=True)
    mixed = np.einsum("bi,bim->bm", attention, residual)
    logits: Float[np.ndarray, "batch d_vocab_out"] = (mixed @ W_V @ W_O + last) @ W_U
    return logits
