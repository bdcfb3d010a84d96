"""The library of tasks: each a name, a sentence and a rule. A new one is one function here."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from compactproofs.errors import TaskError
from compactproofs.tasks.automaton import NO_LABEL, AbstractTask, LabellingAutomaton
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

    @property
    def usage(self) -> str:
        """How it is written, for example `kth-largest:N`."""
        return self.name if not self.parameters else f"{self.name}:{','.join(self.parameters)}"


KINDS: dict[str, Kind] = {}
"""By name, in the order of this page."""


def _kind(usage: str, title: str) -> Callable[[Callable[..., Rule[Any]]], Callable[..., Rule[Any]]]:
    name, _, parameters = usage.partition(":")

    def known(rule: Callable[..., Rule[Any]]) -> Callable[..., Rule[Any]]:
        KINDS[name] = Kind(name, tuple(parameters.split(",")) if parameters else (), title, rule)
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
        return self.name if not self.numbers else f"{self.name}:{','.join(map(str, self.numbers))}"

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
    return Rule(d_vocab - 1, min, lambda least: least)


@_kind("first", "the first token")
def _first(_n_ctx: int, _d_vocab: int) -> Rule[int | None]:
    return Rule[int | None](None, lambda first, t: t if first is None else first, lambda first: first or 0)


@_kind("last", "the last token")
def _last(_n_ctx: int, _d_vocab: int) -> Rule[int]:
    return Rule(0, lambda _, t: t, lambda last: last)


@_kind("kth-largest:N", "the {}. largest token, copies counted")
def _kth_largest(n_ctx: int, _d_vocab: int, n: int) -> Rule[tuple[int, ...]]:
    if not 1 <= n <= n_ctx:
        raise TaskError(f"kth-largest:{n}: sequences of {n_ctx} tokens have a 1. to {n_ctx}. largest")
    return Rule[tuple[int, ...]]((), lambda top, t: tuple(sorted((*top, t), reverse=True)[:n]), lambda top: top[-1])


@_kind("argmax", "the position of the largest token, the first of equals")
def _argmax(_n_ctx: int, _d_vocab: int) -> Rule[tuple[int, int, int]]:
    def step(memory: tuple[int, int, int], t: int) -> tuple[int, int, int]:
        i, best, where = memory
        return (i + 1, t, i) if t > best else (i + 1, best, where)

    return Rule((0, -1, 0), step, lambda memory: memory[2])


@_kind("sum-mod:P", "the sum of the tokens modulo {}")
def _sum_mod(_n_ctx: int, _d_vocab: int, p: int) -> Rule[int]:
    if p < 2:
        raise TaskError(f"sum-mod:{p}: expected a number from 2 on")
    return Rule(0, lambda total, t: (total + t) % p, lambda total: total)


@_kind("parity:T", "whether token {} occurs an odd number of times: 1 if so, else 0")
def _parity(_n_ctx: int, d_vocab: int, token: int) -> Rule[int]:
    _require_token(f"parity:{token}", token, d_vocab)
    return Rule(0, lambda odd, t: odd ^ (t == token), lambda odd: int(odd))


@_kind("majority", "whether most tokens lie in the upper half, from {middle} on: 1 if so, else 0")
def _majority(_n_ctx: int, d_vocab: int) -> Rule[int]:
    return Rule(0, lambda ahead, t: ahead + (1 if 2 * t >= d_vocab else -1), lambda ahead: int(ahead > 0))


@_kind("contains:A,B", "whether token {} occurs and token {} later: 1 if so, else 0")
def _contains(_n_ctx: int, d_vocab: int, a: int, b: int) -> Rule[int]:
    for token in (a, b):
        _require_token(f"contains:{a},{b}", token, d_vocab)
    return Rule(0, lambda seen, t: seen if seen == 2 else 2 if seen and t == b else max(seen, int(t == a)), lambda seen: int(seen == 2))


@_kind("after:T", "the token after the first {}")
def _after(_n_ctx: int, d_vocab: int, marker: int) -> Rule[int]:
    """Remembered: -2 before the marker, -1 just behind it, then the answer."""
    _require_token(f"after:{marker}", marker, d_vocab)

    def step(memory: int, t: int) -> int:
        return memory if memory >= 0 else t if memory == -1 else -1 if t == marker else -2

    return Rule(-2, step, lambda memory: max(memory, NO_LABEL))
