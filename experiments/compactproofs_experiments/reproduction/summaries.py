"""The store as frozen data: one `Configuration` for each folder of models, read once, with nothing left out silently."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor
from pathlib import Path
from typing import Any

import numpy as np

from compactproofs.interpretation import Summary, summarise_statistics
from compactproofs.interpretation.numbers import Statistics
from compactproofs.plots.marks import FAMILIES
from compactproofs.results.models import Failure
from compactproofs.results.schema import FAILED, STATISTICS
from compactproofs.results.store import open_results

USABLE = ("proven", "computed")
"""Statuses with a bound: a theorem, or what the authors' code computes."""

_COLUMNS = (
    *("model", "weights_sha256", "d_vocab", "n_ctx", "version", "plan", "seconds_allowed"),
    *("accuracy", "accuracy_low", "accuracy_high", "accuracy_method", "accuracy_correct", "accuracy_total", "accuracy_confidence"),
    *("singular_ratio", "label", "family", "variant", "sound", "status", "reason"),
    *("lower", "correct_at_least", "correct_at_most", "flops", "unexplained_dimensions", "seconds"),
    *("search_seconds", "counting_seconds"),
)


@dataclass(frozen=True)
class Spread:
    """Mean and spread of a number over models."""

    n: int
    mean: float
    std: float | None
    """Of a sample (divided by n - 1); None for fewer than two models."""
    least: float
    greatest: float


def spread(values: Iterable[float]) -> Spread | None:
    """None if there are no values."""
    known = np.array(list(values), dtype=np.float64)
    if not len(known):
        return None
    std = float(known.std(ddof=1)) if len(known) > 1 else None
    return Spread(len(known), float(known.mean()), std, float(known.min()), float(known.max()))


@dataclass(frozen=True)
class TrueAccuracy:
    """The measured accuracy of a model: of all sequences, or of a sample."""

    value: float
    low: float
    high: float
    """Ends of the interval: equal up to rounding if exact, else Clopper-Pearson at `confidence`."""
    exact: bool
    correct: int
    total: int
    """Sequences evaluated."""
    confidence: float

    @cached_property
    def correct_at_most(self) -> int:
        """If exact, the number of correct sequences, and of those that stayed undecided, as an integer.

        `high` is that number over `total`, rounded up to a double; as `total` is far below 2^52, nothing is lost.
        """
        return floor(Fraction(self.high) * self.total) if self.total < 2**52 else self.correct


@dataclass(frozen=True)
class Model:
    """One model of a configuration."""

    key: str
    """The hash of its weights."""
    name: str
    seed: int | None
    """As its name has it."""
    accuracy: TrueAccuracy | None
    singular_ratio: float | None
    """First singular value of EQKE over the second."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One strategy on one model."""

    status: str
    reason: str | None
    lower: float | None
    correct_at_least: int | None
    correct_at_most: int | None
    flops: int | None
    unexplained: int | None
    seconds: float | None
    search_seconds: float | None
    counting_seconds: float | None


@dataclass(frozen=True)
class Runs:
    """One strategy on every model."""

    label: str
    family: str
    variant: str | None
    sound: bool
    outcomes: dict[str, Outcome]
    """By key of the model."""

    @cached_property
    def bounds(self) -> dict[str, float]:
        """Bounds by key of the model, where there is one."""
        return {key: o.lower for key, o in self.outcomes.items() if o.status in USABLE and o.lower is not None}

    @property
    def kind(self) -> str:
        """The family under which it is drawn."""
        return "published" if self.variant == "published" else self.family

    @property
    def choices(self) -> tuple[str, ...]:
        """The parts of the label after the strategy's name."""
        return tuple(self.label.split("/")[1:])

    def count(self, status: str) -> int:
        """Models with this status."""
        return sum(outcome.status == status for outcome in self.outcomes.values())

    def mean(self, field: str) -> float | None:
        """Mean of a number over all models that have it, whatever the status: the length of an infeasible proof is known too."""
        found = spread(float(v) for o in self.outcomes.values() if (v := getattr(o, field)) is not None)
        return None if found is None else found.mean


