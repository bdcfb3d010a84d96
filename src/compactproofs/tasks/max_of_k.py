"""Max-of-K: answer with the largest of n_ctx tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from compactproofs.errors import TaskError
from compactproofs.tasks.automaton import AbstractTask, LabellingAutomaton
from compactproofs.tasks.described import Described
from compactproofs.tasks.label_automaton import LabelAutomaton

DESCRIBED = Described(
    usage="max",
    title="the largest token",
    example="max",
    definition="The largest of all tokens; it does not matter how often it occurs. The task of the paper, and the default.",
    remembers="The largest token so far: `d_vocab` states, however long the sequences.",
)


@dataclass(frozen=True)
class MaxOfK(AbstractTask):
    """The right output is the largest token.

    Example:
        >>> task = MaxOfK(n_ctx=3, d_vocab=5)
        >>> task.total, task.automaton.label_totals(3)
        (125, {0: 1, 1: 7, 2: 19, 3: 37, 4: 61})
    """

    n_ctx: int
    """Sequence length K."""
    d_vocab: int
    """Tokens are 0 .. d_vocab - 1."""

    def __post_init__(self) -> None:
        if self.n_ctx < 1 or self.d_vocab < 1:
            raise TaskError(f"max-of-K needs n_ctx >= 1 and d_vocab >= 1, got n_ctx={self.n_ctx}, d_vocab={self.d_vocab}")

    @property
    def spec(self) -> str:
        return "max"

    @property
    def title(self) -> str:
        return DESCRIBED.title

    @cached_property
    def automaton(self) -> LabellingAutomaton:
        """State = largest token so far; before the first token 0 serves, as no token is smaller."""
        tokens = np.arange(self.d_vocab)
        return LabellingAutomaton(transitions=np.maximum.outer(tokens, tokens), labels=tokens, start=0)

    @property
    def labels(self) -> list[int]:
        return list(range(self.d_vocab))

    def of_length(self, n_ctx: int) -> MaxOfK:
        return replace(self, n_ctx=n_ctx)

    def label_automaton(self, label: int) -> LabelAutomaton:
        """Two states, has the label been seen or not; tokens above it do not occur. (For label 0 one state is enough.)"""
        tokens = np.arange(label + 1)
        if label == 0:
            return LabelAutomaton(tokens, np.zeros((1, 1), dtype=np.int64), np.ones(1, dtype=bool), 0)
        following = np.stack([(tokens == label).astype(np.int64), np.ones(label + 1, dtype=np.int64)])
        return LabelAutomaton(tokens, following, np.array([False, True]), 0)
