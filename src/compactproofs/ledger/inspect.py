"""Looking into a ledger: what it proves for each query, and which sequences it does not prove."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compactproofs.counting.count_up import Automaton
from compactproofs.counting.subject import for_queries
from compactproofs.ledger.counters import integers
from compactproofs.ledger.harms import AbstractHarms
from compactproofs.ledger.ledger import Ledger, Part, sums_of
from compactproofs.ledger.verify import Verification, verify
from compactproofs.model.kinds import Model

_NEVER = -(1 << 60)


def proven_by_query(ledger: Ledger, weights: Model) -> dict[int, list[int]]:
    """The mass proven right for each label, by query (numbered among the label's tokens).

    Law: every number is at most the true one. A claim about a pool restricts to each of its queries.
    """
    single = _by_query(ledger)
    verified = verify(single, weights)
    question = ledger.question
    proven = {label: [0] * len(question.totals_by_last(label)) for label in question.task.labels}
    for part, failing in zip(single.lower, verified.failing, strict=True):
        q = int(np.searchsorted(question.label_automaton(part.label).tokens, part.queries[0]))
        proven[part.label][q] = question.totals_by_last(part.label)[q] - failing
    return proven


def unproven_by_query(ledger: Ledger, weights: Model) -> dict[int, list[list[int] | None]]:
    """For each label, by query, the sequence whose integers add up to most in a table of a term; None where that is negative."""
    single, question = _by_query(ledger), ledger.question
    run = Verification(single, weights, intervals=False)
    found: dict[int, list[list[int] | None]] = {label: [None] * len(question.totals_by_last(label)) for label in question.task.labels}
    for part, blocks in run.blocks():
        for queries, harms in blocks:
            found[part.label][int(queries[0])] = _worst(run, part, int(queries[0]), harms)
    return found


def _by_query(ledger: Ledger) -> Ledger:
    parts = tuple(part.restricted((query,)) for part in ledger.lower for query in part.queries)
    return replace(ledger, lower=parts, upper=None)


def _worst(run: Verification, part: Part, q: int, harms: AbstractHarms) -> list[int] | None:
    subject = run.subject(part.label)
    masses = for_queries(subject, np.array([q]))
    best: tuple[int, list[int]] = (-1, [])
    for leaf, automaton in run.leaves(part):
        if leaf is None or not leaf.terms:
            continue
        own = harms.of_leaf(leaf, automaton, masses)
        for table in (part for term in leaf.terms for part in sums_of(term)):
            start, D = integers(own.harms(table), table.grid, False)
            total, path = heaviest(D, masses, automaton)
            best = max(best, (start + total, path))
    return [int(subject.tokens[number]) for number in best[1]] if best[0] >= 0 else None


def heaviest(D: np.ndarray, masses: np.ndarray, automaton: Automaton) -> tuple[int, list[int]]:
    """The accepted sequence with mass whose integers add up to most."""
    k, n_states = len(D), len(automaton.following)
    ahead = np.where(automaton.accepting, 0, _NEVER)
    chosen = np.zeros((k, n_states), dtype=np.int64)
    for i in range(k - 1, -1, -1):
        reach = np.where(automaton.following >= 0, ahead[automaton.following], _NEVER)
        totals = np.where((reach > _NEVER) & (masses[i] > 0), reach + D[i], _NEVER)
        chosen[i], ahead = totals.argmax(axis=1), totals.max(axis=1)
    state, path = automaton.first, []
    if ahead[state] <= _NEVER:
        return _NEVER, []
    total = int(ahead[state])
    for i in range(k):
        path.append(int(chosen[i, state]))
        state = int(automaton.following[state, path[-1]])
    return total, path
