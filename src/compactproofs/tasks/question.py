"""A question: which sequences, how likely each is, and by how much the right output has to win."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from compactproofs.errors import TaskError
from compactproofs.tasks.automaton import NO_LABEL, AbstractTask
from compactproofs.tasks.label_automaton import DEAD, LabelAutomaton

REAL, FLOAT32 = "real", "float32-any-order"
"""What a theorem is about: the network over the real numbers, or every float32 evaluation of it (by an error model, as a margin)."""

_LARGEST_MASS = 1 << 40


@dataclass(frozen=True, eq=False)
class Question:
    """How much of the inputs does the network answer right, `by` the margin?

    Law: the mass of a sequence is the product of masses[i, x_i]; with `masses` None it is what the task says, 1 if it says nothing.
    Sequences without a label are outside the question.
    """

    task: AbstractTask
    masses: np.ndarray | None = None
    """(n_ctx, d_vocab): integers, not negative."""
    margin: np.ndarray | None = None
    """(query, label): the label must win by more than this; if negative, it may lose by less than so much. None: it must win."""
    semantics: str = REAL

    def __post_init__(self) -> None:
        if self.margin is not None:
            margin = np.asarray(self.margin, dtype=np.float64)
            if margin.ndim != 2 or len(margin) != self.task.d_vocab or not np.isfinite(margin).all():
                raise TaskError(f"a margin of shape {margin.shape}; expected finite numbers, (query, label)")
            object.__setattr__(self, "margin", margin)
        if self.masses is None and self.task.masses is not None:
            object.__setattr__(self, "masses", self.task.masses)
        if self.masses is None:
            return
        masses = np.asarray(self.masses)
        if masses.shape != (self.task.n_ctx, self.task.d_vocab) or masses.dtype.kind not in "iu":
            sizes = f"({self.task.n_ctx}, {self.task.d_vocab})"
            raise TaskError(f"masses of shape {masses.shape} and type {masses.dtype}; expected integers, (n_ctx, d_vocab) = {sizes}")
        if masses.min() < 0 or not all(0 < sum(row) <= _LARGEST_MASS for row in masses.tolist()):
            raise TaskError(f"masses must not be negative, and those of a position must add up to something, at most {_LARGEST_MASS}")
        if self.task.allowed is not None and bool((masses > 0)[~self.task.allowed].any()):
            raise TaskError("a token has a mass at a position where the task does not allow it")
        own = masses.astype(np.int64)
        own.setflags(write=False)
        object.__setattr__(self, "masses", own)

    @cached_property
    def sha256(self) -> str:
        """Names the question: the task, the masses, the margin, and what the theorem is about."""
        margins = self.margin if self.semantics == REAL and self.margin is not None and self.margin.any() else np.zeros((1, 1))
        same, first = bool((margins == margins.flat[0]).all()), Fraction(float(margins.flat[0]))
        asked = [] if same and first == 0 else [f"margin {first.numerator}/{first.denominator}" if same else "margins"]
        lines = [f"compactproofs-question-{1 + len(asked)}", self.task.automaton_sha256, self.semantics, *asked, ""]
        digest = hashlib.sha256("\n".join(lines).encode("ascii"))
        digest.update(b"uniform" if self.masses is None else self.masses.astype("<i8").tobytes())
        if not same:
            digest.update(np.asarray(margins, dtype="<f8").tobytes())
        return digest.hexdigest()

    @cached_property
    def uniform(self) -> bool:
        """Whether every sequence has mass 1, or none."""
        return self.masses is None or bool((self.masses <= 1).all())

    @cached_property
    def total(self) -> int:
        """The mass of all sequences that have a label."""
        if self.masses is None:
            return self.task.total
        rows: list[list[int]] = self.masses.tolist()
        left_out = self.task.automaton.label_masses(rows).get(NO_LABEL, 0) if self.task.partial else 0
        return math.prod(sum(row) for row in rows) - left_out

    def label_automaton(self, label: int) -> LabelAutomaton:
        """The sequences of one label."""
        if label not in self._automata:
            self._automata[label] = self.task.label_automaton(label)
        return self._automata[label]

    @cached_property
    def _automata(self) -> dict[int, LabelAutomaton]:
        return {}

    def masses_of(self, tokens: np.ndarray) -> np.ndarray:
        """(n_ctx, len(tokens))"""
        if self.masses is None:
            return np.ones((self.task.n_ctx, len(tokens)), dtype=np.int64)
        return np.ascontiguousarray(self.masses[:, tokens])

    def totals_by_last(self, label: int) -> list[int]:
        """The mass of the sequences that carry the label and end in each of its tokens. Exact integers."""
        if label not in self._totals:
            a = self.label_automaton(label)
            masses = self.masses_of(a.tokens).tolist()
            counts = {a.start: 1}
            for i in range(self.task.n_ctx - 1):
                after: dict[int, int] = {}
                for state, count in counts.items():
                    for z, mass in _moves(a.following[state].tolist(), masses[i]).items():
                        after[z] = after.get(z, 0) + count * mass
                counts = after
            ends = [
                sum(count for state, count in counts.items() if column[state] != DEAD and a.accepting[column[state]])
                for column in a.following.T.tolist()
            ]
            self._totals[label] = [count * mass for count, mass in zip(ends, masses[-1], strict=True)]
        return self._totals[label]

    @cached_property
    def _totals(self) -> dict[int, list[int]]:
        return {}

    def mass_of(self, sequence: list[int] | tuple[int, ...]) -> int:
        """The mass of one sequence."""
        return 1 if self.masses is None else math.prod(int(self.masses[i, t]) for i, t in enumerate(sequence))


def _moves(following: list[int], masses: list[int]) -> dict[int, int]:
    """The mass of the tokens that lead to each state."""
    found: dict[int, int] = {}
    for z, mass in zip(following, masses, strict=True):
        if z != DEAD:
            found[z] = found.get(z, 0) + mass
    return found
