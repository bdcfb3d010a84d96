"""The forward pass of many networks at once in torch: heads, norms, MLP and biases, as `model.network` defines them.

Every tensor has a leading axis of seeds. Products are batched over it, everything else is elementwise or goes along a sequence or a vector
of one seed, so no operation mixes seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch.nn import functional

from compactproofs.model.network import Activation
from compactproofs.training.models import NORM_EPS
from compactproofs.training.recipe import Normalization, Recipe

Parameters = dict[str, torch.Tensor]

_ACTIVATIONS: dict[Activation, Callable[[torch.Tensor], torch.Tensor]] = {
    Activation.RELU: torch.relu,
    Activation.GELU: functional.gelu,
    Activation.GELU_TANH: lambda y: functional.gelu(y, approximate="tanh"),
    Activation.SILU: functional.silu,
}


def block_logits(parameters: Parameters, stream: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    """Logits at the last position: embeddings (seed, batch, position, d_model) -> (seed, batch, d_vocab)."""
    residual = stream[:, :, -1] + _attention(parameters, _normed(parameters, "norm_1", stream, recipe), recipe)
    if recipe.act is not None:
        neurons = _linear(_normed(parameters, "norm_2", residual, recipe), parameters["mlp.W_in"], parameters.get("mlp.b_in"))
        residual = residual + _linear(_ACTIVATIONS[recipe.act](neurons), parameters["mlp.W_out"], parameters.get("mlp.b_out"))
    return _linear(_normed(parameters, "norm_final", residual, recipe), parameters["W_U"], parameters.get("b_U"))


def _attention(parameters: Parameters, normed: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    """What the heads add: (seed, batch, position, d_model) -> (seed, batch, d_model)."""
    n_seeds, batch, n_ctx, _ = normed.shape
    heads, d_head = recipe.n_heads, recipe.d_head

    def projected(name: str, x: torch.Tensor) -> torch.Tensor:
        """(seed, row, d_model) -> (seed, row, head and d_head)"""
        bias = parameters.get(f"b_{name}")
        return _linear(x, parameters[f"W_{name}"].transpose(1, 2).flatten(2), None if bias is None else bias.flatten(1))

    rows = normed.flatten(1, 2)
    query = projected("Q", normed[:, :, -1]).view(n_seeds, batch, 1, heads, d_head)
    keys, values = (projected(name, rows).view(n_seeds, batch, n_ctx, heads, d_head) for name in "KV")
    scores = (query * keys).sum(-1).transpose(2, 3) / math.sqrt(d_head)
    attention = scores.contiguous().softmax(-1).transpose(2, 3)
    mixed = (attention[..., None] * values).sum(2).flatten(2)
    return _linear(mixed, parameters["W_O"].flatten(1, 2), parameters.get("b_O"))


def _linear(x: torch.Tensor, matrix: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """(seed, row, in) times (seed, in, out), plus (seed, out)."""
    product = x @ matrix
    return product if bias is None else product + bias[:, None]


def _normed(parameters: Parameters, name: str, x: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    """(seed, ..., d_model) -> the same shape."""
    if name not in recipe.norms:
        return x
    if recipe.norm in (Normalization.LN, Normalization.LN_PRE):
        x = functional.layer_norm(x, x.shape[-1:], eps=NORM_EPS)
    else:
        x = x / (x.square().mean(-1, keepdim=True) + NORM_EPS).sqrt()
    shape = (len(x), *[1] * (x.ndim - 2), -1)
    weight, bias = (parameters.get(f"{name}.{own}") for own in ("weight", "bias"))
    x = x if weight is None else x * weight.view(shape)
    return x if bias is None else x + bias.view(shape)
