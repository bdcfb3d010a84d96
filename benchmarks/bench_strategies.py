"""The paper's 102 strategies on one model, search included; and the cubic proof at several sizes."""

import time

import compactproofs as cp
from compactproofs.strategies.registry import all_strategies
from compactproofs.strategies.subcubic import QueryHandling


def timed(function, repeat=3):
    """Best time of a few runs, in seconds."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def main():
    """Print seconds and, as a ratio, everything against one exact brute-force count of the same model."""
    weights = cp.zoo("max-of-4")
    brute = timed(lambda: cp.prove(weights, "brute-force"))
    print(f"brute force, max-of-4: {brute:.3f} s = 1 x")
    for name in ("max-of-4", "max-of-10", "max-of-20", "max-of-10-v128"):
        model = cp.zoo(name)
        seconds = timed(lambda model=model: cp.prove(model, "cubic"))
        print(f"cubic, intervals, {name:16s} {seconds:7.3f} s   {seconds / brute:6.1f} x")
    for variant in ("repaired", "published"):
        paper = [s for s in all_strategies(variant=variant) if getattr(s, "query_handling", None) != QueryHandling.ENVELOPE]
        seconds = timed(lambda paper=paper: list(cp.prove_many(weights, paper)), repeat=2)
        print(f"all {len(paper)}, {variant}, search included {seconds:7.2f} s   {seconds / brute:6.1f} x")


if __name__ == "__main__":
    main()
