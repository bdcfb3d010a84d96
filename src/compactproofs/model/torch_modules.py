"""What torch modules say about themselves that a state dict does not: heads, activations, eps, where the norms stand.

A subclass may compute something else, so only torch's own classes are read. torch is imported already by whoever has a module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from compactproofs.errors import ModelError
from compactproofs.model.network import Activation, NormKind

_KINDS = {
    "embed": ("Embedding",),
    "pos_embed": ("Embedding",),
    "layer": ("TransformerEncoderLayer", "TransformerEncoder"),
    "attn": ("MultiheadAttention",),
    **dict.fromkeys(("qkv", "q", "k", "v", "o", "mlp.in", "mlp.out"), ("Linear",)),
    "act": ("ReLU", "GELU", "SiLU"),
    **dict.fromkeys(("norm_1", "norm_2", "norm_final"), ("LayerNorm", "RMSNorm")),
    "unembed": ("Linear", "Embedding"),
}
"""Our parts, and the classes of `torch.nn` that are read for them."""

PARTS = tuple(_KINDS)


@dataclass(frozen=True)
class Settings:
    """What is not in the tensors."""

    n_heads: int | None = None
    act: Activation | None = None
    norms: Mapping[str, tuple[NormKind, float]] = field(default_factory=dict)
    """By part."""
    norm_first: bool | None = None
    assumptions: tuple[str, ...] = ()


def inspected(module: Any, mapping: Mapping[str, str]) -> tuple[dict[str, str], Settings]:
    """The mapping with `layer` written out in its parts, and what the modules say."""
    found = dict(mapping)
    norm_first: bool | None = None
    act: Activation | None = None
    if "layer" in found:
        found, layer = _layer(module, found)
        norm_first, act = bool(layer.norm_first), _activation("layer", layer.activation)
        if act is Activation.GELU_TANH:
            raise ModelError("layer: torch takes nn.GELU(approximate='tanh') for the other GELU when it evaluates a layer fast; use F.gelu")
    modules = {part: sub for part, path in found.items() if (sub := _submodule(module, part, path)) is not None}
    if "act" in modules:
        act = _activation("act", modules["act"])
        del found["act"]
    n_heads = _heads(modules["attn"]) if "attn" in modules else None
    norms, about = {}, []
    for part, sub in modules.items():
        if part.startswith("norm_"):
            kind, eps = NormKind.LN if type(sub).__name__ == "LayerNorm" else NormKind.RMS, sub.eps
            if eps is None:
                eps = float(np.finfo(np.float32).eps)
                about.append(f"{found[part]} has no eps of its own: torch takes that of float32, {eps!r}")
            norms[part] = (kind, float(eps))
            if len(sub.normalized_shape) != 1:
                axes = tuple(sub.normalized_shape)
                raise ModelError(f"{part}={found[part]!r} normalises over {axes}: norms across positions are not supported")
        if part in ("embed", "pos_embed", "unembed") and getattr(sub, "max_norm", None) is not None:
            raise ModelError(f"{part}={found[part]!r}: an embedding with max_norm changes its rows when it is used; clip them and set None")
    if any("Dropout" in type(sub).__name__ for sub in module.modules()) or getattr(modules.get("attn"), "dropout", 0.0) > 0:
        about.append("dropout is switched off, as module.eval() does")
    return found, Settings(n_heads, act, norms, norm_first, tuple(about))


def written_out(mapping: Mapping[str, str], norm_first: bool, inner: str = "", final: str | None = None) -> dict[str, str]:
    """The parts of an `nn.TransformerEncoderLayer` under the names that it gives them.

    Args:
        mapping: has `layer`.
        norm_first: whether norms stand before the parts, or on the residual stream after them.
        inner: what comes between the layer's path and its parts' names.
        final: the norm that a `TransformerEncoder` may have.
    """
    found = dict(mapping)
    at = found.pop("layer") + inner
    parts = {"attn": f"{at}.self_attn", "mlp.in": f"{at}.linear1", "mlp.out": f"{at}.linear2"}
    parts |= {"norm_1": f"{at}.norm1", "norm_2": f"{at}.norm2"} if norm_first else {"norm_2": f"{at}.norm1", "norm_final": f"{at}.norm2"}
    if final is not None:
        _add(parts, "norm_final", final)
    for part, path in found.items():
        _add(parts, part, path)
    return parts


def _add(parts: dict[str, str], part: str, path: str) -> None:
    if part in parts and part == "norm_final":
        raise ModelError(
            f"norm_final={path!r} comes after the layer's own {parts[part]!r}: two norms one after the other are not supported"
        )
    if part in parts:
        raise ModelError(f"{part} is mapped to {path!r}, and it is part of the layer already")
    parts[part] = path


def _layer(module: Any, mapping: dict[str, str]) -> tuple[dict[str, str], Any]:
    layer: Any = _submodule(module, "layer", mapping["layer"])
    inner, final = "", None
    if layer is None:
        raise ModelError(f"layer={mapping['layer']!r}: the model has no such module")
    if type(layer).__name__ == "TransformerEncoder":
        if len(layer.layers) != 1:
            raise ModelError(f"layer={mapping['layer']!r} has {len(layer.layers)} layers; only one-layer models are supported")
        inner, final = ".layers.0", None if layer.norm is None else f"{mapping['layer']}.norm"
        layer = layer.layers[0]
        _require_kind("layer", mapping["layer"] + inner, layer, ("TransformerEncoderLayer",))
    return written_out(mapping, bool(layer.norm_first), inner, final), layer


def _submodule(module: Any, part: str, path: str) -> Any | None:
    """The module of a part; None for a tensor that is no module's."""
    try:
        sub = module.get_submodule(path)
    except AttributeError:
        return None
    if part in _KINDS:
        _require_kind(part, path, sub, _KINDS[part])
    return sub


def _require_kind(part: str, path: str, sub: Any, kinds: tuple[str, ...]) -> None:
    kind = type(sub)
    if kind.__name__ not in kinds or not kind.__module__.startswith("torch.nn.modules."):
        raise ModelError(
            f"{part}={path!r} is a {kind.__module__}.{kind.__qualname__}; expected {' or '.join(f'nn.{name}' for name in kinds)}. Another "
            "class may compute something else: map its own parts, or its tensors by name"
        )
    if sub._forward_hooks or sub._forward_pre_hooks:
        raise ModelError(f"{part}={path!r} has hooks, which may change what it computes; remove them")


def _heads(attention: Any) -> int:
    if attention.bias_k is not None or attention.bias_v is not None:
        raise ModelError("attn has add_bias_kv=True: a key that belongs to no token is not supported")
    if attention.add_zero_attn:
        raise ModelError("attn has add_zero_attn=True: a key that belongs to no token is not supported")
    return int(attention.num_heads)


def _activation(part: str, given: Any) -> Activation:
    import torch
    from torch import nn
    from torch.nn import functional as F  # noqa: N812

    functions = {F.relu: Activation.RELU, torch.relu: Activation.RELU, F.gelu: Activation.GELU, F.silu: Activation.SILU}
    if type(given) is nn.GELU:
        return Activation.GELU_TANH if given.approximate == "tanh" else Activation.GELU
    kinds = {nn.ReLU: Activation.RELU, nn.SiLU: Activation.SILU}
    found = kinds.get(type(given)) or (functions.get(given) if callable(given) and not isinstance(given, nn.Module) else None)
    if found is None:
        raise ModelError(f"{part}: the activation {given!r:.80} is not supported; expected relu, gelu or silu of torch, or nn.GELU")
    return found
