"""What a threshold proof is: parts, leaves, terms. Plain data, from anywhere; `verify` decides what it proves.

A ledger splits the sequences of the question by label, then by query sets, then by chains of classes ("token c of an order occurs and none
before it", and "none occurs"). Every leaf has terms. The rule (docs/explanation/threshold-proofs.md, Theorem 4): if every output is covered
by a term or shown harmless by a walk, the mass that fails is at most the sum over terms of `count_up`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from compactproofs.bounds.factors import Factors
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
class Spoiler:
    """Upper bounds: right answers are at most those on which this output loses."""

    output: int
    grid: Grid


Term = Joint | Apart | Factored | Spoiler


@dataclass(frozen=True)
class Leaf:
    """Terms, and sequences that they count but that were decided one by one: right ones (below), wrong ones (above)."""

    terms: tuple[Term, ...]
    listed: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Part:
    """Sequences of one label whose last token is one of the queries."""

    label: int
    queries: tuple[int, ...]
    order: tuple[int, ...]
    """Tokens of the chain."""
    leaves: tuple[Leaf | None, ...]
    """One for each class of the chain and one for "none occurs"; None: given up."""

    def restricted(self, queries: tuple[int, ...]) -> Part:
        """The same claim about some of its queries; listed sequences that end in another one are left out."""
        leaves = tuple(leaf and replace(leaf, listed=tuple(x for x in leaf.listed if x[-1] in queries)) for leaf in self.leaves)
        return replace(self, queries=queries, leaves=leaves)


@dataclass(frozen=True, eq=False)
class Ledger:
    """A proof. Queries and labels that no part is about are given up."""

    question: Question
    weights_sha256: str
    """The network that it was found for."""
    lower: tuple[Part, ...]
    upper: tuple[Part, ...] | None = None
    factors: Factors | None = None
    """Hints for factored terms."""
