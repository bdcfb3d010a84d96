"""How long checking takes beside proving, and how large certificates are.

    python benchmarks/bench_checker.py [MODEL ...]

One core for the checker (it has no threads). "prove" is a warm run of the strategy on all cores, hints searched; "write" is writing the
ledger down and one run of the checker's rule; "check" is reading, tables and rule. Ratios are of one run on one machine.
"""

from __future__ import annotations

import argparse
import time

import compactproofs as cp
from compactproofs.errors import CertificateError
from compactproofs.model.zoo import resolve

STRATEGIES = "cubic subcubic threshold-quadratic-pooled threshold-cubic-pooled threshold-cubic threshold-quartic threshold-best".split()


def timed(function):
    """Result and seconds."""
    started = time.perf_counter()
    return function(), time.perf_counter() - started


def main():
    """A table in Markdown."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("models", nargs="*", default=["max-of-4", "max-of-20", "max-of-10-v128"])
    arguments.add_argument("--strategies", nargs="*", default=STRATEGIES)
    options = arguments.parse_args()
    print("| model | strategy | claim / total | prove s | write s | check s | check / prove | kB | float32 claim / total |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.models:
        weights = resolve(name)
        for strategy in options.strategies:
            upper = strategy == "threshold-best"
            cp.prove(weights, strategy, upper=upper)
            proof, proving = timed(lambda s=strategy, u=upper, w=weights: cp.prove(w, s, upper=u))
            if proof.reason:
                continue
            certificate, writing = timed(lambda p=proof: p.certificate)
            checked, checking = timed(lambda c=certificate, w=weights: cp.check(c, w))
            assert checked.accepted, checked.reason
            try:
                narrow = proof.certify("float32-any-order").correct_at_least / proof.total
            except CertificateError:
                narrow = float("nan")
            print(
                f"| {name} | {strategy} | {certificate.correct_at_least / proof.total:.6f} | {proving:.2f} | {writing:.2f} | {checking:.2f} "
                f"| {checking / proving:.1f} | {len(certificate.data) / 1000:.0f} | {narrow:.6f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
