"""Model and a strategy in, a theorem out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from threading import Event
from typing import Literal

from compactproofs.cores import available_cores
from compactproofs.counting.outcome import Progress
from compactproofs.errors import InfeasibleError, StrategyError, UnsupportedError
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.proof import Proof
from compactproofs.strategies.base import AbstractStrategy, Bound, Origin, ProofLength, Request
from compactproofs.strategies.lengths import length_by_sizes
from compactproofs.strategies.registry import DEFAULT
from compactproofs.strategies.registry import strategy as strategy_named
from compactproofs.strategies.shared import Shared
from compactproofs.strategies.threshold.upper import correct_at_most
from compactproofs.tasks import AbstractTask, check_fits, task_for

_GRACE = 1.2
"""Seconds that an interrupted proof has to hand over what it has."""

DEFAULT_SECONDS = 60.0
"""A strategy that would take longer is not run, unless more is allowed."""


def prove(
    weights: Model,
    strategy: str | AbstractStrategy = DEFAULT,
    task: AbstractTask | None = None,
    *,
    upper: bool | Literal["own"] = False,
    seconds: float | None = DEFAULT_SECONDS,
    progress: Progress | None = None,
    shared: Shared | None = None,
    stop: Event | None = None,
) -> Proof:
    """Prove a lower bound on the model's accuracy (with `upper=True` an upper bound too, with `upper="own"` if the strategy has one).

    A strategy that cannot run within `seconds` (compiling aside) gives a `Proof` with status `infeasible`, a reason, and trivial bounds.
    Setting the event `stop` from another thread ends the proof soon: `threshold-best` then returns what it has proven so far.

    Example:
        >>> import compactproofs as cp
        >>> proof = cp.prove(cp.zoo("max-of-4"), strategy="cubic")
        >>> proof.status, 0.9 < proof.lower < 1, proof.total == 64**4
        ('proven', True, True)
    """
    task = task_for(weights) if task is None else task
    check_fits(task, weights)
    chosen = strategy_named(strategy) if isinstance(strategy, str) else strategy
    if not isinstance(chosen, AbstractStrategy):
        raise StrategyError(
            f"strategy={chosen!r:.60} is a {type(chosen).__name__}; expected a name such as {DEFAULT!r}, or a strategy object"
        )
    reason: str | None = None
    upper_for_all = bool(upper) and upper != "own"
    request = Request(weights, task, seconds, bool(upper), progress, shared, stop)
    try:
        bound = chosen.bound(request)
        if upper_for_all and chosen.sound and bound.correct_at_most is None:
            bound = replace(bound, correct_at_most=correct_at_most(request))
    except InfeasibleError as error:
        reason = str(error)
        length = ProofLength({}, 0, 0) if isinstance(error, UnsupportedError) else None
        bound = Bound(0, task.total if upper_for_all else None, "none", length=length)
    if chosen.sound:
        request.shared.record(chosen.label, bound.correct_at_least, bound.correct_at_most)
    return Proof(
        strategy=chosen.name,
        label=chosen.label,
        family=chosen.family,
        parameters=chosen.parameters,
        variant=chosen.variant,
        sound=chosen.sound,
        status="infeasible" if reason is not None else "proven" if chosen.sound else "computed",
        reason=reason,
        correct_at_least=bound.correct_at_least,
        correct_at_most=bound.correct_at_most,
        total=task.total,
        length=(bound.length or length_by_sizes(chosen, weights, task)).with_measured(bound),
        seconds=request.budget.used,
        search_seconds=bound.search_seconds,
        counting_seconds=bound.counting_seconds,
        compile_seconds=request.budget.compiling,
        arithmetic=bound.arithmetic,
        theorem=_theorem(weights, task, bound) if chosen.sound else _no_theorem(task, bound),
        assumptions=weights.assumptions,
        weights_sha256=weights.sha256,
        origin=Origin(chosen, weights, request.question, bound.make_ledger),
    )


def prove_many(
    weights: Model,
    strategies: Sequence[AbstractStrategy],
    task: AbstractTask | None = None,
    *,
    upper: bool = False,
    seconds: float | None = DEFAULT_SECONDS,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Proof]:
    """Run several strategies on one model, on all cores, sharing what they have in common; proofs come in the order asked for.

    The `seconds` of a proof do not include what an earlier one had already computed. Interrupted (Ctrl-C), it gives the proofs that can end
    within a second, with what they have proven so far, before the `KeyboardInterrupt` goes on.
    """
    task = task_for(weights) if task is None else task
    shared, stop = Shared(weights, task), Event()
    pool = ThreadPoolExecutor(threads or available_cores())
    futures = [pool.submit(prove, weights, s, task, upper=upper, seconds=seconds, shared=shared, stop=stop) for s in strategies]
    given = 0
    try:
        for future in futures:
            proof = future.result()
            given += 1
            yield proof
            if progress is not None:
                progress(given, len(futures))
    except KeyboardInterrupt:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        running = [future for future in futures[given:] if not future.cancelled()]
        ended = wait(running, timeout=_GRACE).done
        yield from (future.result() for future in running if future in ended and future.exception() is None)
        raise
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)


def _theorem(weights: Model, task: AbstractTask, bound: Bound) -> str:
    most = "" if bound.correct_at_most is None else f" and at most {bound.correct_at_most}"
    kind = f" of a network with {weights.described}," if isinstance(weights, Network) else ""
    assumed = f" Assumed about the model: {'; '.join(weights.assumptions)}." if weights.assumptions else ""
    return (
        f"With the float32 weights of SHA-256 {weights.sha256[:16]}...{kind} read as real numbers, at least {bound.correct_at_least}{most} "
        f"of the {task.total_in_words} {task.inputs_in_words} give the right output, {task.title}, "
        f"a strictly larger logit than every other output.{assumed}"
    )


def _no_theorem(task: AbstractTask, bound: Bound) -> str:
    return f"No theorem: the authors' code counts {bound.correct_at_least} of the {task.total_in_words} input sequences."
