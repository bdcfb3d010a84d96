"""Everything that is written about finished sweeps: pages in Markdown, figures, data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from compactproofs.errors import ReportError
from compactproofs_experiments.reproduction.agreement import Agreement, agreement
from compactproofs_experiments.reproduction.data import write_summary
from compactproofs_experiments.reproduction.figures import save_figures
from compactproofs_experiments.reproduction.markdown import capitalised, count, joined, paragraph
from compactproofs_experiments.reproduction.page_agreement import agreement_page
from compactproofs_experiments.reproduction.page_configuration import configuration_page
from compactproofs_experiments.reproduction.page_index import index_page
from compactproofs_experiments.reproduction.page_models import models_page
from compactproofs_experiments.reproduction.summaries import read_configurations, read_statistics
from compactproofs_experiments.reproduction.tables import comparison_table
from compactproofs_experiments.reproduction.timings import read_timings, timing


def write_pages(results: Path, into: Path, *, command: str) -> list[Path]:
    """Write pages, figures and a summary about the store `results` to the folder `into`; returns the files.

    The same results give the same pages and figures.

    Args:
        results: the store. Configurations may be missing, and sweeps unfinished: the pages say how much there is.
        into: where to; made if it is not there. Files of the same names are replaced, others are left alone.
        command: what regenerates the pages, for the reader.
    """
    configurations = read_configurations(results)
    if not configurations:
        raise ReportError(f"{results} holds no results of a sweep; run {command!r} first")
    recorded = read_timings(results)
    measured = read_statistics(results)
    statistics = {c.name: measured[c.name] for c in configurations if c.name in measured}
    into.mkdir(parents=True, exist_ok=True)
    found = [agreement(configuration) for configuration in configurations]
    figures = {c.name: save_figures(c, into) for c in configurations}
    drawn = [path for paths in figures.values() for path in paths]
    times = {c.name: timing(c, recorded.get(c.name, {})) for c in configurations}
    pages = {
        "index.md": index_page(found, times, command, drawn),
        **{f"{a.configuration.name}.md": configuration_page(a, figures[a.configuration.name]) for a in found},
        "models.md": models_page(statistics, configurations),
        "comparison.md": comparison_page(found),
        "agreement.md": agreement_page(found),
    }
    for name, text in pages.items():
        (into / name).write_text(text, encoding="utf-8")
    write_summary(configurations, into / "summary.csv")
    return [*(into / name for name in pages), *drawn, into / "summary.csv"]


def comparison_page(found: Sequence[Agreement]) -> str:
    """Every published strategy of every configuration."""
    parts = [
        "# Every published strategy",
        paragraph("""
            Mean ± standard deviation of the bound over models. "Ours, as published" is what the authors' code computes, on our models;
            the distance of its mean from the published one is in published standard deviations, and in standard errors of the difference
            of the two means. "Repaired" is the mean of the sound version of the same strategy, "envelope" that of the sound version with
            this query handling. Where brute force is out of reach its row has the accuracy measured in a sample, as the published row
            has.
        """),
    ]
    for a in found:
        parts += [f"## {capitalised(a.configuration.title)}", f"{count(len(a.configuration.models), 'model')} of ours."]
        parts.append(comparison_table(a.comparisons) if a.comparisons else "Nothing was published about this configuration.")
    return joined(parts)
