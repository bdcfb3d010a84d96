"""The page on what was run, how long it took, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from compactproofs.results.models import Failure
from compactproofs.results.schema import FAILED
from compactproofs_experiments.reproduction.agreement import Agreement
from compactproofs_experiments.reproduction.comparison import FAR, NEGLIGIBLE
from compactproofs_experiments.reproduction.markdown import NOTHING, count, duration, joined, listed, paragraph, table
from compactproofs_experiments.reproduction.page_agreement import soundness_section
from compactproofs_experiments.reproduction.summaries import Configuration
from compactproofs_experiments.reproduction.timings import Timing

_SHOWN = 10
"""Failures listed one by one; the data have all of them."""

_LINKS = """- [Agreement](agreement.md): where we agree with the published results, where not, and why.
- [Comparison](comparison.md): every strategy beside its published mean.
- [Models](models.md): the mechanism of the trained models beside the published statistics.
- [Errata](../strategies/errata.md) of the published proofs, and the [strategies](../strategies/index.md).
- Data: [`store/results.parquet`](store/results.parquet), the result store; [`summary.csv`](summary.csv), every strategy."""


def index_page(found: Sequence[Agreement], timings: dict[str, Timing], command: str, figures: Sequence[Path] = ()) -> str:
    """The whole page; timings by name of the configuration. It opens with the first figure of lengths and bounds, if there is one."""
    configurations = [a.configuration for a in found]
    versions = listed(sorted({v for c in configurations for v in c.versions})) or "an unknown version"
    columns = [
        "configuration",
        "models",
        "in the paper",
        "strategies",
        "proven",
        "computed",
        "infeasible",
        "failed",
        f"within {FAR:g} standard errors",
    ]
    return joined(
        [
            "# The published experiment, repeated",
            *_opening(figures, configurations),
            paragraph("""
                Models of max-of-K were trained from scratch. The strategies of "Compact Proofs of Model Performance via Mechanistic
                Interpretability", as published and repaired, and those of this package were run on each of them. Regenerate everything
                with
            """),
            f"    {command}",
            table(columns, [_overview(a) for a in found]),
            paragraph(f"""
                "Computed" are the authors' computations, which are not proofs. "Infeasible" is what was expected to take too long.
                The last column: means of the authors' computations on our models within {FAR:g} standard errors of the published ones, or
                closer than {NEGLIGIBLE}.
            """),
            _LINKS,
            f"Computed with compactproofs {versions}{_environments(timings)}.",
            _times(configurations, timings),
            _failures(configurations),
            soundness_section(found),
        ]
    )


def _opening(figures: Sequence[Path], configurations: Sequence[Configuration]) -> list[str]:
    """The figure of the first configuration that has one, and what it shows."""
    titles = {f"{c.name}-pareto.svg": c for c in configurations}
    for path in figures:
        if (c := titles.get(path.name)) is not None:
            models = f"{count(len(c.models), 'model')} of {c.title}"
            said = f"Each mark is a strategy on {models}: how long its proofs are, and how much they prove."
            return [f"![How long proofs are and how much they prove]({path.name})", f"{said} [The figures]({c.name}.md)."]
    return []


def _overview(a: Agreement) -> list[str]:
    c = a.configuration
    statuses = [f"{sum(runs.count(status) for runs in c.runs):,}" for status in ("proven", "computed", "infeasible", FAILED)]
    agreeing = f"{a.agreeing} of {len(a.compared)}" if a.compared else NOTHING
    paper = NOTHING if not a.comparisons else str(max(each.published.seeds for each in a.comparisons))
    return [f"[{c.title}]({c.name}.md)", str(len(c.models)), paper, str(len(c.runs)), *statuses, agreeing]


def _environments(timings: dict[str, Timing]) -> str:
    found = sorted({each for timing in timings.values() for each in timing.environments})
    return f" ({'; '.join(found)})" if found else ""


def _times(configurations: Sequence[Configuration], timings: dict[str, Timing]) -> str:
    apart = any(t.search is not None or t.counting is not None for t in timings.values())
    columns = ["configuration", "published variants", "brute force", "search", "interval proofs", "counting", "rest of the workers' time"]
    rows, walls = [], []
    for c in configurations:
        t = timings[c.name]
        memory = NOTHING if t.peak_memory_bytes is None else f"{t.peak_memory_bytes / 2**30:.2f} GiB"
        workers = NOTHING if t.workers is None else str(t.workers)
        timed = NOTHING if t.models is None else str(t.models)
        walls.append([c.title, timed, *map(duration, (t.training, t.sweep, t.reading_and_writing, t.processor)), workers, memory])
        rows.append([c.title, *map(duration, (t.published, t.brute_force, t.search, t.proof, t.counting, t.rest))])
    return joined(
        [
            "## Time",
            paragraph("""
                Wall time, as far as the run recorded it, and the processor time of all stages together, which other work on the machine
                does not prolong much: divided by the number of workers it is the least wall time.
            """),
            table(["configuration", "models", "training", "sweep", "of it files", "processor", "workers", "peak memory"], walls),
            paragraph(f"""
                Time of the workers of the sweep, by what they computed. A proof does not repeat what an earlier one of the same model had
                computed; an exact accuracy is part of brute force, a sampled one of the rest.
                {"" if apart else "The sweep did not record search and counting, which are part of the interval proofs."}
            """),
            table(columns, rows),
        ]
    )


def _failures(configurations: Sequence[Configuration]) -> str:
    failures = [(c, failure) for c in configurations for failure in c.failures]
    repeated = sum(c.repeated for c in configurations)
    shown = [[c.title, f.model, _strategy(f), f.reason] for c, f in failures[:_SHOWN]]
    return joined(
        [
            "## Failures" if failures else "",
            table(["configuration", "model ", "strategy ", "reason "], shown) if failures else "",
            f"And {len(failures) - _SHOWN:,} more." if len(failures) > _SHOWN else "",
            f"{count(repeated, 'row')} of other sweeps about the same models and strategies not used." if repeated else "",
        ]
    )


def _strategy(failure: Failure) -> str:
    variant = f" ({failure.variant})" if failure.variant else ""
    return "the model as a whole" if failure.label is None else f"`{failure.label}`{variant}"
