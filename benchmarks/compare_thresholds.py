"""How tight and how fast the threshold proofs are, over fresh seeds of the paper's five configurations.

    python benchmarks/compare_thresholds.py --models DIR [--seeds 24] [--config k20] [--seconds 10] [--json OUT]

Models that are not in DIR are trained first (needs the `train` extra; seconds to minutes). "Truth" is the exact accuracy where the
portfolio finds it (K=4, K=5), elsewhere our own certified upper bound. All bounds are proofs over the reals.
"""

import argparse
import json
from pathlib import Path
from statistics import mean

import compactproofs as cp

CONFIGURATIONS = {"k4": (4, 64), "k5": (5, 64), "k10": (10, 64), "k20": (20, 64), "k10-v128": (10, 128)}
STRATEGIES = (
    "threshold-quartic",
    "threshold-exact-output",
    "threshold-cubic",
    "threshold-cubic-pooled",
    "threshold-blocks",
    "threshold-quadratic-pooled",
    "cubic",
)


def measure(path: Path, seconds: float, strategies: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Bounds, seconds and FLOPs of each strategy on one model."""
    weights = cp.load(path)
    best = cp.prove(weights, "threshold-best", upper=True, seconds=seconds)
    result = {"threshold-best": {"lower": best.lower, "upper": best.upper, "seconds": best.seconds, "flops": best.flops}}
    for name in strategies:
        proof = cp.prove(weights, name)
        result[name] = {"lower": proof.lower, "seconds": proof.seconds, "flops": proof.flops}
    return result


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--config", choices=CONFIGURATIONS, action="append")
    parser.add_argument("--seconds", type=float, default=10.0, help="budget of the portfolio per model")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    everything = {}
    print(
        "| configuration | strategy | mean bound | bound / truth, mean | worst | seconds, mean | FLOPs, mean |\n|---|---|---|---|---|---|---|"
    )
    for config in args.config or CONFIGURATIONS:
        k, v = CONFIGURATIONS[config]
        task = cp.MaxOfK(n_ctx=k, d_vocab=v)
        folder = args.models / config
        paths = [model.path for model in cp.train(task, seeds=range(args.seeds), out=folder)]
        chosen = tuple(s for s in STRATEGIES if s != "threshold-exact-output" or k * v <= 640)  # it takes a minute beyond
        measure(paths[0], 1.0, chosen)  # compile
        rows = [measure(path, args.seconds, chosen) for path in paths]
        everything[config] = {path.name: row for path, row in zip(paths, rows, strict=True)}
        truth = [row["threshold-best"]["upper"] for row in rows]
        widths = [row["threshold-best"]["upper"] - row["threshold-best"]["lower"] for row in rows]
        for name in ("threshold-best", *chosen):
            bounds = [row[name]["lower"] for row in rows]
            ratios = [bound / true for bound, true in zip(bounds, truth, strict=True)]
            seconds, flops = (mean(row[name][key] for row in rows) for key in ("seconds", "flops"))
            print(
                f"| {config} | {name} | {mean(bounds):.5f} | {mean(ratios):.5f} | {min(ratios):.5f} | {seconds:.2f} | {flops:.2e} |",
                flush=True,
            )
        print(f"| {config} | width of [lower, upper] | {mean(widths):.1e} | | worst {max(widths):.1e} | | |", flush=True)
        if args.json:
            args.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
