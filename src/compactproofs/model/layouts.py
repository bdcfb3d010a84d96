"""Names and shapes under which people save these models, turned into our seven tensors.

Three layouts are known: plain names (`W_E`), TransformerLens up to 3.x (`blocks.0.attn.W_Q`, with a head axis), and TransformerLens 4
(`blocks.0.attn.q.weight`, transposed like `torch.nn.Linear`). Tensors that change the function and are not modelled are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from compactproofs.errors import ModelError
from compactproofs.model.biases import BIASES
from compactproofs.model.weights import TENSOR_NAMES

Tensors = Mapping[str, np.ndarray]

_LEGACY = {
    "W_E": "embed.W_E",
    "W_pos": "pos_embed.W_pos",
    "W_Q": "blocks.0.attn.W_Q",
    "W_K": "blocks.0.attn.W_K",
    "W_V": "blocks.0.attn.W_V",
    "W_O": "blocks.0.attn.W_O",
    "W_U": "unembed.W_U",
}
_BRIDGE = {
    "W_E": "embed.weight",
    "W_pos": "pos_embed.weight",
    "W_Q": "blocks.0.attn.q.weight",
    "W_K": "blocks.0.attn.k.weight",
    "W_V": "blocks.0.attn.v.weight",
    "W_O": "blocks.0.attn.o.weight",
    "W_U": "unembed.weight",
}
_BRIDGE_TRANSPOSED = ("W_Q", "W_K", "W_V", "W_O", "W_U")
_HEADED = ("W_Q", "W_K", "W_V", "W_O")

_LEGACY_BIASES = {**{f"b_{x}": f"blocks.0.attn.b_{x}" for x in "QKVO"}, "b_U": "unembed.b_U"}
_BRIDGE_BIASES = {**{f"b_{x}": f"blocks.0.attn.{x.lower()}.bias" for x in "QKVO"}, "b_U": "unembed.bias"}
_MASK = re.compile(r"^(blocks\.0\.attn\.)?(causal_)?mask$")
_IGNORE = re.compile(r"^(blocks\.0\.attn\.)?IGNORE$")


@dataclass(frozen=True)
class Recognised:
    """Tensors under their plain names and the layout they came in."""

    tensors: dict[str, np.ndarray]
    biases: dict[str, np.ndarray]
    """Those that the file has, zero or not."""
    bridge_layout: bool
    n_heads: int | None
    """None where heads have no axis of their own."""


def recognise(found: Tensors) -> Recognised:
    """Find the seven tensors in a state dict of any known layout; refuse everything that we would have to ignore."""
    layout, names = _pick_layout(found)
    biases = {plain: found[name] for plain, name in _biases(layout).items() if name in found}
    rest = {name: tensor for name, tensor in found.items() if name not in (*names.values(), *_biases(layout).values())}
    n_ctx = int(found[names["W_pos"]].shape[0]) if found[names["W_pos"]].ndim else 0
    for name, tensor in sorted(rest.items()):
        _check_extra(name, tensor, n_ctx)
    tensors = {plain: found[name] for plain, name in names.items()}
    n_heads = 1 if all(tensors[name].ndim == 3 for name in _HEADED) else None  # more than one are refused below
    if layout == "bridge":
        tensors = {n: t.T if n in _BRIDGE_TRANSPOSED and t.ndim == 2 else t for n, t in tensors.items()}
    else:
        tensors = {n: _without_head_axis(n, t) if n in _HEADED else t for n, t in tensors.items()}
    return Recognised(tensors, biases, layout == "bridge", n_heads)


def _pick_layout(found: Tensors) -> tuple[str, dict[str, str]]:
    layouts = {"plain": {n: n for n in TENSOR_NAMES}, "legacy": _LEGACY, "bridge": _BRIDGE}
    present = {layout: [n for n in names.values() if n in found] for layout, names in layouts.items()}
    layout = max(present, key=lambda key: len(present[key]))
    missing = [n for n in layouts[layout].values() if n not in found]
    if missing:
        for name in sorted(found):
            _refuse_by_name(name)
        raise ModelError(
            f"tensors not found: {', '.join(missing)}. Expected the names {', '.join(TENSOR_NAMES)}, or a TransformerLens state dict "
            f"(embed.W_E, blocks.0.attn.W_Q, ... or embed.weight, blocks.0.attn.q.weight, ...). The file has: {_listing(found)}"
        )
    return layout, layouts[layout]


def _biases(layout: str) -> dict[str, str]:
    return {"plain": {name: name for name in BIASES}, "legacy": _LEGACY_BIASES, "bridge": _BRIDGE_BIASES}[layout]


def _refuse_by_name(name: str) -> None:
    if re.match(r"^blocks\.[1-9]", name):
        raise ModelError(f"tensor {name}: the model has more than one layer; only one-layer models are supported")
    if re.search(r"\bmlp\b|W_in$|W_out$|W_gate$", name):
        raise ModelError(f"tensor {name}: the model has an MLP; only attention-only models are supported")
    if re.search(r"(^|\.)ln", name):
        raise ModelError(f"tensor {name}: the model has layer normalisation, which is not supported yet")
    if "rotary" in name:
        raise ModelError(f"tensor {name}: rotary embeddings are not supported")


def _check_extra(name: str, tensor: np.ndarray, n_ctx: int) -> None:
    """Return only if the tensor certainly does not change the function."""
    _refuse_by_name(name)
    if _IGNORE.match(name):
        return
    if _MASK.match(name):
        whole = tensor.shape == (n_ctx, n_ctx) and bool(tensor[-1:].all())
        if tensor.dtype == bool and (whole or tensor.shape == (0, 0)):  # TransformerLens 3.9 makes its mask when it is needed
            return
        raise ModelError(f"tensor {name}: expected a causal mask of shape {(n_ctx, n_ctx)} whose last row lets every position through")
    raise ModelError(
        f"tensor {name} (shape {tuple(tensor.shape)}) is not known, and ignoring it could change the function. "
        "Remove it from the file if it plays no part in the forward pass"
    )


def _without_head_axis(name: str, tensor: np.ndarray) -> np.ndarray:
    if tensor.ndim == 3:
        if tensor.shape[0] != 1:
            raise ModelError(f"{name} has shape {tuple(tensor.shape)}: {tensor.shape[0]} heads; only one attention head is supported")
        tensor = tensor[0]
    return tensor


def _listing(found: Tensors, most: int = 20) -> str:
    names = sorted(found)
    return ", ".join(names[:most]) + (f", and {len(names) - most} more" if len(names) > most else "") or "no tensors"
