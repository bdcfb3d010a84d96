"""Brute force, sampling and proofs of bundled models, side by side, in processor seconds.

python benchmarks/compare_methods.py     # writes docs/explanation/methods.json; then python benchmarks/picture_pages.py
"""

from __future__ import annotations

import json
from pathlib import Path

from compare_blocks import processor_seconds

import compactproofs as cp
from compactproofs.model.files import write_atomically

OUT = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "methods.json"
MODELS = {"max-of-4": 10.0, "max-of-10": 30.0, "max-of-20": 30.0}
"""With the seconds that `threshold-best` may take."""
_TRIED = 500_000


def measured(name: str, seconds: float) -> list[dict[str, object]]:
    """Rows: what was done, the interval, and what it took."""
    model = cp.zoo(name)
    rows = []

    def note(method: str, what: str, interval: tuple[float, float] | None, taken: float) -> None:
        rows.append({"model": name, "method": method, "what": what, "interval": interval, "seconds": round(taken, 2)})
        print(rows[-1], flush=True)

    cp.prove(model, upper=True, seconds=seconds)  # compile
    began = processor_seconds()
    best = cp.prove(model, upper=True, seconds=seconds)
    taken = processor_seconds() - began
    began = processor_seconds()
    short = cp.prove(model, "threshold-cubic-pooled")
    note("threshold-cubic-pooled", "proof", (short.lower, 1.0), processor_seconds() - began)
    note("threshold-best", "proof", (best.lower, best.upper), taken)
    brute = cp.prove(model, "brute-force", upper=True)
    began = processor_seconds()
    if brute.status == "proven":
        exact = cp.accuracy(model, seconds=None)
        note("brute force", "proof", exact.interval, processor_seconds() - began)
    else:
        note("brute force", str(brute.reason), None, 0.0)
    cp.accuracy(model, samples=1000)  # compile
    began = processor_seconds()
    cp.accuracy(model, samples=_TRIED, seconds=None)
    samples = max(1000, round(_TRIED * taken / (processor_seconds() - began)))
    began = processor_seconds()
    sampled = cp.accuracy(model, samples=samples, seconds=None)
    note("sampling", f"{samples} samples", sampled.interval, processor_seconds() - began)
    return rows


def main() -> None:
    """Measure, and write."""
    rows = [row for name, seconds in MODELS.items() for row in measured(name, seconds)]
    write_atomically(OUT, (json.dumps(rows, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
