"""Heads that stand side by side, and heads that share keys and values: written out, each with tensors of its own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compactproofs.errors import ModelError

_ADVICE = "If groups of heads share keys and values, the configuration must say n_key_value_heads"


def apart(t: Mapping[str, np.ndarray], n_heads: int, n_groups: int) -> dict[str, np.ndarray]:
    """Attention tensors with an axis of heads, of those whose columns (rows, for W_O) are all heads' one after the other."""
    if t["W_Q"].shape[1] % n_heads:
        raise ModelError(f"W_Q has {t['W_Q'].shape[1]} columns, which do not divide into n_heads={n_heads} heads of one size")
    d_head = t["W_Q"].shape[1] // n_heads
    if t["W_O"].shape[0] != n_heads * d_head:
        raise ModelError(f"W_O has {t['W_O'].shape[0]} rows; expected {n_heads * d_head}, as W_Q has columns")
    split: dict[str, np.ndarray] = {"W_O": t["W_O"].reshape(n_heads, d_head, -1)}
    for x in "QKV":
        n = n_heads if x == "Q" else n_groups
        if t[f"W_{x}"].shape[1] != n * d_head:
            raise ModelError(f"W_{x} has {t[f'W_{x}'].shape[1]} columns; expected {n} times d_head={d_head}. {_ADVICE}")
        split[f"W_{x}"] = t[f"W_{x}"].reshape(-1, n, d_head).transpose(1, 0, 2)
        bias = t.get(f"b_{x}")
        if bias is not None and bias.shape != (n * d_head,):
            raise ModelError(f"b_{x} has shape {bias.shape}; expected ({n * d_head},)")
        if bias is not None:
            split[f"b_{x}"] = bias.reshape(n, d_head)
    return split


def ungrouped(t: Mapping[str, np.ndarray], n_heads: int, n_groups: int) -> dict[str, np.ndarray]:
    """Keys and values of each head: those of its group; groups are of heads that follow each other."""
    names = [name for name in ("W_K", "W_V", "b_K", "b_V") if name in t]
    for name in names:
        if len(t[name]) != n_groups:
            raise ModelError(f"{name} has {len(t[name])} heads; expected {n_groups}. {_ADVICE}")
    if n_heads % n_groups:
        raise ModelError(f"n_key_value_heads={n_groups} does not divide n_heads={n_heads}")
    return {name: np.repeat(t[name], n_heads // n_groups, axis=0) for name in names}


def is_bias(name: str) -> bool:
    """Those that may be left out if they are zero; the parameters of norms stay, they say what kind it is."""
    return name.startswith(("b_", "mlp.b_"))
