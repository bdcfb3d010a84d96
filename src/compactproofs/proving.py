"""Weights and a strategy in, a theorem out."""

from __future__ import annotations

import time

from compactproofs.counting.brute_force import Progress
from compactproofs.errors import InfeasibleError
from compactproofs.model.weights import Weights
from compactproofs.strategies.base import AbstractStrategy, Bound, Proof, Request
from compactproofs.strategies.registry import DEFAULT
from compactproofs.strategies.registry import strategy as strategy_named
from compactproofs.tasks import AbstractTask, check_fits, task_for

DEFAULT_SECONDS = 60.0
"""A strategy that would take longer is not run, unless more is allowed."""


def prove(
    weights: Weights,
    strategy: str | AbstractStrategy = DEFAULT,
    task: AbstractTask | None = None,
    *,
    upper: bool = False,
    seconds: float | None = DEFAULT_SECONDS,
    progress: Progress | None = None,
) -> Proof:
    """Prove a lower bound on the model's accuracy (with `upper=True` an upper bound too).

    A strategy that cannot run within `seconds` gives a `Proof` with status `infeasible`, a reason, and trivial bounds.

    Example:
        >>> import compactproofs as cp
        >>> proof = cp.prove(cp.zoo("max-of-4"), strategy="brute-force")
        >>> proof.status, proof.lower > 0.99, proof.total == 64**4
        ('proven', True, True)
    """
    task = task_for(weights) if task is None else task
    check_fits(task, weights)
    chosen = strategy_named(strategy) if isinstance(strategy, str) else strategy
    started = time.perf_counter()
    reason: str | None = None
    try:
        bound = chosen.bound(Request(weights, task, seconds, upper, progress))
    except InfeasibleError as error:
        reason = str(error)
        bound = Bound(0, task.total if upper else None, "none")
    return Proof(
        strategy=chosen.name,
        family=chosen.family,
        parameters=chosen.parameters,
        variant=chosen.variant,
        sound=chosen.sound,
        status="proven" if reason is None else "infeasible",
        reason=reason,
        correct_at_least=bound.correct_at_least,
        correct_at_most=bound.correct_at_most,
        total=task.total,
        length=chosen.length(weights, task),
        seconds=time.perf_counter() - started,
        arithmetic=bound.arithmetic,
        theorem=_theorem(weights, task, bound),
        assumptions=weights.assumptions,
        weights_sha256=weights.sha256,
    )


def _theorem(weights: Weights, task: AbstractTask, bound: Bound) -> str:
    most = "" if bound.correct_at_most is None else f" and at most {bound.correct_at_most}"
    return (
        f"With the float32 weights of SHA-256 {weights.sha256[:16]}... read as real numbers, at least {bound.correct_at_least}{most} "
        f"of the {task.total_in_words} input sequences give the right output, {task.title}, "
        "a strictly larger logit than every other output."
    )
