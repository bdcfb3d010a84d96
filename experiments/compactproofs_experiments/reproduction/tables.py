"""The tables of a configuration's page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compactproofs.results.published import Published, published_for
from compactproofs.results.schema import FAILED
from compactproofs_experiments.reproduction.comparison import Comparison
from compactproofs_experiments.reproduction.fits import VARIANTS, Cloud, Fit
from compactproofs_experiments.reproduction.groups import LEGEND, TABLE_1, Group
from compactproofs_experiments.reproduction.markdown import (
    NOTHING,
    mean_std,
    number,
    plus_minus,
    power_of_two,
    signed,
    signed_number,
    significant,
    table,
)
from compactproofs_experiments.reproduction.summaries import Configuration, Runs, Spread, best_by_model, spread


def table_1(configuration: Configuration) -> str:
    """The bounds of the paper's table 1: its rows, the published numbers, and ours as published, repaired and with the envelope."""
    published = {row.label: row for row in published_for(configuration.n_ctx, configuration.d_vocab)}
    rows = [_bounds_row(configuration, group, _best_published(group, published)) for group in TABLE_1]
    return table(["proof", "published", "as published", "repaired", "with envelope"], rows)


def lengths_table(configuration: Configuration) -> str:
    """The lengths of the paper's table 1: of the strategies with the largest mean bound, ours repaired."""
    published = {row.label: row for row in published_for(configuration.n_ctx, configuration.d_vocab)}
    rows = []
    for group in TABLE_1:
        theirs = _best_published(group, published)
        sound = _runs(configuration, group.labels, "repaired" if group.envelope_labels else None)
        lengths = (None if theirs is None else theirs.flops, _length(sound, "flops"), _length(sound, "unexplained"))
        rows.append([group.title, group.complexity, *map(power_of_two, lengths)])
    return table(["proof", "complexity ", "FLOPs, published", "FLOPs, ours", "unexplained dimensions"], rows)


def _best_published(group: Group, published: dict[str, Published]) -> Published | None:
    return max((published[label] for label in group.labels if label in published), key=lambda row: row.bound, default=None)


def _bounds_row(configuration: Configuration, group: Group, theirs: Published | None) -> list[str]:
    models = len(configuration.models)
    numbers = [group.title, NOTHING if theirs is None else mean_std(theirs.bound, theirs.bound_std)]
    if not group.envelope_labels:
        runs = _runs(configuration, group.labels, None)
        return [*numbers, _estimated(configuration, runs), "the same" if any(r.bounds for r in runs) else NOTHING, NOTHING]
    as_published, repaired = (_runs(configuration, group.labels, variant) for variant in VARIANTS)
    envelope = _runs(configuration, group.envelope_labels, "repaired")
    return [*numbers, *(best(runs, models) for runs in (as_published, repaired, envelope))]


def _estimated(configuration: Configuration, runs: Sequence[Runs]) -> str:
    """The bound; for brute force without any, the accuracy measured in a sample, as the paper has it."""
    sampled = spread(a.value for a in configuration.accuracies.values() if not a.exact)
    out_of_reach = any(r.family == "brute-force" and not r.bounds for r in runs)
    return f"{plus_minus(sampled)} (sampled)" if out_of_reach and sampled is not None else best(runs, len(configuration.models))


def best(runs: Sequence[Runs], models: int) -> str:
    """The best bound of each model among these strategies, mean ± standard deviation; with how many models if not all have one."""
    found = spread(best_by_model(r.bounds for r in runs).values())
    if found is None:
        return _why_none(runs)
    return plus_minus(found) + (f" ({found.n} of {models} models)" if found.n < models else "")


def _why_none(runs: Sequence[Runs]) -> str:
    reasons = [status for status in ("infeasible", FAILED) if any(r.count(status) for r in runs)]
    return " or ".join(reasons) or NOTHING


def _length(runs: Sequence[Runs], field: str) -> float | None:
    """Of the strategy with the largest mean bound; of any if none has a bound."""
    ranked = sorted(runs, key=lambda r: found.mean if (found := spread(r.bounds.values())) is not None else -1.0)
    return ranked[-1].mean(field) if ranked else None


def _runs(configuration: Configuration, labels: Iterable[str], variant: str | None) -> list[Runs]:
    return [runs for label in labels if (runs := configuration.find(label, variant)) is not None]


