"""Looking at one leaf of a whole block: hints, tables, counts; and deciding one by one what is left of it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from compactproofs.arrays.arithmetic import Uniformly
from compactproofs.bounds.block_pairs import pair_of_leaf, usable
from compactproofs.bounds.majorants import Majorants
from compactproofs.bounds.pairs import Pair, joint_harms
from compactproofs.bounds.relaxation import Relaxation
from compactproofs.bounds.scene import middles
from compactproofs.bounds.stream import Stream, UnprovenError
from compactproofs.counting.count_up import Automaton, mass_up, unit_exponents
from compactproofs.counting.grid import Grid
from compactproofs.counting.kernels import CORRECT, UNCERTAIN
from compactproofs.counting.subject import Subject, for_queries
from compactproofs.counting.truth import AbstractTruth
from compactproofs.counting.walks import frequencies
from compactproofs.form.whole_block import WholeBlock
from compactproofs.ledger.counters import integers
from compactproofs.ledger.ledger import Joint, Leaf, Spoiler, Term
from compactproofs.ledger.sources import pool_of, scene_of
from compactproofs.search import grids
from compactproofs.search.listing import list_leaf
from compactproofs.search.pairs import Tries, failures, other_outputs, rooms
from compactproofs.search.records import Reader
from compactproofs.search.relaxing import relaxed, typical_attention
from compactproofs.search.spoiling import SPOILER_DEPTH
from compactproofs.search.writing import begin, written

_MOST = 1 << 20
"""More sequences of a leaf than this are not decided one by one."""
_APART_ABOVE = 12
"""Terms apart are tried where more than a part of two to the minus this may fail."""
_SPOILERS = 2
"""So many outputs are tried for an upper bound."""
_RANKING_STEPS = 8
"""They are put in order by rough counts."""


@dataclass(frozen=True, eq=False)
class Plot:
    """One label and one query of a network, or several at once: what its leaves have in common."""

    form: WholeBlock
    truth: AbstractTruth | None
    """None if single sequences cannot be decided, or have masses"""
    subject: Subject
    query: int
    """The query of the form"""
    margin: float
    masses: np.ndarray
    unit: int
    """Counts are in units of two to this"""
    total: int
    """The mass of all sequences"""

    @classmethod
    def of(cls, form: WholeBlock, truth: AbstractTruth | None, subject: Subject, queries: np.ndarray, margin: float) -> Plot:
        """Queries are numbered among the label's tokens."""
        masses = for_queries(subject, queries)
        query = int(subject.tokens[queries[0]])
        if len(queries) > 1:
            form, query = pool_of(form, subject, queries, Uniformly()), 0
        unit = int(unit_exponents(masses).sum())
        total = int(mass_up(masses, subject.automaton)) << unit
        return cls(form, truth if unit == 0 and masses.max() <= 1 else None, subject, query, margin, masses, unit, total)

    def mass(self, automaton: Automaton) -> int:
        """At least the mass of a leaf, and just that if masses are small."""
        return int(mass_up(self.masses, automaton)) << self.unit


@dataclass(frozen=True, eq=False)
class Decided:
    """Sequences of a leaf that its term counts, decided one by one."""

    right: tuple[tuple[int, ...], ...]
    wrong: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Look:
    """What was found about a leaf."""

    failing: int
    """At most so much may fail"""
    terms: tuple[tuple[Term, int], ...] = ()
    """With the operations of counting them"""
    walks: int = 0
    relaxation: Relaxation | None = None
    decided: Decided | None = None
    wrong: int = 0
    """So many sequences that may fail certainly do: what is not worth splitting. Nothing rests on it."""
    influence: np.ndarray | None = None
    """(token number,): how much it can move what attention averages"""

    def leaf(self) -> Leaf | None:
        """What the ledger says; None: given up."""
        if self.relaxation is None and self.decided is None:
            return None
        return Leaf(tuple(term for term, _ in self.terms), () if self.decided is None else self.decided.right, self.relaxation)


@dataclass(frozen=True)
class Care:
    """How hard to look."""

    steps: int
    """Counting steps per unit"""
    peek: int = 0
    """Look how many fail of those that may, if these are so few"""
    apart: bool = False
    """Try terms apart"""