@dataclass(frozen=True)
class Configuration:
    """Everything that was found about the models of one kind."""

    name: str
    n_ctx: int
    d_vocab: int
    models: tuple[Model, ...]
    runs: tuple[Runs, ...]
    failures: tuple[Failure, ...]
    repeated: int
    """Rows of other sweeps about the same model and strategy, which are not used."""
    versions: tuple[str, ...]
    seconds_allowed: tuple[float, ...]

    @property
    def title(self) -> str:
        """In words."""
        return f"max-of-{self.n_ctx}, {self.d_vocab} tokens"

    @cached_property
    def accuracies(self) -> dict[str, TrueAccuracy]:
        """By key of the model, where it was measured."""
        return {model.key: model.accuracy for model in self.models if model.accuracy is not None}

    @property
    def exact(self) -> bool:
        """Whether the accuracy of every model is exact."""
        return len(self.accuracies) == len(self.models) and all(a.exact for a in self.accuracies.values())

    @cached_property
    def _by_name(self) -> dict[tuple[str, str | None], Runs]:
        return {(runs.label, runs.variant): runs for runs in self.runs}

    def find(self, label: str, variant: str | None) -> Runs | None:
        """The runs of a strategy, if it was run."""
        return self._by_name.get((label, variant))

    def normalised(self, runs: Runs) -> dict[str, float]:
        """Bounds over true accuracies, by key of the model; without models whose accuracy is unknown or zero."""
        known = self.accuracies
        return {key: bound / known[key].value for key, bound in runs.bounds.items() if key in known and known[key].value > 0}

    @cached_property
    def certified(self) -> dict[str, tuple[int, int | None]]:
        """For each model the largest proven lower and the smallest proven upper bound on the number of correct sequences."""
        return self._certified(self.runs)

    @cached_property
    def certified_by_others(self) -> dict[str, tuple[int, int | None]]:
        """The same without brute force."""
        return self._certified([runs for runs in self.runs if runs.family != "brute-force"])

    def _certified(self, chosen: Iterable[Runs]) -> dict[str, tuple[int, int | None]]:
        least: dict[str, int] = {}
        most: dict[str, int] = {}
        for runs in chosen:
            for key, outcome in runs.outcomes.items():
                if runs.sound and outcome.status == "proven":
                    if outcome.correct_at_least is not None:
                        least[key] = max(least.get(key, 0), outcome.correct_at_least)
                    if outcome.correct_at_most is not None:
                        most[key] = min(most.get(key, outcome.correct_at_most), outcome.correct_at_most)
        return {model.key: (least.get(model.key, 0), most.get(model.key)) for model in self.models}

    @property
    def total(self) -> int:
        """Input sequences."""
        return int(self.d_vocab**self.n_ctx)


def best_by_model(bounds: Iterable[dict[str, float]]) -> dict[str, float]:
    """The largest bound of each model among several strategies."""
    best: dict[str, float] = {}
    for by_model in bounds:
        for key, bound in by_model.items():
            best[key] = max(bound, best.get(key, bound))
    return best


def read_configurations(results: Path) -> list[Configuration]:
    """The configurations of a store, one for each folder of models, ordered by length of the sequence and vocabulary."""
    with open_results(results) as connection:
        cursor = connection.sql(f"SELECT parse_filename(folder), {', '.join(_COLUMNS)} FROM results ORDER BY ALL")  # noqa: S608
        grouped: dict[str, list[dict[str, Any]]] = {}
        for name, *values in cursor.fetchall():
            grouped.setdefault(name or "", []).append(dict(zip(_COLUMNS, values, strict=True)))
    found = [_configuration(name, rows) for name, rows in grouped.items()]
    return sorted(found, key=lambda c: (c.n_ctx, c.d_vocab, c.name))


def read_statistics(results: Path) -> dict[str, dict[str, Summary]]:
    """The statistics of the mechanism: summaries by configuration and statistic."""
    query = "SELECT DISTINCT ON (folder, model) parse_filename(folder), data FROM part WHERE kind = ? ORDER BY folder, model, written DESC"
    with open_results(results) as connection:
        grouped: dict[str, list[Statistics]] = {}
        for name, data in connection.execute(query, [STATISTICS]).fetchall():
            grouped.setdefault(name, []).append(json.loads(data))
    return {name: summarise_statistics(found) for name, found in sorted(grouped.items())}


