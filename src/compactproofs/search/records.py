"""From the integers that compiled searches write down to parts of a ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from compactproofs.counting.grid import Grid
from compactproofs.counting.subject import Subject
from compactproofs.ledger.ledger import Apart, Both, Factored, Joint, Leaf, Part, Split, Spoiler, Spoilers, Term, Tree, chain, sums_of
from compactproofs.search.branches import Branch
from compactproofs.search.covers import BOTH, JOINT
from compactproofs.search.together import SEVERAL


class Reader:
    """Reads a record from its beginning to its end."""

    def __init__(self, record: np.ndarray, k: int) -> None:
        self._numbers, self._k = iter(record.tolist()), k

    def one(self) -> int:
        return int(next(self._numbers))

    def many(self, n: int) -> tuple[int, ...]:
        return tuple(self.one() for _ in range(n))

    def grid(self) -> Grid:
        mantissa, exponent, depth = self.many(3)
        return Grid(mantissa, exponent, depth, self.many(self._k))

    def term(self) -> tuple[Term, int]:
        """A term, and the operations of counting it."""
        kind = self.one()
        if kind != BOTH:
            return self.sum(kind), self.one()
        reach = self.one()
        return Both(self.sum(self.one()), self.sum(self.one()), reach), self.one()

    def sum(self, kind: int) -> Joint | Apart:
        """A table that is added up."""
        if kind == JOINT:
            n = self.one()
            return Joint(self.many(n), self.many(n), self.grid())
        output, parent, factor, less = self.many(4)
        return Apart(output, parent, factor, less, self.grid())

    def leaf(self) -> tuple[list[tuple[Term, int]], int]:
        """The terms of a leaf below, each with the operations of counting it; and the operations of its walks."""
        terms, walks = self.many(2)
        return [self.term() for _ in range(terms)], walks

    def spoiler(self) -> tuple[Term, ...]:
        """The terms of a leaf above: none, one, or several and their overlaps."""
        output = self.one()
        if output == SEVERAL:
            return self.several(self.one())
        if output < 0:
            return ()
        other, factor, more = self.many(3)
        return (Spoiler(output, self.grid()) if other < 0 else Spoilers(output, other, factor, more, self.grid()),)

    def several(self, n: int) -> tuple[Term, ...]:
        """So many spoilers, and the overlap of each but the first with those before it."""
        spoilers, reach = [Spoiler(self.one(), self.grid()) for _ in range(n)], self.one()
        overlaps = [
            Both(Joint((self.one(),), (1,), self.grid()), Joint(self.many(before), self.many(before), self.grid()), reach)
            for before in range(1, n)
        ]
        return (*spoilers, *overlaps)


def part_below(subject: Subject, query: int, record: np.ndarray) -> Part:
    """The part that `search.pairs.look` wrote for a lower bound."""
    reader = Reader(record, len(subject.masses))
    reader.one()  # operations of walks
    order = reader.many(reader.one())
    leaves = [Leaf(tuple(term for term, _ in reader.leaf()[0])) for _ in range(len(order) + 1)]
    return _part(subject, query, chain(_tokens(subject, order), leaves))


def part_above(subject: Subject, query: int, record: np.ndarray) -> Part:
    """The part that `search.pairs.look` wrote for an upper bound."""
    reader = Reader(record, len(subject.masses))
    order = reader.many(reader.one())
    leaves = [Leaf(reader.spoiler()) for _ in range(len(order) + 1)]
    return _part(subject, query, chain(_tokens(subject, order), leaves))


def part_of_tree(subject: Subject, query: int, root: Branch, side: str) -> Part:
    """The part of a tree that was grown."""
    return _part(subject, query, _tree(subject, root, side))


def _tree(subject: Subject, branch: Branch, side: str) -> Tree:
    if branch.split is not None and branch.halves is not None and branch.uses_halves(side):
        token, n = branch.split
        fewer, more = (_tree(subject, half, side) for half in branch.halves)
        return Split(int(subject.tokens[token]), n, fewer, more)
    found = branch.below if side == "below" else branch.above
    if found is None:
        return None
    reader = Reader(found.below if side == "below" else found.above, len(subject.masses))
    terms = tuple(term for term, _ in reader.leaf()[0]) if side == "below" else reader.spoiler()
    return Leaf(terms, tuple(sorted(_rows(subject, found.listed[0 if side == "below" else 1]))))


@dataclass
class Tally:
    """What checking some records takes, besides their tables."""

    walks: int = 0
    counting: int = 0
    listed: int = 0
    """Tokens of listed sequences; of whole blocks, sequences"""
    leaves: int = 0
    """FLOPs of the bounds of leaves, of whole blocks"""
    joint: Counter[tuple[int, int]] = field(default_factory=Counter)
    """How many terms of (outputs, tokens)"""
    apart: Counter[int] = field(default_factory=Counter)
    """How many terms of so many tokens"""

    def add(self, subject: Subject, record: np.ndarray) -> None:
        """Add a record below."""
        reader, n = Reader(record, len(subject.masses)), len(subject.tokens)
        self.walks += reader.one()
        for _ in range(len(reader.many(reader.one())) + 1):
            self.add_leaf(*reader.leaf(), n)

    def add_tree(self, subject: Subject, root: Branch, walks: int) -> None:
        """Add a tree, with the operations of the walks of all outputs."""
        self.walks += walks
        for found in root.leaves("below"):
            if found is not None:
                self.add_leaf(*Reader(found.below, len(subject.masses)).leaf(), len(subject.tokens))
                self.listed += len(found.listed[0])

    def add_leaf(self, terms: list[tuple[Term, int]], walks: int, n: int) -> None:
        """Add a leaf of a label with n tokens."""
        self.walks += walks
        for term, operations in terms:
            self.counting += operations
            for part in sums_of(term):
                if isinstance(part, Joint):
                    self.joint[len(part.outputs), n] += 1
                else:
                    self.apart[n] += 1


def part_of_pool(subject: Subject, queries: np.ndarray, record: np.ndarray) -> Part:
    """The part that `search.pools.look_at_tables` wrote."""
    reader = Reader(record, len(subject.masses))
    order = reader.many(reader.one())
    leaves = [Leaf((Factored(reader.grid()),)) for _ in range(len(order) + 1)]
    return Part(subject.label, _tokens(subject, queries), chain(_tokens(subject, order), leaves))


def _part(subject: Subject, query: int, tree: Tree) -> Part:
    return Part(subject.label, _tokens(subject, [query]), tree)


def _rows(subject: Subject, listed: np.ndarray) -> Iterator[tuple[int, ...]]:
    for row in listed.reshape(-1, len(subject.masses)).tolist():
        yield _tokens(subject, row)


def _tokens(subject: Subject, numbers: np.ndarray | tuple[int, ...] | list[int]) -> tuple[int, ...]:
    return tuple(int(subject.tokens[number]) for number in numbers)