def threshold_table(configuration: Configuration) -> str | None:
    """The strategies that the paper does not have, the largest bound first; None if none was run."""
    chosen = [runs for runs in configuration.runs if runs.family == "threshold"]
    if not chosen:
        return None
    ranked = sorted(chosen, key=lambda r: -(found.mean if (found := spread(r.bounds.values())) is not None else -1.0))
    rows = [
        [
            f"`{runs.label}`",
            best([runs], len(configuration.models)),
            plus_minus(spread(configuration.normalised(runs).values())),
            power_of_two(runs.mean("flops")),
            power_of_two(runs.mean("unexplained")),
            f"{runs.mean('seconds') or 0.0:.2f}",
        ]
        for runs in ranked
    ]
    return table(["proof", "bound", "bound / accuracy", "FLOPs", "unexplained dimensions", "seconds"], rows)


def legend_table(configuration: Configuration) -> str:
    """Max-of-4: the normalised bounds in the legends of the paper's figures of the Pareto frontier, and ours."""
    rows = []
    for legend in LEGEND:
        group = legend.group
        variants: tuple[str | None, ...] = (None, None) if not group.envelope_labels else VARIANTS
        found = [_normalised(configuration, group.labels, variant) for variant in variants]
        envelope = _normalised(configuration, group.envelope_labels, "repaired")
        rows.append(
            [
                group.title,
                *(mean_std(*numbers, 3) for numbers in (legend.main, legend.appendix)),
                *(plus_minus(one, 3) for one in (*found, envelope)),
            ]
        )
    return table(["best of", "paper, figure", "paper, appendix", "as published", "repaired", "with envelope"], rows)


def _normalised(configuration: Configuration, labels: Iterable[str], variant: str | None) -> Spread | None:
    return spread(best_by_model(map(configuration.normalised, _runs(configuration, labels, variant))).values())


def fit_table(found: Sequence[Cloud]) -> str:
    """Slope, intercept and R² of each attention error, as published and repaired."""
    rows = []
    for error in dict.fromkeys(cloud.attention_error for cloud in found):
        fits = {cloud.variant: cloud.fit for cloud in found if cloud.attention_error == error}
        rows.append([f"`{error}`", *(cell for variant in VARIANTS for cell in _fit(fits.get(variant)))])
    columns = [f"{name}, {how}" for how in ("as published", "repaired") for name in ("slope per 1000", "intercept", "R²")]
    return table(["attention error", *columns], rows)


def _fit(fit: Fit | None) -> list[str]:
    return [NOTHING] * 3 if fit is None else [signed_number(1000 * fit.slope, 3), signed_number(fit.intercept, 3), number(fit.explained, 2)]


def comparison_table(comparisons: Sequence[Comparison]) -> str:
    """Every published strategy."""
    columns = ["strategy", "published", "ours, as published", "distance in std", "in standard errors", "repaired", "envelope"]
    return table(columns, [_comparison_row(c) for c in comparisons])


def _comparison_row(c: Comparison) -> list[str]:
    return [
        f"`{c.published.label}`",
        mean_std(c.published.bound, c.published.bound_std),
        plus_minus(c.ours) + (" (measured)" if c.estimated and c.ours is not None else ""),
        signed(c.distance),
        signed(c.standard_errors),
        number(None if c.repaired is None else c.repaired.mean),
        number(None if c.envelope is None else c.envelope.mean),
    ]


def accuracy_table(configuration: Configuration) -> str:
    """Least, mean and greatest of the measured accuracy, and of both ends of what proofs other than brute force certify."""
    known, total = configuration.accuracies, configuration.total
    intervals = configuration.certified_by_others
    rows: list[tuple[str, Spread | None]] = [
        ("exact: all sequences evaluated", spread(a.value for a in known.values() if a.exact)),
        ("estimate from a sample", spread(a.value for a in known.values() if not a.exact)),
        ("↳ its interval, lower end", spread(a.low for a in known.values() if not a.exact)),
        ("↳ its interval, upper end", spread(a.high for a in known.values() if not a.exact)),
        ("certified without brute force: lower bound", spread(least / total for least, _ in intervals.values())),
        ("certified without brute force: upper bound", spread(most / total for _, most in intervals.values() if most is not None)),
        ("↳ distance of the two", spread((most - least) / total for least, most in intervals.values() if most is not None)),
    ]
    cells = [[title, str(s.n), plus_minus(s, 6), significant(s.least, 7), significant(s.greatest, 7)] for title, s in rows if s is not None]
    return table(["accuracy", "models", "mean ± std", "least", "greatest"], cells)
