"""The frontier as a whole: for each group of published proofs, one of ours that is no longer than its shortest and proves more than its best.

    python benchmarks/compare_frontier.py --models DIR [--config k4] [--seeds 20]     # measures, then writes the page and the figure
    python benchmarks/compare_frontier.py --pages                                      # from docs/results/frontier.csv alone

Models that are not in DIR are trained first (needs the `train` extra). Every bound of ours is a proof over the reals, search not charged,
counting included. Rows of other configurations and seeds in the table stay as they are.
"""

import argparse
import csv
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean

import compactproofs as cp
from compactproofs.results.published import published_for
from compactproofs_experiments.reproduction.groups import LEGEND, TABLE_1

DOCS = Path(__file__).resolve().parent.parent / "docs" / "results"
TABLE, PAGE, FIGURE = DOCS / "frontier.csv", DOCS / "frontier.md", DOCS / "frontier.svg"
SIZES = {"k4": (4, 64), "k5": (5, 64), "k10": (10, 64), "k20": (20, 64), "k10-v128": (10, 128)}
GROUPS = (TABLE_1[0], *(legend.group for legend in LEGEND))
"""Brute force, cubic, and the groups of the paper's figure of the frontier."""
SECONDS = {"k4": 2.0, "k5": 4.0}
"""For `threshold-best`, where it finds the exact accuracy."""
SOMETHING = 0.01
"""A mean bound below this says nothing."""


@dataclass(frozen=True)
class Row:
    """One proof about one model."""

    config: str
    seed: int
    strategy: str
    lower: float
    upper: float | None
    flops: int


@dataclass(frozen=True)
class Ours:
    """One strategy, means over the models of a configuration."""

    strategy: str
    bound: float
    worst: float
    flops: float
    """The largest"""
    models: int
    exact: bool
    """Whether lower and upper bound meet on every model"""


def published(config):
    """Groups with their best mean bound and the least FLOPs of a proof that says something."""
    known = {row.label: row for row in published_for(*SIZES[config])}
    found = []
    for group in GROUPS:
        rows = [known[label] for label in group.labels if label in known]
        flops = [row.flops for row in rows if row.flops is not None and row.bound > SOMETHING]
        if flops:
            found.append((group.title, max(row.bound for row in rows), min(flops)))
    return found


def strategies(config):
    """Ours, from the shortest on, with the seconds of those that have both bounds."""
    shortest = int(min(flops for _, _, flops in published(config)))
    tables = [cp.ThresholdNear(shortest), cp.ThresholdCubicPooled(), cp.ThresholdCubic()]
    return [(strategy, None) for strategy in tables] + ([(cp.ThresholdBest(), SECONDS[config])] if config in SECONDS else [])


def measure(config, models, seeds):
    """Rows of one configuration."""
    k, v = SIZES[config]
    for model in cp.train(cp.MaxOfK(n_ctx=k, d_vocab=v), seeds=range(seeds), out=models / config):
        for strategy, seconds in strategies(config):
            proof = cp.prove(model.weights, strategy, upper=seconds is not None, seconds=seconds)
            yield Row(config, model.seed, strategy.name, proof.lower, proof.upper, proof.flops)


def read():
    """What was measured before."""
    if not TABLE.exists():
        return []
    with TABLE.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    return [
        Row(r["config"], int(r["seed"]), r["strategy"], float(r["lower"]), float(r["upper"]) if r["upper"] else None, int(r["flops"]))
        for r in rows
    ]


def write(rows):
    """Keep what was measured."""
    with TABLE.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(asdict(rows[0])), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in sorted(rows, key=lambda row: (list(SIZES).index(row.config), row.strategy, row.seed)))


def ours(rows, config):
    """Each strategy of a configuration, the shortest first."""
    found = []
    for name in dict.fromkeys(row.strategy for row in rows if row.config == config):
        own = [row for row in rows if (row.config, row.strategy) == (config, name)]
        bounds = [row.lower for row in own]
        found.append(Ours(name, mean(bounds), min(bounds), max(r.flops for r in own), len(own), all(r.lower == r.upper for r in own)))
    return sorted(found, key=lambda each: each.flops)


def lines(rows):
    """The page."""
    yield "# The frontier: published proofs and ours"
    yield ""
    yield "For each group of published proofs: the best mean bound in the group, the FLOPs of the shortest proof in it that says anything, and the best of ours that is no longer than that."
    yield "Bounds are means, theirs over 151 models and ours over fresh ones of the same recipe; our FLOPs are those of the longest proof. Both follow the paper's conventions; ours include counting."
    yield "Brute force is beaten by an exact count with fewer FLOPs: both bounds of `threshold-best` meet on every model. (Its published FLOPs come from a mistake in counting batched products; 8.5e11 would be right at K=4. Only proofs whose FLOPs were published are here.)"
    yield ""
    yield "![Bounds against FLOPs, published groups and ours](frontier.svg)"
    yield ""
    yield "| configuration | published group | its best bound | its FLOPs | ours | bound, mean | worst | FLOPs | models |"
    yield "|---|---|---:|---:|---|---:|---:|---:|---:|"
    for config in SIZES:
        known = ours(rows, config)
        for title, bound, flops in published(config) if known else ():
            fits = [each for each in known if each.flops <= flops and (title != "Brute force" or each.exact)]
            start = f"| {config} | {title} | {bound:.4f} | {flops:.3g} |"
            if fits:
                best = max(fits, key=lambda each: each.bound)
                exact = ", exact" if best.exact else ""
                yield f"{start} `{best.strategy}`{exact} | {best.bound:.4f} | {best.worst:.4f} | {best.flops:.3g} | {best.models} |"
            else:
                yield f"{start} none | | | | |"
    yield ""
    yield "Made from `frontier.csv` by `python benchmarks/compare_frontier.py --pages`; measured by the same command with `--models DIR`. How the shortest of them work, and what they say about the mechanism: [the compact end](../explanation/compact-end.md)."


def figure(rows):
    """One panel for each configuration."""
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter

    plt.rcParams["svg.hashsalt"] = "frontier"
    configs = [config for config in SIZES if ours(rows, config)]
    fig, axes = plt.subplots(1, len(configs), figsize=(3.4 * len(configs), 3.4), sharey=True, squeeze=False)
    for axis, config in zip(axes[0], configs, strict=True):
        groups, known = published(config), ours(rows, config)
        axis.scatter([flops for _, _, flops in groups], [bound for _, bound, _ in groups], marker="x", color="C1", label="published groups")
        axis.plot([each.flops for each in known], [each.bound for each in known], "o-", color="C0", label="ours")
        axis.set(xscale="log", ylim=(0, 1.03), title=config, xlabel="FLOPs")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("accuracy proved, mean")
    axes[0][0].legend(loc="lower right")
    fig.tight_layout()
    fig.savefig(FIGURE, metadata={"Date": None})


def main():
    """Measure if asked to; write the page and the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--config", choices=SIZES, action="append")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--pages", action="store_true", help="measure nothing")
    args = parser.parse_args()
    if args.models is None and not args.pages:
        parser.error("--models DIR says where the models are, or are to be trained; --pages measures nothing")
    rows = read()
    for config in () if args.pages else args.config or SIZES:
        rows = [row for row in rows if row.config != config]
        for row in measure(config, args.models, args.seeds):
            rows.append(row)
            write(rows)
            print(row, flush=True)
    PAGE.write_text("\n".join(lines(rows)) + "\n")
    figure(rows)


if __name__ == "__main__":
    main()
