"""What a threshold proof is: parts, leaves, terms. Plain data, from anywhere; `verify` decides what it proves.

A ledger splits the sequences of the question by label, then by query sets, then by a tree: each split is by how often some token occurs.
Every leaf has terms. The rule (docs/explanation/threshold-proofs.md, Theorem 4): if every output is covered by a term or shown harmless by
a walk, the mass that fails is at most the sum over terms of `count_up`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from compactproofs.bounds.compact_hints import Compact
from compactproofs.bounds.factors import Factors
from compactproofs.bounds.relaxation import Relaxation
from compactproofs.counting.grid import Grid
from compactproofs.tasks.question import Question


@dataclass(frozen=True)
class Joint:
    """Covers several outputs: the harm is max_o weights[o] G_o."""

    outputs: tuple[int, ...]
    weights: tuple[int, ...]
    grid: Grid


@dataclass(frozen=True)
class Apart:
    """Covers one output, less what another one, covered before, spoils already: the harm is factor G_output - less G_parent."""

    output: int
    parent: int
    factor: int
    less: int
    grid: Grid


@dataclass(frozen=True)
class Factored:
    """Covers every output: attention times brackets r + s + p of the ledger's `factors`, at their worst over the queries of the part."""

    grid: Grid


@dataclass(frozen=True)
class Both:
    """Two terms at once: covers what both of them cover, and counts where both sums reach zero. Sums are kept between -reach and reach."""

    one: Joint | Apart
    other: Joint | Apart
    reach: int


@dataclass(frozen=True)
class Spoiler:
    """Upper bounds: right answers are at most those on which this output loses."""

    output: int
    grid: Grid


@dataclass(frozen=True)
class Spoilers:
    """Right answers are bounded by those on which factor G_output + more G_other is negative: where the label wins, both are."""

    output: int
    other: int
    factor: int
    more: int
    grid: Grid


Sum = Joint | Apart | Factored | Spoiler | Spoilers
"""A term that adds up one table."""
Term = Sum | Both


def sums_of(term: Term) -> tuple[Sum, ...]:
    """The tables that a term adds up: one, or two."""
    return (term.one, term.other) if isinstance(term, Both) else (term,)


@dataclass(frozen=True)
class Leaf:
    """Terms, and sequences that they count but that were decided one by one: right ones (below), wrong ones (above).

    Above, a leaf has spoilers. If several, different ones, overlaps follow: `Both` terms that count where a spoiler (a joint term of it
    alone) and one of some outputs (a joint term of these) spoil. All spoilers before it are among them, in one overlap or several.
    """

    terms: tuple[Term, ...]
    listed: tuple[tuple[int, ...], ...] = ()
    relaxation: Relaxation | None = None
    """Hints, where several heads, an MLP or a norm follows"""


@dataclass(frozen=True)
class Split:
    """Sequences in which the token occurs fewer than `at_least` times, and those in which it occurs so often."""

    token: int
    at_least: int
    fewer: Tree
    more: Tree


Tree = Leaf | Split | None
"""How the sequences of a part are split; None: given up."""


@dataclass(frozen=True)
class Part:
    """Sequences of one label whose last token is one of the queries."""

    label: int
    queries: tuple[int, ...]
    tree: Tree

    @property
    def leaves(self) -> tuple[Leaf | None, ...]:
        """All of them; the ends of `more` before those of `fewer`."""
        return tuple(leaves_of(self.tree))

    def with_leaves(self, change: Callable[[Leaf], Leaf | None]) -> Part:
        """The same splits, the leaves changed."""
        return replace(self, tree=_changed(self.tree, change))

    def restricted(self, queries: tuple[int, ...]) -> Part:
        """The same claim about some of its queries; listed sequences that end in another one are left out."""
        kept = self.with_leaves(lambda leaf: replace(leaf, listed=tuple(x for x in leaf.listed if x[-1] in queries)))
        return replace(kept, queries=queries)


def chain(order: Sequence[int], leaves: Sequence[Tree]) -> Tree:
    """Split by the first token of the order that occurs: a tree for each of them, and one for "none occurs"."""
    *before, tree = leaves
    for token, leaf in zip(reversed(order), reversed(before), strict=True):
        tree = Split(token, 1, tree, leaf)
    return tree


def leaves_of(tree: Tree) -> Iterator[Leaf | None]:
    """The leaves of a tree."""
    if isinstance(tree, Split):
        yield from leaves_of(tree.more)
        yield from leaves_of(tree.fewer)
    else:
        yield tree


def _changed(tree: Tree, change: Callable[[Leaf], Leaf | None]) -> Tree:
    if isinstance(tree, Split):
        return replace(tree, fewer=_changed(tree.fewer, change), more=_changed(tree.more, change))
    return None if tree is None else change(tree)


@dataclass(frozen=True, eq=False)
class Ledger:
    """A proof. Queries and labels that no part is about are given up."""

    question: Question
    weights_sha256: str
    """The network that it was found for."""
    lower: tuple[Part, ...]
    upper: tuple[Part, ...] | None = None
    factors: Factors | Compact | None = None
    """Hints for factored terms."""
