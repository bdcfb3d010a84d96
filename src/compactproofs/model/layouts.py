"""Names and shapes under which people save these models, turned into our tensors (`network.AXES`).

Three layouts are known: plain names (`W_E`), TransformerLens up to 3.x (`blocks.0.attn.W_Q`, with a head axis), and TransformerLens 4
(`blocks.0.attn.q.weight`, transposed like `torch.nn.Linear`, all heads side by side). Tensors that change the function and are not
modelled are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from compactproofs.errors import ModelError
from compactproofs.model.network import AXES
from compactproofs.model.parts import Found
from compactproofs.model.weights import TENSOR_NAMES, float32_tensor

Tensors = Mapping[str, np.ndarray]

_LEGACY = {
    "W_E": "embed.W_E",
    "W_pos": "pos_embed.W_pos",
    **{f"W_{x}": f"blocks.0.attn.W_{x}" for x in "QKVO"},
    **{f"b_{x}": f"blocks.0.attn.b_{x}" for x in "QKVO"},
    **{f"norm_{n}.{theirs}": f"blocks.0.ln{n}.{theirs[0]}" for n in "12" for theirs in ("weight", "bias")},
    **{f"mlp.{name}": f"blocks.0.mlp.{name}" for name in ("W_in", "b_in", "W_out", "b_out")},
    "norm_final.weight": "ln_final.w",
    "norm_final.bias": "ln_final.b",
    "W_U": "unembed.W_U",
    "b_U": "unembed.b_U",
}
_GROUPED = {**_LEGACY, **{f"{a}_{x}": f"blocks.0.attn._{a}_{x}" for a in "Wb" for x in "KV"}}
_BRIDGE = {
    "W_E": "embed.weight",
    "W_pos": "pos_embed.weight",
    **{f"W_{x}": f"blocks.0.attn.{x.lower()}.weight" for x in "QKVO"},
    **{f"b_{x}": f"blocks.0.attn.{x.lower()}.bias" for x in "QKVO"},
    **{f"norm_{n}.{theirs}": f"blocks.0.ln{n}.{theirs}" for n in "12" for theirs in ("weight", "bias")},
    **{f"mlp.{a}_{way}": f"blocks.0.mlp.{way}.{theirs}" for a, theirs in (("W", "weight"), ("b", "bias")) for way in ("in", "out")},
    "norm_final.weight": "ln_final.weight",
    "norm_final.bias": "ln_final.bias",
    "W_U": "unembed.weight",
    "b_U": "unembed.bias",
}
_LAYOUTS = {"plain": {name: name for name in AXES}, "legacy": _LEGACY, "grouped": _GROUPED, "bridge": _BRIDGE}
_BRIDGE_TRANSPOSED = ("W_Q", "W_K", "W_V", "W_O", "W_U", "mlp.W_in", "mlp.W_out")

_MASK = re.compile(r"^(blocks\.0\.attn\.)?(causal_)?mask$")
_IGNORE = re.compile(r"^(blocks\.0\.attn\.)?IGNORE$")
_ROTARY = re.compile(r"^(blocks\.0\.attn\.)?rotary_(sin|cos)$")

_FLAT = {
    "W_Q": "d_model d_heads",
    "W_K": "d_model d_groups",
    "W_V": "d_model d_groups",
    "W_O": "d_heads d_model",
    "b_Q": "d_heads",
    "b_K": "d_groups",
    "b_V": "d_groups",
}
"""Axes of tensors without an axis of heads: `d_heads` and `d_groups` count the coordinates of all heads together."""
_GROUPS = {name: AXES[name].replace("n_heads", "n_groups") for name in ("W_K", "W_V", "b_K", "b_V")}


@dataclass(frozen=True)
class Recognised:
    """Float32 tensors under our names, and the layout they came in."""

    tensors: dict[str, np.ndarray]
    """Those that there are. Where heads have no axis of their own they stand side by side."""
    found: Found
    plain: bool
    """Plain names, which do not say whose convention for heads it is."""
    masks: dict[str, np.ndarray]
    """Which position sees which, under their names in the file."""
    rotary: dict[str, np.ndarray]
    """Tables `sin` and `cos`, if the file has them."""


def recognise(found: Tensors, absent: Collection[str] = ()) -> Recognised:
    """Find our tensors in a state dict of any known layout; refuse everything that we would have to ignore.

    Args:
        found: names and arrays.
        absent: tensors that need not be there, because the configuration says so.
    """
    layout = _pick_layout(found, absent)
    names = {plain: name for plain, name in _LAYOUTS[layout].items() if name in found}
    rest = {name: tensor for name, tensor in found.items() if name not in names.values()}
    masks, rotary = {}, {}
    for name, tensor in sorted(rest.items()):
        if _MASK.match(name):
            masks[name] = tensor
        elif table := _ROTARY.match(name):
            rotary[table[2]] = tensor
        elif not _IGNORE.match(name):
            _refuse_by_name(name)
            raise ModelError(
                f"tensor {name} (shape {tuple(tensor.shape)}) is not known, and ignoring it could change the function. "
                "Remove it from the file if it plays no part in the forward pass"
            )
    tensors = {plain: found[name] for plain, name in names.items()}
    if layout == "bridge":
        tensors = {n: t.T if n in _BRIDGE_TRANSPOSED and t.ndim == 2 else t for n, t in tensors.items()}
    tensors, sizes, n_heads = _measured(tensors)
    norms = {plain: name for plain, name in names.items() if plain.startswith("norm_")}
    return Recognised(tensors, Found(sizes, n_heads, layout == "bridge", norms), layout == "plain", masks, rotary)


def _pick_layout(found: Tensors, absent: Collection[str]) -> str:
    present = {layout: [n for n in names.values() if n in found] for layout, names in _LAYOUTS.items()}
    layout = max(present, key=lambda key: len(present[key]))
    mlp = ("mlp.W_in", "mlp.W_out") if any(_LAYOUTS[layout][f"mlp.{n}"] in found for n in ("W_in", "b_in", "W_out", "b_out")) else ()
    missing = [_LAYOUTS[layout][n] for n in (*TENSOR_NAMES, *mlp) if n not in absent and _LAYOUTS[layout][n] not in found]
    if missing:
        norms = {name for plain, name in _LAYOUTS[layout].items() if plain.startswith("norm_")}
        for name in sorted(set(found) - norms):
            _refuse_by_name(name)
        raise ModelError(
            f"tensors not found: {', '.join(missing)}. Expected the names {', '.join(TENSOR_NAMES)}, or a TransformerLens state dict "
            f"(embed.W_E, blocks.0.attn.W_Q, ... or embed.weight, blocks.0.attn.q.weight, ...){_advice(missing)}. "
            f"The file has: {_listing(found)}"
        )
    return layout


def _advice(missing: Collection[str]) -> str:
    advice = {
        "pos": "if there are no learned positions, the configuration must say positional_embedding_type (rotary, alibi or none)",
        "W_U unembed": "if it is the transposed embedding, the configuration must say tie_word_embeddings",
    }
    said = [text for words, text in advice.items() if any(word in name for word in words.split() for name in missing)]
    return "; " + "; ".join(said) if said else ""


def _measured(tensors: Tensors) -> tuple[dict[str, np.ndarray], dict[str, int], int | None]:
    """The tensors as float32 with fitting axes, the size of each axis, and the number of heads if they have one."""
    headed = all(tensors[name].ndim == 3 for name in ("W_Q", "W_K", "W_V", "W_O"))
    axes_of = {**AXES, **(_GROUPS if headed else _FLAT)}
    exact, sizes = {}, dict[str, tuple[int, str]]()
    for name, value in tensors.items():
        axes = axes_of[name].split()
        tensor = float32_tensor(name, _as_many_axes(np.asanyarray(value), len(axes), name in _FLAT), tuple(axes))
        for axis, size in zip(axes, tensor.shape, strict=True):
            known, first = sizes.setdefault(axis, (size, name))
            if known != size and name.startswith("b_"):
                wanted = ", ".join(str(sizes.get(a, (s,))[0]) for a, s in zip(axes, tensor.shape, strict=True))
                raise ModelError(f"{name} has shape {tuple(value.shape)}; expected ({wanted}{',' if len(axes) == 1 else ''})")
            if known != size:
                shapes = ", ".join(f"{n} {tuple(t.shape)}" for n, t in tensors.items())
                raise ModelError(
                    f"shapes do not fit together: {axis} is {known} in {first} but {size} in {name}. "
                    f"Expected {', '.join(f'{n} ({axes_of[n]})' for n in tensors)}; got {shapes}"
                )
        exact[name] = tensor
    found = {axis: size for axis, (size, _) in sizes.items()}
    found.setdefault("d_head", found.get("d_heads", 0))
    if "W_U" not in tensors:  # it is the embedding, transposed
        found["d_vocab_out"] = found["d_vocab"]
    return exact, found, found["n_heads"] if headed else None


def _as_many_axes(value: np.ndarray, axes: int, has_heads: bool) -> np.ndarray:
    """With or without an axis of one head, as the others have it."""
    if has_heads and value.ndim == axes + 1 and value.shape[0] == 1:
        return np.asarray(value[0])
    return np.asarray(value[None]) if has_heads and value.ndim == axes - 1 else value


def require_seen(name: str, mask: np.ndarray, n_ctx: int, length: int) -> None:
    """Raise unless the last of `length` positions sees all of them; libraries read such a mask from its first rows, or from its last."""
    if mask.shape == (0, 0) and mask.dtype == bool:  # TransformerLens 3.9 makes its mask when it is needed
        return
    whole = mask.shape == (n_ctx, n_ctx) and mask.dtype == bool
    if not whole or not mask[-1].all() or not mask[length - 1, :length].all():
        raise ModelError(f"tensor {name}: expected a causal mask of shape {(n_ctx, n_ctx)} whose last row lets every position through")


def causal_by_masks(masks: Tensors, said: bool | None) -> bool | None:
    """Whether a position sees the tokens up to it only, by the file's masks and by what its configuration says.

    A mask that is not lower triangular shows that it is otherwise. One that is shows it only under a plain name: TransformerLens saves the
    same mask with every model and uses it if the configuration says so.
    """
    given = {name: mask for name, mask in masks.items() if mask.size}
    if any(not np.array_equal(mask, np.tril(np.ones_like(mask))) for mask in given.values()):
        return False
    return True if said is None and any("." not in name for name in given) else said


_REFUSED = {
    r"^blocks\.[1-9]": "the model has more than one layer; only one-layer models are supported, as a second one reads every position",
    r"experts|W_gate\.": "the model has a mixture of experts; only one MLP with W_in and W_out is supported",
    r"W_gate$|mlp\.gate\b": "the model has a gated MLP; only one with W_in and W_out is supported, without products of neurons",
    r"mlp\.ln\b": "the model has a norm inside its MLP, which is not supported: Network has norms of the residual stream only",
    r"ln\w*_post": "the model normalises what a part writes, which is not supported: Network has norms of the residual stream only",
    r"[qk]_norm": "the model normalises queries and keys, which is not supported: Network has norms of the residual stream only",
    r"sinks": "the model has attention sinks, which are not supported: every score belongs to a token",
    r"\bmlp\b|W_in$|W_out$": "the model has an MLP whose other tensors are missing",
    r"(^|\.)ln": "the model has a layer normalisation in a place that is not supported (ln1, ln2 and ln_final are)",
    r"token_type|relative|rel_pos": "the model has embeddings that are not supported",
}


def _refuse_by_name(name: str) -> None:
    for pattern, reason in _REFUSED.items():
        if re.search(pattern, name):
            raise ModelError(f"tensor {name}: {reason}")


def _listing(found: Tensors, most: int = 20) -> str:
    names = sorted(found)
    return ", ".join(names[:most]) + (f", and {len(names) - most} more" if len(names) > most else "") or "no tensors"
