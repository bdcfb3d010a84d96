"""How tight and how fast proofs about whole blocks (several heads, MLPs, norms) are: one row per folder of models.

    python benchmarks/compare_blocks.py DIR [DIR ...] [--seconds 60] [--strategy threshold-best] [--samples 10000000] [--json OUT]
    python benchmarks/compare_blocks.py DIR [DIR ...] --only-truth

The first two strategies ("one pass") prove a lower bound only, `threshold-best` both bounds. Truth is brute force for up to 4 positions, else a
sample; it is kept in `truth.json` beside the models, because it takes minutes. A sample may lie below a bound that is right.
Processor seconds add up those of all cores, compiling included (run twice); on a machine that does other things too they say more than
seconds do. "Singly" is the part of all sequences that a proof lists one by one: those decided right, and those decided wrong for the upper bound.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from statistics import mean

import compactproofs as cp
from compactproofs.ledger.ledger import Part
from compactproofs.model.files import model_files

STRATEGIES = ("threshold-cubic-pooled", "threshold-quartic", "threshold-best")
TWO_SIDED = "threshold-best"
LONGEST_BRUTE_FORCE = 4
"""Positions; beyond it the truth is sampled."""


@dataclass(frozen=True)
class Row:
    """One proof about one model, beside the truth."""

    model: str
    truth: float
    lower: float
    upper: float | None
    singly: float
    seconds: float
    processor: float
    flops: int
    status: str

    @property
    def missing(self) -> float:
        """Truth minus lower bound."""
        return self.truth - self.lower


def truth(path: Path, samples: int) -> float:
    """The model's accuracy from the cache beside it, measured first if it is not there or is of another model or a smaller sample."""
    cache = path.parent / "truth.json"
    model = cp.load(path)
    known = json.loads(cache.read_text()) if cache.exists() else {}
    exact = model.n_ctx <= LONGEST_BRUTE_FORCE
    entry = known.get(path.name)
    if entry is None or entry["weights_sha256"] != model.sha256 or (not exact and int(entry["total"]) < samples):
        measured = cp.accuracy(model, samples=None if exact else samples, seconds=None)
        entry = measured.as_json() | {"weights_sha256": model.sha256}
        known = json.loads(cache.read_text()) if cache.exists() else {}  # another process may have written meanwhile
        cache.write_text(json.dumps(known | {path.name: entry}, indent=1))
    return entry["accuracy"]


def processor_seconds() -> float:
    """Of this process and of those that it has waited for."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))


def singly(proof: cp.Proof) -> float:
    """Which part of all sequences the proof lists one by one; each counts once. Brute force, which has no ledger, lists all."""
    if proof.status == "infeasible":
        return 0.0
    ledger = proof.ledger
    return 1.0 if ledger is None else len(set(chain(listed(ledger.lower), listed(ledger.upper or ())))) / proof.total


def listed(parts: tuple[Part, ...]):
    """The sequences that the leaves list."""
    return (sequence for part in parts for leaf in part.leaves if leaf is not None for sequence in leaf.listed)


def measure(path: Path, strategy: str, seconds: float | None, samples: int) -> Row:
    """Prove one model and compare."""
    model, before = cp.load(path), processor_seconds()
    proof = cp.prove(model, strategy, upper=strategy == TWO_SIDED, seconds=seconds)
    used = processor_seconds() - before
    true = truth(path, samples)
    if model.n_ctx <= LONGEST_BRUTE_FORCE and not proof.lower <= true <= (1.0 if proof.upper is None else proof.upper):
        raise SystemExit(f"{path}: {strategy} says [{proof.lower}, {proof.upper}], brute force {true}")
    return Row(
        model=str(path),
        truth=true,
        lower=proof.lower,
        upper=proof.upper,
        singly=singly(proof),
        seconds=proof.seconds,
        processor=used,
        flops=proof.flops,
        status=proof.status if proof.reason is None else f"{proof.status}: {proof.reason}",
    )


def line(folder: Path, strategy: str, rows: list[Row]) -> str:
    """One row of the table: means over the models that there is a proof for."""
    given, rows = len(rows), [row for row in rows if row.status == "proven"]
    if not rows:
        return f"| {folder.name} | {strategy} | 0 of {given} | | | | | | | | | |"
    missing, widths = [row.missing for row in rows], [row.upper - row.lower for row in rows if row.upper is not None]
    width = f"{mean(widths):.1e} | {max(widths):.1e}" if widths else "- | -"
    return (
        f"| {folder.name} | {strategy} | {len(rows)} of {given} | {mean(row.truth for row in rows):.6f} | {mean(missing):.1e} | {max(missing):.1e} "
        f"| {width} | {mean(row.singly for row in rows):.1e} | {mean(row.seconds for row in rows):.1f} | {mean(row.processor for row in rows):.1f} | {mean(row.flops for row in rows):.1e} |"
    )


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="DIR")
    parser.add_argument("--strategy", action="append", help=f"may be repeated; by default {' and '.join(STRATEGIES)}")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each proof")
    parser.add_argument("--samples", type=int, default=10_000_000, help=f"for the truth beyond {LONGEST_BRUTE_FORCE} positions")
    parser.add_argument("--models", type=int, help="only the first so many of each folder")
    parser.add_argument("--only-truth", action="store_true", help="measure accuracies into the caches, prove nothing")
    parser.add_argument("--json", type=Path, help="every row, written after every folder")
    args = parser.parse_args()
    folders = {folder: model_files(folder)[: args.models] for folder in args.folders}
    if args.only_truth:
        for folder, paths in folders.items():
            for path in paths:
                print(f"{folder.name} {path.name} {truth(path, args.samples):.8f}", flush=True)
        return
    print(
        "| models | strategy | proofs | truth, mean | truth - lower, mean | worst | upper - lower, mean | worst | singly, mean "
        "| seconds, mean | processor seconds | FLOPs, mean |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
    )
    everything = []
    for folder, paths in folders.items():
        for strategy in args.strategy or STRATEGIES:
            rows = [measure(path, strategy, args.seconds, args.samples) for path in paths]
            print(line(folder, strategy, rows), flush=True)
            everything += [vars(row) | {"strategy": strategy} for row in rows]
            if args.json:
                args.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
