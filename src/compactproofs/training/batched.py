"""Train a group of seeds as one batched model in torch.

Every tensor has a leading axis of seeds and no operation mixes seeds, so each seed sees exactly the arithmetic it would see
alone: the gradient of the summed loss splits, AdamW is elementwise, and batched products multiply each pair of matrices separately.
One thread per process keeps summation orders fixed. Sizes at which the order could depend on the place of a seed in the group are trained
one seed at a time (`Recipe.separable`). On one machine and one torch build the weights of a seed are therefore bitwise the same in a group
of any size (tests check it); another CPU or build may choose other summation orders.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from compactproofs.tasks import LabellingAutomaton
from compactproofs.training.block import block_logits
from compactproofs.training.data import Data
from compactproofs.training.recipe import Recipe, derived_seed

_LOSS_WINDOW = 100


@dataclass(frozen=True)
class TrainedTensors:
    """The outcome of training one seed."""

    seed: int
    tensors: dict[str, np.ndarray]
    loss: float
    """Mean cross-entropy over the last hundred batches."""


def train_group(
    recipe: Recipe, seeds: Sequence[int], on_step: Callable[[int], None] | None = None, automaton: LabellingAutomaton | None = None
) -> list[TrainedTensors]:
    """Train all seeds on one thread, together if that changes no bit. `on_step` is told after every step how many seeds took it.

    The automaton says what the right output is; without one it is the largest token.
    """
    data = Data(recipe, automaton)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    groups = [seeds] if recipe.separable else [[seed] for seed in seeds]
    try:
        return [trained for group in groups for trained in _train_group(recipe, group, data, on_step)]
    finally:
        torch.set_num_threads(threads)


def _train_group(recipe: Recipe, seeds: Sequence[int], data: Data, on_step: Callable[[int], None] | None) -> list[TrainedTensors]:
    parameters = {name: p.requires_grad_() for name, p in initial_parameters(recipe, seeds).items()}
    optimiser = torch.optim.AdamW(
        list(parameters.values()),
        lr=recipe.learning_rate,
        betas=(recipe.beta1, recipe.beta2),
        eps=recipe.epsilon,
        weight_decay=recipe.weight_decay,
        fused=True,
    )
    generators = [torch.Generator().manual_seed(derived_seed(seed, "data")) for seed in seeds]
    window = min(_LOSS_WINDOW, recipe.steps)
    recent = torch.zeros(len(seeds))
    for step in range(recipe.steps):
        tokens = data.tokens(generators)
        losses = _losses(parameters, tokens, data.labels(tokens), recipe)
        optimiser.zero_grad(set_to_none=True)
        losses.sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if step >= recipe.steps - window:
            recent += losses.detach() / window
        if on_step is not None:
            on_step(len(seeds))
    arrays = {name: p.detach().numpy() for name, p in parameters.items()}
    return [TrainedTensors(seed, {name: a[i].copy() for name, a in arrays.items()}, float(recent[i])) for i, seed in enumerate(seeds)]


def initial_parameters(recipe: Recipe, seeds: Sequence[int]) -> dict[str, torch.Tensor]:
    """Initial tensors of every seed, stacked along a first axis."""
    deviation = recipe.init_scale / math.sqrt(recipe.d_model)
    per_seed = []
    for seed in seeds:
        generator = torch.Generator().manual_seed(derived_seed(seed, "weights"))
        per_seed.append({name: _initial(name, shape, generator, deviation) for name, shape in recipe.shapes.items()})
    return {name: torch.stack([tensors[name] for tensors in per_seed]) for name in recipe.shapes}


def _initial(name: str, shape: tuple[int, ...], generator: torch.Generator, deviation: float) -> torch.Tensor:
    """Matrices are drawn, weights of norms are one, biases zero."""
    own = name.rpartition(".")[2]
    if own.startswith("W_"):
        return torch.randn(shape, generator=generator) * deviation
    return torch.ones(shape) if own == "weight" else torch.zeros(shape)


def _losses(parameters: dict[str, torch.Tensor], tokens: torch.Tensor, labels: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    """Mean cross-entropy of each seed on its own batch: tokens (seed, batch, position), labels (seed, batch) -> (seed,)."""
    n_seeds, batch, n_ctx = tokens.shape
    first_row = (torch.arange(n_seeds) * recipe.d_vocab)[:, None, None]
    flat = functional.embedding((tokens + first_row).flatten(), parameters["W_E"].flatten(0, 1))
    stream = flat.view(n_seeds, batch, n_ctx, recipe.d_model) + parameters["W_pos"][:, None]
    logits = (_plain_logits if recipe.plain else block_logits)(parameters, stream, recipe)
    losses = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    return losses.view(n_seeds, batch).sum(1) / batch


def _plain_logits(parameters: dict[str, torch.Tensor], stream: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    """Of the paper's model; as `block_logits`, with fewer and smaller products."""
    last = stream[:, :, -1]
    query = (last @ parameters["W_Q"]) @ parameters["W_K"].mT
    scores = (stream * query[:, :, None]).sum(-1) / math.sqrt(recipe.d_head)
    mixed = (scores.softmax(-1)[..., None] * stream).sum(2)
    return (mixed @ parameters["W_V"] @ parameters["W_O"] + last) @ parameters["W_U"]
