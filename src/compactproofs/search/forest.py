"""A tree of splits for every query and label of a whole block, grown where most is left to prove."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from compactproofs.budget import Budget, in_threads
from compactproofs.counting.block_truth import BlockTruth
from compactproofs.counting.count_up import Automaton
from compactproofs.counting.splits import with_fewer, with_more
from compactproofs.counting.subject import Subject, subject_of
from compactproofs.counting.walks import moves_of
from compactproofs.errors import DisagreementError
from compactproofs.form.whole_block import WholeBlock, uniform_block
from compactproofs.ledger.block_length import BlockLengths
from compactproofs.ledger.ledger import Leaf, Part, Split, Tree
from compactproofs.ledger.sources import margin_of
from compactproofs.model.network import Network
from compactproofs.search.crew import Crew
from compactproofs.search.engine import fraction_of
from compactproofs.search.leaves import Care, Look, Plot, decide, look_above, look_at
from compactproofs.search.records import Tally
from compactproofs.tasks.question import Question

_BATCH = 16
_AGAIN = 0.5
"""Tokens that occur already are split by their number less readily."""
_WAYS, _MUCH, _ALSO = 3, 0.1, 0.5
"""A leaf of which more than this part may fail is split by so many tokens at once, if they matter nearly as much as the first."""


@dataclass(eq=False)
class Node:
    """Some sequences of a query and label."""

    automaton: Automaton
    mass: int
    counts: dict[int, tuple[int, int]]
    """How often tokens (by number) occur, at least and at most, where that is known"""
    failing: int
    right: int
    look: Look | None = None
    above: Leaf | None = None
    split: tuple[int, int] | None = None
    """A token and how often"""
    more: Node | None = None
    fewer: Node | None = None

    @classmethod
    def unseen(cls, automaton: Automaton, mass: int, counts: dict[int, tuple[int, int]]) -> Node:
        """Nothing is known of it."""
        return cls(automaton, mass, counts, mass, mass)

    @property
    def is_unseen(self) -> bool:
        return self.look is None and self.split is None and self.failing > 0

    @property
    def is_decided(self) -> bool:
        return self.look is not None and self.look.decided is not None

    @property
    def gap(self) -> int:
        """How much is undecided, as far as is known."""
        wrong = 0 if self.look is None else self.look.wrong
        return self.failing - max(self.mass - self.right, wrong)

    def bare(self) -> Node:
        """What splitting it takes."""
        look = None if self.look is None else Look(0, influence=self.look.influence)
        return Node(self.automaton, self.mass, self.counts, self.failing, self.right, look)

    def become(self, other: Node) -> list[Node]:
        """Take over what is known of the same node, which was looked at or divided. Returns its leaves."""
        self.failing, self.right, self.look = other.failing, other.right, other.look
        self.split, self.more, self.fewer = other.split, other.more, other.fewer
        return list(self.leaves())

    def leaves(self) -> Iterable[Node]:
        if self.more is None or self.fewer is None:
            yield self
        else:
            yield from self.more.leaves()
            yield from self.fewer.leaves()


Pair = tuple[int, tuple[int, ...]]
"""A label, and the number of a query among its tokens; or several, which share their bounds."""


@dataclass(eq=False)
class Forest:
    """The trees of one network and question."""

    network: Network
    question: Question
    form: WholeBlock
    truth: BlockTruth | None
    subjects: dict[int, Subject]
    plots: dict[Pair, Plot] = field(default_factory=dict)
    roots: dict[Pair, Node] = field(default_factory=dict)
    _crew: Crew | None = None

    @classmethod
    def of(cls, network: Network, question: Question) -> Forest:
        truth = BlockTruth(network) if question.margin is None else None
        subjects = {label: subject_of(question, label) for label in question.task.labels}
        return cls(network, question, uniform_block(network), truth, subjects)

    def pairs(self, pools: int | None = None) -> list[Pair]:
        """Labels with the numbers of their queries, those that most sequences have first; or with so many pools of neighbouring queries."""
        found: list[Pair] = []
        for label in self.subjects:
            queries = [q for q, total in enumerate(self.question.totals_by_last(label)) if total]
            groups = np.array_split(queries, min(len(queries) if pools is None else pools, len(queries))) if queries else []
            found += [(label, same) for group in groups for same in self._by_margin(label, group)]
        weight = {label: sum(self.question.totals_by_last(label)) for label in self.subjects}
        return sorted(found, key=lambda pair: (-weight[pair[0]], pair[0], -self.mass(pair), pair[1]))

    def _by_margin(self, label: int, queries: np.ndarray) -> list[tuple[int, ...]]:
        """Queries that share a margin: others have no harms in common."""
        if self.question.margin is None:
            return [tuple(queries.tolist())]
        margins = self.question.margin[self.subjects[label].tokens[queries], label]
        return [tuple(queries[margins == margin].tolist()) for margin in dict.fromkeys(margins.tolist())]

    def mass(self, pair: Pair) -> int:
        """Of all its sequences."""
        totals = self.question.totals_by_last(pair[0])
        return sum(totals[q] for q in pair[1])

    def plot(self, pair: Pair) -> Plot:
        if pair not in self.plots:
            subject, queries = self.subjects[pair[0]], np.array(pair[1])
            self.plots[pair] = Plot.of(self.form, self.truth, subject, queries, margin_of(self.question, subject, queries))
        return self.plots[pair]

    # ------------------------------------------------------------ growing

    @contextmanager
    def crew(self) -> Iterator[Crew]:
        """Processes that call methods of forests like this one; those that are there already, if some are."""
        if self._crew is not None:
            yield self._crew
            return
        with Crew(self, Forest.of, self.network, self.question) as crew:
            self._crew = crew
            try:
                yield crew
            finally:
                self._crew = None

    def grow(self, pairs: Iterable[Pair], leaves: int, care: Care, budget: Budget, small: float = 0.0) -> list[Pair]:
        """Look at pairs, and split each until so many leaves have been looked at, or not more than a fraction `small` of all sequences of
        the query is left. Returns the pairs that were done."""
        enough = fraction_of(self.question.total, small) // max(1, self.network.d_vocab)
        done = []
        with self.crew() as crew:
            for pair, root in in_threads(lambda pair: crew.call("tree", pair, leaves, care, enough, budget.left), pairs, budget):
                if root is not None:
                    self.roots[pair] = root
                    done.append(pair)
        return done

    def tree(self, pair: Pair, leaves: int, care: Care, enough: int, seconds: float) -> Node | None:
        """A tree of so many leaves; None if the time is up before."""
        plot, budget = self.plot(pair), Budget(seconds)
        root = self._looked(plot, self._unseen(pair), care)
        waiting, number, left, looked = [(-root.gap, 0, root)], count(1), root.gap, 1
        while waiting and looked < leaves and left > enough:
            if budget.over:
                return None
            before, _, node = heapq.heappop(waiting)
            divided = self.divided(pair, node.bare(), care) if before < 0 else None
            if divided is None:
                continue
            pieces = node.become(divided)
            left += sum(piece.gap for piece in pieces) + before
            looked += len(pieces)
            for piece in pieces:
                heapq.heappush(waiting, (-piece.gap, next(number), piece))
        return root

    def begin(self, pairs: Iterable[Pair]) -> None:
        """Have trees of one leaf each, of which nothing is known."""
        self.roots.update({pair: self._unseen(pair) for pair in pairs})

    def _unseen(self, pair: Pair) -> Node:
        return Node.unseen(self.subjects[pair[0]].automaton, self.mass(pair), {})

    def refine(self, care: Care, budget: Budget, enough: int, most: int = -1, looks: int | None = None) -> bool:
        """Look at the leaves whose bounds are farthest apart, or split them, until not more than `enough` is undecided, or not more than
        `most` may fail, or so many leaves have been looked at. Returns whether one of these came before the end of the time."""
        number = count()
        undecided = [(pair, node) for pair, root in self.roots.items() for node in root.leaves() if not node.is_decided]
        waiting = [(-node.gap, next(number), pair, node) for pair, node in undecided if node.gap > 0]
        heapq.heapify(waiting)
        gap, failing = -sum(entry[0] for entry in waiting), sum(node.failing for _, node in undecided)
        left = math.inf if looks is None else looks
        with self.crew() as crew:
            while waiting and gap > enough and failing > most and left > 0:
                if budget.over:
                    return False
                batch = [heapq.heappop(waiting) for _ in range(min(_BATCH, len(waiting)))]
                for (before, _, pair, node), divided in in_threads(lambda e: crew.call("improved", e[2], e[3].bare(), care), batch, budget):
                    if divided is None:
                        continue
                    gap, failing = gap + before, failing - node.failing
                    for piece in node.become(divided):
                        gap, failing, left = gap + piece.gap, failing + piece.failing, left - 1
                        if piece.gap > 0:
                            heapq.heappush(waiting, (-piece.gap, next(number), pair, piece))
        return not budget.over

    def improved(self, pair: Pair, node: Node, care: Care) -> Node | None:
        """A leaf looked at; if it was before, divided."""
        return self._looked(self.plot(pair), node, care) if node.is_unseen else self.divided(pair, node, care)

    def divided(self, pair: Pair, node: Node, care: Care) -> Node | None:
        """A leaf split by the tokens that matter most, one after the other where they do not occur (so often), and the pieces looked at;
        None if there is nothing to split by."""
        plot, rest = self.plot(pair), node
        for token, n in _splits(node, plot):
            least, most = rest.counts.get(token, (0, len(plot.masses)))
            halves = (with_more(rest.automaton, token, n), (n, most)), (with_fewer(rest.automaton, token, n), (least, n - 1))
            more, fewer = (Node.unseen(automaton, plot.mass(automaton), {**rest.counts, token: counts}) for automaton, counts in halves)
            rest.split, rest.more, rest.fewer, rest.look = (token, n), self._looked(plot, more, care), fewer, None
            rest = fewer
        if rest is node:
            return None
        self._looked(plot, rest, care)
        return node

    def _looked(self, plot: Plot, node: Node, care: Care) -> Node:
        if node.mass:
            node.look = look_at(plot, node.automaton, _about(node, plot), care)
            node.failing = node.look.failing
        return node

    # ------------------------------------------------------------ the rest

    def open_leaves(self) -> list[tuple[Pair, Node]]:
        """Leaves of which some sequences are not decided, those with few that may fail first."""
        leaves = [(pair, node) for pair, root in self.roots.items() for node in root.leaves() if node.look is not None and node.failing]
        return sorted((entry for entry in leaves if not entry[1].is_decided), key=lambda entry: entry[1].failing)

    def decide(self, most: int, budget: Budget) -> None:
        """Decide sequences that may fail one by one, leaf by leaf, so many in all."""
        entries = []
        for entry in self.open_leaves():
            most -= entry[1].failing
            if most < 0:
                break
            entries.append(entry)
        with self.crew() as crew:
            for (_, node), look in in_threads(lambda entry: crew.call("decided", *entry), entries, budget):
                node.look, node.failing = look, look.failing
                if look.decided is not None:
                    node.above, node.right = Leaf((), look.decided.wrong), node.mass - len(look.decided.wrong)

    def decided(self, pair: Pair, node: Node) -> Look:
        """A leaf, the sequences that may fail decided one by one."""
        return Look(node.failing) if node.look is None else decide(self.plot(pair), node.automaton, node.look)

    def bound_above(self, care: Care, budget: Budget) -> None:
        """Bound right answers, where failures were found, largest first."""
        entries = [(pair, node) for pair, root in self.roots.items() for node in root.leaves() if node.gap > 0 and node.above is None]
        entries = sorted((entry for entry in entries if entry[1].look is not None), key=lambda entry: -entry[1].gap)
        with self.crew() as crew:
            for (pair, node), found in in_threads(lambda entry: crew.call("above", *entry, care.steps), entries, budget):
                node.right, node.above = found
                self._require_consistent(pair, node)

    def above(self, pair: Pair, node: Node, steps: int) -> tuple[int, Leaf]:
        """How much of a leaf may be right, and why."""
        plot = self.plot(pair)
        return (node.mass, Leaf(())) if node.look is None else look_above(plot, node.automaton, node.look, _about(node, plot), steps)

    def _require_consistent(self, pair: Pair, node: Node) -> None:
        if node.failing + node.right < node.mass:
            raise DisagreementError(
                f"of {node.mass} sequences at most {node.failing} fail and at most {node.right} are right",
                f"label {pair[0]}, queries number {pair[1]}, {node.counts}",
            )

    # ------------------------------------------------------------ what was found

    @property
    def failing(self) -> int:
        """At most so much may fail; what was not looked at counts as failing."""
        known = {pair: sum(leaf.failing for leaf in root.leaves()) for pair, root in self.roots.items()}
        return self.question.total - sum(max(0, self.mass(pair) - failing) for pair, failing in known.items())

    @property
    def right(self) -> int:
        """At most so much may be right."""
        known = {pair: sum(leaf.right for leaf in root.leaves()) for pair, root in self.roots.items()}
        return self.question.total - sum(max(0, self.mass(pair) - right) for pair, right in known.items())

    def lower_parts(self) -> tuple[Part, ...]:
        """The parts of a ledger that prove the lower bound."""
        return tuple(self._part(pair, root, upper=False) for pair, root in sorted(self.roots.items()))

    def upper_parts(self) -> tuple[Part, ...]:
        """The parts of a ledger that prove the upper bound: of pairs of which some sequences are certainly wrong."""
        pairs = [(pair, root) for pair, root in sorted(self.roots.items()) if any(leaf.right < leaf.mass for leaf in root.leaves())]
        return tuple(self._part(pair, root, upper=True) for pair, root in pairs)

    def _part(self, pair: Pair, root: Node, *, upper: bool) -> Part:
        tokens = self.subjects[pair[0]].tokens

        def tree(node: Node) -> Tree:
            if node.split is not None and node.more is not None and node.fewer is not None:
                more, fewer = tree(node.more), tree(node.fewer)
                if upper and more is None and fewer is None:
                    return None
                return Split(int(tokens[node.split[0]]), node.split[1], fewer, more)
            if upper:
                return node.above
            return None if node.look is None else node.look.leaf()

        return Part(pair[0], tuple(int(tokens[q]) for q in pair[1]), tree(root))

    def tally(self) -> Tally:
        """What checking the lower bound takes, besides tables."""
        tally, lengths = Tally(), BlockLengths(self.network)
        for (label, queries), root in self.roots.items():
            tally.leaves += lengths.pool(len(queries)) if len(queries) > 1 else 0
            for node in root.leaves():
                look = node.look
                if look is not None:
                    tally.add_leaf(list(look.terms), look.walks, len(self.subjects[label].tokens))
                    tally.listed += 0 if look.decided is None else len(look.decided.right)
                    if look.relaxation is not None:
                        tally.leaves += lengths.leaf(moves_of(node.automaton, self.subjects[label].masses), look.relaxation)
        tally.leaves += lengths.shared
        return tally


def _about(node: Node, plot: Plot) -> int:
    """A token that occurs in all sequences of a node, the most attended beside the usual one."""
    present = [t for t, (least, _) in node.counts.items() if least > 0 and t != plot.subject.usual]
    weight = plot.form.attention[1][:, plot.query, :-1][:, :, plot.subject.tokens].max(axis=(0, 1)) if present else None
    return max(present, key=lambda t: float(weight[t])) if weight is not None else int(plot.subject.usual)


def _splits(node: Node, plot: Plot) -> list[tuple[int, int]]:
    """The tokens, and how often, that divide a leaf best: by how far they can move what attention averages. Several if most of it may fail:
    what is between would be looked at in vain."""
    if node.look is None or node.look.influence is None:
        return []
    k, weight = len(plot.masses), np.nan_to_num(node.look.influence.copy())
    for token, (least, most) in node.counts.items():
        weight[token] *= 0.0 if least >= most else _AGAIN if least else 1.0
    ways = _WAYS if node.failing > _MUCH * node.mass else 1
    chosen = [t for t in np.argsort(-weight, kind="stable")[:ways].tolist() if weight[t] > 0.0 and weight[t] >= _ALSO * weight.max()]
    return [(t, node.counts.get(t, (0, k))[0] + 1) for t in chosen]
