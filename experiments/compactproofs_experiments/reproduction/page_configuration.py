"""The page of one configuration: the paper's table and figures, and the true accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from compactproofs.results.schema import FAILED
from compactproofs_experiments.reproduction.agreement import Agreement
from compactproofs_experiments.reproduction.fits import clouds
from compactproofs_experiments.reproduction.markdown import capitalised, count, joined, listed, paragraph
from compactproofs_experiments.reproduction.page_agreement import soundness_section
from compactproofs_experiments.reproduction.summaries import Configuration
from compactproofs_experiments.reproduction.tables import accuracy_table, fit_table, legend_table, lengths_table, table_1, threshold_table

_SHOWN = 10
"""Strategies without a bound for every model that are named one by one."""


def configuration_page(a: Agreement, figures: Sequence[Path]) -> str:
    """The whole page; the figures are those of this configuration, in the same folder."""
    c = a.configuration
    drawn = {path.name.removeprefix(f"{c.name}-").removesuffix(".svg"): path.name for path in figures}
    return joined(
        [
            f"# {capitalised(c.title)}",
            f"{count(len(c.models), 'model')}, {count(len(c.runs), 'strategy', 'strategies')}. {_limits(c)}{_without_bounds(c)}",
            *_bounds(c),
            *_figure(drawn, "pareto", "Length and tightness", _PARETO),
            *_singular_ratio(c, drawn),
            *_figure(drawn, "unexplained", "Unexplained dimensions", _UNEXPLAINED),
            "## True accuracy",
            _accuracy(c),
            accuracy_table(c),
            f"![The accuracy of every model]({drawn['accuracy']})" if "accuracy" in drawn else "",
            soundness_section([a]),
        ]
    )


_TABLE_1 = paragraph("""
    Rows as in table 1 of the paper; mean ± standard deviation over models. A row about several strategies has on each model the best of
    them; its published number is that of the strategy with the largest mean, since only means of strategies were published. "As published"
    is what the authors' code computes on our models (brute force and cubic are sound as they are), "repaired" the sound version of the same
    strategies, "with envelope" the sound version with a third way to handle queries.
""")

_LENGTHS = paragraph("""
    Complexities are the paper's: $v$ is the size of the vocabulary, $k$ the length of the sequence, $d$ the width. Lengths are rounded to
    powers of two, as in the paper; ours are of the repaired strategies.
""")

_PARETO = paragraph("""
    Each marker is a strategy: its FLOPs, and the mean over models of the bound over the true accuracy; lines are one standard deviation
    long to either side. On the right the share of sequences that are not proven, on a logarithmic scale: no proof can get below the share
    that the models answer wrongly.
""")

_UNEXPLAINED = "The paper's measure of how much of the model a proof treats as a black box, against its length."

_RATIO = paragraph("""
    For each model and each attention error that replaces EQKE by a matrix of rank one: the best bound over direct paths and query
    handlings, over the true accuracy. Lines are fitted by least squares; the paper gives its line for `svd` only.
""")

_LEGEND = paragraph("""
    Bound over true accuracy, of the best strategy of each group on each model, beside the legends of the paper's figure of the Pareto
    frontier. The two published columns differ because they are of two versions of the authors' code (erratum
    [A5](../strategies/errata.md)).
""")


def _limits(c: Configuration) -> str:
    if not c.seconds_allowed:
        return ""
    return f"A proof was started if it was expected to take at most {listed([f'{s:g} s' for s in c.seconds_allowed])}. "


def _without_bounds(c: Configuration) -> str:
    missing = []
    for runs in c.runs:
        states = [f"{status} for {runs.count(status)}" for status in ("infeasible", FAILED) if runs.count(status)]
        absent = len(c.models) - len(runs.outcomes)
        states += [f"not run for {absent}"] if absent else []
        if states:
            missing.append(f"`{runs.label}`{f' ({runs.variant})' if runs.variant else ''} {' and '.join(states)}")
    if not missing:
        return "Every strategy gave a bound for every model."
    more = f"; and {len(missing) - _SHOWN} more strategies, see `summary.csv`" if len(missing) > _SHOWN else ""
    return f"Of the {count(len(c.models), 'model')}: {'; '.join(missing[:_SHOWN])}{more}."


def _bounds(c: Configuration) -> list[str]:
    thresholds = threshold_table(c)
    text = ["## Bounds", _TABLE_1, table_1(c), _LENGTHS, lengths_table(c)]
    if thresholds is not None:
        text += ["### Threshold proofs", "Not in the paper: see [threshold proofs](../explanation/threshold-proofs.md).", thresholds]
    if (c.n_ctx, c.d_vocab) == (4, 64):
        text += ["### Normalised bounds", _LEGEND, legend_table(c)]
    return text


def _singular_ratio(c: Configuration, drawn: dict[str, str]) -> list[str]:
    found = clouds(c)
    table = fit_table(found) if any(cloud.fit is not None for cloud in found) else ""
    return [*_figure(drawn, "singular-ratio", "Bounds and the singular ratio", _RATIO), table]


def _figure(drawn: dict[str, str], name: str, title: str, text: str) -> list[str]:
    return [f"## {title}", text, f"![{title}]({drawn[name]})"] if name in drawn else []


def _accuracy(c: Configuration) -> str:
    exact = sum(a.exact for a in c.accuracies.values())
    sampled = [a for a in c.accuracies.values() if not a.exact]
    text = []
    if exact:
        text.append(
            f"Exact for {count(exact, 'model')}: all {c.d_vocab}^{c.n_ctx} sequences were evaluated, every comparison with a proof."
        )
    if sampled:
        sizes = listed(sorted({f"{a.total:,}" for a in sampled}))
        levels = listed(sorted({f"{a.confidence:.0%}" for a in sampled}))
        text.append(f"Estimated for {count(len(sampled), 'model')} from {sizes} random sequences; Clopper-Pearson interval at {levels}.")
        text.append("Certain is what lies between the best proven lower and upper bounds.")
        apart = sum(_apart(c, key) for key, a in c.accuracies.items() if not a.exact)
        text.append(f"The interval of the sample and the certified one have no point in common for {apart} of them.")
    if len(c.accuracies) < len(c.models):
        text.append(f"Unknown for {count(len(c.models) - len(c.accuracies), 'model')}.")
    return " ".join(text)


def _apart(c: Configuration, key: str) -> bool:
    least, most = c.certified_by_others[key]
    measured = c.accuracies[key]
    return measured.high < least / c.total or (most is not None and measured.low > most / c.total)
