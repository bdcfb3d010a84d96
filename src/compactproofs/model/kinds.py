"""From one description of a network to another that computes the same: `Weights` where that is enough, `Network` for everything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from compactproofs.errors import ModelError
from compactproofs.model.biases import BIASES, without_biases
from compactproofs.model.network import Network
from compactproofs.model.weights import TENSOR_NAMES, Weights

Model = Weights | Network
"""What `load` gives and `prove` takes."""

_Kind = TypeVar("_Kind", bound=Model)


def as_network(weights: Model) -> Network:
    """The general description. Exact; keeps assumptions."""
    if isinstance(weights, Network):
        return weights
    t = weights.tensors
    tensors: dict[str, Any] = {name: t[name][None] if name in ("W_Q", "W_K", "W_V", "W_O") else t[name] for name in t}
    return Network(
        **tensors,
        n_ctx=weights.n_ctx,
        score_divisor_squared=weights.score_divisor_squared,
        assumptions=weights.assumptions,
        causal=weights.causal,
        task=weights.task,
    )


def simplest(network: Network) -> Model:
    """`Weights` that are equal over the real numbers, if one head, biases and learned (or no) positions are all there is."""
    parts = network.norm_1, network.norm_2, network.norm_final, network.mlp, network.rotary, network.alibi
    if network.n_heads != 1 or any(part is not None for part in parts):
        return network
    t = dict(network.tensors)
    t.setdefault("W_pos", np.zeros((network.n_ctx, network.d_model), np.float32))
    tensors = {name: t[name][0] if t[name].ndim == 3 else t[name] for name in TENSOR_NAMES}
    widened, about = without_biases(tensors, {name: t[name] for name in BIASES if name in t})
    assumptions = (*network.assumptions, *about)
    options = {"score_divisor_squared": network.score_divisor_squared, "assumptions": assumptions, "causal": network.causal}
    return Weights.from_mapping(widened, **options, rewritten=bool(about), task=network.task)


def of_length(model: _Kind, n_ctx: int) -> _Kind:
    """The network on sequences of n_ctx tokens: position embeddings beyond them are never read."""
    if n_ctx == model.n_ctx:
        return model
    if n_ctx < 1 or (model.W_pos is not None and n_ctx > model.n_ctx):
        raise ModelError(f"sequences of n_ctx={n_ctx} tokens were asked for; the model reads 1 to {model.n_ctx}")
    changes: dict[str, Any] = {"W_pos": None if model.W_pos is None else model.W_pos[:n_ctx]}
    if isinstance(model, Network):
        changes["n_ctx"] = n_ctx
    return replace(model, **changes)


def shortened(model: Network, n_ctx: int | None) -> Network:
    """The network on sequences of n_ctx tokens, with a sentence about it."""
    if n_ctx is None or n_ctx == model.n_ctx:
        return model
    if n_ctx > model.n_ctx:
        raise ModelError(f"sequences of n_ctx={n_ctx} tokens were asked for; the model reads 1 to {model.n_ctx}")
    about = f"sequences of {n_ctx} {'token' if n_ctx == 1 else 'tokens'}; the model reads up to {model.n_ctx}"
    return replace(of_length(model, n_ctx), assumptions=(*model.assumptions, about))


def normalization_of(network: Network) -> str:
    """In the words of `--normalization`, the norm before attention; `none` only if there is no other either."""
    first = network.norm_1 or network.norm_2 or network.norm_final
    if first is None:
        return "none"
    return str(first.kind) if first.weight is not None else f"{first.kind}Pre"
