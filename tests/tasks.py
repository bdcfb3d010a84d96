"""Tasks that are not max-of-K, as small automata, with a plain function that says the same."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compactproofs.tasks import NO_LABEL, AbstractTask, LabellingAutomaton


@dataclass(frozen=True)
class Named(AbstractTask):
    """A task of `KINDS` by its name."""

    kind: str
    n_ctx: int
    d_vocab: int

    @property
    def spec(self):
        return self.kind

    @property
    def title(self):
        return f"the {self.kind} of {self.n_ctx} tokens"

    @cached_property
    def automaton(self):
        return KINDS[self.kind][0](self.d_vocab)

    def label_of(self, sequence):
        return KINDS[self.kind][1](sequence)


def _minimum(v):
    tokens = np.arange(v)
    return LabellingAutomaton(np.minimum.outer(tokens, tokens), tokens, v - 1)


def _parity(v):
    tokens = np.arange(v)
    return LabellingAutomaton(np.stack([tokens % 2, 1 - tokens % 2]), np.array([0, 1]), 0)


def _first(v):
    tokens = np.arange(v)
    return LabellingAutomaton(np.vstack([np.repeat(tokens[:, None], v, axis=1), tokens]), np.append(tokens, 0), v)


def _last(v):
    tokens = np.arange(v)
    return LabellingAutomaton(np.tile(tokens, (v, 1)), tokens, 0)


def _has_zero(v):
    """Label 4, which need not be a token, if a zero occurs, else 1."""
    after = (np.arange(v) == 0).astype(np.int64)
    return LabellingAutomaton(np.stack([after, np.ones(v, dtype=np.int64)]), np.array([1, 4]), 0)


def _mostly_zero(v):
    """Label 0 if more than half of the first tokens (at most 9) are zero, else 2: several states accept each label."""
    states = [(zeros, others) for zeros in range(10) for others in range(10)]
    number = {state: i for i, state in enumerate(states)}
    step = [[number[min(z + (t == 0), 9), min(o + (t > 0), 9)] for t in range(v)] for z, o in states]
    return LabellingAutomaton(np.array(step), np.array([0 if z > o else 2 for z, o in states]), number[0, 0])


KINDS = {
    "minimum": (_minimum, min),
    "parity": (_parity, lambda x: sum(x) % 2),
    "first": (_first, lambda x: x[0]),
    "last": (_last, lambda x: x[-1]),
    "mostly zero": (_mostly_zero, lambda x: 0 if 2 * x.count(0) > len(x) else 2),
    "has zero": (_has_zero, lambda x: 4 if 0 in x else 1),
}


@dataclass(frozen=True, eq=False)
class Random(AbstractTask):
    """A random automaton, some of whose states have no label, and random masses, some of them 0."""

    seed: int
    n_ctx: int
    d_vocab: int
    outputs: int

    spec = "random"
    title = "what a random automaton says"

    @cached_property
    def automaton(self):
        rng = np.random.default_rng(self.seed)
        n = int(rng.integers(2, 6))
        labels = rng.integers(NO_LABEL, self.outputs, n)
        labels[rng.integers(n)], labels[rng.integers(n)] = NO_LABEL, 0
        return LabellingAutomaton(rng.integers(0, n, (n, self.d_vocab)), labels, int(rng.integers(n)))

    @cached_property
    def masses(self):
        rng = np.random.default_rng(1000 + self.seed)
        masses = rng.integers(0, 5, (self.n_ctx, self.d_vocab))
        masses[:, rng.integers(self.d_vocab)] += 1
        return masses << (13 if self.seed % 3 == 2 else 0)  # the mass of everything is then beyond 64 bits, or not

    @cached_property
    def allowed(self):
        return self.masses > 0


def mass_of(task, x):
    """The mass of a sequence, from the definition."""
    return 1 if task.masses is None else math.prod(int(task.masses[i, t]) for i, t in enumerate(x))
