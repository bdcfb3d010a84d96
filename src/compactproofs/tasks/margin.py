"""By how much the right output has to win: one number for all inputs, as text, as a question, in words."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import numpy as np

from compactproofs.errors import TaskError
from compactproofs.tasks.automaton import AbstractTask
from compactproofs.tasks.question import Question

LARGEST = 2.0**100
"""Logits of models that anybody has are nowhere near."""


def margin_of_text(text: str) -> float:
    """The float64 that is nearest to a decimal number; that float64, exactly, is then what a theorem is about.

    Example:
        >>> margin_of_text("0.5"), in_words(margin_of_text("0.5")), in_words(margin_of_text("0.1"))[:25]
        (0.5, '0.5', '0.1 (the float64, exactly')
    """
    try:
        exact = Decimal(text.strip())
    except InvalidOperation:
        raise TaskError(f"a margin {text!r:.40}; expected a decimal number such as 0.5") from None
    return require_margin(float(exact) if exact.is_finite() else math.nan)


def require_margin(margin: object) -> float:
    """The margin, if it is one."""
    try:
        value = float(margin)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise TaskError(f"a margin {margin!r:.40}; expected a number such as 0.5") from None
    if not abs(value) <= LARGEST:
        raise TaskError(f"a margin {margin!r:.40}; expected a finite number, at most 2^100 in size")
    return value + 0.0 if value else 0.0


def question_with_margin(task: AbstractTask, outputs: int, margin: float) -> Question | None:
    """The question whether the right output wins by more than the margin; None if that is the usual one, whether it wins."""
    return None if margin == 0.0 else Question(task, margin=np.full((task.d_vocab, outputs), require_margin(margin)))


def margin_of_question(question: Question) -> float:
    """The margin of a question that has one and the same for all inputs."""
    if question.margin is None:
        return 0.0
    least, most = float(question.margin.min(initial=np.inf)), float(question.margin.max(initial=-np.inf))
    if least != most:
        raise TaskError("the margin depends on the query and the label; expected the same number for all")
    return least


def in_words(margin: float) -> str:
    """The number as people write it, and exactly where that differs."""
    short = repr(margin)
    if Fraction(short) == Fraction(margin):
        return short
    return f"{short} (the float64, exactly {Decimal(margin)})"
