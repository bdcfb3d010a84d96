"""Where the harms of a query and label come from, by the kind of network and of arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic, Rigorous, Uniformly
from compactproofs.arrays.interval import Interval
from compactproofs.bounds import pairs
from compactproofs.bounds.block_pairs import pair_of_leaf, usable
from compactproofs.bounds.majorants import Majorants
from compactproofs.bounds.relaxation import Relaxation
from compactproofs.bounds.scene import Scene
from compactproofs.bounds.stream import Stream, UnprovenError
from compactproofs.bounds.terms import Terms
from compactproofs.counting.block_truth import BlockTruth
from compactproofs.counting.count_up import Automaton
from compactproofs.counting.kernels import CORRECT, UNCERTAIN
from compactproofs.counting.subject import Subject
from compactproofs.counting.truth import AbstractTruth
from compactproofs.counting.walks import moves_of
from compactproofs.errors import LedgerError
from compactproofs.form.additive import additive_form
from compactproofs.form.embedded import is_affine
from compactproofs.form.evaluation import Evaluation, prepare
from compactproofs.form.pooled import pooled
from compactproofs.form.whole_block import WholeBlock, uniform_block, whole_block
from compactproofs.ledger.harms import AbstractHarms, ArrayHarms, CompiledHarms, UnknownHarms
from compactproofs.ledger.ledger import Factored, Leaf, Part, Spoiler, Spoilers, Sum
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.tasks.question import Question

Source = Callable[[Subject, np.ndarray], AbstractHarms]
"""The harms of a label and a query, or of several of a whole block, which are numbered among the label's tokens."""


def source_of(weights: Model, question: Question, *, intervals: bool) -> Source:
    """Compiled functions or array code in intervals, for one head and an affine readout or for whole blocks."""
    if isinstance(weights, Network) and not is_affine(weights, by_margin=question.margin is not None):
        return _leaf_by_leaf(weights, question, intervals=intervals)
    return _in_intervals(weights, question) if intervals else _compiled(weights, question)


def margin_of(question: Question, subject: Subject, queries: np.ndarray) -> float:
    """The margin of some queries, which are numbered among the label's tokens; they must have the same."""
    if question.margin is None:
        return 0.0
    margins = question.margin[subject.tokens[queries], subject.label]
    if (margins != margins[0]).any():
        raise LedgerError("queries with different margins have no harms in common; expected a part for each")
    return float(margins[0])


def _only(subject: Subject, queries: np.ndarray) -> int:
    (query,) = subject.tokens[queries].tolist()
    return int(query)


def _compiled(weights: Model, question: Question) -> Source:
    evaluation: Evaluation = prepare(weights, question.margin)

    def pair(subject: Subject, queries: np.ndarray) -> AbstractHarms:
        if not evaluation.tolerance < np.inf:  # float64 knows nothing about these weights
            return UnknownHarms(subject.masses.shape)
        return CompiledHarms(pairs.pair_of(evaluation, subject.tokens, subject.label, _only(subject, queries)))

    return pair


def _in_intervals(weights: Model, question: Question) -> Source:
    arithmetic = Rigorous()
    form = additive_form(weights, arithmetic)

    def pair(subject: Subject, queries: np.ndarray) -> AbstractHarms:
        query = _only(subject, queries)
        tau = margin_of(question, subject, queries)
        return ArrayHarms(Terms.of(form, query, form.only_head().attention(query), subject, tau, arithmetic))

    return pair


def _leaf_by_leaf(network: Network, question: Question, *, intervals: bool) -> Source:
    form = whole_block(network, Rigorous()) if intervals else uniform_block(network)
    arithmetic: AbstractArithmetic = Rigorous() if intervals else Uniformly()
    truth = BlockTruth(network) if question.margin is None else None

    def pair(subject: Subject, queries: np.ndarray) -> AbstractHarms:
        return BlockHarms(form, arithmetic, subject, queries, margin_of(question, subject, queries), truth)

    return pair


def is_pooled(part: Part, network: Model) -> bool:
    """Whether a part of a whole block bounds harms for all its queries at once: hints then speak of one more head (`form.pooled`)."""
    hints = [leaf.relaxation for leaf in part.leaves if leaf is not None and leaf.relaxation is not None]
    return isinstance(network, Network) and any(len(each.typical.weights) == network.n_heads + 1 for each in hints)


def pool_of(form: WholeBlock, subject: Subject, queries: np.ndarray, arithmetic: AbstractArithmetic) -> WholeBlock:
    """The form of some queries at once; they are numbered among the label's tokens."""
    return pooled(form, subject.tokens[queries], int(subject.tokens[subject.usual]), arithmetic)


def scene_of(form: WholeBlock, subject: Subject, query: int, automaton: Automaton, masses: np.ndarray) -> Scene:
    """Attention of a query token on the sequences of a leaf."""
    low, high = (np.ascontiguousarray(end[:, query][:, :, subject.tokens]) for end in form.attention)
    return Scene(moves_of(automaton, masses), (low, high))


