"""The statistics of every model of a folder, measured once and kept in one file."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future, as_completed
from pathlib import Path

from compactproofs.bounds_version import MEASUREMENTS, code_version
from compactproofs.errors import SweepError
from compactproofs.interpretation.numbers import Statistics
from compactproofs.model.files import load, write_atomically
from compactproofs.reproduction.statistics import Measured, read_models
from compactproofs.sweeps.executors import LocalPool, require_ready
from compactproofs.sweeps.parts import content_of

ABLATION_SAMPLES = 50_000
"""Sequences per model on which ablations are measured."""

_KEPT_EVERY = 10


def measure_models(models: list[Path], into: Path, workers: int | None, progress: Callable[[int, int], None] | None) -> int:
    """Measure those that are not in the file yet; returns how many there were. The file is a list of {model, key, statistics}.

    The key names the network, what was assumed about it and the code that measures: a model that was replaced is measured again, and one
    that is gone has no statistics.
    """
    keys = {model.name: _key(model) for model in models}
    before = read_models(into)
    kept = {name: found for name, found in before.items() if keys.get(name) == found.key}
    missing = [model for model in models if model.name not in kept]
    if not missing and len(kept) == len(before):
        return 0
    into.parent.mkdir(parents=True, exist_ok=True)
    with LocalPool(workers).open() as pool:
        require_ready(pool)
        futures = {pool.submit(_measured, model): model for model in missing}
        for done, future in enumerate(as_completed(futures), start=1):
            kept[futures[future].name] = Measured(keys[futures[future].name], _result(future, futures[future]))
            if progress is not None:
                progress(done, len(missing))
            if done % _KEPT_EVERY == 0:
                _write(kept, into)
    _write(kept, into)
    return len(missing)


def _write(kept: dict[str, Measured], into: Path) -> None:
    entries = [{"model": name, "key": kept[name].key, "statistics": kept[name].statistics} for name in sorted(kept)]
    write_atomically(into, json.dumps(entries, allow_nan=False).encode())


def _key(model: Path) -> str:
    return f"{content_of(load(model))}-{code_version(MEASUREMENTS)}"


def _measured(model: Path) -> Statistics:
    from compactproofs.interpretation import interpret

    return interpret(load(model), samples=ABLATION_SAMPLES).statistics


def _result(future: Future[Statistics], model: Path) -> Statistics:
    try:
        return future.result()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise SweepError(f"the statistics of {model} could not be measured ({reason}); everything else is kept") from None
