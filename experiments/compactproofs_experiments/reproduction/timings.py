"""Where the time went: what the run recorded, and the seconds of the proofs by their kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compactproofs.errors import ResultsError
from compactproofs.results.schema import RUN
from compactproofs.results.store import open_results
from compactproofs_experiments.reproduction.summaries import Configuration, Outcome, Runs


@dataclass(frozen=True)
class Timing:
    """Seconds of one configuration. None is what was not recorded."""

    models: int | None
    """Models that the seconds of the sweep are about."""
    workers: int | None
    peak_memory_bytes: int | None
    training: float | None
    sweep: float | None
    reading_and_writing: float | None
    """Part of the sweep, in the main process. All of these are wall time."""
    processor: float | None
    """Processor time of training and sweep together."""
    published: float
    """What the authors' code computes without proving it. This and what follows is time of worker processes, one thread each."""
    brute_force: float
    """Brute force, which gives the exact accuracy too; what other proofs of the model then had for nothing is in here."""
    search: float | None
    """Of the sound proofs, without brute force. None if the sweep did not take it apart; then it is part of `proof`."""
    proof: float
    """Interval arithmetic, and whatever else of the proofs is neither search nor counting."""
    counting: float | None
    environments: tuple[str, ...] = ()
    """Versions of what the results depend on."""

    @property
    def rest(self) -> float | None:
        """What workers did besides: sampled accuracies, singular values, compiling, loading, waiting."""
        if self.sweep is None or self.workers is None:
            return None
        known = self.published + self.brute_force + (self.search or 0.0) + self.proof + (self.counting or 0.0)
        return max(0.0, self.sweep * self.workers - known)


def read_timings(results: Path) -> dict[str, dict[str, Any]]:
    """What all runs took together, by configuration; a run that was killed half-way is not in."""
    with open_results(results) as connection:
        found = connection.execute("SELECT parse_filename(folder), data FROM part WHERE kind = ? ORDER BY ALL", [RUN]).fetchall()
    total: dict[str, dict[str, Any]] = {}
    for name, data in found:
        try:
            entry = json.loads(data)
            environments = {str(entry.pop("environment"))} if "environment" in entry else set()
            entry = {key: float(value) for key, value in entry.items()}
        except (ValueError, TypeError, AttributeError):
            raise ResultsError(f"{results}: the record of a run is damaged; remove the parts that begin with run-{name}") from None
        so_far = total.setdefault(name, {"environments": set()})
        so_far["environments"] |= environments
        for key, value in entry.items():
            most = key in ("workers", "peak_memory_bytes")
            so_far[key] = max(so_far.get(key, 0.0), value) if most else so_far.get(key, 0.0) + value
    return {name: {key: int(value) if key in _WHOLE else value for key, value in entry.items()} for name, entry in total.items()}


_WHOLE = ("workers", "models", "training_models", "peak_memory_bytes")


def timing(configuration: Configuration, recorded: dict[str, Any]) -> Timing:
    """Take the time of a configuration apart."""
    proofs = [runs for runs in configuration.runs if runs.sound and runs.family != "brute-force"]
    search = _total(proofs, lambda o: o.search_seconds)
    counting = _total(proofs, lambda o: o.counting_seconds)
    whole = _total(proofs, lambda o: o.seconds) or 0.0
    return Timing(
        models=recorded.get("models"),
        workers=recorded.get("workers"),
        peak_memory_bytes=recorded.get("peak_memory_bytes"),
        training=_seconds(recorded, "training_seconds"),
        sweep=_seconds(recorded, "sweep_seconds"),
        reading_and_writing=_seconds(recorded, "io_seconds"),
        processor=_sum([_seconds(recorded, f"{stage}_cpu_seconds") for stage in ("training", "sweep")]),
        published=_total([r for r in configuration.runs if not r.sound], lambda o: o.seconds) or 0.0,
        brute_force=_total([r for r in configuration.runs if r.family == "brute-force"], lambda o: o.seconds) or 0.0,
        search=search,
        proof=max(0.0, whole - (search or 0.0) - (counting or 0.0)),
        counting=counting,
        environments=tuple(sorted(recorded.get("environments", ()))),
    )


def _seconds(recorded: dict[str, Any], name: str) -> float | None:
    value = recorded.get(name)
    return None if value is None else float(value)


def _sum(seconds: list[float | None]) -> float | None:
    known = [s for s in seconds if s is not None]
    return sum(known) if len(known) == len(seconds) else None


def _total(runs: list[Runs], seconds: Callable[[Outcome], float | None]) -> float | None:
    known = [s for r in runs for outcome in r.outcomes.values() if (s := seconds(outcome)) is not None]
    return sum(known) if known else None
