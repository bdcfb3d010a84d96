"""Markov chains: how likely a token is depends on the token before it. A chain is a region of a product distribution over copies of tokens.

Proofs know a mass for each token at each position, and automata. So token t gets copies: each has a mass, and may follow some tokens only.
The copies that may follow s have together the mass M(s, t) of the step from s to t. Sequences with a copy where it may not stand have no
label, and the copies of a sequence x together have the mass M0(x_0) M(x_0, x_1) ... M(x_(n-2), x_(n-1)): what the chain says.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from compactproofs.errors import TaskError
from compactproofs.tasks.automaton import NO_LABEL, AbstractTask, LabellingAutomaton
from compactproofs.tasks.distributions import LARGEST_MASS, integers
from compactproofs.tasks.framed import Framed
from compactproofs.tasks.label_automaton import DEAD, LabelAutomaton, minimal_automaton

_MOST_COPIES = 1024
_MOST_MOVES = 6 * 10**6


@dataclass(frozen=True)
class Chain:
    """The first token has weights, and after each token the next one has weights of its own.

    Example:
        >>> half = Fraction(1, 2)
        >>> chain = Chain((half, half), ((Fraction(3), Fraction(1)), (half, half)))
        >>> chain.starts, chain.moves, chain.mass_everywhere(3)
        ((1, 1), ((3, 1), (2, 2)), 32)
    """

    initial: tuple[Fraction, ...]
    """One weight per token."""
    transition: tuple[tuple[Fraction, ...], ...]
    """transition[s][t]: the weight of t after s; only the proportions within a row matter."""
    name: str = ""
    """How the theorem calls it."""

    def __post_init__(self) -> None:
        v = len(self.initial)
        lengths = {len(row) for row in self.transition}
        if not v or len(self.transition) != v or lengths != {v}:
            rows = f"{len(self.transition)} rows of {', '.join(map(str, sorted(lengths))) or 'no'} weights"
            raise TaskError(f"a Markov chain with {v} initial weights and {rows}; expected as many rows, and weights in each, as tokens")
        if min(self.initial) < 0 or any(min(row) < 0 for row in self.transition) or not any(self.initial):
            raise TaskError("a Markov chain needs weights that are not negative, and an initial one that is positive")
        stuck = [s for s in self.occurring if not any(self.transition[s])]
        if stuck:
            raise TaskError(
                f"a Markov chain in which token {stuck[0]} occurs and nothing can follow it; expected a positive weight in its row"
            )
        if self.step > LARGEST_MASS or sum(self.starts) > LARGEST_MASS:
            largest = max(self.step, sum(self.starts))
            raise TaskError(
                f"as integers the weights of a Markov chain add up to {largest} in each row, more than 2^40; expected fewer digits"
            )

    @cached_property
    def occurring(self) -> tuple[int, ...]:
        """Tokens that can occur, ascending."""
        seen = {t for t, w in enumerate(self.initial) if w}
        fresh = set(seen)
        while fresh:
            fresh = {t for s in fresh for t, w in enumerate(self.transition[s]) if w} - seen
            seen |= fresh
        return tuple(sorted(seen))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The initial weights as the smallest integers in the same proportion."""
        return tuple(integers(self.initial))

    @cached_property
    def step(self) -> int:
        """What the integers of each row add up to."""
        return math.lcm(*(sum(integers(self.transition[s])) for s in self.occurring))

    @cached_property
    def moves(self) -> tuple[tuple[int, ...], ...]:
        """The rows as integers that all have the sum `step`; those of tokens that do not occur are 0.

        Law: the probability of a sequence is starts[x_0] moves[x_0][x_1] ... / mass_everywhere.
        """
        rows: list[tuple[int, ...]] = [(0,) * len(self.initial)] * len(self.initial)
        for s in self.occurring:
            row = integers(self.transition[s])
            rows[s] = tuple(w * (self.step // sum(row)) for w in row)
        return tuple(rows)

    def mass_everywhere(self, n_ctx: int) -> int:
        """The mass of all sequences of so many tokens."""
        return int(sum(self.starts) * self.step ** (n_ctx - 1))

    def weigh(self, sequences: np.ndarray) -> np.ndarray:
        """The mass of each sequence (one per row), exactly: 64-bit integers, or Python's where these might not be enough."""
        kind: type = np.int64 if self.mass_everywhere(sequences.shape[1]) < 1 << 62 else object
        starts: np.ndarray = np.array(self.starts, dtype=kind)
        moves: np.ndarray = np.array(self.moves, dtype=kind)
        found: np.ndarray = starts[sequences[:, 0]]
        for i in range(1, sequences.shape[1]):
            found = found * moves[sequences[:, i - 1], sequences[:, i]]
        return found

    def drawn(self, generator: np.random.Generator, n_ctx: int, size: int) -> np.ndarray:
        """So many sequences, independent, each as likely as its mass says; exactly so."""
        ends = np.cumsum(np.array(self.moves, dtype=np.int64), axis=1)
        rows = np.empty((size, n_ctx), dtype=np.int64)
        rows[:, 0] = np.searchsorted(np.cumsum(self.starts), generator.integers(0, sum(self.starts), size=size), side="right")
        for i in range(1, n_ctx):
            chosen = generator.integers(0, self.step, size=size)
            for s in np.unique(rows[:, i - 1]).tolist():
                here = rows[:, i - 1] == s
                rows[here, i] = np.searchsorted(ends[s], chosen[here], side="right")
        return rows

    @cached_property
    def title(self) -> str:
        """What a theorem says of it."""
        if self.name:
            return self.name
        text = f"compactproofs-chain-1\n{self.starts}\n{self.moves}\n"
        return f"of SHA-256 {hashlib.sha256(text.encode('ascii')).hexdigest()[:16]}..."


@dataclass(frozen=True, eq=False)
class Copies:
    """Copies of tokens. The first d_vocab of them are the tokens themselves, in order.

    Law: for all tokens s that occur, and t: the masses of the copies of t that may follow s add up to moves[s][t].
    """

    tokens: np.ndarray
    """(copies,): of which token."""
    masses: np.ndarray
    """(copies,): 0 for tokens that follow none."""
    follows: np.ndarray
    """(d_vocab, copies): whether the copy may follow the token."""

    @classmethod
    def of(cls, chain: Chain) -> Copies:
        moves = chain.moves
        v = len(moves)
        columns = [_summands([row[t] for row in moves]) for t in range(v)]
        order = [(t, own[0]) for t, own in enumerate(columns)] + [(t, one) for t, own in enumerate(columns) for one in own[1:]]
        if len(order) > _MOST_COPIES:
            raise TaskError(
                f"the Markov chain needs {len(order)} copies of its {v} tokens, more than {_MOST_COPIES}: a column of its transitions "
                "needs as many as it has different weights (of integers in proportion), or as these have binary digits; expected fewer, or "
                "rounder, weights"
            )
        tokens = np.array([t for t, _ in order], dtype=np.int64)
        masses = np.array([mass for _, (mass, _) in order], dtype=np.int64)
        return cls(tokens, masses, np.array([after for _, (_, after) in order], dtype=bool).T)


_Summand = tuple[int, list[bool]]


def _summands(column: list[int]) -> list[_Summand]:
    """Numbers as sums of few: each summand is a mass and says in which of the numbers it is. One of mass 0 if all are 0.

    Either the steps from one number to the next larger one, or powers of two: whatever is fewer.
    """
    steps = sorted({0, *column})
    bits = [b for b in range(max(column).bit_length()) if any(n >> b & 1 for n in column)]
    if not bits:
        return [(0, [False] * len(column))]
    if len(steps) - 1 <= len(bits):
        return [(high - low, [n >= high for n in column]) for low, high in pairwise(steps)]
    return [(1 << b, [bool(n >> b & 1) for n in column]) for b in bits]


@dataclass(frozen=True, eq=False)
class Chained(AbstractTask):
    """The task `inner` of a Markov chain, asked about copies of its tokens (`copies`); its masses are those of the chain.

    Law: the masses of the copies of a sequence that have a label add up to its mass in the chain, and that label is the one of `inner`.

    Example:
        >>> from compactproofs.tasks import MaxOfK
        >>> one, three = Fraction(1), Fraction(3)
        >>> task = Chained(MaxOfK(n_ctx=3, d_vocab=2), Chain((one, one), ((three, one), (one, one))))
        >>> task.d_vocab, task.total, task.automaton.label_masses(task.masses.tolist())[0]
        (4, 32, 9)
    """

    inner: AbstractTask
    chain: Chain

    def __post_init__(self) -> None:
        if self.inner.masses is not None or isinstance(self.inner, Framed):
            raise TaskError("a Markov chain of a task that has a distribution or fixed tokens")
        if len(self.chain.initial) != self.inner.d_vocab:
            raise TaskError(f"a Markov chain of {len(self.chain.initial)} tokens; expected {self.inner.d_vocab}, as the model has")
        size = self.inner.automaton.n_states * len(self._kinds[0]) * self.d_vocab
        if size > _MOST_MOVES:
            raise TaskError(
                f"the task's automaton has {self.inner.automaton.n_states} states, the Markov chain {len(self._kinds[0])} different rows "
                f"and {self.d_vocab} copies of tokens: together {size} moves, more than {_MOST_MOVES}; expected a smaller vocabulary, a "
                "simpler task, or a chain with fewer different rows or weights"
            )
        if int(self.copies.masses.sum()) > LARGEST_MASS:
            raise TaskError("the integers of a Markov chain add up to more than 2^40; expected weights with fewer digits")

    @cached_property
    def copies(self) -> Copies:
        return Copies.of(self.chain)

    @property
    def n_ctx(self) -> int:  # type: ignore[override]
        return self.inner.n_ctx

    @property
    def d_vocab(self) -> int:  # type: ignore[override]
        return len(self.copies.tokens)

    @property
    def spec(self) -> str:
        return self.inner.spec

    @property
    def title(self) -> str:
        return self.inner.title

    @cached_property
    def masses(self) -> np.ndarray:
        masses = np.tile(self.copies.masses, (self.n_ctx, 1))
        masses[0] = 0
        masses[0, : self.inner.d_vocab] = self.chain.starts
        masses.setflags(write=False)
        return masses

    @cached_property
    def allowed(self) -> np.ndarray:
        return self.masses > 0

    @cached_property
    def _kinds(self) -> tuple[np.ndarray, np.ndarray]:
        """What may follow, for each kind of tokens: (kinds, copies); and the kind of each token that occurs."""
        rows, kinds = np.unique(self.copies.follows[list(self.chain.occurring)], axis=0, return_inverse=True)
        kind_of = np.zeros(self.inner.d_vocab, dtype=np.int64)
        kind_of[list(self.chain.occurring)] = kinds.reshape(-1)
        return rows, kind_of

    @cached_property
    def automaton(self) -> LabellingAutomaton:
        return self._followed(self.inner.automaton)

    def label_automaton(self, label: int) -> LabelAutomaton:
        small = self._followed(_labelling(self.inner.label_automaton(label), self.inner.d_vocab, label))
        return minimal_automaton(small.transitions, small.labels, small.start, label)

    def _followed(self, task: LabellingAutomaton) -> LabellingAutomaton:
        """Reads copies as `task` reads their tokens, and remembers which kind the last token is; no label once a copy stood wrongly."""
        rows, kind_of = self._kinds
        n, tokens = task.n_states, self.copies.tokens
        start, dead = n * len(rows), n * len(rows) + 1
        after = task.transitions[:, tokens] * len(rows) + kind_of[tokens]  # (state, copy)
        moves = np.where(rows[None], after[:, None], dead).reshape(-1, len(tokens))
        first = np.where(self.masses[0] > 0, after[task.start], dead)
        transitions = np.vstack([moves, first, np.full(len(tokens), dead)])
        labels = np.concatenate([np.repeat(task.labels, len(rows)), [NO_LABEL, NO_LABEL]])
        return _reached(transitions, labels, start)

    @property
    def inputs_in_words(self) -> str:
        return f"{self.inner.inputs_in_words.rstrip(',')}, weighted by the Markov chain {self.chain.title},"

    @property
    def narrowed(self) -> str:
        return f"{self.inner.narrowed} (copies of tokens, weighted by the Markov chain {self.chain.title})"


def _labelling(a: LabelAutomaton, d_vocab: int, label: int) -> LabellingAutomaton:
    """An automaton of one label as one that gives this label, or none."""
    dead = len(a.following)
    transitions = np.full((dead + 1, d_vocab), dead, dtype=np.int64)
    transitions[:dead, a.tokens] = np.where(a.following == DEAD, dead, a.following)
    return LabellingAutomaton(transitions, np.append(np.where(a.accepting, label, NO_LABEL), NO_LABEL), a.start)


def _reached(transitions: np.ndarray, labels: np.ndarray, start: int) -> LabellingAutomaton:
    """The states that can be reached, numbered anew."""
    seen = np.zeros(len(transitions), dtype=bool)
    fresh = np.array([start])
    while len(fresh):
        seen[fresh] = True
        fresh = np.unique(transitions[fresh])
        fresh = fresh[~seen[fresh]]
    number = np.cumsum(seen) - 1
    return LabellingAutomaton(number[transitions[seen]], labels[seen], int(number[start]))
