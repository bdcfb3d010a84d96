"""Rows of the result store: what a worker found, column by column."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from compactproofs.measuring import Accuracy
from compactproofs.model.kinds import Model
from compactproofs.proof import Proof
from compactproofs.results.schema import Row, failure
from compactproofs.strategies.base import AbstractStrategy
from compactproofs.sweeps.plan import Work
from compactproofs.tasks.question import Question

SIZES = ("d_vocab", "d_vocab_out", "d_model", "d_head", "n_ctx")


def of_work(work: Work) -> Row:
    """The columns that are the same in every row of a sweep."""
    return {
        "plan": work.plan,
        "version": work.version,
        "bounds": work.bounds,
        "written": time.time_ns() // 10**6,
        "upper_wanted": bool(work.upper),
        "seconds_allowed": float(work.seconds),
    }


def of_weights(weights: Model) -> Row:
    """Which network, and what was assumed about its file."""
    sizes = {name: getattr(weights, name) for name in SIZES}
    return {"weights_sha256": weights.sha256, **sizes, "assumptions": json.dumps(list(weights.assumptions))}


def of_question(work: Work, weights: Model) -> Row:
    """What was asked about the network."""
    task = work.task_for(weights)
    between = "" if task.allowed is None else f", of {task.inputs_in_words.rstrip(',')}"
    return {"task": f"{task.title}{between}", "question": Question(task).sha256}


def of_proof(proof: Proof) -> Row:
    """A strategy and what it proves."""
    return dict(_of_proof(proof))


def _of_proof(proof: Proof) -> Iterator[tuple[str, object]]:
    for name, value in proof.as_json().items():
        if name in ("parameters", "flops_breakdown"):
            yield name, json.dumps(value, sort_keys=True)
        elif name in ("flops", "integer_ops", "unexplained_dimensions"):
            yield name, str(value)
        elif name not in ("assumptions", "weights_sha256", "version"):  # the same in every row of a model
            yield name, value


def of_failure(strategy: AbstractStrategy, error: BaseException) -> Row:
    """A strategy and what went wrong."""
    return {
        "strategy": strategy.name,
        "label": strategy.label,
        "family": strategy.family,
        "parameters": json.dumps(strategy.parameters, sort_keys=True),
        "variant": strategy.variant,
        "sound": strategy.sound,
        **failure(error),
    }


def of_accuracy(found: Accuracy, seed: int | None) -> Row:
    """The measured accuracy; `seed` is that of the sample, if it is one."""
    return {
        "accuracy": found.accuracy,
        "accuracy_low": found.interval[0],
        "accuracy_high": found.interval[1],
        "accuracy_method": found.method,
        "accuracy_correct": str(found.correct),
        "accuracy_total": str(found.total),
        "accuracy_confidence": found.confidence,
        "sampling_seed": seed,
    }
