"""From theorems about single positions: how often a model is right on average over them, and how often at all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from compactproofs.errors import TaskError
from compactproofs.proof import Proof
from compactproofs.tasks.question import Question


@dataclass(frozen=True)
class AllPositions:
    """What proofs about positions of one model say together. Shares of all inputs, exactly."""

    positions: int
    average_lower: Fraction
    """The mean over positions of the accuracy is at least this."""
    average_upper: Fraction
    all_right_lower: Fraction
    """At least this share of the inputs is answered right at every one of the positions."""
    all_right_upper: Fraction

    def as_json(self) -> dict[str, str | int]:
        return {"positions": self.positions} | {name: str(bound) for name, bound in vars(self).items() if name != "positions"}


def over_positions(proofs: Sequence[Proof]) -> AllPositions:
    """Together.

    Guarantee: each bound holds of the positions that have a proof here.
    Assumes: that these are sound proofs about one model and one question, which is compared and else refused. A position whose proof is
        infeasible counts as wrong from below and right from above.
    Cost: nothing.
    Source: an input that is not right everywhere is wrong somewhere (the union bound); what is right everywhere is right at each.

    Example:
        >>> import compactproofs as cp
        >>> found = over_positions(cp.prove(cp.zoo("max-of-4"), "cubic", position="every"))
        >>> found.positions, found.all_right_lower <= found.average_lower <= found.average_upper
        (4, True)
    """
    kinds = {(proof.weights_sha256, proof.total, proof.label, proof.margin) for proof in proofs}
    questions = [proof.origin.question for proof in proofs if proof.origin is not None and proof.sound]
    lengths = {question.task.n_ctx for question in questions}  # the position is the last of so many tokens, whatever it was called
    if len(kinds) != 1 or len(lengths) != len(proofs):
        raise TaskError("expected sound proofs by one strategy about different positions of one model and one question")
    _require_one_question(questions)
    total = proofs[0].total
    least = [Fraction(proof.correct_at_least if proof.status == "proven" else 0, total) for proof in proofs]
    bounds = [proof.correct_at_most if proof.status == "proven" else None for proof in proofs]
    most = [Fraction(1) if bound is None else Fraction(bound, total) for bound in bounds]
    wrong = sum((1 - share for share in least), Fraction(0))
    return AllPositions(len(proofs), _mean(least), _mean(most), max(Fraction(0), 1 - wrong), min(most))


def _require_one_question(questions: Sequence[Question]) -> None:
    """Raise unless each is the longest one read earlier: the same task, and the same masses of the tokens up to there."""
    by_length = sorted(questions, key=lambda question: question.task.n_ctx)
    for question in by_length:
        longest, n_ctx = by_length[-1], question.task.n_ctx
        same = longest.task.of_length(n_ctx).automaton_sha256 == question.task.automaton_sha256
        if not same or not np.array_equal(_masses(longest)[:n_ctx], _masses(question)):
            raise TaskError("expected proofs about one question; these ask different tasks or distributions at different positions")


def _masses(question: Question) -> np.ndarray:
    """(position, token): the masses, of uniform sequences too."""
    return np.ones((question.task.n_ctx, question.task.d_vocab), np.int64) if question.masses is None else question.masses


def _mean(shares: Sequence[Fraction]) -> Fraction:
    return sum(shares, Fraction(0)) / len(shares)
