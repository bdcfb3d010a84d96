"""Where failing inputs lie: the inputs that a proof leaves open, as an automaton with as few states as there can be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from compactproofs.tasks import AbstractTask, LabellingAutomaton

INSIDE, OUTSIDE = 1, 0


@dataclass(frozen=True)
class FailingRegion:
    """Inputs among which all failing ones are."""

    automaton: LabellingAutomaton
    """Labels: INSIDE or OUTSIDE."""
    mass: int
    """Of the region, out of that of all inputs of the question."""

    @classmethod
    def of(cls, task: AbstractTask, left: Mapping[int, Collection[int]]) -> FailingRegion:
        """The inputs of each label that end in one of its tokens in `left`.

        Guarantee: if every failing input of a label in question ends in one of them, the region has all failing inputs.
        """
        whole = task.automaton
        states, tokens = whole.transitions.shape
        is_left = np.zeros((states, tokens), dtype=bool)  # whether a sequence that comes to this state by this token is left
        for state, label in enumerate(whole.labels.tolist()):
            is_left[state, list(left.get(label, ()))] = True
        # a state for each old one and whether the sequence so far is left
        to, by = whole.transitions, np.arange(tokens)
        transitions = np.vstack([to + states * is_left[to, by]] * 2)
        automaton = smallest(LabellingAutomaton(transitions, np.repeat([OUTSIDE, INSIDE], states), whole.start))
        masses = [[1] * task.d_vocab] * task.n_ctx if task.masses is None else task.masses.tolist()
        return cls(automaton, automaton.label_masses(masses).get(INSIDE, 0))

    def as_json(self) -> dict[str, Any]:
        return {
            "mass": str(self.mass),
            "start": self.automaton.start,
            "inside": (self.automaton.labels == INSIDE).tolist(),
            "transitions": self.automaton.transitions.tolist(),
        }


def smallest(automaton: LabellingAutomaton) -> LabellingAutomaton:
    """The automaton with the fewest states that labels every sequence alike: states that are reached, merged until no two are alike."""
    reached, waiting = {automaton.start}, [automaton.start]
    while waiting:
        following = set(automaton.transitions[waiting.pop()].tolist()) - reached
        reached |= following
        waiting += following
    kept = np.array(sorted(reached))
    number = np.full(automaton.n_states, -1)
    number[kept] = np.arange(len(kept))
    transitions, labels = number[automaton.transitions[kept]], automaton.labels[kept]
    kind, found = np.unique(labels, return_inverse=True)[1].reshape(-1), 0
    while found < (count := int(kind.max()) + 1):
        found = count
        kind = np.unique(np.column_stack([kind, kind[transitions]]), axis=0, return_inverse=True)[1].reshape(-1)
    example = np.unique(kind, return_index=True)[1]
    return LabellingAutomaton(kind[transitions[example]], labels[example], int(kind[number[automaton.start]]))
