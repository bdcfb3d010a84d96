"""The sequences of one label, as a small automaton: what counting programmes walk over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DEAD = -1
"""Instead of a state: no sequence of the label goes on from here."""


@dataclass(frozen=True, eq=False)
class LabelAutomaton:
    """Accepts exactly the sequences of one label. Tokens are numbered among `tokens`, the ones that occur in such sequences.

    Law: following `following` from `start`, a sequence of n_ctx tokens ends in an `accepting` state (and never at `DEAD`) exactly if
    it carries the label.
    """

    tokens: np.ndarray
    """Tokens that occur with this label, ascending."""
    following: np.ndarray
    """(states, len(tokens)): next state or `DEAD`."""
    accepting: np.ndarray
    """(states,): booleans."""
    start: int

    def totals_by_last(self, n_ctx: int) -> list[int]:
        """How many sequences of n_ctx tokens carry the label and end in each of `tokens`. Exact integers."""
        moves = [np.unique(row, return_counts=True) for row in self.following]
        counts = [int(s == self.start) for s in range(len(self.following))]
        for _ in range(n_ctx - 1):
            after = [0] * len(counts)
            for count, (reached, ways) in zip(counts, moves, strict=True):
                for z, w in zip(reached.tolist(), ways.tolist(), strict=True):
                    if z != DEAD:
                        after[z] += count * w
            counts = after
        ends = (self.following != DEAD) & self.accepting[self.following]
        return [sum(count for count, end in zip(counts, column, strict=True) if end) for column in ends.T]


def minimal_automaton(transitions: np.ndarray, labels: np.ndarray, start: int, label: int) -> LabelAutomaton:
    """The smallest automaton for one label: reachable states, merged where they accept the same endings (Moore's algorithm)."""
    reachable = _closure(start, transitions)
    group = (labels == label).astype(np.int64)
    while True:
        number_of: dict[bytes, int] = {}
        signatures = np.ascontiguousarray(np.column_stack([group, group[transitions]]))
        refined = np.array([number_of.setdefault(signature.tobytes(), len(number_of)) for signature in signatures])
        if refined.max() == group.max():
            break
        group = refined
    accepts = np.zeros(group.max() + 1, dtype=bool)
    accepts[group[labels == label]] = True
    following = np.zeros((len(accepts), transitions.shape[1]), dtype=np.int64)
    following[group] = group[transitions]
    useful = accepts.copy()
    while True:
        more = useful | useful[following].any(axis=1)
        if (more == useful).all():
            break
        useful = more
    kept = [g for g in range(len(accepts)) if useful[g] and g in set(group[reachable].tolist())]
    number = np.full(len(accepts), DEAD)
    number[kept] = np.arange(len(kept))
    if not kept:
        return LabelAutomaton(np.zeros(0, dtype=np.int64), np.zeros((1, 0), dtype=np.int64), np.zeros(1, dtype=bool), 0)
    table = number[following[kept]]
    tokens = np.flatnonzero((table != DEAD).any(axis=0))
    return LabelAutomaton(tokens, np.ascontiguousarray(table[:, tokens]), accepts[kept], int(number[group[start]]))


def _closure(start: int, transitions: np.ndarray) -> np.ndarray:
    """States reachable from `start`."""
    seen = np.zeros(len(transitions), dtype=bool)
    frontier = np.array([start])
    while len(frontier):
        seen[frontier] = True
        frontier = np.unique(transitions[frontier])
        frontier = frontier[~seen[frontier]]
    return np.flatnonzero(seen)
