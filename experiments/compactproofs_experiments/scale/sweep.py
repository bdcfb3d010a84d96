"""What a model of a sweep costs: the workers' time, the parent's time, and bytes. Measured on the parts of a real sweep."""

from __future__ import annotations

import json
import pickle
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import compactproofs as cp
from compactproofs.model.files import save
from compactproofs.results.store import open_results, read_part, write_part
from compactproofs.strategies.registry import strategy as strategy_named
from compactproofs.sweeps.plan import Work
from compactproofs_experiments.reproduction.timings import read_timings
from compactproofs_experiments.scale.models import random_weights
from compactproofs_experiments.scale.records import REPEATS, SweepCost, append


def measure_sweeps(results: Path, out: Path) -> None:
    """One row for each configuration in the store; all of them are measured again."""
    with open_results(results) as db:
        folders = [folder for (folder,) in db.sql("SELECT DISTINCT folder FROM results ORDER BY ALL").fetchall()]
    found = [_cost(folder, results) for folder in folders]
    out.unlink(missing_ok=True)
    append(out, sorted(found, key=lambda cost: (cost.v, cost.k)))


def _cost(folder: str, results: Path) -> SweepCost:
    name = Path(folder).name
    with open_results(results) as db:
        seconds, portfolio, brute, limit, models, rows = db.execute(
            """SELECT sum(seconds), sum(seconds) FILTER (strategy = 'threshold-best'), sum(seconds) FILTER (strategy = 'brute-force'),
                   max(seconds_allowed), count(DISTINCT weights_sha256), count(*) FROM results WHERE label IS NOT NULL AND folder = ?""",
            [folder],
        ).fetchall()[0]
        v, k, d, d_head = db.execute("SELECT DISTINCT d_vocab, n_ctx, d_model, d_head FROM results WHERE folder = ?", [folder]).fetchall()[
            0
        ]
        parts = [
            Path(part)
            for (part,) in db.execute("SELECT DISTINCT filename FROM part WHERE folder = ? AND model IS NOT NULL", [folder]).fetchall()
        ]
    timings = read_timings(results).get(name, {})
    example = read_part(parts[len(parts) // 2])
    assert example is not None
    weights, work = random_weights(v, k, d, d_head), Work(_strategies(example), seconds=limit)
    sent, returned = pickle.dumps((work, "seed0", weights)), pickle.dumps(example)
    with tempfile.TemporaryDirectory() as scratch:
        stored, part = Path(scratch) / "model.safetensors", Path(scratch) / "part.parquet"
        save(weights, stored)
        writing = _timed(lambda: write_part(part, example))
        loading, model_bytes = _timed(lambda: cp.load(stored).sha256), stored.stat().st_size
        reading = _timed(lambda: read_part(part))
    return SweepCost(
        name=name,
        v=v,
        k=k,
        d=d,
        models=models,
        proofs=round(rows / models),
        limit=limit,
        proving=seconds / models,
        portfolio=(portfolio or 0) / models,
        brute_force=(brute or 0) / models,
        cpu=timings["sweep_cpu_seconds"] / timings["models"] if timings.get("models") else float("nan"),
        training_cpu=timings["training_cpu_seconds"] / timings["training_models"] if timings.get("training_models") else float("nan"),
        part_bytes=sum(part.stat().st_size for part in parts) / len(parts),
        model_bytes=model_bytes,
        sent_bytes=len(sent),
        returned_bytes=len(returned),
        loading=loading,
        sending=_timed(lambda: pickle.dumps((work, "seed0", weights))),
        receiving=_timed(lambda: pickle.loads(returned)),
        writing=writing,
        recorded_io=timings["io_seconds"] / timings["models"] if timings.get("models") else float("nan"),
        reading=reading,
        opening=_timed(lambda: open_results(results).close()) / len(list(results.glob("*.parquet"))),
    )


def _strategies(rows: list[dict[str, Any]]) -> tuple[Any, ...]:
    """The strategies of a part."""
    return tuple(strategy_named(row["strategy"], **json.loads(row["parameters"])) for row in rows if row["label"] is not None)


def _timed(function: Callable[[], Any]) -> float:
    """Processor seconds of a call, the least of some."""
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        function()
        times.append(time.process_time() - started)
    return min(times)