def look_at(plot: Plot, automaton: Automaton, about: int, care: Care) -> Look:
    """Bound what fails of a leaf; `about` is a token that occurs in all its sequences (for the choice of a grid)."""
    everything = plot.mass(automaton)
    scene = scene_of(plot.form, plot.subject, plot.query, automaton, plot.masses)
    typical = typical_attention(plot.form, scene, frequencies(plot.masses, scene.moves))
    bounds = relaxed(plot.form, scene, plot.subject.tokens, plot.query, typical)
    if bounds is None:
        return Look(everything, influence=_influence(scene.shares[1], np.ones((*scene.attention[0].shape, 1))))
    hints, majorants = bounds
    influence = _influence(scene.shares[1], middles(majorants.stream.spread))
    with np.errstate(all="ignore"):
        pair = pair_of_leaf(majorants, plot.subject.label, plot.margin)
    if not usable(pair):
        return Look(everything, influence=influence)
    found = min((_count(plot, automaton, pair, token, care.steps) for token in {about: 0, plot.subject.usual: 0}), key=_failing)
    if care.apart and found.failing > everything >> _APART_ABOVE:
        found = min(found, _count(plot, automaton, pair, found.about, care.steps, apart=True), key=_failing)
    failing, wrong = min(found.failing, everything), 0
    if 0 < failing <= care.peek:
        known = _counted(plot, automaton, pair, found.terms[0][0], failing)
        wrong = 0 if known is None else len(known.wrong)
    return Look(failing, tuple(found.terms), found.walks, hints, None, wrong, influence)


class _Count(NamedTuple):
    """What terms of one kind prove of a leaf."""

    failing: int
    terms: list[tuple[Term, int]]
    walks: int
    """Operations"""
    about: int


def _failing(found: _Count) -> int:
    return found.failing


def _count(plot: Plot, automaton: Automaton, pair: Pair, about: int, steps: int, *, apart: bool = False) -> _Count:
    """Joint terms, or terms apart where they are better, with weights and a grid for one token of the leaf."""
    tries = Tries(steps, 0, 0, True, apart, False)
    below, above = (np.empty(size, dtype=np.int64) for size in rooms(tries, len(pair.G), *plot.masses.shape))
    begin(below)
    begin(above)
    count, _ = failures(pair, other_outputs(pair), grids.leaf_of(plot.masses, automaton, plot.subject.usual, about), tries, below, above)
    return _Count(int(count) << plot.unit, *Reader(written(below), len(plot.masses)).leaf(), about)


def decide(plot: Plot, automaton: Automaton, look: Look) -> Look:
    """The same leaf, the sequences that may fail decided one by one."""
    decided: Decided | None = None
    if look.relaxation is None:
        return _blind(plot, automaton, look)
    scene = scene_of(plot.form, plot.subject, plot.query, automaton, plot.masses)
    stream = Stream(plot.form, scene, plot.subject.tokens, plot.query, look.relaxation.typical, Uniformly())
    with np.errstate(all="ignore"), suppress(UnprovenError):
        pair = pair_of_leaf(Majorants.of(stream, look.relaxation), plot.subject.label, plot.margin)
        decided = _counted(plot, automaton, pair, look.terms[0][0], look.failing)
    return look if decided is None else replace(look, failing=look.failing - len(decided.right), decided=decided)


def _counted(plot: Plot, automaton: Automaton, pair: Pair, term: Term, failing: int) -> Decided | None:
    """The sequences that a joint term counts, decided."""
    if not isinstance(term, Joint):
        return None
    start, D = integers(joint_harms(pair, np.array(term.outputs), np.array(term.weights)), term.grid, False)
    return _decide(plot, automaton, np.ascontiguousarray(D), start, failing)


def _blind(plot: Plot, automaton: Automaton, look: Look) -> Look:
    """A leaf of which nothing is known, decided. Without hints every table is infinite, so one joint term of all outputs counts
    everything."""
    others = tuple(o for o in range(plot.form.b_U.shape[0]) if o != plot.subject.label)
    decided = _decide(plot, automaton, np.zeros(plot.masses.shape, dtype=np.int64), 0, look.failing) if others else None
    if decided is None:
        return look
    term = Joint(others, (1,) * len(others), Grid(1, 0, 1, (0,) * len(plot.masses)))
    return replace(look, failing=look.failing - len(decided.right), terms=((term, 0),), decided=decided)


