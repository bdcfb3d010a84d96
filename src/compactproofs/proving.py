"""Model and a strategy in, a theorem out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from threading import Event, Lock
from typing import Literal, overload

from compactproofs.budget import Budget
from compactproofs.cores import available_cores
from compactproofs.counting.outcome import Progress
from compactproofs.errors import InfeasibleError, StrategyError, UnsupportedError
from compactproofs.model.kinds import Model
from compactproofs.positions import Position, Reading, readings
from compactproofs.proof import Proof
from compactproofs.strategies.base import AbstractStrategy, Bound, Origin, ProofLength, Request
from compactproofs.strategies.lengths import length_by_sizes
from compactproofs.strategies.registry import DEFAULT
from compactproofs.strategies.registry import strategy as strategy_named
from compactproofs.strategies.shared import Shared
from compactproofs.strategies.threshold.upper import correct_at_most
from compactproofs.tasks import AbstractTask, check_fits, task_for
from compactproofs.tasks.margin import question_with_margin, require_margin
from compactproofs.theorems import no_theorem, theorem

_GRACE = 1.2
"""Seconds that an interrupted proof has to hand over what it has."""

DEFAULT_SECONDS = 60.0
"""A strategy that would take longer is not run, unless more is allowed."""

Seconds = float | Literal["usual"] | None
"""A time limit; None is none. By default, "usual", it is `DEFAULT_SECONDS`, and `threshold-best` ends after a few seconds."""


@overload
def prove(
    weights: Model,
    strategy: str | AbstractStrategy = ...,
    task: AbstractTask | None = ...,
    *,
    position: Literal["every"],
    upper: bool | Literal["own"] = ...,
    seconds: Seconds = ...,
    progress: Progress | None = ...,
    shared: Shared | None = ...,
    stop: Event | None = ...,
    margin: float = ...,
) -> tuple[Proof, ...]: ...


@overload
def prove(
    weights: Model,
    strategy: str | AbstractStrategy = ...,
    task: AbstractTask | None = ...,
    *,
    position: int | Literal["last"] = ...,
    upper: bool | Literal["own"] = ...,
    seconds: Seconds = ...,
    progress: Progress | None = ...,
    shared: Shared | None = ...,
    stop: Event | None = ...,
    margin: float = ...,
) -> Proof: ...


def prove(
    weights: Model,
    strategy: str | AbstractStrategy = DEFAULT,
    task: AbstractTask | None = None,
    *,
    position: Position = "last",
    upper: bool | Literal["own"] = False,
    seconds: Seconds = "usual",
    progress: Progress | None = None,
    shared: Shared | None = None,
    stop: Event | None = None,
    margin: float = 0.0,
) -> Proof | tuple[Proof, ...]:
    """Prove a lower bound on the model's accuracy (with `upper=True` an upper bound too, with `upper="own"` if the strategy has one).

    A strategy that cannot run within `seconds` (compiling aside; by default 60) gives a `Proof` with status `infeasible`, a reason, and
    trivial bounds. `threshold-best` looks until they are over; by default it ends after a few, or when its bounds are 1e-6 apart. Setting
    the event `stop` from another thread ends the proof soon: `threshold-best` then returns what it has proven so far.

    The answer is read at the last position, or at `position`, a number from 0; with `"every"` there is a proof for each, in order, and
    `seconds` are for all of them together. Stopped, those it has come to are returned. A memory `shared` is about the network at one
    position.

    With a `margin` an input counts as right only if the right output's logit is larger by more than that, a float64, than every other; such
    a question shares no memory with others. (docs/explanation/margins.md)

    Example:
        >>> import compactproofs as cp
        >>> proof = cp.prove(cp.zoo("max-of-4"), strategy="cubic")
        >>> proof.status, 0.9 < proof.lower < 1, proof.total == 64**4
        ('proven', True, True)
        >>> [proof.position for proof in cp.prove(cp.zoo("max-of-4"), "cubic", position="every")]
        [0, 1, 2, 3]
    """
    task = task_for(weights) if task is None else task
    check_fits(task, weights)
    chosen = _chosen(strategy)
    places = readings(weights, task, position)
    whole = _Whole(weights, task, chosen, upper, progress, require_margin(margin))
    proofs = tuple(_at_each(whole, places, [shared] * len(places), seconds, stop))
    return proofs if position == "every" else proofs[0]


def _chosen(strategy: object) -> AbstractStrategy:
    """A strategy, or the one of this name."""
    chosen = strategy_named(strategy) if isinstance(strategy, str) else strategy
    if not isinstance(chosen, AbstractStrategy):
        raise StrategyError(
            f"strategy={chosen!r:.60} is a {type(chosen).__name__}; expected a name such as {DEFAULT!r}, or a strategy object"
        )
    return chosen


@dataclass(frozen=True)
class _Whole:
    """What is the same at every position."""

    weights: Model
    task: AbstractTask
    strategy: AbstractStrategy
    upper: bool | Literal["own"] = False
    progress: Progress | None = None
    margin: float = 0.0


def _at_each(
    whole: _Whole, places: Sequence[Reading], shared: Sequence[Shared | None], seconds: Seconds, stop: Event | None
) -> Iterator[Proof]:
    """A proof for each position; what is left of the time is shared evenly by those that are left."""
    most = DEFAULT_SECONDS if seconds == "usual" else seconds
    budget = Budget(most, stop)
    for done, (place, memory) in enumerate(zip(places, shared, strict=True)):
        if done and budget.stopped:
            return
        allowed = most if most is None or len(places) == 1 else budget.left / (len(places) - done)
        usual = seconds == "usual"
        asked = question_with_margin(place.task, place.network.d_vocab_out, whole.margin)
        request = Request(place.network, place.task, allowed, bool(whole.upper), whole.progress, memory, stop, asked, usual)
        yield _at(whole, place, request)


def _at(whole: _Whole, place: Reading, request: Request) -> Proof:
    """The proof at one position."""
    weights, chosen, reason = whole.weights, whole.strategy, None
    upper_for_all = bool(whole.upper) and whole.upper != "own"
    try:
        bound = chosen.bound(request)
        if upper_for_all and chosen.sound and bound.correct_at_most is None:
            bound = replace(bound, correct_at_most=correct_at_most(request))
    except InfeasibleError as error:
        reason = str(error)
        length = ProofLength({}, 0, 0) if isinstance(error, UnsupportedError) else None
        bound = Bound(0, place.task.total if upper_for_all else None, "none", length=length)
    if chosen.sound:
        request.shared.record(chosen.label, bound.correct_at_least, bound.correct_at_most)
    length = bound.length or length_by_sizes(chosen, place.network, place.task)
    of_all = _times(bound, place.ways)
    assumptions = (*weights.assumptions, *place.assumptions)
    claim = theorem(weights, whole.task, of_all, place.position, assumptions, whole.margin)
    return Proof(
        strategy=chosen.name,
        label=chosen.label,
        family=chosen.family,
        parameters=chosen.parameters,
        variant=chosen.variant,
        sound=chosen.sound,
        status="infeasible" if reason is not None else "proven" if chosen.sound else "computed",
        reason=reason,
        correct_at_least=of_all.correct_at_least,
        correct_at_most=of_all.correct_at_most,
        total=whole.task.total,
        length=length.with_measured(bound),
        seconds=request.budget.used,
        search_seconds=bound.search_seconds,
        counting_seconds=bound.counting_seconds,
        compile_seconds=request.budget.compiling,
        arithmetic=bound.arithmetic,
        theorem=claim if chosen.sound else no_theorem(whole.task, of_all, place.position),
        assumptions=assumptions,
        weights_sha256=weights.sha256,
        position=place.position,
        margin=whole.margin,
        advice=bound.advice,
        origin=Origin(chosen, place.network, request.question, bound.make_ledger, None if place.position is None else weights),
    )


def _times(bound: Bound, ways: int) -> Bound:
    """The same bound, of inputs whose later tokens can be chosen in so many ways."""
    most = bound.correct_at_most
    return replace(bound, correct_at_least=ways * bound.correct_at_least, correct_at_most=None if most is None else ways * most)


def prove_many(
    weights: Model,
    strategies: Sequence[str | AbstractStrategy],
    task: AbstractTask | None = None,
    *,
    position: Position = "last",
    upper: bool = False,
    seconds: Seconds = "usual",
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    margin: float = 0.0,
) -> Iterator[Proof]:
    """Run several strategies, or those of these names, on one model, on all cores, sharing what they have in common.

    Proofs come in the order asked for. With `position="every"` each strategy gives its proofs of all positions, one after the other, and
    has `seconds` for all of them. The `seconds` of a proof do not include what an earlier one had already computed. Interrupted (Ctrl-C),
    it gives the proofs that can end within a second, with what they have proven so far, before the `KeyboardInterrupt` goes on.
    """
    task = task_for(weights) if task is None else task
    check_fits(task, weights)
    asked = [_chosen(strategy) for strategy in strategies]
    places, stop = readings(weights, task, position), Event()
    shared = [Shared(place.network, place.task) if require_margin(margin) == 0.0 else None for place in places]
    done = _Counter(len(places) * len(asked), progress)
    pool = ThreadPoolExecutor(threads or available_cores())

    def whole(strategy: AbstractStrategy) -> _Whole:
        return _Whole(weights, task, strategy, upper, margin=margin)

    def run(strategy: AbstractStrategy) -> list[Proof]:
        return [done.counted(proof) for proof in _at_each(whole(strategy), places, shared, seconds, stop)]

    futures = [pool.submit(run, strategy) for strategy in asked]
    given = 0
    try:
        for future in futures:
            proofs = future.result()
            given += 1
            yield from proofs
    except KeyboardInterrupt:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        running = [future for future in futures[given:] if not future.cancelled()]
        ended = wait(running, timeout=_GRACE).done
        yield from (proof for future in running if future in ended and future.exception() is None for proof in future.result())
        raise
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)


class _Counter:
    """Tells how many proofs are there."""

    def __init__(self, total: int, progress: Callable[[int, int], None] | None) -> None:
        self._done, self._total, self._progress, self._lock = 0, total, progress, Lock()

    def counted(self, proof: Proof) -> Proof:
        with self._lock:
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, self._total)
        return proof
