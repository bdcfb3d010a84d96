"""The sequences of one label, as compiled functions see them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from compactproofs.counting.count_up import Automaton
from compactproofs.tasks.question import Question


class Subject(NamedTuple):
    """Tokens that occur with a label, masses (position, token), the automaton, and the number of the token that usually helps."""

    tokens: Any
    masses: Any
    automaton: Any
    usual: int
    label: int


def subject_of(question: Question, label: int) -> Subject:
    """The subject of one label; tokens are numbered in ascending order."""
    a = question.label_automaton(label)
    found = np.flatnonzero(a.tokens == label)
    usual = int(found[0]) if len(found) else 0
    tokens = np.ascontiguousarray(a.tokens, dtype=np.int64)
    following, accepting = np.ascontiguousarray(a.following, dtype=np.int64), np.ascontiguousarray(a.accepting, dtype=np.bool_)
    automaton = Automaton(following, accepting, int(a.start))
    return Subject(tokens, question.masses_of(tokens), automaton, usual, int(label))


def for_queries(subject: Subject, queries: np.ndarray) -> np.ndarray:
    """The masses, with the given token numbers alone at the last position."""
    masses = subject.masses.copy()
    masses[-1] = 0
    masses[-1, queries] = subject.masses[-1, queries]
    return np.ascontiguousarray(masses)
