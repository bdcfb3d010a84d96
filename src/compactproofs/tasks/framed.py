"""Sequences between fixed tokens: a BOS before them, an "=" after them, separators. The task is about what stands between.

A fixed token is a position with one token. It does not occur elsewhere, and the labelling automaton passes over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compactproofs.errors import TaskError
from compactproofs.tasks.automaton import AbstractTask, LabellingAutomaton


@dataclass(frozen=True)
class Framed(AbstractTask):
    """The task `inner` on tokens that stand between `prefix` and `suffix`.

    Example:
        >>> from compactproofs.tasks import MaxOfK
        >>> task = Framed(MaxOfK(n_ctx=2, d_vocab=5), prefix=(4,), suffix=(3,))
        >>> task.n_ctx, task.total, task.inputs_in_words
        (4, 9, 'sequences of 2 tokens from 0 to 2, after the fixed token 4 and before the fixed token 3,')
    """

    inner: AbstractTask
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for token in self.fixed:
            if not 0 <= token < self.d_vocab:
                raise TaskError(f"the fixed token {token} is none of the model's tokens, 0 to {self.d_vocab - 1}")
        if isinstance(self.inner, Framed):
            raise TaskError("fixed tokens around fixed tokens: give them together")
        if self.inner.masses is not None and bool(self.inner.masses[:, list(self.fixed)].any()):
            raise TaskError(
                f"the fixed tokens {', '.join(map(str, self.fixed))} do not occur elsewhere, but the distribution gives one of them a "
                "weight; expected 0 for these tokens"
            )
        if len(self.fixed) == self.d_vocab:
            raise TaskError("every token is a fixed token, so there is nothing to ask about")

    @property
    def fixed(self) -> tuple[int, ...]:
        """The tokens that stand at fixed places, ascending."""
        return tuple(sorted({*self.prefix, *self.suffix}))

    @property
    def n_ctx(self) -> int:  # type: ignore[override]
        return len(self.prefix) + self.inner.n_ctx + len(self.suffix)

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
        inner = self.inner.automaton
        transitions = np.array(inner.transitions)
        transitions[:, list(self.fixed)] = np.arange(inner.n_states)[:, None]
        return LabellingAutomaton(transitions, inner.labels, inner.start)

    @cached_property
    def allowed(self) -> np.ndarray:
        allowed = self.masses > 0
        allowed.setflags(write=False)
        return allowed

    @cached_property
    def masses(self) -> np.ndarray:
        masses = np.ones((self.n_ctx, self.d_vocab), dtype=np.int64)
        if self.inner.masses is not None:
            masses[len(self.prefix) : self.n_ctx - len(self.suffix)] = self.inner.masses
        masses[:, list(self.fixed)] = 0
        for i, token in [*enumerate(self.prefix), *enumerate(self.suffix, self.n_ctx - len(self.suffix))]:
            masses[i] = np.arange(self.d_vocab) == token
        masses.setflags(write=False)
        return masses

    def of_length(self, n_ctx: int) -> Framed:
        """Only positions of the input can be read; with a suffix the answer stands at its end."""
        if n_ctx == self.n_ctx:
            return self
        if self.suffix:
            raise TaskError(
                f"position {n_ctx - 1} was asked for; with a suffix only the last position, {self.n_ctx - 1}, can be read: the input ends "
                "before the suffix, and the answer comes at its end"
            )
        if n_ctx <= len(self.prefix):
            raise TaskError(
                f"position {n_ctx - 1} lies within the prefix of {len(self.prefix)} fixed tokens, where there is no input yet; expected "
                f"{len(self.prefix)} to {self.n_ctx - 1}"
            )
        return Framed(self.inner.of_length(n_ctx - len(self.prefix)), self.prefix)

    @property
    def inputs_in_words(self) -> str:
        free = sorted(set(range(self.d_vocab)) - set(self.fixed))
        n, last = self.inner.n_ctx, free[-1]
        gaps = [token for token in self.fixed if free[0] < token < last]
        but = f" but {', '.join(map(str, gaps))}" if gaps else ""
        places = [
            f"{word} the fixed token{'s' if len(tokens) > 1 else ''} {' '.join(map(str, tokens))}"
            for word, tokens in (("after", self.prefix), ("before", self.suffix))
            if tokens
        ]
        return f"sequences of {n} token{'s' if n > 1 else ''} from {free[0]} to {last}{but}, {' and '.join(places)},{self.inner.narrowed}"

    @property
    def total_in_words(self) -> str:
        return self._in_words(None if self.inner.allowed is not None else f"{self.d_vocab - len(self.fixed)}^{self.inner.n_ctx}")
