"""From a model to its result files: proofs, accuracy, measurements and the explorer's data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compactproofs.errors import InfeasibleError
from compactproofs.interpretation import interpret
from compactproofs.measuring import accuracy
from compactproofs.model.weights import Weights
from compactproofs.proving import prove_many
from compactproofs.reports.explorer import direct_tables, explore
from compactproofs.reports.results import FORMAT, ModelResults
from compactproofs.strategies.base import AbstractStrategy, Request
from compactproofs.strategies.registry import all_strategies, strategy
from compactproofs.tasks import task_for
from compactproofs.version import __version__

EXPLORED = (
    "threshold-best",
    "threshold-cubic",
    "threshold-cubic-pooled",
    "threshold-quadratic-pooled",
    "cubic",
    "subcubic/max_diff_exact/exact_EQKE+max_diff_exact/envelope",
    "subcubic/mean_query+max_diff/svd/mean_query+diff",
)
"""Strategies of the proof explorer, the first one shown first."""

_SAMPLES = 200_000


def default_strategies() -> list[AbstractStrategy]:
    """All of the paper's strategies, as published and repaired, and the named threshold strategies."""
    return [s for s in all_strategies(None, "both") if s.family != "threshold" or s.label == s.name]


def collect(
    weights: Weights,
    name: str,
    *,
    seconds: float = 20.0,
    strategies: list[AbstractStrategy] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ModelResults:
    """Run everything that a report shows.

    Args:
        weights: the model.
        name: how the report calls it.
        seconds: limit for a single strategy, and for brute force.
        strategies: what to prove with; by default everything.
        progress: called with the number of proofs done and in all.
    """
    task = task_for(weights)
    chosen = default_strategies() if strategies is None else strategies
    proofs = [proof.as_json() for proof in prove_many(weights, chosen, task, upper=True, seconds=seconds, progress=progress)]
    proven = [p for p in proofs if p["status"] == "proven"]
    best = max(proven, key=lambda p: (int(p["correct_at_least"]), -p["flops"]), default=None)
    summary = {
        "format": FORMAT,
        "name": name,
        **{size: getattr(weights, size) for size in ("d_vocab", "d_vocab_out", "d_model", "d_head", "n_ctx")},
        "sha256": weights.sha256,
        "total": str(task.total),
        "task": task.title,
        "theorem": None if best is None else best["theorem"],
        "best": None if best is None else best["label"],
        "accuracy": _accuracy(weights, seconds),
        "assumptions": list(weights.assumptions),
        "version": __version__,
    }
    request = Request(weights, task, seconds=seconds)
    explored = [strategy(label) for label in EXPLORED]
    return ModelResults(summary, proofs, explore(weights, explored, request), interpret(weights).as_json(), direct_tables(weights))


def _accuracy(weights: Weights, seconds: float) -> dict[str, Any]:
    try:
        return accuracy(weights, seconds=seconds).as_json()
    except InfeasibleError:
        return accuracy(weights, samples=_SAMPLES).as_json()
