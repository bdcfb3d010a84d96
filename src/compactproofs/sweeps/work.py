"""What a worker does with one model. It returns plain rows and writes nothing; whatever goes wrong becomes a row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from compactproofs.bounds_version import code_version
from compactproofs.errors import InfeasibleError, SweepError
from compactproofs.form.tables import float_circuits
from compactproofs.measuring import accuracy
from compactproofs.model.weights import Weights
from compactproofs.proving import prove
from compactproofs.strategies.base import AbstractStrategy, Proof
from compactproofs.strategies.shared import Shared
from compactproofs.sweeps.parts import renamed
from compactproofs.sweeps.plan import Plan, Work
from compactproofs.sweeps.schema import Row, failure, row
from compactproofs.sweeps.threads import limit_threads
from compactproofs.tasks import task_for
from compactproofs.version import __version__


def run(work: Work, weights: Weights) -> list[Row]:
    """The task given to an executor: from here on this process computes with one thread."""
    if (work.version, work.bounds) != (__version__, code_version()):
        planned, here = f"{work.version} ({work.bounds})", f"{__version__} ({code_version()})"
        raise SweepError(f"a worker has compactproofs {here}, the sweep was planned with {planned}; install the same version")
    limit_threads()
    return prove_model(work, weights)


def prove_model(work: Work, weights: Weights) -> list[Row]:
    """One row per strategy, in order; one more, without a strategy, if the model could not be measured. The file's name comes later."""
    common = {**columns_of_work(work), **_columns_of_weights(weights)}
    shared = Shared(weights, task_for(weights))
    found = [_attempt(work, strategy, weights, shared) for strategy in work.strategies]
    measured: Row = {}
    try:
        measured = _measured(work, weights, shared)
    except Exception as error:
        found.append(failure(error))
    return [row(common, measured, columns) for columns in found]


def failed_model(plan: Plan, model: Path, error: BaseException, weights: Weights | None = None) -> list[Row]:
    """The single row of a model with which nothing could be done."""
    about = {} if weights is None else _columns_of_weights(weights)
    return renamed([row(columns_of_work(plan.work), about, failure(error))], plan, model)


def columns_of_work(work: Work) -> Row:
    """The columns that are the same in every row of a sweep."""
    return {
        "plan": work.digest,
        "version": work.version,
        "bounds": work.bounds,
        "upper_wanted": bool(work.upper),
        "seconds_allowed": float(work.seconds),
    }


def compile_kernels(work: Work) -> None:
    """Prove about a tiny model, so that workers find compiled kernels in the cache instead of each compiling its own."""
    rng = np.random.default_rng(0)
    shapes = {"W_E": (5, 4), "W_pos": (3, 4), "W_Q": (4, 2), "W_K": (4, 2), "W_V": (4, 2), "W_O": (2, 4), "W_U": (4, 5)}
    tiny = Weights.from_mapping({name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()})
    prove_model(work, tiny)
    accuracy(tiny, samples=1)


def _attempt(work: Work, strategy: AbstractStrategy, weights: Weights, shared: Shared) -> Row:
    try:
        return dict(_columns_of_proof(prove(weights, strategy, upper=work.upper, seconds=work.seconds, shared=shared)))
    except Exception as error:
        return {
            "strategy": strategy.name,
            "label": strategy.label,
            "family": strategy.family,
            "parameters": json.dumps(strategy.parameters, sort_keys=True),
            "variant": strategy.variant,
            "sound": strategy.sound,
            **failure(error),
        }


def _columns_of_proof(proof: Proof) -> Iterator[tuple[str, object]]:
    for name, value in proof.as_json().items():
        if name in ("parameters", "flops_breakdown"):
            yield name, json.dumps(value, sort_keys=True)
        elif name in ("flops", "integer_ops", "unexplained_dimensions"):
            yield name, str(value)
        elif name not in ("assumptions", "weights_sha256", "version"):  # the same in every row of a model
            yield name, value


def _columns_of_weights(weights: Weights) -> Row:
    sizes = {name: getattr(weights, name) for name in ("d_vocab", "d_vocab_out", "d_model", "d_head", "n_ctx")}
    return {"weights_sha256": weights.sha256, **sizes, "assumptions": json.dumps(list(weights.assumptions))}


def _measured(work: Work, weights: Weights, shared: Shared) -> Row:
    """Accuracy, exact if that is quick enough and else sampled; and the first singular value of EQKE over the second."""
    seed: int | None = None
    try:
        result = accuracy(weights, seconds=work.seconds, shared=shared)
    except InfeasibleError:
        seed = work.sampling_seed
        result = accuracy(weights, samples=work.samples, seed=seed, seconds=None)
    first, second = [*np.linalg.svd(float_circuits(weights).EQKE, compute_uv=False).tolist(), 0.0][:2]
    return {
        "accuracy": result.accuracy,
        "accuracy_low": result.interval[0],
        "accuracy_high": result.interval[1],
        "accuracy_method": result.method,
        "accuracy_correct": str(result.correct),
        "accuracy_total": str(result.total),
        "accuracy_confidence": result.confidence,
        "sampling_seed": seed,
        "singular_ratio": first / second if second > 0 else None,
    }
