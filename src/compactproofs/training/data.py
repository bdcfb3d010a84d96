"""Sequences to train on, and their right outputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from compactproofs.tasks import LabellingAutomaton
from compactproofs.training.recipe import Recipe, Sampling


class Data:
    """Batches of a task. Draws of one generator depend on nothing but it."""

    def __init__(self, recipe: Recipe, automaton: LabellingAutomaton | None) -> None:
        """Without an automaton the right output is the largest token."""
        self._recipe = recipe
        if automaton is not None:
            self._transitions, self._labels = torch.from_numpy(automaton.transitions.copy()), torch.from_numpy(automaton.labels.copy())
            self._start = automaton.start
        self._is_max = automaton is None
        self._ways = None if recipe.sampling is Sampling.UNIFORM or automaton is None else _ways_to_end(automaton, recipe.n_ctx)

    def tokens(self, generators: Sequence[torch.Generator]) -> torch.Tensor:
        """(seed, batch, position)"""
        return torch.stack([self._drawn(generator) for generator in generators])

    def labels(self, tokens: torch.Tensor) -> torch.Tensor:
        """(seed, batch, position) -> (seed, batch)"""
        if self._is_max:
            return tokens.amax(-1)
        state = torch.full(tokens.shape[:-1], self._start)
        for i in range(tokens.shape[-1]):
            state = self._transitions[state, tokens[..., i]]
        return self._labels[state]

    def _drawn(self, generator: torch.Generator) -> torch.Tensor:
        """A batch: uniform; if it is to be balanced, every second sequence has a label that was drawn first."""
        recipe = self._recipe
        uniform = torch.randint(0, recipe.d_vocab, (recipe.batch_size, recipe.n_ctx), generator=generator)
        if self._ways is None:
            return uniform
        drawn = torch.randint(0, self._ways.shape[2], (recipe.batch_size // 2,), generator=generator)
        state, tokens = torch.full_like(drawn, self._start), []
        for i in range(recipe.n_ctx):
            following = self._transitions[state]
            token = torch.multinomial(self._ways[i + 1][following, drawn[:, None]], 1, generator=generator)
            tokens.append(token)
            state = following.gather(1, token)[:, 0]
        uniform[1::2] = torch.cat(tokens, 1)
        return uniform


def _ways_to_end(automaton: LabellingAutomaton, n_ctx: int) -> torch.Tensor:
    """(n_ctx + 1, state, label that occurs): how many ways there are to end with the label after so many tokens, up to a factor."""
    ways = [(automaton.labels[:, None] == np.unique(automaton.labels)).astype(np.float64)]
    for _ in range(n_ctx):
        before = sum((ways[-1][following] for following in automaton.transitions.T), np.zeros_like(ways[-1]))
        largest = before.max(axis=0)
        ways.append(before / np.where(largest > 0, largest, 1.0))
    occurs = ways[-1][automaton.start] > 0
    return torch.from_numpy(np.stack([each[:, occurs] for each in reversed(ways)]))
