"""A threshold proof made visible: its blocks, each with its class, its terms, what is left, and the hardest input.

Plain data for a page. What is said of each block comes from the very run that decides what the ledger proves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from compactproofs.bounds import pairs
from compactproofs.counting.subject import Subject
from compactproofs.ledger.counters import Counter, integers
from compactproofs.ledger.harms import AbstractHarms
from compactproofs.ledger.inspect import heaviest
from compactproofs.ledger.ledger import Apart, Both, Factored, Joint, Ledger, Split, Term, Tree
from compactproofs.ledger.verify import CountedLeaf, Verification
from compactproofs.model.kinds import Model

MOST_LEAVES = 1500
"""So many are described on a page, those that leave most first."""

_LEAVES_OF_A_BLOCK = 8
_OUTPUTS = 8
_TOKENS = 5


def look_into(ledger: Ledger, weights: Model) -> dict[str, Any]:
    """The blocks of the lower bound, what is left of each as a fraction of all, those that leave most first."""
    run, total = Verification(ledger, weights, intervals=False), ledger.question.total
    blocks: list[dict[str, Any]] = []
    for part, pools in run.blocks():
        subject = run.subject(part.label)
        whens = list(_conditions(part.tree))
        leaves = []
        for queries, harms in pools:
            counted = run.counted_leaves(part, subject, queries, harms)
            leaves += [_described(leaf, when, subject, harms, total) for leaf, when in zip(counted, whens, strict=True)]
        leaves.sort(key=lambda leaf: -leaf["left"])
        blocks.append(
            {
                "label": part.label,
                "queries": list(part.queries),
                "mass": _share(run.mass(part), total),
                "left": float(f"{min(sum(leaf['left'] for leaf in leaves), 1.0):.6g}"),
                "number": len(leaves),
                "leaves": leaves[:_LEAVES_OF_A_BLOCK],
            }
        )
    blocks.sort(key=lambda block: -block["left"])
    described = 0
    for block in blocks:
        block["leaves"] = block["leaves"][: max(MOST_LEAVES - described, 0)]
        described += len(block["leaves"])
    return {"blocks": blocks, "outputs": weights.d_vocab_out}


def _conditions(tree: Tree, so_far: tuple[tuple[int, int, int], ...] = ()) -> Iterator[tuple[tuple[int, int, int], ...]]:
    """Of each leaf, in the order of `Verification.leaves`: token, number of copies, and 1 for "at least" or 0 for "fewer"."""
    if isinstance(tree, Split):
        yield from _conditions(tree.more, (*so_far, (tree.token, tree.at_least, 1)))
        yield from _conditions(tree.fewer, (*so_far, (tree.token, tree.at_least, 0)))
    else:
        yield so_far


def _described(
    counted: CountedLeaf, when: tuple[tuple[int, int, int], ...], subject: Subject, harms: AbstractHarms, total: int
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "when": [list(each) for each in when],
        "mass": _share(counted.mass, total),
        "left": _share(counted.failing, total),
        "fate": "given up" if counted.leaf is None else "refused" if counted.refused else "counted",
        "covered": len(counted.covered),
        "listed": 0 if counted.leaf is None else len(counted.leaf.listed),
        "terms": [_term(counter, subject, total) for counter in counted.counters],
    }
    hardest = _hardest(counted)
    if hardest is not None:
        verdict = harms.decide(np.array(hardest))
        answer = 1 if verdict == pairs.RIGHT else 0 if verdict == pairs.WRONG else -1
        found |= {"hardest": [int(subject.tokens[number]) for number in hardest], "answer": answer}
    return found


def _hardest(counted: CountedLeaf) -> list[int] | None:
    """The sequence of the leaf that comes nearest to failing, or is furthest beyond, in the integers of a term with one table."""
    best: tuple[float, list[int]] | None = None
    for counter in counted.counters:
        if isinstance(counter.term, Both):
            continue
        start, D = integers(counter.tables[0], counter.term.grid, False)
        total, path = heaviest(D, counted.masses, counted.automaton)
        if path and (best is None or start + total > best[0]):
            best = start + total, path
    return None if best is None else best[1]


def _term(counter: Counter, subject: Subject, total: int) -> dict[str, Any]:
    term, h = counter.term, counter.tables[0]
    worst = h[:-1].max(axis=0) if len(h) > 1 else h[0]
    scale = float(np.abs(worst[np.isfinite(worst)]).max(initial=0.0)) or 1.0
    order = [int(t) for t in np.argsort(-worst, kind="stable") if worst[t] > 0][:_TOKENS]
    harmful = [[int(subject.tokens[t]), float(f"{min(worst[t] / scale, 1e6):.3g}")] for t in order]
    return {
        "kind": type(term).__name__.lower(),
        "outputs": _outputs(term)[:_OUTPUTS],
        "number": len(_outputs(term)),
        "counted": _share(counter.mass, total),
        "harmful": harmful,
    }


def _outputs(term: Term) -> list[int]:
    """The outputs that a term names; a factored one covers all."""
    match term:
        case Joint():
            return list(term.outputs)
        case Apart():
            return [term.output]
        case Both():
            return [o for o in _outputs(term.one) if o in _outputs(term.other)]
        case Factored():
            return []
        case _:
            return [term.output]


def _share(part: int, whole: int) -> float:
    return float(f"{part / whole:.6g}") if whole else 0.0
