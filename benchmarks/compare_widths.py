"""How close the two bounds of `threshold-best` come, second by second, and the confidence interval of as many seconds of sampling.

    python benchmarks/compare_widths.py --models DIR [--config k20] [--seeds 100:120] [--seconds 30] [--processor-time] [--json OUT] [--figure OUT.svg]

Models that are not in DIR are trained first (needs the `train` extra). One run per model: the search says how much is undecided while it
goes on, so that a run of 30 s tells what shorter ones would have given. Sampling decides sequences exactly, on as many cores; its interval
is Clopper-Pearson's at 95 %, for the number of samples that fit into the same time and the certified share of right ones.

On a machine that is busy with something else use --processor-time and COMPACTPROOFS_THREADS=1: all seconds are then processor seconds of
one thread, about twice the seconds of two free cores.
"""

import argparse
import json
import time
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import compactproofs as cp
from compactproofs import budget
from compactproofs.counting.clopper_pearson import clopper_pearson

CONFIGURATIONS = {
    "k4": (4, 64, {}),
    "k5": (5, 64, {}),
    "k10": (10, 64, {}),
    "k20": (20, 64, {}),
    "k10-v128": (10, 128, {}),
    "k20-v512": (20, 512, {"d_model": 64, "steps": 12000}),
}
SAMPLES = 200_000
SECONDS = (0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 6, 10, 12, 20, 30, 60, 120, 300, 600)
"""When to write down how wide the interval is."""
WIDEST_SAMPLE = 20_000_000
"""Clopper-Pearson intervals of more samples are scaled from those of so many."""


def watched(weights, seconds, clock):
    """The widths by seconds of one run, and what it proves."""
    marks, started = {}, clock()

    def progress(done, total):
        marks[clock() - started] = (total - done) / total

    proof = cp.prove(weights, "threshold-best", upper=True, seconds=seconds, progress=progress)
    width = (proof.correct_at_most - proof.correct_at_least) / proof.total
    taken = clock() - started - proof.compile_seconds
    return marks, width, taken, proof


def sampled(weights, share, clock):
    """The width of a confidence interval after so many seconds of sampling."""
    cp.accuracy(weights, samples=1000)
    started = clock()
    cp.accuracy(weights, samples=SAMPLES)
    rate = SAMPLES / (clock() - started)

    def width(seconds):
        n = max(1, int(rate * seconds))
        few = min(n, WIDEST_SAMPLE)
        low, high = clopper_pearson(round(share * few), few, 0.95)
        return (high - low) * (few / n) ** 0.5

    return width


def measure(path, seconds, clock):
    """One row."""
    weights = cp.load(path)
    marks, width, taken, proof = watched(weights, seconds, clock)
    sampling = sampled(weights, proof.lower, clock)
    at = {}
    for mark in (s for s in SECONDS if s <= seconds):
        known = [w for when, w in marks.items() if when <= mark]
        at[mark] = {"certified": width if mark >= taken else (known[-1] if known else 1.0), "sampled": sampling(mark)}
    return {"model": path.name, "lower": proof.lower, "upper": proof.upper, "width": width, "seconds": taken, "at": at}


def figure(everything, path):
    """Median widths by seconds, beside sampling."""
    from matplotlib import pyplot as plt

    fig, axes = plt.subplots(1, len(everything), figsize=(3.2 * len(everything), 3.2), sharey=True, squeeze=False)
    for axis, (config, rows) in zip(axes[0], everything.items(), strict=True):
        marks = sorted(rows[0]["at"])
        for name, style in (("certified", "-"), ("sampled", "--")):
            values = [[row["at"][mark][name] for row in rows] for mark in marks]
            axis.plot(marks, [max(median(v), 1e-12) for v in values], style, color="C0" if name == "certified" else "C1", label=name)
            axis.fill_between(marks, [max(min(v), 1e-12) for v in values], [max(v) for v in values], alpha=0.15, lw=0)
        axis.set(xscale="log", yscale="log", title=config, xlabel="seconds", ylim=(1e-9, 1))
    axes[0][0].set_ylabel("width of the interval")
    axes[0][-1].legend()
    fig.tight_layout()
    fig.savefig(path, metadata={"Date": None})


def main():
    """Measure, print a table in Markdown, and draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--config", choices=CONFIGURATIONS, action="append")
    parser.add_argument("--seeds", default="100:120")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args()
    clock = time.process_time if args.processor_time else time.perf_counter
    if args.processor_time:
        budget.time = SimpleNamespace(perf_counter=clock)
    first, last = map(int, args.seeds.split(":"))
    everything = json.loads(args.json.read_text()) if args.json and args.json.exists() else {}
    everything = {name: [{**row, "at": {float(s): w for s, w in row["at"].items()}} for row in rows] for name, rows in everything.items()}
    for config in args.config or [c for c in CONFIGURATIONS if c != "k20-v512"]:
        k, v, recipe = CONFIGURATIONS[config]
        models = cp.train(cp.MaxOfK(n_ctx=k, d_vocab=v), seeds=range(first, last), out=args.models / config, **recipe)
        cp.prove(models[0].weights, "threshold-best", upper=True, seconds=0.5)  # compile
        rows = everything[config] = [measure(model.path, args.seconds, clock) for model in models]
        for mark in rows[0]["at"]:
            widths, others = ([row["at"][mark][name] for row in rows] for name in ("certified", "sampled"))
            won = sum(a < b for a, b in zip(widths, others, strict=True))
            print(
                f"| {config} | {mark:g} s | {median(widths):.1e} | {max(widths):.1e} | {median(others):.1e} | {won} of {len(rows)} |",
                flush=True,
            )
        if args.json:
            args.json.write_text(json.dumps(everything, indent=1))
    if args.figure:
        figure(everything, args.figure)


if __name__ == "__main__":
    main()
