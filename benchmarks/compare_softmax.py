"""What it costs to bound the softmax: ways to bound it, and the threshold identity, on the same blocks of inputs of the bundled max-of-4.

    python benchmarks/compare_softmax.py [--seconds 60]     # writes docs/explanation/softmax.json; then python benchmarks/picture_pages.py

A block is a label, a query, and a range of tokens for each other position. It is certified if for every other output a bound on its logit less
the label's is negative. Blocks that are not are cut in two at their largest range, largest first. The ways differ in nothing but the bound:

- `interval`: every position's attention in an interval of its own, every value in its range, multiplied and added (interval bound propagation);
- `vertex`: the shares of attention add up to 1: the largest average of the largest values, over all scores in their ranges. It is reached where
  each score is at an end of its range, so this is the best bound that ranges of scores and ranges of values allow;
- `identity`: no softmax. The sum over positions of attention times value is added up token by token, with the largest product of each position;
  for one output on one block nothing is lost.

All in float64, so these are figures and no theorems. The network is reduced to its five tables first, for all of them.
"""

from __future__ import annotations

import argparse
import heapq
import json
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from compare_verifiers import Block, whole_blocks

import compactproofs as cp
from compactproofs.form.tables import float_circuits
from compactproofs.model.files import write_atomically

MODEL = "max-of-4"
OUT = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "softmax.json"
BATCH = 64
Bound = Callable[["Piece"], np.ndarray]


class Piece:
    """A block: scores and values less the label's, by position."""

    def __init__(self, tables: "Tables", block: Block) -> None:
        q, m = block.sets[-1][0], block.label
        self.scores = [tables.scores[q, i, a:b] for i, (a, b) in enumerate(block.sets)]
        self.values = [tables.values[i, a:b] + tables.direct[q] for i, (a, b) in enumerate(block.sets)]
        self.values = [np.delete(v - v[:, [m]], m, axis=1) for v in self.values]

    def ranges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of scores, and the largest values by position and output."""
        low, high = np.array([s.min() for s in self.scores]), np.array([s.max() for s in self.scores])
        return low, high, np.array([v.max(axis=0) for v in self.values])


class Tables:
    """Of the network, in float64."""

    def __init__(self, weights: cp.Weights) -> None:
        t = float_circuits(weights)
        self.scores = t.EQKE[:, None, :] + t.EQKP[:, :, None]
        self.values = t.EVOU[None] + t.PVOU[:, None]
        self.direct = t.EU


def interval(piece: Piece) -> np.ndarray:
    """Attention in [low, high] for each position, whatever the others do."""
    low, high, values = piece.ranges()
    most = 1 / (1 + np.array([sum(np.exp(low[j] - high[i]) for j in range(len(low)) if j != i) for i in range(len(low))]))
    least = 1 / (1 + np.array([sum(np.exp(high[j] - low[i]) for j in range(len(low)) if j != i) for i in range(len(low))]))
    return np.where(values > 0, most[:, None] * values, least[:, None] * values).sum(axis=0)


def vertex(piece: Piece) -> np.ndarray:
    """The largest average over all scores in their ranges."""
    low, high, values = piece.ranges()
    ends = np.array([np.where(choice, high, low) for choice in product((False, True), repeat=len(low))])
    shares = np.exp(ends - ends.max(axis=1, keepdims=True))
    return ((shares / shares.sum(axis=1, keepdims=True)) @ values).max(axis=0)


def identity(piece: Piece) -> np.ndarray:
    """The sign of the sum of attention times value, each position at its worst token."""
    top = max(s.max() for s in piece.scores)
    return sum((np.exp(s - top)[:, None] * v).max(axis=0) for s, v in zip(piece.scores, piece.values, strict=True))


WAYS: dict[str, Bound] = {"interval": interval, "vertex": vertex, "identity": identity}


def by_label(tables: Tables, weights: cp.Weights) -> int:
    """Sequences certified by `interval` with one box for each label: any token up to the label anywhere. That the label occurs no box can say."""
    certified = 0
    for label in range(weights.d_vocab):
        tokens = slice(0, label + 1)
        piece = Piece(tables, Block(label, ((0, label + 1),) * weights.n_ctx))
        piece.scores = [tables.scores[tokens, i, tokens].ravel() for i in range(weights.n_ctx)]
        direct = tables.direct[tokens] - tables.direct[tokens][:, [label]]
        less = [(each - each[..., [label]]) for each in tables.values[:, tokens]]
        piece.values = [np.delete(each, label, axis=1) + np.delete(direct, label, axis=1).max(axis=0) for each in less]
        certified += (label + 1) ** weights.n_ctx - label**weights.n_ctx if (interval(piece) < 0).all() else 0
    return certified


def search(bound: Bound, tables: Tables, weights: cp.Weights, seconds: float) -> dict[str, object]:
    """Cut blocks until all is decided or the time is up. How much is certified after how many blocks."""
    queue = [(-b.size, n, b) for n, b in enumerate(whole_blocks(weights.n_ctx, weights.d_vocab)) if b.size]
    first, number = len(queue), len(queue)
    heapq.heapify(queue)
    total, certified, looked, curve = weights.d_vocab**weights.n_ctx, 0, 0, []
    uncut = 0
    started, next_mark = time.process_time(), 100
    while queue and (time.process_time() - started < seconds or looked < first):
        _, kind, block = heapq.heappop(queue)
        looked += 1
        if (bound(Piece(tables, block)) < 0).all():
            certified += block.size
            uncut += block.size if kind < first else 0
        elif block.size > 1:
            for half in block.halves():
                heapq.heappush(queue, (-half.size, number, half))
                number += 1
        if looked >= next_mark:
            curve.append((looked, certified))
            next_mark = int(next_mark * 1.25)
    curve.append((looked, certified))
    return {
        "blocks": looked,
        "first": first,
        "uncut": uncut,
        "certified": certified,
        "total": total,
        "finished": not queue,
        "seconds": round(time.process_time() - started, 1),
        "curve": curve,
    }


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="processor seconds for each way")
    options = parser.parse_args()
    weights = cp.zoo(MODEL)
    tables = Tables(weights)
    found = {
        "model": MODEL,
        "one_box_per_label": by_label(tables, weights),
        "ways": {name: search(bound, tables, weights, options.seconds) for name, bound in WAYS.items()},
    }
    print("one box for each label:", found["one_box_per_label"])
    for name, each in found["ways"].items():
        print(
            name,
            {key: value for key, value in each.items() if key != "curve"},
            each["certified"] / each["total"],
            each["uncut"] / each["total"],
        )
    write_atomically(OUT, (json.dumps(found) + "\n").encode())


if __name__ == "__main__":
    main()
