"""Distributions: how likely each sequence is, as exact integer masses of tokens at positions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from compactproofs.errors import TaskError
from compactproofs.tasks.automaton import AbstractTask, LabellingAutomaton
from compactproofs.tasks.label_automaton import LabelAutomaton

_WEIGHT = re.compile(r"\d{1,18}(\.\d{1,18}|/[1-9]\d{0,17})?", re.ASCII)
LARGEST_MASS = 1 << 40
"""The masses of one position add up to this at most."""


@dataclass(frozen=True)
class Product:
    """Tokens are independent; those of each position have weights.

    Example:
        >>> distribution = Product.from_text("product:1/2,0.25,0.25")
        >>> distribution.masses(n_ctx=2, d_vocab=3).tolist()
        [[2, 1, 1], [2, 1, 1]]
    """

    weights: tuple[tuple[Fraction, ...], ...]
    """One list of weights, for every position; or as many as there are positions."""
    name: str = ""
    """How the theorem calls it."""

    def __post_init__(self) -> None:
        if not self.weights or any(not any(row) or min(row) < 0 for row in self.weights):
            raise TaskError("a distribution needs weights that are not negative, and one of each position that is positive")

    @classmethod
    def from_text(cls, text: str) -> Product:
        """`product:w0,w1,...` or `product:...;...`: a weight is an integer, a decimal or a fraction such as 1/3."""
        kind, _, lists = text.partition(":")
        if kind != "product":
            raise TaskError(f"{text!r:.60} is no product distribution; expected product:w0,w1,... with a weight for every token")
        return cls(tuple(tuple(weight(w, text) for w in row.split(",")) for row in lists.split(";")), text)

    def masses(self, n_ctx: int, d_vocab: int) -> np.ndarray:
        """(n_ctx, d_vocab): the weights of each position as the smallest integers that are in the same proportion."""
        if len(self.weights) not in (1, n_ctx):
            raise TaskError(f"a distribution with weights for {len(self.weights)} positions; expected 1 list (for all of them) or {n_ctx}")
        lengths = {len(row) for row in self.weights}
        if lengths != {d_vocab}:
            raise TaskError(
                f"a distribution with lists of {', '.join(map(str, sorted(lengths)))} weights; expected {d_vocab}, one per token"
            )
        rows = [integers(row) for row in self.weights]
        return np.array(rows if len(rows) == n_ctx else rows * n_ctx, dtype=np.int64)


def weight(text: str | int, where: str) -> Fraction:
    """A weight, exactly. Of JSON, integers and strings only: a decimal there would have been rounded."""
    if isinstance(text, bool) or not isinstance(text, str | int) or not _WEIGHT.fullmatch(str(text)):
        raise TaskError(f"{where:.60}: {text!r:.40} is no weight; expected an integer, a decimal or a fraction, such as 3, 0.25 or 1/3")
    return Fraction(str(text))


def integers(row: Sequence[Fraction]) -> list[int]:
    """Weights as the smallest integers in the same proportion; one of them is positive."""
    scale = math.lcm(*(w.denominator for w in row))
    found = [int(w * scale) for w in row]
    found = [n // math.gcd(*found) for n in found]
    if sum(found) > LARGEST_MASS:
        raise TaskError(f"as integers the weights of a position add up to {sum(found)}, more than 2^40; expected fewer digits")
    return found


@dataclass(frozen=True, eq=False)
class Weighted(AbstractTask):
    """The task `inner`, of sequences that are not equally likely.

    Example:
        >>> from compactproofs.tasks import MaxOfK
        >>> task = Weighted(MaxOfK(n_ctx=2, d_vocab=3), Product.from_text("product:2,1,1"))
        >>> task.total, task.total_in_words
        (16, 'mass 16 of the')
        >>> task.inputs_in_words
        'sequences of 2 tokens from 0 to 2, weighted by product:2,1,1 (a sequence has the product of the weights of its tokens),'
    """

    inner: AbstractTask
    distribution: Product

    def __post_init__(self) -> None:
        self.masses  # noqa: B018 - refuses what does not fit

    @property
    def n_ctx(self) -> int:  # type: ignore[override]
        return self.inner.n_ctx

    @property
    def d_vocab(self) -> int:  # type: ignore[override]
        return self.inner.d_vocab

    @property
    def spec(self) -> str:
        return self.inner.spec

    @property
    def title(self) -> str:
        return self.inner.title

    @cached_property
    def automaton(self) -> LabellingAutomaton:
        return self.inner.automaton

    def label_automaton(self, label: int) -> LabelAutomaton:
        return self.inner.label_automaton(label)

    @cached_property
    def masses(self) -> np.ndarray:
        masses = self.distribution.masses(self.n_ctx, self.d_vocab)
        if self.inner.masses is not None and (not self.inner.uniform or bool((masses > 0)[self.inner.masses == 0].any())):
            raise TaskError("a distribution of a task that has one, or that does not allow some of its tokens")
        masses.setflags(write=False)
        return masses

    @cached_property
    def allowed(self) -> np.ndarray | None:
        allowed = self.masses > 0
        return None if allowed.all() else allowed

    def of_length(self, n_ctx: int) -> Weighted:
        if n_ctx == self.n_ctx:
            return self
        rows = self.distribution.weights
        return Weighted(self.inner.of_length(n_ctx), Product(rows if len(rows) == 1 else rows[:n_ctx], self.distribution.name))

    @property
    def narrowed(self) -> str:
        name = self.distribution.name if len(self.distribution.name) <= _LONG else f"{self.distribution.name[:_LONG]}..."
        name = name or f"masses of their own, question {self.sha256[:16]},"
        return f"{self.inner.narrowed}, weighted by {name} (a sequence has the product of the weights of its tokens),"


_LONG = 200
