"""A task as three things: what is remembered before the first token, how a token changes it, and which output it stands for."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from compactproofs.errors import TaskError
from compactproofs.tasks.automaton import LabellingAutomaton

Memory = TypeVar("Memory", bound=Hashable)

_MOST_MOVES = 2 * 10**6


@dataclass(frozen=True)
class Rule(Generic[Memory]):
    """How the right output is found, token by token.

    Example:
        >>> smallest = Rule(99, min, lambda least: least)
        >>> explored(smallest, n_ctx=2, d_vocab=3).label_totals(2)
        {0: 5, 1: 3, 2: 1}
    """

    start: Memory
    """What is remembered before the first token"""
    step: Callable[[Memory, int], Memory]
    """What is remembered after one more token"""
    label: Callable[[Memory], int]
    """The right output, or `NO_LABEL`; asked of what whole sequences leave behind only"""


def explored(rule: Rule[Memory], n_ctx: int, d_vocab: int, *, labelled_throughout: bool = False) -> LabellingAutomaton:
    """The automaton of a rule for sequences of n_ctx tokens.

    Law: it labels every sequence of n_ctx tokens as the rule does. What is remembered of shorter ones has no label of its own (0 stands
    there, unless the rule's label is asked `labelled_throughout`), and nothing follows what only whole sequences leave behind (a state
    follows itself there).
    """
    number: dict[Memory, int] = {rule.start: 0}
    rows: list[list[int]] = []
    level = {0}  # the states after so many tokens
    for _ in range(n_ctx):
        for memory in list(number)[len(rows) :]:  # all that were met for the first time just now
            if (len(rows) + 1) * d_vocab > _MOST_MOVES:
                raise TaskError(f"the task has to remember too much for n_ctx={n_ctx}, d_vocab={d_vocab}: more than {len(rows)} things")
            rows.append([number.setdefault(rule.step(memory, token), len(number)) for token in range(d_vocab)])
        level = {state for each in level for state in rows[each]}
    rows += [[state] * d_vocab for state in range(len(rows), len(number))]
    labels = np.zeros(len(number), dtype=np.int64)
    memories = list(number)
    for state in range(len(number)) if labelled_throughout else level:
        labels[state] = rule.label(memories[state])
    return LabellingAutomaton(np.array(rows, dtype=np.int64).reshape(len(number), d_vocab), labels, 0)