def _configuration(name: str, rows: list[dict[str, Any]]) -> Configuration:
    """Of rows about the same weights and the same strategy one is kept: with a bound rather than without, of the newest version."""
    sized = [row for row in rows if row["n_ctx"] is not None]
    sizes = (sized[0]["n_ctx"], sized[0]["d_vocab"]) if sized else (0, 0)
    kept = _without_repetitions([row for row in rows if row["label"] is not None])
    return Configuration(
        name=name,
        n_ctx=sizes[0],
        d_vocab=sizes[1],
        models=_models(rows),
        runs=_runs(kept),
        failures=_failures(rows),
        repeated=sum(row["label"] is not None for row in rows) - len(kept),
        versions=tuple(sorted({row["version"] for row in rows if row["version"]})),
        seconds_allowed=tuple(sorted({row["seconds_allowed"] for row in rows if row["seconds_allowed"] is not None})),
    )


def _key(row: dict[str, Any]) -> str:
    return str(row["weights_sha256"] or row["model"])


def _without_repetitions(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: dict[tuple[str, str, str | None], dict[str, Any]] = {}
    for row in sorted(rows, key=lambda r: (r["status"] in USABLE, r["version"] or "", r["plan"] or "")):
        kept[_key(row), row["label"], row["variant"]] = row
    return list(kept.values())


def _models(rows: Sequence[dict[str, Any]]) -> tuple[Model, ...]:
    """Models with at least one row about a strategy; exact accuracies are preferred to sampled ones."""
    models: dict[str, Model] = {}
    for row in rows:
        if row["label"] is None:
            continue
        known = models.get(_key(row))
        accuracy = _accuracy(row)
        if known is None or (accuracy is not None and (known.accuracy is None or (accuracy.exact and not known.accuracy.exact))):
            seed = re.search(r"seed(\d+)", row["model"])
            models[_key(row)] = Model(_key(row), row["model"], int(seed[1]) if seed else None, accuracy, row["singular_ratio"])
    return tuple(sorted(models.values(), key=lambda m: (m.seed is None, m.seed or 0, m.name, m.key)))


def _accuracy(row: dict[str, Any]) -> TrueAccuracy | None:
    if row["accuracy"] is None:
        return None
    return TrueAccuracy(
        value=row["accuracy"],
        low=row["accuracy_low"],
        high=row["accuracy_high"],
        exact=row["accuracy_method"] == "brute-force",
        correct=int(row["accuracy_correct"]),
        total=int(row["accuracy_total"]),
        confidence=row["accuracy_confidence"],
    )


def _runs(rows: Sequence[dict[str, Any]]) -> tuple[Runs, ...]:
    outcomes: dict[tuple[str, str, str | None, bool], dict[str, Outcome]] = {}
    for row in rows:
        strategy = row["label"], row["family"], row["variant"], row["sound"]
        outcomes.setdefault(strategy, {})[_key(row)] = Outcome(
            status=row["status"],
            reason=row["reason"],
            lower=row["lower"],
            correct_at_least=_integer(row["correct_at_least"]),
            correct_at_most=_integer(row["correct_at_most"]),
            flops=_integer(row["flops"]),
            unexplained=_integer(row["unexplained_dimensions"]),
            seconds=row["seconds"],
            search_seconds=row["search_seconds"],
            counting_seconds=row["counting_seconds"],
        )
    families = list(FAMILIES)
    runs = [Runs(*strategy, by_model) for strategy, by_model in outcomes.items()]
    return tuple(sorted(runs, key=lambda r: (families.index(r.kind) if r.kind in families else len(families), r.label)))


def _integer(text: str | None) -> int | None:
    return None if text is None else int(text)


def _failures(rows: Sequence[dict[str, Any]]) -> tuple[Failure, ...]:
    failed = [row for row in rows if row["status"] == FAILED]
    return tuple(Failure(row["model"], row["label"], row["variant"], row["reason"] or "") for row in failed)
