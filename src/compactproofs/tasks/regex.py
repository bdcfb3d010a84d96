"""Regular expressions over tokens: label 1 where the whole sequence matches, else 0.

    3            the token 3
    .            any token
    [1-4 7]      one of these tokens; [^2] any but these
    A B          A, then B; spaces separate numbers and mean nothing else
    A|B          one or the other
    A* A+ A?     any number of times, at least once, at most once
    A{2} A{2,} A{2,5}    so many times
    (A)          brackets

An expression becomes the automaton of its places (Glushkov): a place is a token or a class as it is written, and what has to be remembered
is the set of places at which a match may stand.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_

import numpy as np

from compactproofs.errors import TaskError
from compactproofs.tasks.automaton import AbstractTask, LabellingAutomaton
from compactproofs.tasks.described import Described
from compactproofs.tasks.label_automaton import minimal_automaton
from compactproofs.tasks.rules import Rule, explored

NAME = "regex"

DESCRIBED = Described(
    usage=f"{NAME}:PATTERN",
    title="1 if the whole sequence matches a regular expression over tokens, such as '.* 3 [4-6]+', else 0",
    example=f"{NAME}:.* [0-3] .*",
    definition="1 if the whole sequence matches, not a part of it, else 0. Spaces separate numbers and mean nothing else. "
    "[How expressions are written](../reference/tasks.md#regular-expressions).",
    remembers="At which places of the expression a match may stand. The automaton is the smallest that says the same. An unlucky "
    "expression of n places needs up to 2^n states; what would have more than two million moves is refused.",
)

_LONGEST = 2000
"""Characters of a pattern."""
_DEEPEST = 100
"""Brackets and repetitions within each other."""
_MOST_PLACES = 1000
"""Tokens and classes, after repetitions are written out."""

_REPEATS = "*+?{"
_PIECE = re.compile(r"\s*(\d{1,6}|\[\^?[^\[\]]*\]|\{\d{1,4}(?:,\d{0,4})?\}|[.|*+?()])", re.ASCII)
_RANGE = re.compile(r"\s*(\d{1,6})(?:\s*-\s*(\d{1,6}))?(?=[\s,]|$)[\s,]*", re.ASCII)


@dataclass(frozen=True)
class RegexTask(AbstractTask):
    """Whether a sequence matches.

    Example:
        >>> task = RegexTask(".* 3 [^3]", n_ctx=2, d_vocab=5)
        >>> task.automaton.label([[3, 4], [3, 3], [4, 3]]).tolist()
        [1, 0, 0]
        >>> task.automaton.label_totals(2)
        {0: 21, 1: 4}
    """

    pattern: str
    n_ctx: int
    d_vocab: int

    def __post_init__(self) -> None:
        if self.n_ctx < 1 or self.d_vocab < 1:
            raise TaskError(f"{NAME} needs n_ctx >= 1 and d_vocab >= 1, got n_ctx={self.n_ctx}, d_vocab={self.d_vocab}")
        places_of(self.pattern, self.d_vocab)  # refuses what is no expression

    @classmethod
    def from_text(cls, n_ctx: int, d_vocab: int, argument: str | None) -> RegexTask:
        """The task of `regex:PATTERN`."""
        return cls("" if argument is None else argument, n_ctx, d_vocab)

    @property
    def spec(self) -> str:
        return f"{NAME}:{self.pattern}"

    @property
    def title(self) -> str:
        return f"whether the sequence matches the regular expression {self.pattern!r}: 1 if so, else 0"

    @cached_property
    def automaton(self) -> LabellingAutomaton:
        """The smallest one; its last state is that of sequences that cannot match any more."""
        whole = explored(places_of(self.pattern, self.d_vocab).rule, self.n_ctx, self.d_vocab, labelled_throughout=True)
        small = minimal_automaton(whole.transitions, whole.labels, whole.start, 1)
        dead = len(small.following)
        following = np.full((dead + 1, self.d_vocab), dead, dtype=np.int64)
        following[:dead, small.tokens] = np.where(small.following < 0, dead, small.following)
        return LabellingAutomaton(following, np.append(small.accepting, False).astype(np.int64), small.start)

    def of_length(self, n_ctx: int) -> RegexTask:
        return replace(self, n_ctx=n_ctx)


@dataclass(frozen=True)
class _Node:
    """A part of an expression as it is written."""

    size: int
    """Places that it has, repetitions written out"""
    depth: int


@dataclass(frozen=True)
class _OneOf(_Node):
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class _Then(_Node):
    parts: tuple[_Node, ...]


@dataclass(frozen=True)
class _Either(_Node):
    parts: tuple[_Node, ...]


@dataclass(frozen=True)
class _Times(_Node):
    part: _Node
    least: int
    most: int | None
    """None: any number of times"""


class _Reader:
    """Reads an expression from left to right."""

    def __init__(self, pattern: str, d_vocab: int) -> None:
        self._pattern, self._d_vocab = pattern, d_vocab
        if len(pattern) > _LONGEST:
            raise self._refusal(f"it has {len(pattern)} characters, and at most {_LONGEST} are read")
        self._pieces = self._split()
        self._at, self._depth = 0, 0

    def read(self) -> _Node:
        if not self._pieces:
            raise self._refusal("nothing is written")
        whole = self._either()
        if self._at < len(self._pieces):
            raise self._refusal("a bracket is closed that was not opened")
        return whole

    def _split(self) -> list[str]:
        pieces, at, text = [], 0, self._pattern.rstrip()
        while at < len(text):
            found = _PIECE.match(text, at)
            if found is None:
                raise self._refusal(f"{text[at : at + 20].strip()!r} cannot be read")
            pieces.append(found[1])
            at = found.end()
        return pieces

    def _refusal(self, why: str) -> TaskError:
        grammar = "tokens as numbers with spaces between them, . [1-4 7] [^2] | * + ? {n,m} and brackets"
        return TaskError(f"{NAME}:{self._pattern:.60}: {why}; expected {grammar}")

    def _next(self) -> str | None:
        return self._pieces[self._at] if self._at < len(self._pieces) else None

    def _either(self) -> _Node:
        parts = [self._sequence()]
        while self._next() == "|":
            self._at += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else _Either(*self._sizes(parts), tuple(parts))

    def _sequence(self) -> _Node:
        parts = []
        while self._next() not in (None, "|", ")"):
            parts.append(self._repeated())
        return parts[0] if len(parts) == 1 else _Then(*self._sizes(parts), tuple(parts))

    def _repeated(self) -> _Node:
        node = self._atom()
        while (piece := self._next()) is not None and piece[0] in _REPEATS:
            self._at += 1
            least, most = _bounds(piece)
            if most is not None and most < least:
                raise self._refusal(f"{piece} is from more to fewer")
            size, depth = self._sizes([node] * max(least, 1 if most is None else most))
            node = _Times(size, depth, node, least, most)
        return node

    def _atom(self) -> _Node:
        piece = self._pieces[self._at]
        self._at += 1
        if piece == "(":
            self._deeper(self._depth)
            self._depth += 1
            node = self._either()
            if self._next() != ")":
                raise self._refusal("a bracket is open at the end")
            self._at += 1
            self._depth -= 1
            return node
        if piece[0] in _REPEATS:
            raise self._refusal(f"{piece} has nothing before it that it repeats")
        return _OneOf(1, 0, self._tokens(piece))

    def _sizes(self, parts: Sequence[_Node]) -> tuple[int, int]:
        """Size and depth of what has these parts."""
        size = sum(part.size for part in parts)
        if size > _MOST_PLACES:
            raise self._refusal(f"with repetitions written out it has more than {_MOST_PLACES} tokens and classes")
        return size, self._deeper(max((part.depth for part in parts), default=0))

    def _deeper(self, depth: int) -> int:
        if depth >= _DEEPEST:
            raise self._refusal(f"it has more than {_DEEPEST} brackets and repetitions within each other")
        return depth + 1

    def _tokens(self, piece: str) -> tuple[int, ...]:
        if piece == ".":
            return tuple(range(self._d_vocab))
        if piece[0] != "[":
            return (self._token(piece),)
        inside, found, at = piece[1:-1].removeprefix("^").strip(), set[int](), 0
        while at < len(inside):
            span = _RANGE.match(inside, at)
            if span is None:
                raise self._refusal(f"the class {piece:.40} has more in it than numbers and ranges such as 1-4 with spaces between them")
            low = self._token(span[1])
            high = low if span[2] is None else self._token(span[2])
            if high < low:
                raise self._refusal(f"the range {low}-{high} is from more to less")
            found |= set(range(low, high + 1))
            at = span.end()
        if not found:
            raise self._refusal(f"the class {piece:.40} names no tokens")
        return tuple(sorted(set(range(self._d_vocab)) - found if piece[1] == "^" else found))

    def _token(self, text: str) -> int:
        if int(text) >= self._d_vocab:
            raise self._refusal(f"there is no token {int(text)}, tokens are 0 to {self._d_vocab - 1}")
        return int(text)


def _bounds(piece: str) -> tuple[int, int | None]:
    """How often at least, and at most (None: any number of times)."""
    if piece in "*+?":
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[piece]
    least, comma, most = piece[1:-1].partition(",")
    return int(least), int(most) if most else None if comma else int(least)


@dataclass(frozen=True)
class _Part:
    """A part of an expression as it is read. Sets of places are integers, bit i for place i."""

    empty: bool
    """Whether it matches no tokens at all"""
    first: int
    """Places at which a match may begin"""
    last: int
    """Places at which a match may end"""


_NOTHING = _Part(True, 0, 0)


class _Builder:
    """Gives every token and class a place, and says which may come after which."""

    def __init__(self) -> None:
        self.sets: list[tuple[int, ...]] = []
        self.following: list[int] = []

    def build(self, node: _Node) -> _Part:
        match node:
            case _OneOf(tokens=tokens):
                place = 1 << len(self.sets)
                self.sets.append(tokens)
                self.following.append(0)
                return _Part(False, place, place)
            case _Then(parts=parts):
                return self._then([self.build(part) for part in parts])
            case _Either(parts=parts):
                built = [self.build(part) for part in parts]
                return _Part(any(b.empty for b in built), _union([b.first for b in built]), _union([b.last for b in built]))
            case _Times(size=size) if size > 0:
                return self._times(node)
        return _NOTHING

    def _times(self, node: _Times) -> _Part:
        if node.most is not None:
            each = [self.build(node.part) for _ in range(node.most)]
            return self._then([*each[: node.least], *(_Part(True, part.first, part.last) for part in each[node.least :])])
        each = [self.build(node.part) for _ in range(max(node.least, 1))]
        self._connect(each[-1].last, each[-1].first)
        return self._then(each if node.least else [_Part(True, each[0].first, each[0].last)])

    def _then(self, parts: Sequence[_Part]) -> _Part:
        whole = _NOTHING
        for part in parts:
            self._connect(whole.last, part.first)
            first = whole.first | (part.first if whole.empty else 0)
            whole = _Part(whole.empty and part.empty, first, part.last | (whole.last if part.empty else 0))
        return whole

    def _connect(self, ends: int, begins: int) -> None:
        for place in _members(ends):
            self.following[place] |= begins


def _members(places: int) -> list[int]:
    return [place for place in range(places.bit_length()) if places >> place & 1]


def _union(sets: Sequence[int]) -> int:
    return reduce(or_, sets, 0)


@dataclass(frozen=True)
class Places:
    """An expression, ready to be read token by token."""

    matching: tuple[int, ...]
    """For each token: the places that it matches"""
    following: tuple[int, ...]
    """For each place: the places that may come next"""
    whole: _Part

    @property
    def rule(self) -> Rule[int | None]:
        """Remembers the places of the last token; None before the first."""
        after: dict[int | None, int] = {None: self.whole.first}

        def step(places: int | None, token: int) -> int:
            if places not in after:
                after[places] = _union([self.following[place] for place in _members(places or 0)])
            return after[places] & self.matching[token]

        return Rule[int | None](None, step, lambda places: int(self.whole.empty if places is None else bool(places & self.whole.last)))


def places_of(pattern: str, d_vocab: int) -> Places:
    """Read an expression; raise `TaskError` where it is none, or too large."""
    node, builder = _Reader(pattern, d_vocab).read(), _Builder()
    whole = builder.build(node)
    matching = [0] * d_vocab
    for place, tokens in enumerate(builder.sets):
        for token in tokens:
            matching[token] |= 1 << place
    return Places(tuple(matching), tuple(builder.following), whole)
