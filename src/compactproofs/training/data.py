"""Sequences to train on, and their right outputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from compactproofs.tasks import NO_LABEL, LabellingAutomaton
from compactproofs.training.recipe import Recipe, Sampling


class Data:
    """Batches of a task. Draws of one generator depend on nothing but it, and every sequence that is drawn has a label."""

    def __init__(self, recipe: Recipe, automaton: LabellingAutomaton | None) -> None:
        """Without an automaton the right output is the largest token."""
        self._recipe = recipe
        if automaton is not None:
            self._transitions, self._labels = torch.from_numpy(automaton.transitions.copy()), torch.from_numpy(automaton.labels.copy())
            self._start = automaton.start
        self._is_max = automaton is None
        self._balanced, self._labelled = None, None
        if automaton is not None and recipe.sampling is Sampling.BALANCED:
            each = np.setdiff1d(automaton.labels, [NO_LABEL])
            self._balanced = _ways_to_end(automaton, recipe.n_ctx, automaton.labels[:, None] == each)
        if automaton is not None and (automaton.labels == NO_LABEL).any():
            self._labelled = _ways_to_end(automaton, recipe.n_ctx, automaton.labels[:, None] != NO_LABEL)

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
        if self._labelled is None:
            uniform = torch.randint(0, recipe.d_vocab, (recipe.batch_size, recipe.n_ctx), generator=generator)
        else:
            uniform = self._walked(self._labelled, torch.zeros(recipe.batch_size, dtype=torch.int64), generator)
        if self._balanced is None:
            return uniform
        drawn = torch.randint(0, self._balanced.shape[2], (recipe.batch_size // 2,), generator=generator)
        uniform[1::2] = self._walked(self._balanced, drawn, generator)
        return uniform

    def _walked(self, ways: torch.Tensor, kinds: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """For each kind of end a sequence, all that end so being equally likely: (batch,) -> (batch, position)."""
        state, tokens = torch.full_like(kinds, self._start), []
        for i in range(self._recipe.n_ctx):
            following = self._transitions[state]
            token = torch.multinomial(ways[i + 1][following, kinds[:, None]], 1, generator=generator)
            tokens.append(token)
            state = following.gather(1, token)[:, 0]
        return torch.cat(tokens, 1)


def _ways_to_end(automaton: LabellingAutomaton, n_ctx: int, ends: np.ndarray) -> torch.Tensor:
    """(n_ctx + 1, state, kind of end that occurs): how many ways there are to end so after so many tokens, up to a factor.

    ends: (state, kind of end), whether a sequence that ends in the state has such an end.
    """
    ways = [ends.astype(np.float64)]
    for _ in range(n_ctx):
        before = sum((ways[-1][following] for following in automaton.transitions.T), np.zeros_like(ways[-1]))
        largest = before.max(axis=0)
        ways.append(before / np.where(largest > 0, largest, 1.0))
    occurs = ways[-1][automaton.start] > 0
    return torch.from_numpy(np.stack([each[:, occurs] for each in reversed(ways)]))
