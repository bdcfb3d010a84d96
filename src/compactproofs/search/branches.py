"""The sequences of one query and label as a tree: split by how often a token occurs, counted on ever finer grids, decided one by one.

A branch has bounds of its own and those of its halves added up; below and above, the better stands. So bounds only get better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from compactproofs.counting.count_up import Automaton, mass_up, unit_exponents
from compactproofs.counting.exact_mass import exact_mass
from compactproofs.counting.levels import MANY, smallest
from compactproofs.counting.splits import with_fewer, with_more
from compactproofs.counting.subject import Subject, for_queries
from compactproofs.form.evaluation import Evaluation
from compactproofs.search.chains import Chains
from compactproofs.search.listing import list_doubtful
from compactproofs.search.looking import Place, harmful_of, look_at_place
from compactproofs.search.pairs import Tries, rooms
from compactproofs.search.together import Twos, look_together, room_together
from compactproofs.search.writing import written

NOTHING = np.empty(0, dtype=np.int64)
MOST_STATES = 64
"""Automata of leaves have at most so many states for each position."""


@dataclass(frozen=True, eq=False)
class Plot:
    """One query and one label, and what is the same for all its branches."""

    evaluation: Evaluation
    subject: Subject
    query: int
    """Its number among the label's tokens"""
    masses: np.ndarray
    unit: int
    """Counts are in units of two to this."""
    candidates: np.ndarray
    """Outputs that may be harmful"""
    n_out: int

    @classmethod
    def of(cls, evaluation: Evaluation, subject: Subject, query: int) -> Plot:
        masses = for_queries(subject, np.array([query]))
        candidates = harmful_of(evaluation, subject, query)
        unit = int(unit_exponents(masses).sum())
        return cls(evaluation, subject, query, masses, unit, candidates, evaluation.EU.shape[1])

    def mass(self, automaton: Automaton) -> int:
        """At least the mass of some sequences; just that, if it is below 2^62."""
        return int(mass_up(self.masses, automaton)) << self.unit


@dataclass(frozen=True, eq=False)
class Look:
    """What was found about a branch: bounds, and the records that prove them."""

    failing: int
    right: int
    below: np.ndarray
    above: np.ndarray
    outputs: np.ndarray
    """Those that may be harmful, those that spoil most first; no other is"""
    doubt: int = 0
    """By how much the bounds of the first output differ: what finer steps may win"""
    token: int = -1
    """A token to split by, or -1"""
    listed: tuple[np.ndarray, np.ndarray] = (NOTHING, NOTHING)
    """Right sequences that count as failing, and wrong ones that count as right"""


