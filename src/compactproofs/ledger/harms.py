"""Where the harms of terms come from: compiled functions, array code in intervals, or tables that cover every output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from compactproofs.arrays.interval import Interval
from compactproofs.bounds import pairs
from compactproofs.bounds.terms import Terms
from compactproofs.counting.count_up import Automaton
from compactproofs.errors import LedgerError
from compactproofs.ledger.ledger import Apart, Factored, Joint, Leaf, Spoiler, Spoilers, Sum


class AbstractHarms(ABC):
    """Where the harms of terms come from: those of one query and label, or of a leaf."""

    @property
    def shared(self) -> bool:
        """Whether all leaves have the same."""
        return True

    def of_leaf(self, leaf: Leaf, automaton: Automaton, masses: np.ndarray) -> AbstractHarms:
        """Those of a leaf."""
        return self

    def single(self, output: int) -> np.ndarray:
        """(position, token number): upper bounds of the table of one output."""
        raise LedgerError("there are no tables of single outputs")

    @abstractmethod
    def harms(self, term: Sum) -> np.ndarray:
        """(position, token number): upper bounds"""

    @abstractmethod
    def harmless(self, output: int, masses: np.ndarray, automaton: Automaton) -> bool:
        """Whether a walk shows that the output never reaches the label."""

    @abstractmethod
    def decide(self, sequence: np.ndarray) -> int:
        """RIGHT, WRONG or UNDECIDED."""


@dataclass(frozen=True)
class CompiledHarms(AbstractHarms):
    """Terms of one query and label by compiled functions; `bounds.pairs` has the error proof."""

    pair: pairs.Pair

    def harms(self, term: Sum) -> np.ndarray:
        match term:
            case Joint():
                found = pairs.joint_harms(self.pair, np.array(term.outputs), np.array(term.weights))
            case Apart():
                found = pairs.apart_harms(self.pair, term.output, term.parent, term.factor, term.less)
            case Spoiler():
                found = pairs.spoiler_harms(self.pair, term.output)
            case Spoilers():
                found = pairs.spoilers_harms(self.pair, term.output, term.other, term.factor, term.more)
            case Factored():
                raise LedgerError("a factored term stands among terms of single outputs")
        return np.asarray(found)

    def single(self, output: int) -> np.ndarray:
        return np.asarray(pairs.joint_harms(self.pair, np.array([output]), np.array([1])))

    def harmless(self, output: int, masses: np.ndarray, automaton: Automaton) -> bool:
        return bool(pairs.walk_upper(self.pair, output, masses, automaton) < 0.0)

    def decide(self, sequence: np.ndarray) -> int:
        wrong = np.array([o for o in range(self.pair.G.shape[0]) if o != self.pair.label], dtype=np.int64)
        return int(pairs.decide(self.pair, wrong, sequence))


@dataclass(frozen=True)
class ArrayHarms(AbstractHarms):
    """The same by array code in intervals."""

    terms: Terms

    def harms(self, term: Sum) -> np.ndarray:
        match term:
            case Joint():
                found = self.terms.joint(np.array(term.outputs), np.array(term.weights))
            case Apart():
                found = self.terms.apart(term.output, term.parent, term.factor, term.less)
            case Spoiler():
                found = self.terms.spoiler(term.output)
            case Spoilers():
                found = self.terms.spoilers(term.output, term.other, term.factor, term.more)
            case Factored():
                raise LedgerError("a factored term stands among terms of single outputs")
        return upper_end(found)

    def single(self, output: int) -> np.ndarray:
        return upper_end(self.terms.G[output])

    def harmless(self, output: int, masses: np.ndarray, automaton: Automaton) -> bool:
        return self.terms.harmless(output, masses, automaton)

    def decide(self, sequence: np.ndarray) -> int:
        G = self.terms.G
        total = G[:, 0, sequence[0]]
        for i, token in enumerate(sequence[1:].tolist(), start=1):
            total = total + G[:, i, token]
        others = np.arange(G.shape[0]) != self.terms.label
        if (total.upper[others] < 0).all():
            return pairs.RIGHT
        return pairs.WRONG if (total.lower[others] >= 0).any() else pairs.UNDECIDED


@dataclass(frozen=True)
class TableHarms(AbstractHarms):
    """One table that covers every output."""

    table: np.ndarray

    def harms(self, term: Sum) -> np.ndarray:
        if not isinstance(term, Factored):
            raise LedgerError("a term of single outputs stands among factored ones")
        return self.table

    def harmless(self, output: int, masses: np.ndarray, automaton: Automaton) -> bool:
        return False

    def decide(self, sequence: np.ndarray) -> int:
        return pairs.UNDECIDED


@dataclass(frozen=True)
class UnknownHarms(AbstractHarms):
    """Where float64 knows nothing: anything may be harmful."""

    shape: tuple[int, ...]
    whole: AbstractHarms | None = None
    """What decides single sequences"""

    def harms(self, term: Sum) -> np.ndarray:
        return np.full(self.shape, np.inf)

    def single(self, output: int) -> np.ndarray:
        return np.full(self.shape, np.inf)

    def harmless(self, output: int, masses: np.ndarray, automaton: Automaton) -> bool:
        return False

    def decide(self, sequence: np.ndarray) -> int:
        return pairs.UNDECIDED if self.whole is None else self.whole.decide(sequence)


def upper_end(h: Any) -> np.ndarray:
    """The upper ends of harms, NaN as infinity."""
    upper = np.asarray(h.upper if isinstance(h, Interval) else h)
    return np.ascontiguousarray(np.where(np.isnan(upper), np.inf, upper))


def with_slack(h: np.ndarray) -> np.ndarray:
    """A little more than h, so that whoever computes the same harms more exactly gets no larger integers."""
    return np.ascontiguousarray(h + np.abs(h) * 2.0**-40)
