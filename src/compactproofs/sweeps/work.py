"""What is done with one model. It gives plain rows and writes nothing; whatever goes wrong becomes a row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np

from compactproofs.bounds_version import code_version
from compactproofs.errors import InfeasibleError, SweepError
from compactproofs.form.tables import float_circuits
from compactproofs.measuring import accuracy
from compactproofs.model.kinds import Model
from compactproofs.model.weights import Weights
from compactproofs.proving import prove
from compactproofs.results.schema import Row, failure, row
from compactproofs.strategies.base import AbstractStrategy
from compactproofs.strategies.shared import Shared
from compactproofs.sweeps import rows
from compactproofs.sweeps.documents import documents
from compactproofs.sweeps.plan import Work
from compactproofs.sweeps.threads import limit_threads
from compactproofs.version import __version__

Progress = Callable[[int, int], None]


def run(work: Work, weights: Model, measured: Row) -> list[Row]:
    """The task given to an executor: from here on this process computes with one thread."""
    if (work.version, work.bounds) != (__version__, code_version()):
        planned, here = f"{work.version} ({work.bounds})", f"{__version__} ({code_version()})"
        raise SweepError(f"a worker has compactproofs {here}, the sweep was planned with {planned}; install the same version")
    limit_threads()
    return prove_model(work, weights, measured)


def prove_model(
    work: Work, weights: Model, measured: Row | None = None, *, threads: int = 1, progress: Progress | None = None
) -> list[Row]:
    """One row per strategy, in order, and one per document; another, without a strategy, if the model could not be measured.

    The file's name comes later. `measured` has the columns of an earlier measurement of accuracy, if there was one.
    """
    common = {**rows.of_work(work), **rows.of_weights(weights)}
    try:
        common |= rows.of_question(work, weights)
        shared = Shared(weights, work.task_for(weights))
    except Exception as error:  # a model that the task does not fit
        return [row(common, rows.of_failure(strategy, error)) for strategy in work.strategies] or [row(common, failure(error))]
    found = []
    for columns in _attempts(work, weights, shared, threads):
        found.append(columns)
        if progress is not None:
            progress(len(found), len(work.strategies))
    if not measured and work.strategies:
        try:
            measured = _measured(work, weights, shared)
        except Exception as error:
            found.append(failure(error))
    return [row(common, measured or {}, columns) for columns in [*found, *_documents(work, weights, shared)]]


def failed_model(work: Work, error: BaseException, weights: Model | None = None) -> list[Row]:
    """The single row of a model with which nothing could be done."""
    about = {} if weights is None else rows.of_weights(weights)
    return [row(rows.of_work(work), about, failure(error))]


def compile_kernels(work: Work) -> None:
    """Prove about a tiny model, so that workers find compiled kernels in the cache instead of each compiling its own."""
    rng = np.random.default_rng(0)
    shapes = {"W_E": (5, 4), "W_pos": (3, 4), "W_Q": (4, 2), "W_K": (4, 2), "W_V": (4, 2), "W_O": (2, 4), "W_U": (4, 5)}
    tiny = Weights.from_mapping({name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()})
    prove_model(work, tiny)
    accuracy(tiny, samples=1)


def _attempts(work: Work, weights: Model, shared: Shared, threads: int) -> Iterator[Row]:
    """What each strategy finds, in order, on so many threads. Interrupted, it does not wait for those that are running."""
    if threads == 1:
        yield from (_attempt(work, strategy, weights, shared, None) for strategy in work.strategies)
        return
    stop, pool = Event(), ThreadPoolExecutor(threads)
    try:
        yield from pool.map(lambda strategy: _attempt(work, strategy, weights, shared, stop), work.strategies)
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)


def _attempt(work: Work, strategy: AbstractStrategy, weights: Model, shared: Shared, stop: Event | None) -> Row:
    try:
        task = work.task_for(weights)
        return rows.of_proof(prove(weights, strategy, task, upper=work.upper, seconds=work.seconds, shared=shared, stop=stop))
    except Exception as error:
        return rows.of_failure(strategy, error)


def _documents(work: Work, weights: Model, shared: Shared) -> Iterator[Row]:
    common: Row = {"plan": work.measuring, "bounds": None, "upper_wanted": None, "seconds_allowed": None}
    try:
        for kind, (data, seconds) in documents(work, weights, shared).items():
            text = json.dumps(data, separators=(",", ":"), allow_nan=False)
            yield {**common, "kind": kind, "status": "measured", "data": text, "seconds": seconds}
    except Exception as error:
        yield failure(error)


def _measured(work: Work, weights: Model, shared: Shared) -> Row:
    """Accuracy, exact if that is quick enough, else sampled; and, of a network of the paper's kind, the first singular value of EQKE over
    the second."""
    task, seed = work.task_for(weights), None
    try:
        result = accuracy(weights, task, seconds=work.seconds, shared=shared)
    except InfeasibleError:
        seed = work.sampling_seed
        result = accuracy(weights, task, samples=work.samples, seed=seed, seconds=None)
    if not isinstance(weights, Weights) or task.allowed is not None:
        return {**rows.of_accuracy(result, seed), "singular_ratio": None}
    first, second = [*np.linalg.svd(float_circuits(weights).EQKE, compute_uv=False).tolist(), 0.0][:2]
    return {**rows.of_accuracy(result, seed), "singular_ratio": first / second if second > 0 else None}
