"""The page on the trained models: the mechanism's statistics, for max-of-4 beside the published ones."""

from __future__ import annotations

from collections.abc import Sequence

from compactproofs.interpretation import Summary, explain, published_statistics
from compactproofs_experiments.reproduction.comparison import NEAR
from compactproofs_experiments.reproduction.markdown import NOTHING, capitalised, count, joined, mean_std_significant, signed, table
from compactproofs_experiments.reproduction.summaries import Configuration


def models_page(statistics: dict[str, dict[str, Summary]], configurations: Sequence[Configuration]) -> str:
    """The whole page; statistics by name of the configuration."""
    titles = {c.name: c.title for c in configurations}
    published = {c.name for c in configurations if (c.n_ctx, c.d_vocab) == (4, 64)}
    parts = [
        "# The trained models",
        "Measurements in float64, not theorems: mean ± standard deviation over models.",
        "What they are: [measurements](../explanation/measurements.md)." if statistics else "No statistics were measured.",
    ]
    for name, summaries in statistics.items():
        if name in published:
            parts += _beside_published(titles[name], summaries)
    sections: dict[str, list[list[str]]] = {}
    for statistic in dict.fromkeys(statistic for summaries in statistics.values() for statistic in summaries):
        section, meaning = explain(statistic)
        cells = [_cell(summaries.get(statistic)) for summaries in statistics.values()]
        sections.setdefault(section, []).append([f"`{statistic}`", *cells, meaning])
    columns = ["statistic", *(f"{titles.get(name, name)} ({_models(found)})" for name, found in statistics.items()), "meaning "]
    parts += ["## All measurements"] if sections else []
    for section, rows in sections.items():
        parts += [f"### {capitalised(section)}", table(columns, rows)]
    return joined(parts)


def _beside_published(title: str, summaries: dict[str, Summary]) -> list[str]:
    rows, distances = [], []
    for statistic, theirs in published_statistics().items():
        ours = summaries.get(statistic)
        distance = None if ours is None else theirs.distance(ours.mean)
        distances += [] if distance is None else [distance]
        published = mean_std_significant(theirs.mean, theirs.std)
        rows.append([f"`{statistic}`", published, _cell(ours), signed(distance), explain(statistic)[1]])
    close = sum(abs(distance) <= NEAR for distance in distances)
    return [
        f"## {capitalised(title)}, beside the published statistics",
        f"{_models(summaries)} of ours; {close} of {count(len(distances), 'mean')} within {NEAR:g} published standard deviations.",
        "Known defects of the published numbers: C12 to C16 of the [errata](../strategies/errata.md).",
        table(["statistic", "published", "ours", "distance in std", "meaning "], rows),
    ]


def _models(summaries: dict[str, Summary]) -> str:
    return count(max((found.models for found in summaries.values()), default=0), "model")


def _cell(found: Summary | None) -> str:
    return NOTHING if found is None or found.mean is None else mean_std_significant(found.mean, found.std)
