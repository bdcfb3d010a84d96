"""Regions: which sequences a question is about. A new condition is one function here.

A region is an automaton that accepts or does not. The sequences that it does not accept have no label, and so are outside the question.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from compactproofs.errors import TaskError
from compactproofs.tasks.automaton import NO_LABEL, AbstractTask, LabellingAutomaton
from compactproofs.tasks.rules import Rule, explored

_CONDITION = re.compile(r"(?P<name>[a-z-]+)(:(?P<token>\d{1,6}))?((?P<sign>>=|<=|=)(?P<number>\d{1,6}))?", re.ASCII)
_MOST_MOVES = 2 * 10**6

_COMPARE: dict[str, Callable[[int, int], bool]] = {">=": operator.ge, "<=": operator.le, "=": operator.eq}
_IN_WORDS = {">=": "at least ", "<=": "at most ", "=": ""}


@dataclass(frozen=True)
class Condition:
    """A kind of condition: what is remembered of a sequence, and how it is said."""

    usage: str
    title: str
    """With `{token}` and `{bound}`, such as "at least 40", in braces"""
    measure: Callable[[int, int, int], Rule[Any]]
    """(d_vocab, token, number): the rule of the number that is compared, or of 0 and 1. Numbers beyond `number` need not be told apart."""

    @property
    def takes_token(self) -> bool:
        return ":" in self.usage

    @property
    def compares(self) -> bool:
        return ">=" in self.usage


CONDITIONS: dict[str, Condition] = {}
"""By name, in the order of this page."""

Measure = Callable[[int, int, int], Rule[Any]]


def _condition(usage: str, title: str) -> Callable[[Measure], Measure]:
    def known(measure: Measure) -> Measure:
        CONDITIONS[re.split("[:>]", usage)[0]] = Condition(usage, title, measure)
        return measure

    return known


@_condition("max>=N", "the largest token is {bound}")
def _max(_d_vocab: int, _token: int, _number: int) -> Rule[int]:
    return Rule(0, max, lambda most: most)


@_condition("min>=N", "the smallest token is {bound}")
def _min(d_vocab: int, _token: int, _number: int) -> Rule[int]:
    return Rule(d_vocab - 1, min, lambda least: least)


@_condition("copies:T>=N", "token {token} occurs {bound} times")
def _copies(_d_vocab: int, token: int, number: int) -> Rule[int]:
    return Rule(0, lambda n, t: min(n + (t == token), number + 1), lambda n: n)


@_condition("copies-of-max>=N", "the largest token occurs {bound} times")
def _copies_of_max(_d_vocab: int, _token: int, number: int) -> Rule[tuple[int, int]]:
    def step(memory: tuple[int, int], t: int) -> tuple[int, int]:
        most, copies = memory
        return (t, 1) if t > most else (most, min(copies + (t == most), number + 1))

    return Rule((-1, 0), step, lambda memory: memory[1])


@_condition("contains:T", "token {token} occurs")
def _contains(_d_vocab: int, token: int, _number: int) -> Rule[int]:
    return Rule(0, lambda seen, t: int(seen or t == token), lambda seen: seen)


@_condition("lacks:T", "token {token} does not occur")
def _lacks(_d_vocab: int, token: int, _number: int) -> Rule[int]:
    return Rule(1, lambda good, t: int(good and t != token), lambda good: good)


@_condition("distinct", "no token occurs twice")
def _distinct(_d_vocab: int, _token: int, _number: int) -> Rule[frozenset[int] | None]:
    """Remembered: the tokens so far; None if one has occurred twice. So many sets that vocabularies have to be small."""
    return Rule[frozenset[int] | None](
        frozenset(), lambda seen, t: None if seen is None or t in seen else seen | {t}, lambda seen: int(seen is not None)
    )


@dataclass(frozen=True)
class Region:
    """Conditions that all hold, as they are written: `max>=40,lacks:3`."""

    text: str

    def __post_init__(self) -> None:
        for condition in self.text.split(","):
            self._read(condition)

    def _read(self, text: str) -> tuple[Condition, int, str, int]:
        """The kind of a condition, its token (0 if it has none), sign and number."""
        found = _CONDITION.fullmatch(text)
        kind = CONDITIONS.get(found["name"]) if found is not None else None
        if found is None or kind is None:
            raise TaskError(f"unknown condition {text!r:.40}; expected {_usages()}, joined by commas")
        good = (found["token"] is not None) == kind.takes_token and (found["sign"] is not None) == kind.compares
        if not good:
            raise TaskError(f"the condition {text!r:.40} is written {_usage(kind)}")
        if not kind.compares:
            return kind, int(found["token"] or 0), "=", 1
        return kind, int(found["token"] or 0), found["sign"], int(found["number"])

    @property
    def title(self) -> str:
        """What is true of a sequence in the region."""
        said = []
        for kind, token, sign, number in map(self._read, self.text.split(",")):
            said.append(kind.title.format(token=token, bound=f"{_IN_WORDS[sign]}{number}"))
        return " and ".join(said)

    def automata(self, n_ctx: int, d_vocab: int) -> list[LabellingAutomaton]:
        """One for each condition: it gives the label 1 if the condition holds, else 0."""
        found = []
        for kind, token, sign, number in map(self._read, self.text.split(",")):
            if kind.takes_token and token >= d_vocab:
                raise TaskError(f"{self.text:.60}: there is no token {token}; tokens are 0 to {d_vocab - 1}")
            rule, compare = kind.measure(d_vocab, token, number), _COMPARE[sign]
            found.append(explored(Rule(rule.start, rule.step, _Holds(rule, compare, number)), n_ctx, d_vocab))
        return found


@dataclass(frozen=True)
class _Holds:
    """Whether the number of a rule compares as it should."""

    rule: Rule[Any]
    compare: Callable[[int, int], bool]
    number: int

    def __call__(self, memory: Any) -> int:
        return int(self.compare(self.rule.label(memory), self.number))


def _usage(kind: Condition) -> str:
    return kind.usage if not kind.compares else f"{kind.usage} (or <=, =)"


def _usages() -> str:
    return ", ".join(map(_usage, CONDITIONS.values()))


@dataclass(frozen=True)
class Where(AbstractTask):
    """The task `inner`, of the sequences of a region only.

    Example:
        >>> from compactproofs.tasks import MaxOfK
        >>> task = Where(MaxOfK(n_ctx=3, d_vocab=4), Region("max>=2,copies-of-max=1"))
        >>> task.total, task.inputs_in_words
        (39, 'sequences of 3 tokens from 0 to 3 in which the largest token is at least 2 and the largest token occurs 1 times')
    """

    inner: AbstractTask
    region: Region

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
        found = self.inner.automaton
        for condition in self.region.automata(self.n_ctx, self.d_vocab):
            found = smallest(restricted(found, condition))
        return found

    @cached_property
    def allowed(self) -> np.ndarray | None:
        return self.inner.allowed

    @cached_property
    def masses(self) -> np.ndarray | None:
        return self.inner.masses

    @property
    def narrowed(self) -> str:
        return f"{self.inner.narrowed}{' and' if self.inner.narrowed else ''} in which {self.region.title}"


def restricted(task: LabellingAutomaton, region: LabellingAutomaton) -> LabellingAutomaton:
    """Reads with both.

    Law: a sequence has the label that `task` gives it if `region` gives it a label above 0, else none.
    """
    number = {(task.start, region.start): 0}
    rows: list[list[int]] = []
    for s, r in _growing(number):
        if (len(rows) + 1) * task.transitions.shape[1] > _MOST_MOVES:
            raise TaskError(f"the task and the region have to remember too much: more than {len(rows)} things")
        pairs = zip(task.transitions[s].tolist(), region.transitions[r].tolist(), strict=True)
        rows.append([number.setdefault(pair, len(number)) for pair in pairs])
    labels = [int(task.labels[s]) if region.labels[r] > 0 else NO_LABEL for s, r in number]
    return LabellingAutomaton(np.array(rows, dtype=np.int64), np.array(labels, dtype=np.int64), 0)


def _growing(number: dict[tuple[int, int], int]) -> Iterator[tuple[int, int]]:
    """The keys of a dictionary that grows while they are looked at."""
    done = 0
    while done < len(number):
        fresh = list(number)[done:]
        done += len(fresh)
        yield from fresh


def smallest(automaton: LabellingAutomaton) -> LabellingAutomaton:
    """The same labels with the fewest states: those that give all continuations the same labels are one (Moore's algorithm)."""
    group = np.unique(automaton.labels, return_inverse=True)[1].reshape(-1)
    while True:
        signatures = np.column_stack([group, group[automaton.transitions]])
        _, first, refined = np.unique(signatures, axis=0, return_index=True, return_inverse=True)
        refined = refined.reshape(-1)
        if refined.max() == group.max():
            break
        group = refined
    return LabellingAutomaton(refined[automaton.transitions[first]], automaton.labels[first], int(refined[automaton.start]))
