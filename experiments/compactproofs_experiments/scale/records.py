"""What is measured, and the files that keep it."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

Record = TypeVar("Record")


class Size(NamedTuple):
    """Vocabulary, sequence length, width (of the model and of the head)."""

    v: int
    k: int
    d: int

    def __str__(self) -> str:
        return f"v={self.v} k={self.k} d={self.d}"


AXES = {
    "v": [Size(v, 4, 32) for v in (16, 32, 64, 128, 256)],
    "k": [Size(64, k, 32) for k in (4, 8, 16, 32)],
    "d": [Size(64, 4, d) for d in (16, 32, 64, 128)],
}
"""One size varies, the others stay."""

BRUTE_FORCE_AXIS = [Size(16, k, 32) for k in (3, 4, 5, 6, 7)]
"""Brute force grows too fast for the other lengths."""

SECONDS = 60.0
"""Limit for a single proof."""


REPEATS = 5
"""Of what is measured about the parent process of a sweep."""

PORTFOLIO = "threshold-best"
"""The strategy that goes on for as long as it is allowed to, unless its bounds meet."""


@dataclass(frozen=True)
class Measurement:
    """One strategy on the model of one size."""

    v: int
    k: int
    d: int
    strategy: str
    label: str
    variant: str
    complexity: str
    status: str
    reason: str
    seconds: float
    """Processor time, the least of the runs."""
    seconds_most: float
    """The most of the runs."""
    wall_seconds: float
    """Wall time of the run that took least."""
    runs: int
    flops: int
    integer_ops: int
    lower: float

    @property
    def size(self) -> Size:
        return Size(self.v, self.k, self.d)

    @property
    def key(self) -> tuple[Size, str, str]:
        """What is measured once."""
        return self.size, self.label, self.variant

    @property
    def complete(self) -> bool:
        """Whether the proof was carried out to its end: not refused, and not the portfolio when it stops at the limit."""
        return self.status != "infeasible" and not (self.strategy == PORTFOLIO and self.wall_seconds > 0.95 * SECONDS)


@dataclass(frozen=True)
class Memory:
    """The peak of a process that proves once."""

    v: int
    k: int
    d: int
    strategy: str
    peak_bytes: int


@dataclass(frozen=True)
class SweepCost:
    """Means per model of one configuration. Seconds of the parent are processor time: waiting for the disk is not in them."""

    name: str
    v: int
    k: int
    d: int
    models: int
    proofs: int
    """Per model."""
    limit: float
    """Seconds allowed for a single proof."""
    proving: float
    """Wall seconds of all proofs of a model on one thread."""
    portfolio: float
    """Part of `proving`: threshold-best."""
    brute_force: float
    """Part of `proving`: brute force."""
    cpu: float
    """Processor seconds, accuracy and the parent's work included; nan as long as the sweep has not recorded them."""
    training_cpu: float
    """Processor seconds to train a model; nan if unknown."""
    part_bytes: float
    model_bytes: int
    sent_bytes: int
    """To a worker: weights and the plan."""
    returned_bytes: int
    """From a worker: rows."""
    loading: float
    sending: float
    """Packing what goes to a worker."""
    receiving: float
    """Unpacking what comes back."""
    writing: float
    """Writing a part."""
    recorded_io: float
    """Wall seconds that the sweep itself spent on looking for results, reading models and writing parts; nan as long as it has not recorded it."""
    reading: float
    """Reading a part, to see whether it is finished."""
    opening: float
    """Opening all parts for a query, divided by the parts."""

    @property
    def worker(self) -> float:
        """Core seconds: processor time if it is known, else the wall time of the proofs."""
        return self.cpu if self.cpu == self.cpu else self.proving

    @property
    def parent(self) -> float:
        """Seconds of the one parent process: reading the model twice, sending, receiving, writing."""
        return 2 * self.loading + self.sending + self.receiving + self.writing


def read(path: Path, kind: type[Record]) -> list[Record]:
    """The rows of a file; none if there is no file."""
    if not path.exists():
        return []
    types: dict[str, Any] = {field.name: {"int": int, "float": float, "str": str}[str(field.type)] for field in fields(kind)}
    with path.open(newline="") as stream:
        return [kind(**{name: types[name](value) for name, value in row.items()}) for row in csv.DictReader(stream)]


def append(path: Path, rows: Iterable[Any]) -> None:
    """Add rows; the file is whole after each call."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as stream:
        for row in rows:
            values = asdict(row)
            writer = csv.DictWriter(stream, values.keys(), lineterminator="\n")
            if new:
                writer.writeheader()
                new = False
            writer.writerow(values)


def beside(out: Path, name: str) -> Path:
    """A file that goes with the measurements."""
    return out.with_name(f"{out.stem}-{name}{out.suffix}")
