"""Chains of splits by the most attended tokens: "63 occurs", "62 does and 63 does not", and so on.

Where attention spans many orders of magnitude, no step fits all sequences of a query and label: harms of those with a much attended token
are millions of times those of the others. Within a class of such a chain there is one natural unit. Which pairs need one is seen from
attention alone, before anything is counted. The automata of the classes are the same for all queries of a label.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from compactproofs.counting.count_up import Automaton, mass_up, unit_exponents
from compactproofs.counting.levels import smallest
from compactproofs.counting.splits import with_fewer, with_more
from compactproofs.counting.subject import Subject
from compactproofs.form.evaluation import Evaluation

_MOST_OF_ALL = 2.0**-4
"""A chain is needed if those tokens that all but this part of the sequences have one of"""
_SPREAD = 32.0
"""differ so much in attention."""
_LEFT = 2.0**-14
"""It ends where this part of the sequences is left,"""
_ALIKE = 4.0
"""or where attention to the tokens that are left differs no more than this."""


@dataclass(eq=False)
class Chains:
    """The chains of one label."""

    subject: Subject
    attended: np.ndarray
    """(query, token): the attention to each token, at all positions but the last; numbers among the label's tokens"""
    _rests: dict[tuple[int, ...], Automaton] = field(default_factory=dict)
    _classes: dict[tuple[int, ...], Automaton] = field(default_factory=dict)
    _shares: dict[bytes, float] = field(default_factory=dict)

    @classmethod
    def of(cls, evaluation: Evaluation, subject: Subject) -> Chains:
        tokens = subject.tokens
        return cls(subject, evaluation.attention[tokens, :-1].sum(axis=1)[:, tokens])

    def tokens(self, query: int) -> tuple[int, ...]:
        """The tokens of the chain of a query, the most attended first; none if one unit serves all its sequences."""
        alike = self._alike[query]
        if self._without(alike) <= _MOST_OF_ALL:
            return ()
        weight = self.attended[query]
        order = np.argsort(-weight, kind="stable")
        n, least = int((weight > _ALIKE * weight[order[-1]]).sum()), int(alike.sum())
        while n > least and self._without(np.isin(np.arange(len(weight)), order[: n - 1])) <= _LEFT:
            n -= 1
        return tuple(order[:n].tolist())

    @cached_property
    def _alike(self) -> np.ndarray:
        """(query, token): whether a token is attended about as much as the most attended one."""
        return np.asarray(~(self.attended <= self.attended.max(axis=1, keepdims=True, initial=0.0) / _SPREAD))

    def rest(self, tokens: tuple[int, ...]) -> Automaton:
        """The sequences of the label in which none of these tokens occurs."""
        if tokens not in self._rests:
            found = with_fewer(self.rest(tokens[:-1]), tokens[-1], 1) if tokens else self.subject.automaton
            self._rests[tokens] = smallest(found, self.subject.masses)
        return self._rests[tokens]

    def among(self, tokens: tuple[int, ...]) -> Automaton:
        """Those in which the last of these tokens occurs, and no other of them."""
        if tokens not in self._classes:
            self._classes[tokens] = smallest(with_more(self.rest(tokens[:-1]), tokens[-1], 1), self.subject.masses)
        return self._classes[tokens]

    def _without(self, tokens: np.ndarray) -> float:
        """About which part of the sequences of the label has none of these tokens (booleans)."""
        key = tokens.tobytes()
        if key not in self._shares:
            masses = self.subject.masses.copy()
            whole = self._mass(masses)
            masses[:, tokens] = 0
            self._shares[key] = self._mass(masses) / whole if whole else 0.0
        return self._shares[key]

    def _mass(self, masses: np.ndarray) -> float:
        return float(mass_up(masses, self.subject.automaton)) * 2.0 ** int(unit_exponents(masses).sum())
