"""What is measured of a model besides bounds and accuracy, as JSON: statistics and mechanism, the proof explorer, the tables."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from compactproofs.errors import InfeasibleError, UnsupportedError
from compactproofs.interpretation import interpret
from compactproofs.interpretation.blocks import look_into
from compactproofs.interpretation.explorer import EXPLORED, direct_tables, explore
from compactproofs.model.kinds import Model
from compactproofs.model.weights import Weights
from compactproofs.results.schema import EXPLORER, LEDGER, MECHANISM, STATISTICS, TABLES
from compactproofs.strategies.base import Request
from compactproofs.strategies.registry import strategy
from compactproofs.strategies.shared import Shared
from compactproofs.sweeps.plan import Work
from compactproofs.tasks import MaxOfK


def documents(work: Work, weights: Model, shared: Shared) -> dict[str, tuple[Any, float]]:
    """The documents that are asked for, each with the seconds it took; none of a network or a question that they are not about."""
    found: dict[str, tuple[Any, float]] = {}
    task = work.task_for(weights)
    if LEDGER in work.documents:
        started = time.perf_counter()
        found[LEDGER] = _ledger(work, weights, shared), time.perf_counter() - started
    if not isinstance(weights, Weights) or task.sha256 != MaxOfK(task.n_ctx, task.d_vocab).sha256:
        return found
    if {STATISTICS, MECHANISM} & set(work.documents):
        measured = interpret(weights, samples=work.ablation_samples).as_json()
        seconds = measured.pop("seconds")
        found[STATISTICS] = measured.pop("statistics"), seconds
        found[MECHANISM] = {name: measured[name] for name in ("histograms", "arrays", "ablations")}, seconds
    if EXPLORER in work.documents:
        started = time.perf_counter()
        request = Request(weights, task, seconds=work.seconds, memory=shared)
        found[EXPLORER] = explore(weights, [strategy(label) for label in EXPLORED], request), time.perf_counter() - started
    if TABLES in work.documents:
        found[TABLES] = {name: _rows(table) for name, table in direct_tables(weights).items()}, 0.0
    return {name: found[name] for name in work.documents if name in found}


def _ledger(work: Work, weights: Model, shared: Shared) -> dict[str, Any]:
    """The blocks of the best threshold proof; nothing if it cannot be had in time."""
    request = Request(weights, work.task_for(weights), seconds=work.seconds, memory=shared)
    try:
        make_ledger = strategy("threshold-best").bound(request).make_ledger
        return {} if make_ledger is None else look_into(make_ledger(), weights)
    except (InfeasibleError, UnsupportedError):
        return {}


def _rows(table: np.ndarray) -> list[list[float]]:
    """Nine digits are enough to have every float32 number back."""
    return [[float(f"{x:.9g}") for x in row] for row in table.tolist()]
