"""The library of tasks: each a name, a sentence, an example and a rule. A new one is one function here.

The docstring of a function has two paragraphs for the page of its task: what the right output is, ties and copies included; and what is
remembered, with the number of states.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from compactproofs.errors import TaskError
from compactproofs.tasks.automaton import NO_LABEL, AbstractTask, LabellingAutomaton
from compactproofs.tasks.described import Described
from compactproofs.tasks.rules import Rule, explored

_NUMBERS = re.compile(r"\d{1,6}(,\d{1,6})*", re.ASCII)


@dataclass(frozen=True)
class Kind:
    """A task of any size."""

    name: str
    parameters: tuple[str, ...]
    """Names of the numbers behind the colon"""
    title: str
    """With the numbers in braces"""
    rule: Callable[..., Rule[Any]]
    """(n_ctx, d_vocab, numbers): raises `TaskError` if there is no such task"""
    example: tuple[int, ...] = ()
    """Numbers, one for each parameter"""

    @property
    def usage(self) -> str:
        """How it is written, for example `kth-largest:N`."""
        return _written(self.name, self.parameters)

    @property
    def described(self) -> Described:
        definition, _, remembers = (inspect.getdoc(self.rule) or "").partition("\n\n")
        title = self.title.format(*self.parameters, middle="d_vocab / 2")
        return Described(self.usage, title, _written(self.name, self.example), " ".join(definition.split()), " ".join(remembers.split()))


def _written(name: str, behind: Sequence[str | int]) -> str:
    return f"{name}:{','.join(map(str, behind))}" if behind else name


KINDS: dict[str, Kind] = {}
"""By name, in the order of this page."""


def _kind(usage: str, title: str, *example: int) -> Callable[[Callable[..., Rule[Any]]], Callable[..., Rule[Any]]]:
    name, _, parameters = usage.partition(":")

    def known(rule: Callable[..., Rule[Any]]) -> Callable[..., Rule[Any]]:
        KINDS[name] = Kind(name, tuple(parameters.split(",")) if parameters else (), title, rule, example)
        return rule

    return known


@dataclass(frozen=True)
class NamedTask(AbstractTask):
    """A task of the library.

    Example:
        >>> task = NamedTask("kth-largest", (2,), n_ctx=3, d_vocab=4)
        >>> task.spec, task.title
        ('kth-largest:2', 'the 2. largest token, copies counted')
        >>> task.automaton.label([[3, 0, 3], [1, 2, 0]]).tolist()
        [3, 1]
    """

    name: str
    numbers: tuple[int, ...]
    n_ctx: int
    d_vocab: int

    def __post_init__(self) -> None:
        if self.name not in KINDS:
            raise TaskError(f"no task is called {self.name!r:.40}; known: {', '.join(KINDS)}")
        if self.n_ctx < 1 or self.d_vocab < 1:
            raise TaskError(f"{self.name} needs n_ctx >= 1 and d_vocab >= 1, got n_ctx={self.n_ctx}, d_vocab={self.d_vocab}")
        wanted = self.kind.parameters
        if len(self.numbers) != len(wanted):
            raise TaskError(f"{self.spec:.60}: the task {self.name} is written {self.kind.usage}")
        self.rule  # noqa: B018 - refuses numbers that make no sense

    @classmethod
    def from_text(cls, name: str, n_ctx: int, d_vocab: int, argument: str | None) -> NamedTask:
        """The task of `name` or `name:1,2`."""
        if argument is not None and not _NUMBERS.fullmatch(argument):
            raise TaskError(f"{name}:{argument:.40}: the task is written {KINDS[name].usage}, with numbers for capital letters")
        return cls(name, () if argument is None else tuple(map(int, argument.split(","))), n_ctx, d_vocab)

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    @cached_property
    def rule(self) -> Rule[Any]:
        return self.kind.rule(self.n_ctx, self.d_vocab, *self.numbers)

    @property
    def spec(self) -> str:
        return _written(self.name, self.numbers)

    @property
    def title(self) -> str:
        return self.kind.title.format(*self.numbers, middle=(self.d_vocab + 1) // 2)

    @cached_property
    def automaton(self) -> LabellingAutomaton:
        return explored(self.rule, self.n_ctx, self.d_vocab)

    def of_length(self, n_ctx: int) -> NamedTask:
        return replace(self, n_ctx=n_ctx)


def _require_token(name: str, token: int, d_vocab: int) -> None:
    if token >= d_vocab:
        raise TaskError(f"{name}: there is no token {token}; tokens are 0 to {d_vocab - 1}")


@_kind("min", "the smallest token")
def _min(_n_ctx: int, d_vocab: int) -> Rule[int]:
    """The smallest of all tokens; it does not matter how often it occurs.

    The smallest token so far: `d_vocab` states, however long the sequences.
    """
    return Rule(d_vocab - 1, min, lambda least: least)


@_kind("first", "the first token")
def _first(_n_ctx: int, _d_vocab: int) -> Rule[int | None]:
    """The token at position 0.

    The first token, or that there has been none: `d_vocab` + 1 states, however long the sequences.
    """
    return Rule[int | None](None, lambda first, t: t if first is None else first, lambda first: first or 0)


@_kind("last", "the last token")
def _last(_n_ctx: int, _d_vocab: int) -> Rule[int]:
    """The token at the last position, which is also the query of the attention head.

    The token before: `d_vocab` states, however long the sequences.
    """
    return Rule(0, lambda _, t: t, lambda last: last)


@_kind("kth-largest:N", "the {}. largest token, copies counted", 2)
def _kth_largest(n_ctx: int, _d_vocab: int, n: int) -> Rule[tuple[int, ...]]:
    """The N-th entry when all tokens are sorted from the largest down. Copies count: the second largest of 5, 5, 1 is 5. N goes from 1,
    which is `max`, to `n_ctx`, which is `min`.

    The N largest tokens so far, sorted: about `d_vocab`^N / N! states. This grows quickly with N, and with N = 3 and 64 tokens there are
    47,905 states, more than are allowed.
    """
    if not 1 <= n <= n_ctx:
        raise TaskError(f"kth-largest:{n}: sequences of {n_ctx} tokens have a 1. to {n_ctx}. largest")
    return Rule[tuple[int, ...]]((), lambda top, t: tuple(sorted((*top, t), reverse=True)[:n]), lambda top: top[-1])


@_kind("argmax", "the position of the largest token, the first of equals")
def _argmax(_n_ctx: int, _d_vocab: int) -> Rule[tuple[int, int, int]]:
    """The position of the largest token, counted from 0. If it occurs several times, the first of its positions.

    How many tokens there have been, the largest of them, and where it stood first: at most
    `d_vocab` `n_ctx` (`n_ctx` + 1) / 2 + 1 states.
    """

    def step(memory: tuple[int, int, int], t: int) -> tuple[int, int, int]:
        i, best, where = memory
        return (i + 1, t, i) if t > best else (i + 1, best, where)

    return Rule((0, -1, 0), step, lambda memory: memory[2])


@_kind("sum-mod:P", "the sum of the tokens modulo {}", 7)
def _sum_mod(_n_ctx: int, _d_vocab: int, p: int) -> Rule[int]:
    """The remainder of the sum of all tokens when it is divided by P. P is at least 2.

    The remainder so far: P states, whatever the sizes.
    """
    if p < 2:
        raise TaskError(f"sum-mod:{p}: expected a number from 2 on")
    return Rule(0, lambda total, t: (total + t) % p, lambda total: total)


@_kind("parity:T", "whether token {} occurs an odd number of times: 1 if so, else 0", 3)
def _parity(_n_ctx: int, d_vocab: int, token: int) -> Rule[int]:
    """1 if token T occurs an odd number of times, else 0.

    Odd or even: two states, whatever the sizes.
    """
    _require_token(f"parity:{token}", token, d_vocab)
    return Rule(0, lambda odd, t: odd ^ (t == token), lambda odd: int(odd))


@_kind("majority", "whether most tokens lie in the upper half, from {middle} on: 1 if so, else 0")
def _majority(_n_ctx: int, d_vocab: int) -> Rule[int]:
    """1 if more tokens lie in the upper half of the vocabulary (2t >= `d_vocab`) than in the lower, else 0. So 0 where both have as many.
    If `d_vocab` is odd, the token in the middle is in the lower half.

    How far the upper half is ahead: 2 `n_ctx` + 1 states, whatever the vocabulary.
    """
    return Rule(0, lambda ahead, t: ahead + (1 if 2 * t >= d_vocab else -1), lambda ahead: int(ahead > 0))


@_kind("contains:A,B", "whether token {} occurs and token {} later: 1 if so, else 0", 1, 2)
def _contains(_n_ctx: int, d_vocab: int, a: int, b: int) -> Rule[int]:
    """1 if token A occurs and token B at some later position, else 0. They need not be neighbours. A and B may be equal: then the token
    has to occur twice.

    Nothing yet, A, or A and then B: three states, whatever the sizes.
    """
    for token in (a, b):
        _require_token(f"contains:{a},{b}", token, d_vocab)
    return Rule(0, lambda seen, t: seen if seen == 2 else 2 if seen and t == b else max(seen, int(t == a)), lambda seen: int(seen == 2))


@_kind("after:T", "the token after the first {}", 5)
def _after(_n_ctx: int, d_vocab: int, marker: int) -> Rule[int]:
    """The token that stands behind the first T. Where T does not occur, or only at the last position, there is no right output: such a
    sequence is outside the question and its total. Later copies of T mean nothing, and the answer may be T itself.

    That the marker has not occurred (-2), that it has just occurred (-1), or the answer: `d_vocab` + 2 states, however long the sequences.
    """
    _require_token(f"after:{marker}", marker, d_vocab)

    def step(memory: int, t: int) -> int:
        return memory if memory >= 0 else t if memory == -1 else -1 if t == marker else -2

    return Rule(-2, step, lambda memory: max(memory, NO_LABEL))
