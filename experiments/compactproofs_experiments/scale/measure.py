"""How the cost of every strategy grows with the sizes of the model: measure, fit, and write docs/results/scale.md.

    python -m compactproofs_experiments.scale.measure FOLDER [--out docs/results/scale.csv] [--page docs/results/scale.md] [--sweep-results RESULTS]

FOLDER keeps one trained model for each size (needs the `train` extra). Whatever is in the files already is not measured again, so an
interrupted run goes on. RESULTS is the store of `compactproofs reproduce`.

Processor time of one thread, not wall time: it hardly depends on what else the machine does. Every proof starts without what other proofs
of the model have found. Kernels are compiled before, on tiny models, and lengths of proofs, which depend on the sizes only, are counted before.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import compactproofs as cp
from compactproofs.cores import THREADS_VARIABLE
from compactproofs.strategies.base import AbstractStrategy
from compactproofs.strategies.lengths import length_by_sizes
from compactproofs.strategies.registry import all_strategies
from compactproofs.sweeps.threads import LIBRARIES, limit_threads
from compactproofs.tasks import task_for
from compactproofs.training import Recipe, train_seeds
from compactproofs_experiments.scale.models import random_weights
from compactproofs_experiments.scale.page import write_page
from compactproofs_experiments.scale.records import AXES, BRUTE_FORCE_AXIS, SECONDS, Measurement, Memory, Size, append, beside, read
from compactproofs_experiments.scale.sweep import measure_sweeps

RUNS = 3
"""A quick proof is repeated so often, and the least time counts."""

QUICK = 0.1
"""Seconds."""

MEMORY_SIZES = [Size(v, 4, 32) for v in (16, 64, 128, 256)]
MEMORY_STRATEGIES = ("cubic", "threshold-cubic-pooled", "threshold-cubic", "threshold-quartic")

# ru_maxrss would not do for the peak: on Linux a child starts with that of the process that started it
_PEAK = """
import sys
import compactproofs as cp
cp.prove(cp.load(sys.argv[1]), sys.argv[2], seconds=None)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) * 1024)
"""


def model(folder: Path, size: Size) -> Path:
    """The file of the trained model of this size."""
    recipe = Recipe(n_ctx=size.k, d_vocab=size.v, d_model=size.d, d_head=size.d)
    (trained,) = train_seeds(recipe, [0], out=folder / f"v{size.v}-k{size.k}-d{size.d}", workers=1)
    assert trained.path is not None
    return trained.path


def chosen(size: Size) -> list[AbstractStrategy]:
    """Every strategy; at the largest sizes enough to have every option of every class of complexity once."""
    everything = all_strategies(None, "both")
    if not any(size in axis for axis in AXES.values()):
        return [s for s in everything if s.name == "brute-force"]
    return thinned(everything) if size.v > 128 or size.k > 16 else everything


def thinned(strategies: Sequence[AbstractStrategy]) -> list[AbstractStrategy]:
    """Those that are the first of their class (name, variant, complexity) to have one of their options."""
    seen: set[tuple[str, ...]] = set()
    kept = []
    for s in strategies:
        options = {(s.name, s.variant or "", s.complexity, name, str(value)) for name, value in s.parameters.items()} or {(s.name,)}
        if options - seen or s.label == s.name:
            seen |= options
            kept.append(s)
    return kept


def compile_kernels(strategies: Iterable[AbstractStrategy]) -> None:
    """Prove about tiny models of several lengths, so that no measurement pays for compilation."""
    for sizes in ((5, 3, 4, 2), (4, 7, 3, 2), (3, 12, 4, 3)):
        weights = random_weights(*sizes)
        for strategy in strategies:
            cp.prove(weights, strategy, seconds=1.0)


def measure(strategy: AbstractStrategy, size: Size, weights: cp.Weights) -> Measurement:
    """Prove, once or a few times."""
    length_by_sizes(strategy, weights, task_for(weights))
    times: list[tuple[float, float]] = []
    while not times or (len(times) < RUNS and max(times)[0] < QUICK):
        wall, cpu = time.perf_counter(), time.process_time()
        proof = cp.prove(weights, strategy, seconds=SECONDS)
        times.append((time.process_time() - cpu, time.perf_counter() - wall))
    seconds, wall_seconds = min(times)
    described = (strategy.name, strategy.label, strategy.variant or "", strategy.complexity, proof.status, proof.reason or "")
    measured = (seconds, max(times)[0], wall_seconds, len(times), proof.flops, proof.integer_ops, proof.lower)
    return Measurement(*size, *described, *measured)


def measure_all(folder: Path, out: Path, left_out: Sequence[str]) -> None:
    """Measure what is not in the file yet, small sizes first."""
    done = {row.key for row in read(out, Measurement)}
    sizes = dict.fromkeys([*BRUTE_FORCE_AXIS, *(size for axis in AXES.values() for size in axis)])
    missing = {
        size: [s for s in chosen(size) if (size, s.label, s.variant or "") not in done and f"{s.label}@{size.v}" not in left_out]
        for size in sizes
    }
    compile_kernels(dict.fromkeys(s for each in missing.values() for s in each))
    for size in sorted(sizes, key=lambda s: s.v**2 * s.k * s.d):
        if not missing[size]:
            continue
        weights = cp.load(model(folder, size))
        started = time.process_time()
        for strategy in missing[size]:
            append(out, [measure(strategy, size, weights)])
        print(f"{size}: {len(missing[size])} strategies, {time.process_time() - started:.1f} s", flush=True)


def measure_memory(folder: Path, out: Path, left_out: Sequence[str]) -> None:
    """Peak memory of fresh processes."""
    done = {(row.v, row.strategy) for row in read(out, Memory)}
    for size, strategy in ((s, n) for s in MEMORY_SIZES for n in MEMORY_STRATEGIES):
        if (size.v, strategy) in done or f"{strategy}@{size.v}" in left_out:
            continue
        command = [sys.executable, "-c", _PEAK, str(model(folder, size)), strategy]
        peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        append(out, [Memory(*size, strategy, peak)])
        print(f"{size} {strategy}: {peak / 2**20:.0f} MiB", flush=True)


def main() -> None:
    """Measure, and write the page if one is asked for."""
    if any(os.environ.get(name) != "1" for name in (THREADS_VARIABLE, *LIBRARIES)):
        limit_threads()
        os.execv(sys.executable, [sys.executable, *sys.argv])  # libraries read their limits when they are loaded
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="models")
    parser.add_argument("--out", type=Path, default=Path("docs/results/scale.csv"))
    parser.add_argument("--page", type=Path)
    parser.add_argument("--sweep-results", type=Path)
    parser.add_argument(
        "--leave-out", nargs="*", default=[], metavar="STRATEGY@V", help="what would take too long, such as threshold-best@256"
    )
    arguments = parser.parse_args()
    measure_all(arguments.folder, arguments.out, arguments.leave_out)
    measure_memory(arguments.folder, beside(arguments.out, "memory"), arguments.leave_out)
    if arguments.sweep_results:
        measure_sweeps(arguments.sweep_results, beside(arguments.out, "sweep"))
    if arguments.page:
        write_page(arguments.page, arguments.out)


if __name__ == "__main__":
    main()
