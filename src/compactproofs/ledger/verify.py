"""`verify`: what a ledger proves about a network. No strategy has any influence here.

The rule (Theorem 4). In a leaf every output other than the label is covered by a term, or a walk shows it harmless. If a sequence fails,
some output o reaches the label, and the first term that covers such an o counts the sequence: `joint` since max_o w_o G_o >= w_o G_o,
`apart` since its parent p, covered before, does not reach the label, so factor G_o - less G_p adds up to at least zero, `factored` since it
covers every output. So the mass that fails is at most the sum of the terms' counts. Listed right sequences that a term counts, each
decided by itself, are taken off. Where a condition is not met the leaf proves nothing: its whole mass counts as failing.

A term `both` is two of these at once: where both would count a sequence, for the same output, so does it.

Upper bounds: where the label wins it beats the spoiler o, so -G_o adds up to more than zero; right answers are at most the strict count of
-G_o, less listed wrong sequences among those counted. Two spoilers at once: it beats both, so a positive combination of them will do.
Several spoilers one by one: each spoils at least what it spoils less its overlap with those before it, which terms `both` count. For a
sequence that j > 0 of n spoilers spoil, n - j count it, and an overlap of each of the j but the first: n - 1 at least. A sequence that the
label wins is counted n times. So what is right is at most what is counted, less n - 1 times the leaf, whose mass is known exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from compactproofs.arrays.arithmetic import Rigorous
from compactproofs.arrays.environment import require_ieee754
from compactproofs.bounds import pairs
from compactproofs.bounds.compact import CompactTables
from compactproofs.bounds.compact_hints import Compact
from compactproofs.bounds.factored_tables import FactoredTables
from compactproofs.bounds.factors import Factors
from compactproofs.counting.alike import count_where_alike
from compactproofs.counting.count_up import Automaton, mass_up, unit_exponents
from compactproofs.counting.exact_mass import exact_mass
from compactproofs.counting.levels import smallest
from compactproofs.counting.splits import with_fewer, with_more
from compactproofs.counting.subject import Subject, for_queries, subject_of
from compactproofs.errors import LedgerError
from compactproofs.ledger.counters import Counter, counter_of, kernel_grid, require_countable
from compactproofs.ledger.harms import AbstractHarms, TableHarms, upper_end, with_slack
from compactproofs.ledger.ledger import Apart, Both, Factored, Joint, Leaf, Ledger, Part, Split, Spoiler, Spoilers, Term, Tree
from compactproofs.ledger.sources import is_pooled, source_of
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.tasks import MaxOfK, check_fits
from compactproofs.tasks.question import REAL

COMPILED = "float64 with a proven error bound over the reals, integer counting"
INTERVALS = "interval arithmetic over the reals, integer counting"


@dataclass(frozen=True)
class Verified:
    """What a ledger proves."""

    correct_at_least: int
    correct_at_most: int | None
    total: int
    arithmetic: str
    operations: int
    """Of counting, for the lower bound."""
    failing: tuple[int, ...]
    """Of each part below: how much of its mass may fail."""
    right: tuple[int, ...]
    """Of each part above: how much of its mass may be right."""


def verify(ledger: Ledger, weights: Model, *, intervals: bool = False) -> Verified:
    """What anybody's ledger proves about a network.

    With `intervals`, terms of single outputs are computed by the array code in interval arithmetic instead of the compiled functions that
    stand in for it (slow).

    Guarantee: correct_at_least <= mass of the sequences that are answered right <= correct_at_most, for every ledger.
    Assumes: nothing.
    Source: docs/explanation/threshold-proofs.md, Theorem 4.

    Example:
        >>> import compactproofs as cp
        >>> weights = cp.zoo("max-of-4")
        >>> proof = cp.prove(weights, "threshold-cubic-pooled")
        >>> cp.verify(proof.ledger, weights).correct_at_least == proof.correct_at_least
        True
    """
    require_ieee754()
    check_fits(ledger.question.task, weights)
    margin = ledger.question.margin
    if margin is not None and margin.shape != (weights.d_vocab, weights.d_vocab_out):
        raise LedgerError(f"a margin of shape {margin.shape}; expected (d_vocab, d_vocab_out) = ({weights.d_vocab}, {weights.d_vocab_out})")
    if ledger.question.semantics != REAL and ledger.question.margin is None:
        raise LedgerError("a question about float32 needs its margin: certificates.writer.float32_margin(weights, task)")
    run = Verification(ledger, weights, intervals)
    failing, operations = run.failing()
    total = ledger.question.total
    at_least = sum(mass - failed for mass, failed in zip(map(run.mass, ledger.lower), failing, strict=True))
    at_most, right = None, []
    if ledger.upper is not None:
        right = run.right()
        at_most = total - sum(mass - correct for mass, correct in zip(map(run.mass, ledger.upper), right, strict=True))
    arithmetic = INTERVALS if intervals or ledger.factors is not None else COMPILED
    return Verified(at_least, at_most, total, arithmetic, operations, tuple(failing), tuple(right))


@dataclass(frozen=True)
class _Block:
    """A leaf of a part, for some queries that share their harms."""

    part: Part
    queries: np.ndarray
    harms: AbstractHarms
    leaf: Leaf
    automaton: Automaton


@dataclass(frozen=True)
class CountedLeaf:
    """What became of a leaf of a part, for some queries."""

    leaf: Leaf | None
    automaton: Automaton
    masses: np.ndarray
    mass: int
    failing: int
    """How much of the mass may fail."""
    counters: tuple[Counter, ...] = ()
    """What each term counts."""
    covered: frozenset[int] = frozenset()
    """Outputs that a term covers."""
    refused: bool = False
    """Whether an output is neither covered nor shown harmless: the leaf then proves nothing."""


class Verification:
    """One ledger about one network."""

    def __init__(self, ledger: Ledger, weights: Model, intervals: bool) -> None:
        self.ledger, self.weights, self.question = ledger, weights, ledger.question
        _require_disjoint(ledger)
        self._subjects: dict[int, Subject] = {}
        labels = set(self.question.task.labels)
        for part in (*ledger.lower, *(ledger.upper or ())):
            if part.label not in labels:
                raise LedgerError(f"a part is about the label {part.label}, which no sequence carries")
            self.check(part)
        self._source = source_of(weights, self.question, intervals=intervals)

    def subject(self, label: int) -> Subject:
        if label not in self._subjects:
            self._subjects[label] = subject_of(self.question, label)
        return self._subjects[label]

    def mass(self, part: Part) -> int:
        """The mass of a part."""
        totals, numbers = self.question.totals_by_last(part.label), self.numbers(part.label, part.queries)
        return sum(totals[q] for q in numbers.tolist())

    def numbers(self, label: int, tokens: Iterable[int]) -> np.ndarray:
        """Tokens as numbers among those that occur with the label."""
        known, wanted = self.subject(label).tokens, np.array(list(tokens), dtype=np.int64)
        found = np.searchsorted(known, wanted)
        if (found >= len(known)).any() or (known[np.minimum(found, len(known) - 1)] != wanted).any():
            raise LedgerError(f"label {label}: one of the tokens {wanted.tolist()!s:.80} does not occur with it")
        return found

    def leaves(self, part: Part) -> Iterator[tuple[Leaf | None, Automaton]]:
        """The leaves of a part, each with the automaton of its sequences."""
        subject = self.subject(part.label)
        masses = for_queries(subject, self.numbers(part.label, part.queries))
        waiting: list[tuple[Tree, Automaton]] = [(part.tree, smallest(subject.automaton, masses))]
        while waiting:
            tree, automaton = waiting.pop()
            if isinstance(tree, Split):
                (token,) = self.numbers(part.label, [tree.token]).tolist()
                for half, split in ((tree.fewer, with_fewer), (tree.more, with_more)):
                    waiting.append((half, smallest(split(automaton, token, tree.at_least), masses)))
            else:
                yield tree, automaton

    def check(self, part: Part) -> None:
        """Raise unless the part is well formed."""
        where = f"label {part.label}, queries {list(part.queries)!s:.40}"
        self.numbers(part.label, part.queries)
        if not part.queries:
            raise LedgerError(f"{where}: a part needs queries")
        for split in _splits(part.tree):
            self.numbers(part.label, [split.token])
            if not 1 <= split.at_least <= self.weights.n_ctx:
                raise LedgerError(f"{where}: a split by {split.at_least} copies of a token; expected 1 to {self.weights.n_ctx}")
        for leaf in (leaf for leaf in part.leaves if leaf is not None):
            for term in leaf.terms:
                require_countable(term, self.weights.n_ctx, where)
                self._require_outputs(term, part.label, where)
            if len(set(leaf.listed)) != len(leaf.listed) or any(len(x) != self.weights.n_ctx for x in leaf.listed):
                raise LedgerError(f"{where}: a sequence is listed twice, or is too short or too long")

    def _require_outputs(self, term: Term, label: int, where: str) -> None:
        match term:
            case Both():
                named: tuple[int, ...] = ()
                good = all(isinstance(part, Joint | Apart) for part in (term.one, term.other))
                for part in (term.one, term.other) if good else ():
                    self._require_outputs(part, label, where)
            case Joint():
                named = term.outputs
                good = len(term.weights) == len(named) > 0 and all(1 <= w <= pairs.LARGEST_FACTOR for w in term.weights)
            case Apart():
                named, good = (term.output, term.parent), all(0 <= n <= pairs.LARGEST_FACTOR for n in (term.factor, term.less))
            case Spoiler():
                named, good = (term.output,), True
            case Spoilers():
                named, good = (term.output, term.other), all(1 <= n <= pairs.LARGEST_FACTOR for n in (term.factor, term.more))
            case Factored():
                named, good = (), self.ledger.factors is not None
        if not good or label in named or any(not 0 <= o < self.weights.d_vocab_out for o in named):
            raise LedgerError(f"{where}: a term names outputs or weights that cannot be: {term!s:.120}")

    def failing(self) -> tuple[list[int], int]:
        """Of each part, how much may fail; and the operations of counting."""
        counts, operations = [], 0
        for part, blocks in self.blocks():
            subject, count = self.subject(part.label), 0
            for queries, harms in blocks:
                found, work = self._failing_of(part, subject, queries, harms)
                count, operations = count + found, operations + work
            counts.append(min(count, self.mass(part)))
        return counts, operations

    def blocks(self) -> Iterator[tuple[Part, list[tuple[np.ndarray, AbstractHarms]]]]:
        """Each part below with its queries, those together that share their harms."""
        factored = [part for part in self.ledger.lower if _is_factored(part)]
        tables = dict(self._factored_tables(factored)) if factored else {}
        for part in self.ledger.lower:
            if id(part) in tables:
                yield part, tables[id(part)]
            else:
                subject = self.subject(part.label)
                yield part, [(pool, self._source(subject, pool)) for pool in self._pools(part)]

    def _pools(self, part: Part) -> list[np.ndarray]:
        """The queries of a part, those together that share their harms."""
        numbers = self.numbers(part.label, part.queries)
        return [numbers] if is_pooled(part, self.weights) else [np.array([q]) for q in numbers.tolist()]

    def _factored_tables(self, parts: list[Part]) -> Iterator[tuple[int, list[tuple[np.ndarray, AbstractHarms]]]]:
        if self.weights.d_vocab_out == 1:
            yield from ((id(part), []) for part in parts)  # nothing to lose to
            return
        run = self._tables()
        pooled = run.factors.centres is not None
        of_label: dict[int, list[tuple[int, np.ndarray]]] = {}
        for part in parts:
            numbers = self.numbers(part.label, part.queries)
            for pool in [numbers] if pooled else [np.array([q]) for q in numbers]:
                of_label.setdefault(part.label, []).append((id(part), pool))
        blocks: dict[int, list[tuple[np.ndarray, AbstractHarms]]] = {id(part): [] for part in parts}
        for label, pools in of_label.items():
            for _, h in run.tables([self.subject(label)], [[pool for _, pool in pools]]):
                harms = with_slack(upper_end(h))
                for row, (part_id, pool) in enumerate(pools):
                    blocks[part_id].append((pool, TableHarms(np.ascontiguousarray(harms[row]))))
        yield from blocks.items()

    def _tables(self) -> FactoredTables | CompactTables:
        """Whatever the hints are about."""
        factors = self.ledger.factors or Factors.blank(self.weights)
        if isinstance(factors, Factors):
            return FactoredTables(self.weights, self.question, factors, Rigorous())
        if isinstance(self.weights, Network) or self.question.task.sha256 != MaxOfK(self.weights.n_ctx, self.weights.d_vocab).sha256:
            raise LedgerError("compact factors are about max-of-K and one head without norms, biases and MLP")
        return CompactTables(self.weights, self.question, factors, Rigorous())

    def _counter(self, term: Term, harms: AbstractHarms, masses: np.ndarray, automaton: Automaton) -> Counter:
        """What a term below counts."""
        if isinstance(self.ledger.factors, Compact) and isinstance(term, Factored):
            h = harms.harms(term)
            return Counter(term, (h,), False, *count_where_alike(h, kernel_grid(term.grid), masses, automaton))
        return counter_of(term, harms, masses, automaton, strict=False)

    def _failing_of(self, part: Part, subject: Subject, queries: np.ndarray, harms: AbstractHarms) -> tuple[int, int]:
        """The mass of some queries of a part that may fail, and operations."""
        leaves = list(self.counted_leaves(part, subject, queries, harms))
        return sum(leaf.failing for leaf in leaves), sum(counter.operations for leaf in leaves for counter in leaf.counters)

    def counted_leaves(self, part: Part, subject: Subject, queries: np.ndarray, harms: AbstractHarms) -> Iterator[CountedLeaf]:
        """Leaf by leaf, how much of the mass of some queries of a part may fail."""
        masses = for_queries(subject, queries)
        unit = int(unit_exponents(masses).sum())
        harmless_everywhere: set[int] = set()
        others = [o for o in range(self.weights.d_vocab_out) if o != part.label]
        if not _is_factored(part) and harms.shared:
            harmless_everywhere = {o for o in others if harms.harmless(o, masses, subject.automaton)}
        for leaf, automaton in self.leaves(part):
            everything = int(mass_up(masses, automaton)) << unit
            if leaf is None:
                yield CountedLeaf(leaf, automaton, masses, everything, everything)
                continue
            covered, own = set[int](), harms.of_leaf(leaf, automaton, masses)
            for term in leaf.terms:
                covered |= _covered(term, covered, others)
            counters = tuple(self._counter(term, own, masses, automaton) for term in leaf.terms)
            rest = (o for o in others if o not in covered and o not in harmless_everywhere)
            refused = not all(own.harmless(o, masses, automaton) for o in rest)
            failing = everything
            if not refused:
                listed = self._listed(_Block(part, queries, harms, leaf, automaton), counters, pairs.RIGHT)
                failing = min(sum(counter.mass for counter in counters) - listed, everything)
            yield CountedLeaf(leaf, automaton, masses, everything, failing, counters, frozenset(covered), refused)

    def right(self) -> list[int]:
        """Of each part above, how much may be right."""
        counts = []
        for part in self.ledger.upper or ():
            subject, count = self.subject(part.label), 0
            for pool in self._pools(part):
                count += self._right_of(part, subject, pool)
            counts.append(min(count, self.mass(part)))
        return counts

    def _right_of(self, part: Part, subject: Subject, queries: np.ndarray) -> int:
        harms, masses = self._source(subject, queries), for_queries(subject, queries)
        unit, total = int(unit_exponents(masses).sum()), 0
        for leaf, automaton in self.leaves(part):
            everything = int(mass_up(masses, automaton)) << unit
            if leaf is None or not leaf.terms:
                listed = 0 if leaf is None else self._listed(_Block(part, queries, harms, leaf, automaton), (), pairs.WRONG)
                total += everything - listed
                continue
            spoilers, overlaps = _spoilers_of(leaf)
            own = harms.of_leaf(leaf, automaton, masses)
            counters = tuple(counter_of(term, own, masses, automaton, strict=True) for term in spoilers)
            count = sum(counter.mass for counter in counters)
            if overlaps:
                count += sum(counter_of(term, own, masses, automaton, strict=False).mass for term in overlaps)
                count -= (len(spoilers) - 1) * exact_mass(masses, automaton)
            else:
                everything = min(everything, count)
                count = everything - self._listed(_Block(part, queries, harms, leaf, automaton), counters, pairs.WRONG)
            total += min(count, everything)
        return total

    def _listed(self, block: _Block, counters: tuple[Counter, ...], verdict: int) -> int:
        """The mass of the listed sequences of a leaf that end in one of the queries: counted by a term (or nothing is, and all of them may
        be right), and decided as they should be."""
        mass = 0
        for sequence in block.leaf.listed:
            numbers = self.numbers(block.part.label, sequence)
            if numbers[-1] not in block.queries or not _accepts(block.automaton, numbers):
                continue
            counted = any(counter.hits(numbers) for counter in counters) or (verdict == pairs.WRONG and not counters)
            if counted and block.harms.decide(numbers) == verdict:
                mass += self.question.mass_of(sequence)
        return mass


def _accepts(automaton: Automaton, numbers: np.ndarray) -> bool:
    state = automaton.first
    for number in numbers.tolist():
        state = int(automaton.following[state, number])
        if state < 0:
            return False
    return bool(automaton.accepting[state])


def _covered(term: Term, before: set[int], others: list[int]) -> set[int]:
    """The outputs that a term covers."""
    match term:
        case Joint():
            return set(term.outputs)
        case Apart():
            if term.parent not in before:
                raise LedgerError(f"a term takes off what output {term.parent} spoils, but no earlier term covers that")
            return {term.output}
        case Both():
            return _covered(term.one, before, others) & _covered(term.other, before, others)
        case Factored():
            return set(others)
        case Spoiler() | Spoilers():
            raise LedgerError("a spoiler stands in a lower bound")


def _spoilers_of(leaf: Leaf) -> tuple[tuple[Spoiler | Spoilers, ...], tuple[Both, ...]]:
    """The terms of a leaf above: spoilers, and what each but the first spoils together with those before it."""
    spoilers = tuple(term for term in leaf.terms if isinstance(term, Spoiler | Spoilers))
    overlaps = tuple(term for term in leaf.terms[len(spoilers) :] if isinstance(term, Both))
    if leaf.terms != (*spoilers, *overlaps):
        raise LedgerError(f"an upper bound has a term that bounds failures, or not after its spoilers: {leaf.terms!s:.120}")
    if len(spoilers) == 1 and not overlaps:
        return spoilers, overlaps
    if not all(isinstance(term, Spoiler) for term in spoilers) or not _overlap_all([term.output for term in spoilers], overlaps):
        raise LedgerError("an upper bound has one spoiler to a leaf, or different ones and then what each spoils with all before it")
    if leaf.listed:
        raise LedgerError("an upper bound by several spoilers has no listed sequences")
    return spoilers, overlaps


def _overlap_all(spoilers: list[int], overlaps: tuple[Both, ...]) -> bool:
    """Whether outputs are different from each other, and each has overlaps that name all outputs before it."""
    named: dict[int, set[int]] = {output: set() for output in spoilers}
    for term in overlaps:
        if not isinstance(term.one, Joint) or not isinstance(term.other, Joint):
            return False
        output, *more = term.one.outputs
        if more or output not in named:
            return False
        named[output] |= set(term.other.outputs)
    return len(named) == len(spoilers) and all(named[output] >= set(spoilers[:x]) for x, output in enumerate(spoilers))


def _splits(tree: Tree) -> Iterator[Split]:
    if isinstance(tree, Split):
        yield tree
        yield from _splits(tree.fewer)
        yield from _splits(tree.more)


def _is_factored(part: Part) -> bool:
    return any(isinstance(term, Factored) for leaf in part.leaves if leaf is not None for term in leaf.terms)


def _require_disjoint(ledger: Ledger) -> None:
    """Raise if two parts are about the same query and label: their counts would be subtracted twice."""
    for parts in (ledger.lower, ledger.upper or ()):
        seen: set[tuple[int, int]] = set()
        for part in parts:
            for query in part.queries:
                if (part.label, query) in seen:
                    raise LedgerError(f"two parts are about label {part.label} and query {query}")
                seen.add((part.label, query))