def _influence(shares: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """(token number,): the largest share of each head times how far its value is off, at any position but the last."""
    size = np.sqrt((spread * spread).sum(axis=-1)) * shares
    return np.asarray(size[:, :-1].max(axis=1, initial=0.0).sum(axis=0))


def look_above(plot: Plot, automaton: Automaton, look: Look, about: int, steps: int) -> tuple[int, Leaf]:
    """Bound what is right of a leaf, by an output that spoils much of it."""
    everything = plot.mass(automaton)
    if look.relaxation is None:
        return everything, Leaf(())
    k, label = len(plot.masses), plot.subject.label
    leaf = grids.leaf_of(plot.masses, automaton, plot.subject.usual, about)
    scene = scene_of(plot.form, plot.subject, plot.query, automaton, plot.masses)
    stream = Stream(plot.form, scene, plot.subject.tokens, plot.query, look.relaxation.typical, Uniformly())
    best, chosen, grid = everything, -1, np.empty(3 + k, dtype=np.int64)
    with np.errstate(all="ignore"):
        try:
            majorants = Majorants.of(stream, look.relaxation)
        except UnprovenError:  # ranges of several heads were certain when they were found, not when they are checked again
            return everything, Leaf(())
        for o in _harmful(pair_of_leaf(majorants, label, plot.margin), look, leaf)[:_SPOILERS]:
            against = pair_of_leaf(majorants, label, plot.margin, spoiled=np.array([o]))
            if not usable(against):
                continue
            h, tried = joint_harms(against, np.array([0]), np.array([1])), np.empty(3 + k, dtype=np.int64)
            unit = grids.natural_unit(h, leaf.masses, leaf.usual, leaf.token)
            found = int(grids.count_on_grid(h, leaf, unit, steps, SPOILER_DEPTH, True, tried)[0]) << plot.unit
            if found < best:
                best, chosen, grid = found, int(o), tried
    if chosen < 0:
        return everything, Leaf(())
    mantissa, exponent, depth, *offsets = grid.tolist()
    return best, Leaf((Spoiler(chosen, Grid(mantissa, exponent, depth, tuple(offsets))),), (), look.relaxation)


def _harmful(pair: Pair, look: Look, leaf: grids.Leaf) -> list[int]:
    """Outputs that the terms are about, those that spoil most first."""
    outputs = sorted({o for term, _ in look.terms for o in (term.outputs if isinstance(term, Joint) else [term.output])})  # type: ignore[union-attr]
    counts = []
    for o in outputs:
        h = joint_harms(pair, np.array([o]), np.array([1]))
        unit = grids.natural_unit(h, leaf.masses, leaf.usual, leaf.token)
        counts.append(grids.count_on_grid(h, leaf, unit, _RANKING_STEPS, grids.DEEPEST, False, np.empty(3 + len(h), dtype=np.int64))[0])
    return [o for _, o in sorted(zip(counts, outputs, strict=True), key=lambda pair: -pair[0])]


def _decide(plot: Plot, automaton: Automaton, D: np.ndarray, start: int, failing: int) -> Decided | None:
    """Decide the sequences of a leaf with start + sum_i D[i, x_i] >= 0, of which there are `failing`; None if that cannot be done."""
    if plot.truth is None or failing > _MOST:
        return None
    room = np.empty((failing, len(plot.masses)), dtype=np.int64)
    n = int(list_leaf(D, start, plot.masses, automaton, room))
    if n < 0:
        return None
    sequences = np.ascontiguousarray(plot.subject.tokens[room[:n]])
    verdicts = plot.truth.verdicts(sequences, np.full(n, plot.subject.label))
    found: dict[bool | None, list[tuple[int, ...]]] = {True: [], False: [], None: []}
    for row, verdict in zip(sequences.tolist(), verdicts.tolist(), strict=True):
        correct = verdict == CORRECT if verdict != UNCERTAIN else plot.truth.is_correct(row, plot.subject.label)
        found[correct].append(tuple(row))
    return Decided(tuple(found[True]), tuple(found[False]))
