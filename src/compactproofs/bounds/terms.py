"""The terms of one query and one label as array code: float64 estimates, intervals prove, phantoms count. `bounds.pairs` is the compiled
stand-in.

    G_o(i, t) = A(i, t) (B_o - B_m + tau),   B_o = EVOU[t, o] + PVOU[i, o] + EU[q, o]

Theorem 1: attention is positive and its normaliser common to all outputs, so the label m beats output o by more than tau on a sequence
exactly if sum_i G_o(i, x_i) < 0. (Source: docs/explanation/threshold-proofs.md.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic, certain
from compactproofs.counting.count_up import Automaton
from compactproofs.counting.subject import Subject
from compactproofs.form.additive import Form


@dataclass(frozen=True)
class Terms:
    """The terms of one query and one label, in some arithmetic."""

    G: Any
    """(output, position, token number)"""
    label: int
    arithmetic: AbstractArithmetic

    @classmethod
    def of(cls, form: Form, query: int, attention: Any, subject: Subject, margin: float, arithmetic: AbstractArithmetic) -> Terms:
        """Compute them, from the attention (position, token) of the query. Cost: O(d_vocab_out n_ctx tokens)."""
        with arithmetic.step("terms"):
            direct = form.base[query] - form.base[query, [subject.label]]
            brackets = form.only_head().brackets(subject.tokens, subject.label, direct + margin if margin else direct)
            return cls(attention[:, subject.tokens][None] * brackets, subject.label, arithmetic)

    def joint(self, outputs: np.ndarray, weights: np.ndarray) -> Any:
        """max_o weights[o] G_o. Guarantee: where one of the outputs reaches the label, these add up to at least zero."""
        with self.arithmetic.step("joint"):
            return (self.G[outputs] * weights.astype(np.float64)[:, None, None]).max(axis=0)

    def apart(self, one: int, other: int, factor: int, less: int) -> Any:
        """factor G_one - less G_other. Guarantee: where G_one adds up to at least zero and G_other to less, these do not add up to less."""
        with self.arithmetic.step("apart"):
            return self.G[one] * float(factor) - self.G[other] * float(less)

    def spoiler(self, one: int) -> Any:
        """-G_one. Guarantee: where the label beats `one`, these add up to more than zero."""
        return -self.G[one]

    def spoilers(self, one: int, other: int, factor: int, more: int) -> Any:
        """-(factor G_one + more G_other). Guarantee: where the label beats `one` and `other`, these add up to more than zero."""
        return -(self.G[one] * float(factor) + self.G[other] * float(more))

    def harmless(self, one: int, masses: np.ndarray, automaton: Automaton) -> bool:
        """`walk`: whether the sum of G_one is certainly negative on every accepted sequence that has mass.

        Cost: an addition and a comparison per position, state and token.
        """
        G = self.G[one]
        best: dict[int, Any] = {automaton.first: np.zeros(())}
        with self.arithmetic.step("walks"):
            for i in range(masses.shape[0]):
                after: dict[int, Any] = {}
                for state, so_far in best.items():
                    for token in np.flatnonzero((masses[i] > 0) & (automaton.following[state] >= 0)).tolist():
                        z = int(automaton.following[state, token])
                        total = so_far + G[i, token]
                        after[z] = np.maximum(after[z], total) if z in after else total
                best = after
        return all(bool(certain(total < 0.0)) for state, total in best.items() if automaton.accepting[state])
