"""Every task of the library: a model trained for it, what is proven about it, and how often it is right. One row per task and size.

    python benchmarks/compare_tasks.py DIR [--size 4x16] [--size 4x64] [--size 10x64] [--task parity:3] [--steps 10000] [--seconds 60]
    python benchmarks/compare_tasks.py DIR --table docs/results/tasks.md

Models (one head, attention only, seed 0, trained for `--steps` steps by the paper's recipe) and rows are kept in DIR, and what is there is not
made again; `--table` writes the table of all rows between the marks of the page. "Constant" is the accuracy of always giving the label that most
sequences have: what a model is above it, it has learnt. The accuracy is exact where there are at most 2^24 sequences, else that of a million.
Every proof is written as a certificate and given to the checker.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path

import compactproofs as cp
from compactproofs.model.files import write_atomically
from compactproofs.tasks import NO_LABEL, AbstractTask, task_of_size

TASKS = (
    *("max", "min", "first", "last", "kth-largest:2", "argmax", "sum-mod:7", "sign-of-sum", "parity:3", "majority", "contains:1,2"),
    "after:5",
    "regex:.* [0-3] .*",
)
RARE = ("parity", "contains")
"""Few sequences have label 1, so half of the sequences to train on are balanced."""
SIZES = ("4x16", "4x64", "10x64")
SAMPLES = 10**6
MOST_EXACT = 2**24
BEGIN, END = "<!-- begin: benchmarks/compare_tasks.py -->", "<!-- end -->"


def row(task: AbstractTask, folder: Path, steps: int, seconds: float) -> dict[str, object]:
    """Train, measure, prove, check."""
    sampling = "balanced" if task.spec.partition(":")[0] in RARE else "uniform"
    started = time.perf_counter()
    options = {"sampling": sampling} if sampling != "uniform" else {}
    (model,) = cp.train(task, [0], out=folder / "models", workers=1, steps=steps, **options)
    totals, exact = task.automaton.label_totals(task.n_ctx), task.sequences <= MOST_EXACT
    measured = cp.accuracy(model.weights, task, samples=None if exact else SAMPLES, seconds=None)
    proof = cp.prove(model.weights, task=task, upper=True, seconds=seconds)
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
        "seconds": proof.seconds,
        "certificate_lower": checked.correct_at_least / task.total if checked.accepted else None,
        "certificate_upper": checked.correct_at_most / task.total if checked.accepted and checked.correct_at_most is not None else None,
        "accepted": checked.accepted,
        "checking_seconds": time.perf_counter() - began,
        "whole_seconds": time.perf_counter() - started,
    }


def table(rows: list[dict]) -> str:
    """As Markdown."""
    lines = [
        "| task | K | tokens | constant | accuracy | certified interval | width | training s | proof s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    order = {spec: i for i, spec in enumerate(TASKS)}
    for r in sorted(rows, key=lambda r: (order.get(r["task"], len(order)), r["n_ctx"], r["d_vocab"])):
        name = f"`{r['task']}`".replace("|", "\\|") + (" (balanced)" if r["sampling"] == "balanced" else "")
        width = r["upper"] - r["lower"]
        lines.append(
            f"| {name} | {r['n_ctx']} | {r['d_vocab']} | {r['constant']:.4f} | {'' if r['exact'] else '≈ '}{r['accuracy']:.6f} | "
            f"[{r['lower']:.6f}, {r['upper']:.6f}] | {'0' if width == 0 else f'{width:.1e}'} | {r['training_seconds']:.0f} | {r['seconds']:.1f} |"
        )
    return "\n".join(lines)


def put(page: Path, text: str) -> None:
    """Replace what stands between the marks."""
    whole = page.read_text(encoding="utf-8")
    assert whole.count(BEGIN) == 1, f"{page} has no mark {BEGIN}"
    replaced = re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: f"{BEGIN}\n{text}\n{END}", whole, flags=re.DOTALL)
    write_atomically(page, replaced.encode())


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--task", action="append", help="of these tasks only")
    parser.add_argument("--size", action="append", help="n_ctx x d_vocab")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--table", type=Path, help="write the table of the rows in DIR into this page, and do nothing else")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.table is not None:
        put(options.table, table([json.loads(path.read_text()) for path in sorted(options.folder.glob("*.json"))]))
        return
    for size in options.size or SIZES:
        n_ctx, d_vocab = map(int, size.split("x"))
        for spec in options.task or TASKS:
            task = task_of_size(spec, n_ctx, d_vocab)
            kept = options.folder / f"{re.sub(r'[^a-z0-9]+', '-', spec)}-{size}.json"
            if not kept.exists():
                write_atomically(kept, json.dumps(row(task, options.folder, options.steps, options.seconds), indent=1).encode())
            print(table([json.loads(kept.read_text())]).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