@dataclass(frozen=True, eq=False)
class BlockHarms(AbstractHarms):
    """A label and a query of a whole block, or several at once: each leaf has harms of its own."""

    form: WholeBlock
    arithmetic: AbstractArithmetic
    subject: Subject
    queries: np.ndarray
    """Numbers among the label's tokens"""
    margin: float
    truth: AbstractTruth | None

    @cached_property
    def pool(self) -> WholeBlock:
        return pool_of(self.form, self.subject, self.queries, self.arithmetic)

    @property
    def shared(self) -> bool:
        return False

    def of_leaf(self, leaf: Leaf, automaton: Automaton, masses: np.ndarray) -> AbstractHarms:
        try:
            with np.errstate(all="ignore"):
                return LeafHarms(self, self._majorants(leaf.relaxation, automaton, masses))
        except UnprovenError:
            return UnknownHarms(self.subject.masses.shape, self)

    def _majorants(self, hints: Relaxation | None, automaton: Automaton, masses: np.ndarray) -> Majorants:
        if hints is None:
            raise UnprovenError("there are no hints")
        typical, (k, n), form, query = hints.typical, masses.shape, self.form, int(self.subject.tokens[self.queries[0]])
        for indices, most in ((typical.positions, k), (typical.tokens, n)):
            if len(indices) != typical.weights.shape[1] or ((indices < 0) | (indices >= most)).any():
                raise LedgerError("a typical place is none of the sequences'")
        if len(typical.weights) == form.n_heads + 1:
            form, query = self.pool, 0
        elif len(typical.weights) != form.n_heads or len(self.queries) > 1:
            raise LedgerError(
                f"typical attention of {len(typical.weights)} heads and {len(self.queries)} queries; the network has {form.n_heads} heads, "
                "and several queries at once need one more"
            )
        scene = scene_of(form, self.subject, query, automaton, masses)
        return Majorants.of(Stream(form, scene, self.subject.tokens, query, typical, self.arithmetic), hints)

    def harms(self, term: Sum) -> np.ndarray:
        raise LedgerError("harms of a whole block belong to a leaf")

    def harmless(self, output: int, masses: np.ndarray, automaton: Automaton) -> bool:
        return False

    def decide(self, sequence: np.ndarray) -> int:
        if self.truth is None:
            return pairs.UNDECIDED
        tokens = self.subject.tokens[sequence]
        (verdict,) = self.truth.verdicts(np.ascontiguousarray(tokens[None]), np.array([self.subject.label])).tolist()
        right = verdict == CORRECT if verdict != UNCERTAIN else self.truth.is_correct(tokens.tolist(), self.subject.label)
        return pairs.UNDECIDED if right is None else pairs.RIGHT if right else pairs.WRONG


class LeafHarms(AbstractHarms):
    """The harms of one leaf."""

    def __init__(self, whole: BlockHarms, majorants: Majorants) -> None:
        self._whole, self._majorants = whole, majorants
        self._tables = self._made(None)

    def _made(self, spoiled: int | None) -> AbstractHarms:
        """Tables against the label; or of the label against one output, which is then number 0."""
        whole = self._whole
        which = None if spoiled is None else np.array([spoiled])
        if isinstance(whole.arithmetic, Rigorous):
            G = interval_tables(self._majorants, whole.subject.label, whole.margin, spoiled=which)
            return ArrayHarms(Terms(G, whole.subject.label, whole.arithmetic))
        pair = pair_of_leaf(self._majorants, whole.subject.label, whole.margin, spoiled=which)
        return CompiledHarms(pair) if usable(pair) else UnknownHarms(whole.subject.masses.shape, whole)

    def harms(self, term: Sum) -> np.ndarray:
        if isinstance(term, Factored | Spoilers):
            raise LedgerError("factored terms, and two spoilers at once, are about one head and an affine readout")
        if isinstance(term, Spoiler):
            return self._made(term.output).single(0)
        return self._tables.harms(term)

    def harmless(self, output: int, masses: np.ndarray, automaton: Automaton) -> bool:
        return self._tables.harmless(output, masses, automaton)

    def decide(self, sequence: np.ndarray) -> int:
        return self._whole.decide(sequence)


def interval_tables(majorants: Majorants, label: int, margin: float, *, spoiled: np.ndarray | None) -> Interval:
    """What `pair_of_leaf` computes, in intervals."""
    form, scene = majorants.stream.form, majorants.stream.scene
    outputs = np.arange(form.b_U.shape[0]) if spoiled is None else spoiled
    D, db = form.W_U[:, outputs] - form.W_U[:, [label]], form.b_U[outputs] - form.b_U[[label]] + margin
    blend = majorants.differences_upper(D, db) if spoiled is None else majorants.differences_upper(-D, -db)
    if scene.n_heads > 1:
        found: Interval = majorants.harms(blend)
        return found
    a = Interval(scene.attention[0][0], scene.attention[1][0])
    X = blend.parts[0] + blend.constant
    return np.moveaxis(X * a[:, :, None], 2, 0)  # type: ignore[no-any-return]
