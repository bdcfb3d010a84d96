"""The worst case over a set of distributions: those that weigh the blocks of a proof anew, and are inside each block as the question says.

A block is the sequences of one label that end in one token. A proof says of each how much is right at least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from compactproofs.arrays.rounding import round_down
from compactproofs.errors import StrategyError, TaskError
from compactproofs.ledger.inspect import proven_by_query
from compactproofs.proof import Proof
from compactproofs.tasks.question import Question


@dataclass(frozen=True)
class Block:
    """The sequences of one label that end in one token."""

    label: int
    last: int
    """The token at the last position, or at the one that is read."""
    proven: int
    """The mass proven right."""
    total: int
    """The mass of them all, positive."""

    @property
    def share(self) -> Fraction:
        """How much of it is proven right."""
        return Fraction(self.proven, self.total)

    def as_json(self) -> dict[str, Any]:
        return {"label": self.label, "last": self.last, "proven": str(self.proven), "total": str(self.total)}


@dataclass(frozen=True)
class WorstBlocks:
    """What is proven about all distributions that weigh the blocks anew."""

    blocks: tuple[Block, ...]
    """By how much of them is proven right, worst first; of equal ones the one with the most mass."""
    factor: Fraction | None
    """By how much the weight of a block may change, in either direction; None: by anything."""
    accuracy_at_least: Fraction
    theorem: str

    @property
    def lower(self) -> float:
        """Proven accuracy, rounded down."""
        return round_down(self.accuracy_at_least)

    def as_json(self) -> dict[str, Any]:
        return {
            "factor": None if self.factor is None else str(self.factor),
            "accuracy_at_least": str(self.accuracy_at_least),
            "lower": self.lower,
            "theorem": self.theorem,
            "blocks": [block.as_json() for block in self.blocks],
        }


def worst_blocks(proof: Proof, factor: Fraction | int | None = None) -> WorstBlocks:
    """The least accuracy under any distribution that is inside each block as the question's, and gives each block at least 1 / factor and
    at most `factor` times its share; None: any share.

    Guarantee: for every such distribution, accuracy_at_least <= the probability of a right answer. Exact fractions.
    Assumes: nothing.
    Cost: that of verifying the ledger query by query.
    Source: docs/reference/distributions.md, the worst case over blocks.

    Example:
        >>> import compactproofs as cp
        >>> found = worst_blocks(cp.prove(cp.zoo("max-of-4")), 2)
        >>> 0 < found.accuracy_at_least <= 1, len(found.blocks)
        (True, 2080)
    """
    factor = require_factor(factor)
    ledger = proof.ledger
    if proof.origin is None or ledger is None or proof.status != "proven":
        why = proof.reason or "there is no single ledger behind it"
        raise StrategyError(
            f"{proof.label}: what is proven of each label and last token is not known ({why}). Try the threshold strategies"
        )
    proven = proven_by_query(ledger, proof.origin.weights)
    blocks = tuple(sorted(_blocks(proof.origin.question, proven), key=lambda block: (block.share, -block.total, block.label, block.last)))
    least = least_accuracy(blocks, factor)
    return WorstBlocks(blocks, factor, least, _theorem(proof, least, factor))


def require_factor(factor: Fraction | int | None) -> Fraction | None:
    """A factor by which weights may change, exactly."""
    if factor is None:
        return None
    if isinstance(factor, bool) or not isinstance(factor, Fraction | int) or factor < 1:
        raise TaskError(f"the weights of blocks change by a factor of {factor!r:.40}; expected an integer or a Fraction, at least 1")
    return Fraction(factor)


def _blocks(question: Question, proven: dict[int, list[int]]) -> list[Block]:
    found = []
    for label in question.task.labels:
        tokens, totals = question.label_automaton(label).tokens.tolist(), question.totals_by_last(label)
        found += [Block(label, token, right, total) for token, right, total in zip(tokens, proven[label], totals, strict=True) if total > 0]
    return found


def least_accuracy(blocks: Sequence[Block], factor: Fraction | None) -> Fraction:
    """The least sum of w_b share_b over weights that add up to 1, with p_b / factor <= w_b <= factor p_b for the shares p_b of the mass.

    A linear programme: every block gets the least it may, and what is left goes to the worst blocks, each up to the most it may.
    """
    ascending = sorted(blocks, key=lambda block: block.share)
    if factor is None:
        return ascending[0].share
    total = sum(block.total for block in ascending)
    found, left = Fraction(0), 1 - 1 / factor
    for block in ascending:
        usual = Fraction(block.total, total)
        more = min(left, (factor - 1 / factor) * usual)
        left -= more
        found += (usual / factor + more) * block.share
    return found


def _theorem(proof: Proof, least: Fraction, factor: Fraction | None) -> str:
    """The claim in words."""
    where = "last token" if proof.position is None else f"token at position {proof.position}"
    weights = "whatever the weights of these blocks"
    if factor is not None:
        weights = f"and gives each of these blocks at least 1 / ({factor}) and at most {factor} times its share there"
    return (
        f"For every distribution that is as that of the theorem among the sequences with the same right output and the same {where}, "
        f"{weights}, the probability of a right answer is at least {in_words(least)}."
    )


def in_words(share: Fraction, digits: int = 8) -> str:
    """A number from 0 to 1 with so many digits, rounded down."""
    whole, rest = divmod(share.numerator * 10**digits // share.denominator, 10**digits)
    return f"{whole}.{rest:0{digits}d}"
