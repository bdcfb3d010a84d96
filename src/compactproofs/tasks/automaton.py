"""A task is a small automaton that reads a token sequence and names the right output.

Any task with a finite memory fits: maximum, minimum, first, k-th, parity, majority, sum modulo p. Brute force and
counting programmes work on the automaton alone and never ask which task it is.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int

from compactproofs.errors import TaskError
from compactproofs.tasks.label_automaton import LabelAutomaton, minimal_automaton

NO_LABEL = -1
"""Instead of a label: there is no right output. Such sequences are outside the question and its total."""


@dataclass(frozen=True, eq=False)
class LabellingAutomaton:
    """Deterministic automaton: start in `start`, follow `transitions[state, token]`, answer `labels[state]`."""

    transitions: np.ndarray
    """Next state for each state and token: (n_states, d_vocab), integers."""
    labels: np.ndarray
    """The right output if the sequence ends in this state, or `NO_LABEL`: (n_states,), integers."""
    start: int
    """State before the first token."""

    def __post_init__(self) -> None:
        for name in ("transitions", "labels"):
            if not isinstance(getattr(self, name), np.ndarray):
                raise TaskError(f"automaton whose {name} are a {type(getattr(self, name)).__name__}; expected a numpy array of integers")
        n_states = self.transitions.shape[0] if self.transitions.ndim else 0
        if self.transitions.ndim != 2 or self.labels.shape != (n_states,) or n_states < 1 or self.transitions.shape[1] < 1:
            shapes = f"transitions {self.transitions.shape} and labels {self.labels.shape}"
            raise TaskError(f"automaton with {shapes}; expected (states, tokens) and (states,)")
        if self.transitions.dtype.kind not in "iu" or self.labels.dtype.kind not in "iu":
            raise TaskError("automaton with states or labels that are not integers")
        inside = int(self.transitions.min()) >= 0 and int(self.transitions.max()) < n_states
        good_labels = int(self.labels.min()) >= NO_LABEL and int(self.labels.max()) < 2**31
        if not inside or not good_labels or not 0 <= self.start < n_states:
            raise TaskError(f"automaton with {n_states} states has a state or a label out of range")
        for name in ("transitions", "labels"):  # a copy of our own, in the machine's byte order
            own = np.array(getattr(self, name), dtype=np.int64, order="C")
            own.setflags(write=False)
            object.__setattr__(self, name, own)
        object.__setattr__(self, "start", int(self.start))

    @property
    def n_states(self) -> int:
        return int(self.transitions.shape[0])

    def label(self, tokens: Int[np.ndarray, "batch n_ctx"]) -> Int[np.ndarray, "batch"]:
        """The right output of each sequence (one per row), or `NO_LABEL`."""
        tokens = np.asarray(tokens)
        state = np.full(len(tokens), self.start, dtype=np.int64)
        for position in range(tokens.shape[1]):
            state = self.transitions[state, tokens[:, position]]
        return self.labels[state]

    def label_totals(self, n_ctx: int) -> dict[int, int]:
        """How many of the d_vocab^n_ctx sequences carry each label (or `NO_LABEL`). Exact integers."""
        return self.label_masses([[1] * self.transitions.shape[1]] * n_ctx)

    def label_masses(self, masses: Sequence[Sequence[int]]) -> dict[int, int]:
        """The mass of the sequences of each label (or `NO_LABEL`), a sequence having the product of masses[i][x_i]. Exact integers."""
        counts = {self.start: 1}
        ways_of: dict[tuple[int, tuple[int, ...]], dict[int, int]] = {}  # by state and row of masses: the mass that leads to each state
        for row in map(tuple, masses):
            following: dict[int, int] = {}
            for state, count in counts.items():
                if (state, row) not in ways_of:
                    ways: dict[int, int] = {}
                    for successor, mass in zip(self.transitions[state].tolist(), row, strict=True):
                        ways[successor] = ways.get(successor, 0) + mass
                    ways_of[state, row] = {successor: mass for successor, mass in ways.items() if mass}
                for successor, mass in ways_of[state, row].items():
                    following[successor] = following.get(successor, 0) + count * mass
            counts = following
        totals: dict[int, int] = {}
        for state, count in counts.items():
            label = int(self.labels[state])
            totals[label] = totals.get(label, 0) + count
        return dict(sorted(totals.items()))


class AbstractTask(ABC):
    """What a proof needs to know about a task.

    Law: `automaton.label(x)` is the right output of every sequence x of `n_ctx` tokens below `d_vocab` that `allowed` admits, or
    `NO_LABEL`; `total` is the mass of those that have a label, their number unless `masses` say otherwise.
    """

    n_ctx: int
    d_vocab: int

    @property
    @abstractmethod
    def spec(self) -> str:
        """The string that recreates the task for a model of known size (`--task`), for example `max`."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The task in words, for the statement of a theorem."""

    @cached_property
    @abstractmethod
    def automaton(self) -> LabellingAutomaton:
        """The labelling automaton."""

    @cached_property
    def allowed(self) -> np.ndarray | None:
        """(n_ctx, d_vocab): booleans, which token may stand where; None if every token may stand everywhere."""
        return None

    @cached_property
    def masses(self) -> np.ndarray | None:
        """(n_ctx, d_vocab): integers. A sequence has the product of the masses of its tokens; None: every sequence has mass 1.

        Law: positive where `allowed` admits a token, else 0.
        """
        return None if self.allowed is None else self.allowed.astype(np.int64)

    @cached_property
    def uniform(self) -> bool:
        """Whether all sequences that are allowed have mass 1."""
        return self.masses is None or int(self.masses.max()) <= 1

    @cached_property
    def sha256(self) -> str:
        """Names the task: two tasks with the same hash ask the same question."""
        if not self.uniform and self.masses is not None:
            return hashlib.sha256(f"{self.automaton_sha256}\nmasses\n".encode("ascii") + self.masses.astype("<i8").tobytes()).hexdigest()
        if self.allowed is None:
            return self.automaton_sha256
        return hashlib.sha256(f"{self.automaton_sha256}\n".encode("ascii") + self.allowed.tobytes()).hexdigest()

    @cached_property
    def automaton_sha256(self) -> str:
        """Names the labels of all sequences, whether they are allowed or not."""
        a = self.automaton
        header = f"compactproofs-task-1\nn_ctx {self.n_ctx}\nstates {a.n_states}\ntokens {self.d_vocab}\nstart {a.start}\n"
        digest = hashlib.sha256(header.encode("ascii"))
        digest.update(a.transitions.astype("<i8").tobytes())
        digest.update(a.labels.astype("<i8").tobytes())
        return digest.hexdigest()

    @property
    def labels(self) -> list[int]:
        """Labels that some sequence carries, ascending."""
        return sorted({int(self.automaton.labels[state]) for state in self._last_states()} - {NO_LABEL})

    @cached_property
    def partial(self) -> bool:
        """Whether there are sequences without a label."""
        return bool((self.automaton.labels == NO_LABEL).any()) and any(self.automaton.labels[s] == NO_LABEL for s in self._last_states())

    def _last_states(self) -> set[int]:
        """The states in which some sequence ends."""
        states, transitions = {self.automaton.start}, self.automaton.transitions
        for i in range(self.n_ctx):
            moves = transitions[sorted(states)]
            states = set((moves if self.allowed is None else moves[:, self.allowed[i]]).ravel().tolist())
        return states

    def label_automaton(self, label: int) -> LabelAutomaton:
        """The smallest automaton that accepts the sequences of one label."""
        a = self.automaton
        return minimal_automaton(a.transitions, a.labels, a.start, label)

    def of_length(self, n_ctx: int) -> AbstractTask:
        """The same task for sequences that end earlier: what the right output is at position n_ctx - 1.

        Law: it has n_ctx tokens of the same vocabulary, and allows at them what this task allows there.
        """
        if n_ctx == self.n_ctx:
            return self
        raise TaskError(
            f"the task {self.spec!r} does not say what the right output is for the first {n_ctx} of {self.n_ctx} tokens, so only the last "
            f"position can be read; give {type(self).__name__} a method of_length(n_ctx)"
        )

    @cached_property
    def total(self) -> int:
        """The mass of the input sequences, those without a label left out: their number, unless `masses` say otherwise."""
        return self.mass_everywhere - (self.automaton.label_masses(self._mass_rows).get(NO_LABEL, 0) if self.partial else 0)

    @property
    def mass_everywhere(self) -> int:
        """The mass of all sequences, whether or not they have a label."""
        return int(self.d_vocab**self.n_ctx) if self.masses is None else math.prod(sum(row) for row in self._mass_rows)

    @property
    def sequences(self) -> int:
        """How many sequences there are to look at, whatever their masses, whether or not they have a label."""
        return int(self.d_vocab**self.n_ctx) if self.allowed is None else math.prod(self.allowed.sum(axis=1).tolist())

    @property
    def _mass_rows(self) -> list[list[int]]:
        return [[1] * self.d_vocab] * self.n_ctx if self.masses is None else self.masses.tolist()

    @property
    def total_in_words(self) -> str:
        """The number of input sequences as a power, and written out if that is readable."""
        return self._in_words(None if self.allowed is not None else f"{self.d_vocab}^{self.n_ctx}")

    def _in_words(self, power: str | None) -> str:
        """The total, as a power too if all sequences of equal masses have a label."""
        if not self.uniform:
            return f"mass {brief(self.total)} of the"
        if power is None or self.partial:
            return brief(self.total)
        return f"{power} = {self.total}" if self.total < 10**50 else power

    @property
    def inputs_in_words(self) -> str:
        """What the input sequences are: every one of them counts, whether or not the model was meant to see it."""
        return f"sequences of {self.n_ctx} tokens from 0 to {self.d_vocab - 1}{self.narrowed}"

    @property
    def narrowed(self) -> str:
        """What is said of the inputs besides their sizes: a region, a distribution."""
        return " that have a label" if self.partial else ""


def brief(count: int) -> str:
    """A count, written out if that is readable."""
    return str(count) if count < 10**50 else f"(more than 10^{len(str(count)) - 1})"
