"""Tensors and what a configuration says about them, put together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from compactproofs.errors import ModelError
from compactproofs.model.config import Interpretation, Told
from compactproofs.model.heads import apart, is_bias, ungrouped
from compactproofs.model.kinds import Model, shortened, simplest
from compactproofs.model.layouts import Recognised, causal_by_masks, require_seen
from compactproofs.model.network import Mlp, Network, Norm, NormKind, Rotary
from compactproofs.model.weights import Weights


def assemble(recognised: Recognised, meaning: Interpretation, told: Told) -> Model:
    """The simplest description of the network on sequences as long as was asked for."""
    t = dict(recognised.tensors)
    t.setdefault("W_U", t["W_E"].T)
    about = list(meaning.assumptions)
    if recognised.found.n_heads is None:
        t = {**t, **apart(t, meaning.n_heads, meaning.n_groups)}
        if recognised.plain and meaning.n_heads > 1:
            about.append(f"the {meaning.n_heads} heads are consecutive blocks of the columns of W_Q, W_K and W_V and of the rows of W_O")
    t |= ungrouped(t, meaning.n_heads, meaning.n_groups)
    t = {name: tensor for name, tensor in t.items() if not is_bias(name) or tensor.any()}
    if meaning.n_groups != meaning.n_heads:
        about.append(
            f"the keys and values of {meaning.n_groups} groups are repeated for {meaning.n_heads} heads, which is the same function"
        )
    parts: dict[str, Any] = {name: _norm(t, name, meaning) for name in ("norm_1", "norm_2", "norm_final")}
    parts["mlp"] = None if meaning.act is None else Mlp(act=meaning.act, **_part(t, "mlp"))
    parts |= {name: tensor for name, tensor in t.items() if "." not in name}
    parts["W_pos"] = t["W_pos"] if meaning.positions.learned else None
    about += _about_norms([parts[name] for name in ("norm_1", "norm_2", "norm_final") if parts[name] is not None])
    network = Network(
        **parts,
        n_ctx=meaning.n_ctx,
        rotary=meaning.positions.rotary,
        alibi=meaning.positions.alibi,
        score_divisor_squared=meaning.score_divisor_squared,
        assumptions=tuple(about),
        causal=causal_by_masks(recognised.masks, meaning.causal),
    )
    _require_tables(recognised.rotary, meaning.positions.rotary)
    shorter = shortened(network, told.n_ctx)
    for name, mask in recognised.masks.items():
        require_seen(name, mask, meaning.n_ctx, shorter.n_ctx)
    model = simplest(shorter)
    return replace(model, rewritten=True) if meaning.monotone_output and isinstance(model, Weights) else model


def _part(t: dict[str, np.ndarray], part: str) -> dict[str, np.ndarray]:
    return {name.partition(".")[2]: tensor for name, tensor in t.items() if name.startswith(part + ".")}


def _norm(t: dict[str, np.ndarray], name: str, meaning: Interpretation) -> Norm | None:
    kind: NormKind | None = meaning.norms.final if name == "norm_final" else meaning.norms.inner
    if kind is None or (name == "norm_2" and meaning.act is None):
        return None
    return Norm(kind, meaning.norms.eps, **_part(t, name))


def _about_norms(norms: list[Norm]) -> list[str]:
    """Whether the norms were folded into the weights by whoever saved them; reading folds and centres nothing."""
    if not norms:
        return []
    unknown = "; whether any were folded into the weights is not known"
    if all(norm.weight is None and norm.bias is None for norm in norms):
        kind = f"norms {norms[0].kind} without parameters{unknown}"
    elif all((norm.weight is None or (norm.weight == 1).all()) and (norm.bias is None or not norm.bias.any()) for norm in norms):
        kind = f"norms {norms[0].kind} whose parameters are all 1 and 0{unknown}"
    else:
        kind = f"norms {norms[0].kind} with parameters of their own, not folded"
    return [f"{kind}; the weights are taken as they are"]


def _require_tables(tables: dict[str, np.ndarray], rotary: Rotary | None) -> None:
    """Raise if the file's tables are certainly of other angles; that they are no more than roundings is an assumption that is stated."""
    for name, table in tables.items():
        if rotary is None:
            if table.size:
                raise ModelError(f"tensor rotary_{name}: the file has rotary embeddings, but positional_embedding_type is not rotary")
            continue
        if table.ndim != 2 or table.shape[1] != rotary.dim or table.dtype not in (np.float32, np.float64):
            raise ModelError(f"tensor rotary_{name} has shape {table.shape}; expected two axes, and rotary_dim={rotary.dim} columns")
        position, half = np.arange(len(table))[:, None], np.arange(rotary.dim // 2) * 2 / rotary.dim
        once = position / rotary.base**half
        angles = np.repeat(once, 2, axis=1) if rotary.adjacent else np.hstack([once, once])
        expected = np.sin(angles) if name == "sin" else np.cos(angles)
        if not (np.abs(table - expected) <= 1e-6 * (1 + position)).all():
            angle = f"i / {rotary.base:g}^(2 j / {rotary.dim})"
            raise ModelError(f"tensor rotary_{name}: these are not the angles {angle}, and others are not supported")