@dataclass(eq=False)
class Branch:
    """Some sequences of a plot."""

    automaton: Automaton
    about: int
    """A token that all of them have, or the usual one"""
    copies: np.ndarray
    """How often each token is known to occur; -1 if it is known how often it does"""
    candidates: np.ndarray
    """Outputs that may be harmful, those that probably spoil most first"""
    mass: int
    failing: int
    """The best that is known, halves included; and so for `right`"""
    right: int
    parent: Branch | None = None
    below: Look | None = None
    """Where the best bound of its own comes from; and so for `above`"""
    above: Look | None = None
    latest: Look | None = None
    split: tuple[int, int] | None = None
    halves: tuple[Branch, Branch] | None = None
    """Those with fewer copies, and those with so many"""

    @classmethod
    def root(cls, plot: Plot, mass: int) -> Branch:
        usual, n = plot.subject.usual, len(plot.subject.tokens)
        copies = np.zeros(n, dtype=np.int64)
        copies[usual] = 1
        return cls(smallest(plot.subject.automaton, plot.masses), usual, copies, plot.candidates, mass, mass, mass)

    @property
    def gap(self) -> int:
        """How much is undecided."""
        return max(0, self.failing + self.right - self.mass)

    def learn(self, look: Look) -> None:
        """Keep the better of what is known and what was found."""
        self.keep(look)
        branch: Branch | None = self
        while branch is not None:
            branch._add_up()
            branch = branch.parent

    def keep(self, look: Look) -> None:
        """Keep the better of what is known and what was found, without telling the branches that this is a part of."""
        self.latest = look
        if look.failing < (self.mass if self.below is None else self.below.failing):
            self.below = look
        if look.right < (self.mass if self.above is None else self.above.right):
            self.above = look
        self._add_up()

    def _add_up(self) -> None:
        own = self.mass if self.below is None else self.below.failing, self.mass if self.above is None else self.above.right
        if self.halves is not None:
            sums = sum(half.failing for half in self.halves), sum(half.right for half in self.halves)
            own = min(own[0], sums[0]), min(own[1], sums[1])
        self.failing, self.right = min(self.failing, own[0]), min(self.right, own[1])

    @property
    def outputs(self) -> np.ndarray:
        """Those that may be harmful, as far as is known"""
        return self.candidates if self.latest is None else self.latest.outputs

    def place(self) -> Place:
        return Place(self.automaton, self.candidates, self.about, self.copies)

    @property
    def token(self) -> int:
        """A token to split by, or -1"""
        return -1 if self.latest is None else self.latest.token

    @property
    def useful_gap(self) -> int:
        """How much of the gap of the whole may be closed here: less where what this is a part of has better bounds than its halves."""
        useful, branch = self.gap, self.parent
        while branch is not None and useful > 0:
            if branch.halves is not None:
                useful -= sum(half.gap for half in branch.halves) - branch.gap
            branch = branch.parent
        return max(0, useful)

    def may_be_divided(self, plot: Plot) -> bool:
        """Whether there is a token to split by, and that takes few states."""
        n = 0 if self.token < 0 else int(self.copies[self.token]) + 1
        return self.halves is None and 0 < n <= len(plot.masses) and self.states(plot) * (n + 1) <= MOST_STATES

    def halves_by(self, plot: Plot, token: int) -> tuple[Branch, Branch]:
        """The halves by one more copy of a token than is known."""
        n = int(self.copies[token]) + 1
        fewer, more = (smallest(half(self.automaton, token, n), plot.masses) for half in (with_fewer, with_more))
        return self._halves(plot, token, n, (fewer, more))

    def divide(self, halves: tuple[Branch, ...]) -> None:
        """From now on the better of what is known of it and of its halves stands."""
        fewer, more = halves
        self.split, self.halves = (more.about, int(more.copies[more.about])), (fewer, more)

    def chain(self, plot: Plot, chains: Chains, tokens: tuple[int, ...]) -> list[Branch]:
        """The classes of a chain of tokens, of a root: those in which a token occurs and none before it; and those without any."""
        found, rest = [], self
        for j, token in enumerate(tokens):
            halves = rest._halves(plot, token, 1, (chains.rest(tokens[: j + 1]), chains.among(tokens[: j + 1])))
            rest.divide(halves)
            rest, one = halves
            found.append(one)
        return [*found, rest]

    def _halves(self, plot: Plot, token: int, n: int, automata: tuple[Automaton, Automaton]) -> tuple[Branch, Branch]:
        fewer, more = automata
        known, exact = self.copies.copy(), self.copies.copy()
        known[token], exact[token] = n, -1
        return (
            Branch(fewer, self.about, exact, self.outputs, mass := plot.mass(fewer), mass, mass, self),
            Branch(more, token, known, self.outputs, mass := plot.mass(more), mass, mass, self),
        )

    def states(self, plot: Plot) -> int:
        """About how many states there are at one position."""
        n = len(self.automaton.following)
        return n if n <= MANY else -(-n // len(plot.masses))

    def leaves(self, side: str) -> Iterator[Look | None]:
        """The looks that the best bound rests on; None where nothing is known."""
        if self.uses_halves(side):
            for half in self.halves or ():
                yield from half.leaves(side)
        else:
            yield self.below if side == "below" else self.above

    def uses_halves(self, side: str) -> bool:
        """Whether the bound below, or above, is that of the halves."""
        if self.halves is None:
            return False
        if side == "below":
            return sum(half.failing for half in self.halves) < (self.mass if self.below is None else self.below.failing)
        return sum(half.right for half in self.halves) < (self.mass if self.above is None else self.above.right)


def look(plot: Plot, branch: Branch, tries: Tries) -> Look:
    """Bound what fails and what is right of a branch.

    Guarantee: at most `failing` fails and at most `right` is right; the records say why.
    """
    sizes = rooms(tries, plot.n_out, len(plot.masses), len(plot.subject.tokens))
    records = tuple(np.empty(size, dtype=np.int64) for size in sizes)
    found = look_at_place(plot.evaluation, plot.subject, plot.query, branch.place(), tries, records)
    below, above = map(written, records)
    bounds = min(found.failing << plot.unit, branch.mass), min(found.right << plot.unit, branch.mass)
    return Look(*bounds, below, above, found.outputs, found.doubt << plot.unit, found.token)


def look_by_twos(plot: Plot, branch: Branch, effort: Twos) -> Look:
    """Bound what fails of a branch, or what is right of it, by two sums at once.

    Guarantee: at most `failing` fails and at most `right` is right; the records say why.
    """
    record = np.empty(room_together(plot.n_out, len(plot.masses), above=effort.above), dtype=np.int64)
    place = branch.place()._replace(candidates=branch.outputs)
    counted, spoilers = look_together(plot.evaluation, plot.subject, plot.query, place, effort, record)
    found = int(counted) << plot.unit
    if not effort.above:
        return Look(min(found, branch.mass), branch.mass, written(record), NOTHING, branch.outputs, token=branch.token)
    if spoilers > 1:  # it took off masses that were rounded up
        found += (spoilers - 1) * (plot.mass(branch.automaton) - exact_mass(plot.masses, branch.automaton))
    return Look(branch.mass, min(found, branch.mass), NOTHING, written(record), branch.outputs, token=branch.token)


def decide(plot: Plot, branch: Branch, found: Look) -> Look:
    """The same look at a branch, of one joint term, the sequences in doubt decided one by one. Masses must be 1."""
    if found.below[0] != 1 or found.failing + found.right <= branch.mass:
        return found
    room = found.failing + found.right - branch.mass, len(plot.masses)
    right, wrong = (np.empty(room, dtype=np.int64) for _ in range(2))
    records, place = (found.below, found.above), branch.place()
    n_right, n_wrong = list_doubtful(plot.evaluation, plot.subject, plot.query, place, records, (right, wrong))
    if n_right < 0:
        return found
    lists = right[:n_right].flatten(), wrong[:n_wrong].flatten()
    return replace(found, failing=found.failing - n_right, right=found.right - n_wrong, listed=lists)
