"""Every output by itself: on how much of the inputs the label does not beat it by the margin of the question. Bounds losses from above."""

from __future__ import annotations

from typing import Any, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.bounds.pairs import joint_harms, pair_for, rivals
from compactproofs.budget import Budget, in_threads
from compactproofs.counting.count_up import mass_up, unit_exponents
from compactproofs.counting.levels import levelled
from compactproofs.counting.subject import for_queries
from compactproofs.search.engine import Engine
from compactproofs.search.grids import DEEPEST, Leaf, count_on_grid, natural_unit, occurring, one
from compactproofs.search.pairs import last_token


@kernel
@no_type_check
def count_outputs(evaluation: Any, subject: Any, q: int, steps: int, counts: Any) -> None:
    """Write for each output a bound of the mass, of the sequences that end in the query, on which the label does not beat it by the margin.

    Guarantee: counts[o], in units, is at least that mass; 0 for the label itself.
    Cost: a walk for each output, and a count for each that a walk does not rule out.
    """
    masses = last_token(subject.masses, q)
    automaton = levelled(subject.automaton, masses)
    leaf = Leaf(masses, occurring(masses, automaton), automaton, subject.usual, subject.usual)
    outputs = rivals(evaluation, subject, masses, automaton, subject.tokens[q])
    pair = pair_for(evaluation, subject.tokens, subject.label, subject.tokens[q], outputs)
    written = np.empty(3 + masses.shape[0], np.int64)
    everything = mass_up(masses, leaf.automaton)
    counts[:] = 0
    for x in range(outputs.shape[0]):
        h = joint_harms(pair, outputs[x : x + 1], one())
        unit = natural_unit(pair.G[outputs[x]], leaf.seen, subject.usual, subject.usual)
        found, _ = count_on_grid(h, leaf, unit, steps, DEEPEST, False, written)
        counts[outputs[x]] = min(found, everything)


def within_reach(engine: Engine, steps: int, budget: Budget) -> int:
    """The sum over outputs of the mass on which the label does not beat the output by the margin.

    Guarantee: at least that sum.
    Assumes: nothing; what there is no time for counts in full.
    Source: docs/explanation/margins.md, Theorem L.
    """
    outputs = engine.weights.d_vocab_out
    totals = [(label, q, total) for label, cells in engine.cells.items() for q, total in enumerate(cells.totals) if total > 0]
    whole = sum(total for _, _, total in totals) * (outputs - 1)
    if not engine.evaluation.tolerance < np.inf:
        return whole

    def count(pair: tuple[int, int, int]) -> int:
        label, q, total = pair
        subject, counts = engine.subjects[label], np.empty(outputs, dtype=np.int64)
        count_outputs(engine.evaluation, subject, q, steps, counts)
        unit = int(unit_exponents(for_queries(subject, np.array([q]))).sum())
        return sum(min(found << unit, total) for found in counts.tolist())

    for (_, _, total), found in in_threads(count, totals, budget):
        whole -= total * (outputs - 1) - found
    return whole
