"""Every task of the library: a model trained for it, what is proven about it, and how often it is right. One row per task and size.

    python benchmarks/compare_tasks.py DIR [--size 4x16] [--size 4x64] [--size 10x64] [--task parity:3] [--steps 10000] [--seconds 60]
    python benchmarks/compare_tasks.py DIR --rows docs/tasks/rows.json && python benchmarks/task_pages.py

Models (one head, attention only, seed 0, trained for `--steps` steps by the paper's recipe) and rows are kept in DIR, and what is there is not
made again; `--rows` collects the rows in one file, from which `task_pages.py` writes the pages. "Constant" is the accuracy of always giving the label that most
sequences have: what a model is above it, it has learnt. The accuracy is exact where there are at most 2^24 sequences, else that of a million.
Every proof is written as a certificate and given to the checker, unless `--uncertified` says otherwise.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from task_pages import table

import compactproofs as cp
from compactproofs import budget
from compactproofs.cores import available_cores
from compactproofs.model.files import write_atomically
from compactproofs.tasks import DESCRIBED, NO_LABEL, AbstractTask, task_of_size

TASKS = tuple(each.example for each in DESCRIBED)
RARE = ("parity", "contains")
"""Few sequences have label 1, so half of the sequences to train on are balanced."""
SIZES = ("4x16", "4x64", "10x64")
SAMPLES = 10**6
MOST_EXACT = 2**24


def by_processor() -> float:
    """Processor seconds of all threads, divided by the cores: what a clock would show if nobody else used them."""
    return time.process_time() / available_cores()


def row(
    task: AbstractTask, folder: Path, steps: int, seconds: float, *, certified: bool, clock: Callable[[], float] = time.perf_counter
) -> dict[str, object]:
    """Train, measure, prove, check if it is to be certified."""
    sampling = "balanced" if task.spec.partition(":")[0] in RARE else "uniform"
    started = time.perf_counter()
    options = {"sampling": sampling} if sampling != "uniform" else {}
    (model,) = cp.train(task, [0], out=folder / "models", workers=1, steps=steps, **options)
    totals, exact = task.automaton.label_totals(task.n_ctx), task.sequences <= MOST_EXACT
    measured = cp.accuracy(model.weights, task, samples=None if exact else SAMPLES, seconds=None)
    cp.prove(model.weights, task=task, upper=True, seconds=0.5)  # compile
    began = clock()
    proof = cp.prove(model.weights, task=task, upper=True, seconds=seconds)
    proof_seconds = clock() - began
    began = time.perf_counter()
    checked = None
    if certified:
        path = folder / "models" / f"{model.path.stem}.cert.json"
        proof.certificate.save(path)
        began = time.perf_counter()
        checked = cp.check(path, model.weights)
    return {
        "task": task.spec,
        "n_ctx": task.n_ctx,
        "d_vocab": task.d_vocab,
        "sampling": sampling,
        "steps": steps,
        "training_seconds": model.seconds,
        "constant": max(count for label, count in totals.items() if label != NO_LABEL) / task.total,
        "accuracy": measured.accuracy,
        "exact": exact,
        "correct_at_least": str(proof.correct_at_least),
        "correct_at_most": str(proof.correct_at_most),
        "total": str(task.total),
        "lower": proof.lower,
        "upper": proof.upper,
        "seconds": proof_seconds,
        "accepted": None if checked is None else checked.accepted,
        "reason": "not made" if checked is None else "" if checked.accepted else checked.reason.rpartition("/")[2],
        "checking_seconds": time.perf_counter() - began,
        "whole_seconds": time.perf_counter() - started,
    }


def collect(folder: Path, into: Path) -> None:
    """All rows in one file."""
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    write_atomically(into, (json.dumps(found, indent=1) + "\n").encode())


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--task", action="append", help="of these tasks only")
    parser.add_argument("--size", action="append", help="n_ctx x d_vocab")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--uncertified", action="store_true", help="without certificates, where those would be too large")
    parser.add_argument("--processor-time", action="store_true", help="seconds are processor seconds divided by the cores")
    parser.add_argument("--rows", type=Path, help="write the rows in DIR into this file, and do nothing else")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    clock = by_processor if options.processor_time else time.perf_counter
    budget.time = SimpleNamespace(perf_counter=clock)
    if options.rows is not None:
        collect(options.folder, options.rows)
        return
    for size in options.size or SIZES:
        n_ctx, d_vocab = map(int, size.split("x"))
        for spec in options.task or TASKS:
            task = task_of_size(spec, n_ctx, d_vocab)
            kept = options.folder / f"{re.sub(r'[^a-z0-9]+', '-', spec)}-{size}.json"
            if not kept.exists():
                write_atomically(
                    kept,
                    json.dumps(
                        row(task, options.folder, options.steps, options.seconds, certified=not options.uncertified, clock=clock),
                        indent=1,
                    ).encode(),
                )
            print(table([json.loads(kept.read_text())]).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
