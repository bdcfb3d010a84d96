"""The compact end of the frontier: the best bound within so many FLOPs, counting included, over fresh seeds of the paper's configurations.

    python benchmarks/compare_compact.py --models DIR [--seeds 20] [--config k4] [--flops 1000000] [--strategy NAME]
        [--json OUT]

Models that are not in DIR are trained first (needs the `train` extra). Every bound is a proof over the reals; FLOPs follow the paper's
conventions.
"""

import argparse
import json
from pathlib import Path
from statistics import mean

import compactproofs as cp

BUDGETS = {
    "k4": (1_970_000, 1_500_000, 1_000_000, 700_000, 500_000, 350_000),
    "k5": (2_380_000,),
    "k10": (5_470_000,),
    "k20": (17_400_000,),
    "k10-v128": (20_900_000,),
}
"""At K=4 a range; elsewhere what the cheapest published proof that proves something takes."""

SIZES = {"k4": (4, 64), "k5": (5, 64), "k10": (10, 64), "k20": (20, 64), "k10-v128": (10, 128)}


STRATEGIES = {kind.name: kind for kind in (cp.ThresholdNear, cp.ThresholdNearBlocks, cp.ThresholdLowRank)}


def measure(weights: cp.Weights, flops: int, names: list[str]) -> dict[str, dict[str, float]]:
    """Bound, FLOPs and seconds of compact strategies within a budget."""
    found = {}
    for strategy in (STRATEGIES[name](flops) for name in names):
        proof = cp.prove(weights, strategy)
        if proof.lower > 0 and proof.flops > flops:
            raise SystemExit(f"{proof.label} takes {proof.flops} FLOPs")
        found[strategy.name] = {"lower": proof.lower, "flops": proof.flops, "seconds": proof.seconds}
    return found


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--config", choices=BUDGETS, action="append")
    parser.add_argument("--flops", type=int, action="append")
    parser.add_argument("--strategy", choices=STRATEGIES, action="append")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    everything: dict[str, list[dict[str, dict[str, float]]]] = {}
    print("| configuration | FLOPs at most | best bound, mean | worst | strategy (models where it is best) | FLOPs, mean | seconds, mean |")
    print("|---|---|---|---|---|---|---|")
    for config in args.config or BUDGETS:
        k, v = SIZES[config]
        models = cp.train(cp.MaxOfK(n_ctx=k, d_vocab=v), seeds=range(args.seeds), out=args.models / config)
        networks = [cp.load(model.path) for model in models]
        for budget in args.flops or BUDGETS[config]:
            rows = [measure(weights, budget, args.strategy or list(STRATEGIES)) for weights in networks]
            everything[f"{config} {budget}"] = rows
            winners = [max(row, key=lambda name: row[name]["lower"]) for row in rows]
            best = [row[name] for row, name in zip(rows, winners, strict=True)]
            counts = ", ".join(f"{name} ({winners.count(name)})" for name in dict.fromkeys(sorted(winners)))
            bounds, flops = [each["lower"] for each in best], [each["flops"] for each in best]
            seconds = mean(sum(each["seconds"] for each in row.values()) for row in rows)
            print(
                f"| {config} | {budget} | {mean(bounds):.5f} | {min(bounds):.5f} | {counts} | {mean(flops):.0f} | {seconds:.1f} |",
                flush=True,
            )
            if args.json:
                args.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
