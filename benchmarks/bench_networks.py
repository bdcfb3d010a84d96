"""Networks with norms beside a model of the first edition, and exact accuracy of whole blocks.

    python benchmarks/bench_networks.py

Seconds of warm runs, and ratios to max-of-4, in one run on one machine.
"""

from __future__ import annotations

import time

import compactproofs as cp
from compactproofs.model.zoo import NETWORK_NAMES

STRATEGIES = ("threshold-cubic-pooled", "threshold-cubic", "threshold-quartic", "threshold-best")


def timed(function):
    """Result and seconds."""
    started = time.perf_counter()
    return function(), time.perf_counter() - started


def main():
    """Two tables in Markdown."""
    print("| strategy | max-of-4 s | max-of-4-lnpre s | ratio | lower, upper | certificate kB | check s | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for strategy in STRATEGIES:
        seconds, checking = [], []
        for name in ("max-of-4", "max-of-4-lnpre"):
            model, upper = cp.zoo(name), strategy == "threshold-best"
            cp.prove(model, strategy, upper=upper)
            proof, proving = timed(lambda m=model, s=strategy, u=upper: cp.prove(m, s, upper=u))
            certificate = proof.certificate
            checked, taken = timed(lambda c=certificate, m=model: cp.check(c, m))
            assert checked.accepted, checked.reason
            seconds.append(proving)
            checking.append(taken)
        ratios = seconds[1] / seconds[0], checking[1] / checking[0]
        bounds = f"{proof.lower:.6f}, {'-' if proof.upper is None else f'{proof.upper:.6f}'}"
        size = len(certificate.data) / 1000
        print(
            f"| {strategy} | {seconds[0]:.2f} | {seconds[1]:.2f} | {ratios[0]:.1f} | {bounds} | {size:.0f} | {checking[1]:.1f} | {ratios[1]:.1f} |",
            flush=True,
        )
    print("\n| network | exact accuracy over 64^4 | s | decided beyond float64 | 1e6 samples s |")
    print("|---|---|---|---|---|")
    for name in ("max-of-4", *NETWORK_NAMES):
        model = cp.zoo(name)
        cp.accuracy(model, samples=1000)
        exact = cp.accuracy(model, seconds=None)
        again, taken = timed(lambda m=model: cp.accuracy(m, seconds=None))
        _, sampling = timed(lambda m=model: cp.accuracy(m, samples=1_000_000, seconds=None))
        assert exact.correct == again.correct
        assert not exact.undecided
        print(f"| {name} | {again.correct} | {taken:.2f} | {again.decided_exactly} | {sampling:.2f} |", flush=True)


if __name__ == "__main__":
    main()
