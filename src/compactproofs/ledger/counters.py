"""What a single term counts: its tables on their grids, and the mass of the sequences on which they add up to at least zero."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compactproofs.counting.count_both import MOST_REACH, count_both
from compactproofs.counting.count_up import Automaton, unit_exponents
from compactproofs.counting.grid import MOST_DEPTH, MOST_EXPONENT, MOST_MANTISSA, Grid, count_harms, initial_sum, on_grid
from compactproofs.errors import LedgerError
from compactproofs.ledger.harms import AbstractHarms
from compactproofs.ledger.ledger import Both, Term, sums_of


@dataclass(frozen=True, eq=False)
class Counter:
    """A term, its tables, and what it counts of some leaf."""

    term: Term
    tables: tuple[np.ndarray, ...]
    """(position, token number): upper bounds of what is added up, one or two of them"""
    strict: bool
    """Whether the sums have to be more than zero"""
    mass: int
    """At least the mass that is counted"""
    operations: int

    @cached_property
    def _integers(self) -> list[tuple[int, np.ndarray]]:
        return [integers(h, part.grid, self.strict) for h, part in zip(self.tables, sums_of(self.term), strict=True)]

    def hits(self, numbers: np.ndarray) -> bool:
        """Whether it counts a sequence of token numbers."""
        return all(start + sum(D[np.arange(len(numbers)), numbers].tolist()) >= 0 for start, D in self._integers)


def counter_of(term: Term, harms: AbstractHarms, masses: np.ndarray, automaton: Automaton, *, strict: bool) -> Counter:
    """Count the sequences of a leaf on which the sums of a term are at least zero, or (`strict`) more.

    Guarantee: the mass is at least theirs.
    """
    tables = tuple(map(harms.harms, sums_of(term)))
    if isinstance(term, Both):
        (z, D), (y, E) = (integers(h, part.grid, strict) for h, part in zip(tables, sums_of(term), strict=True))
        found, operations = count_both(D, E, masses, np.array([z, y]), automaton, term.reach)
    else:
        found, operations = count_harms(tables[0], kernel_grid(term.grid), masses, automaton, strict)
    return Counter(term, tables, strict, int(found) << int(unit_exponents(masses).sum()), int(operations))


def integers(h: np.ndarray, grid: Grid, strict: bool) -> tuple[int, np.ndarray]:
    """The integers (position, token number) that `count_harms` adds up, and what it starts with."""
    on = kernel_grid(grid)
    start = int(initial_sum(on.offsets)) - (1 if strict else 0)
    return start, np.ascontiguousarray(np.asarray(on_grid(h, on, start))[:, 0])


def kernel_grid(grid: Grid) -> Grid:
    """A grid of a ledger for compiled functions."""
    return Grid(grid.mantissa, grid.exponent, grid.depth, np.array(grid.offsets, dtype=np.int64))


def require_countable(term: Term, k: int, where: str) -> None:
    """Raise if a grid or a reach of a term is out of range."""
    for part in sums_of(term):
        grid = part.grid
        good = 1 <= grid.mantissa <= MOST_MANTISSA and abs(grid.exponent) <= MOST_EXPONENT and 1 <= grid.depth <= MOST_DEPTH
        if not good or len(grid.offsets) != k or not all(0 <= offset <= 255 for offset in grid.offsets):
            raise LedgerError(f"{where}: a step, depth or offset is out of range: {grid!s:.120}")
    if isinstance(term, Both) and not 1 <= term.reach <= MOST_REACH:
        raise LedgerError(f"{where}: sums that are kept within {term.reach}; expected 1 to {MOST_REACH}")
