"""Does any bound exceed the truth? Counted in exact integers."""

from __future__ import annotations

from dataclasses import dataclass

from compactproofs_experiments.reproduction.summaries import USABLE, Configuration, Runs


@dataclass(frozen=True)
class Excess:
    """How many of some lower bounds are above a number that the true count certainly does not exceed."""

    bounds: int
    """Lower bounds, one per model and strategy."""
    against_exact: int
    """How many of them were compared with the exact count of correct sequences."""
    against_certificate: int
    """How many were compared with the smallest proven upper bound of the model, where it is not the trivial one."""
    exceeding: int
    """How many are larger than either: such a bound is false."""
    models: int
    """On how many models some bound is false."""
    labels: tuple[str, ...]
    """Strategies with a false bound."""


def excess(configuration: Configuration, *, sound: bool) -> Excess:
    """Check every sound lower bound, or everything that the authors' code computes without proving it."""
    bounds = exact = certificate = exceeding = 0
    models: set[str] = set()
    labels: dict[str, None] = {}
    for runs in configuration.runs:
        for key, least in _claims(runs) if runs.sound == sound else ():
            ceilings = _ceilings(configuration, key)
            bounds, exact, certificate = bounds + 1, exact + (ceilings[0] is not None), certificate + (ceilings[1] is not None)
            if any(most is not None and least > most for most in ceilings):
                exceeding += 1
                models.add(key)
                labels[runs.label] = None
    return Excess(bounds, exact, certificate, exceeding, len(models), tuple(labels))


def contradictory_upper_bounds(configuration: Configuration) -> int:
    """Models whose smallest proven upper bound is below the exact count."""
    pairs = ((_ceilings(configuration, model.key), configuration.accuracies.get(model.key)) for model in configuration.models)
    return sum(most is not None and a is not None and a.exact and most < a.correct for (_, most), a in pairs)


def _claims(runs: Runs) -> list[tuple[str, int]]:
    return [(key, o.correct_at_least) for key, o in runs.outcomes.items() if o.status in USABLE and o.correct_at_least is not None]


def _ceilings(configuration: Configuration, key: str) -> tuple[int | None, int | None]:
    accuracy = configuration.accuracies.get(key)
    exact = accuracy.correct_at_most if accuracy is not None and accuracy.exact else None
    most = configuration.certified[key][1]
    return exact, None if most is None or most >= configuration.total else most
