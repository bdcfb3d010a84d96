"""From the tensors that a recipe trains to a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from compactproofs.model.kinds import Model, simplest
from compactproofs.model.network import Mlp, Network, Norm, NormKind
from compactproofs.model.weights import Weights
from compactproofs.training.recipe import Normalization, Recipe

NORM_EPS = 1e-5
"""Of every norm; TransformerLens' default."""


def model_of(recipe: Recipe, tensors: Mapping[str, np.ndarray]) -> Model:
    """The model with these tensors, which are those of `recipe.shapes`: `Weights` where that is enough, else a `Network`."""
    task = None if recipe.task == "max" else recipe.task
    if recipe.plain:
        return Weights.from_mapping(tensors, task=task)
    norms = {name: _norm(recipe, name, tensors) for name in recipe.norms}
    network = Network(
        W_E=tensors["W_E"],
        W_pos=tensors["W_pos"],
        n_ctx=recipe.n_ctx,
        W_Q=tensors["W_Q"],
        W_K=tensors["W_K"],
        W_V=tensors["W_V"],
        W_O=tensors["W_O"],
        W_U=tensors["W_U"],
        b_Q=tensors.get("b_Q"),
        b_K=tensors.get("b_K"),
        b_V=tensors.get("b_V"),
        b_O=tensors.get("b_O"),
        b_U=tensors.get("b_U"),
        norm_1=norms.get("norm_1"),
        norm_2=norms.get("norm_2"),
        norm_final=norms.get("norm_final"),
        mlp=_mlp(recipe, tensors),
    )
    return simplest(replace(network, task=task))


def _norm(recipe: Recipe, name: str, tensors: Mapping[str, np.ndarray]) -> Norm:
    kind = NormKind.LN if recipe.norm in (Normalization.LN, Normalization.LN_PRE) else NormKind.RMS
    return Norm(kind, NORM_EPS, tensors.get(f"{name}.weight"), tensors.get(f"{name}.bias"))


def _mlp(recipe: Recipe, tensors: Mapping[str, np.ndarray]) -> Mlp | None:
    if recipe.act is None:
        return None
    return Mlp(tensors["mlp.W_in"], tensors["mlp.W_out"], recipe.act, tensors.get("mlp.b_in"), tensors.get("mlp.b_out"))
