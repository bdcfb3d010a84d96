"""Accuracy and loss with parts of the network set to zero: all 32 subsets of the five tables.

Measurements in float64, not theorems. Zeroing EQKP removes what positions add to the scores beyond their mean, and so on: the tables are
the paper's, with the mean position in the token tables. The loss is the mean of -log p of the right token (the published code averages p:
erratum C15). The right logit must exceed the others by a billionth of the largest table entry, so that rounding does not decide ties.

Up to `samples` sequences, or on request up to 2^25, all sequences are evaluated; otherwise the same random ones for every subset. Where
the logits depend on the query only, the result is exact in any case.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np

from compactproofs.cores import available_cores
from compactproofs.errors import InfeasibleError, TaskError
from compactproofs.form.tables import Circuits, float_circuits
from compactproofs.interpretation import sequences
from compactproofs.interpretation.ablation_kernel import evaluate
from compactproofs.interpretation.numbers import Statistics, finite
from compactproofs.model.weights import Weights

TABLES = ("EU", "EQKE", "EQKP", "EVOU", "PVOU")
SUBSETS = tuple(subset for size in range(len(TABLES) + 1) for subset in combinations(TABLES, size))
"""The 32 sets of tables to zero, smallest first."""

DEFAULT_SAMPLES = 200_000
MOST_SEQUENCES = 2**25
"""At most so many sequences are enumerated."""

_BATCH = 2**15
_PORTION = 2**26
"""Operations after which a batch may be given up: a tenth of a second or so."""
_TIE = 1e-9

Outcome = list[tuple[int, float]]
"""For each subset that is not free: how many sequences are right, and the sum of their losses."""


@dataclass(frozen=True)
class Ablation:
    """The network without some of its tables."""

    zeroed: tuple[str, ...]
    accuracy: float
    """Share of sequences whose largest token has strictly the largest logit."""
    loss: float
    """Mean of -log p of the largest token, in nats."""

    @property
    def name(self) -> str:
        return "_".join(self.zeroed) or "none"


@dataclass(frozen=True)
class Ablations:
    """All 32 ablations."""

    results: tuple[Ablation, ...]
    method: str
    """`enumeration` (every sequence) or `sampling`."""
    evaluated: int
    """Sequences evaluated for each."""
    seed: int | None
    """Of the sample; None for an enumeration."""

    def statistics(self) -> Statistics:
        accuracies: Statistics = {f"accuracy_zeroing_{result.name}": finite(result.accuracy) for result in self.results}
        losses: Statistics = {f"loss_zeroing_{result.name}": finite(result.loss) for result in self.results}
        return accuracies | losses

    def as_json(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "sequences": self.evaluated,
            "seed": self.seed,
            "results": [{"zeroed": list(r.zeroed), "accuracy": finite(r.accuracy), "loss": finite(r.loss)} for r in self.results],
        }


def ablations(weights: Weights, *, samples: int = DEFAULT_SAMPLES, exact: bool = False, seed: int = 0) -> Ablations:
    """Evaluate every subset. Cost: O(20 sequences (n_ctx + 20) d_vocab_out) on all cores; the other 12 subsets are free."""
    if samples < 1:
        raise TaskError(f"samples={samples} must be at least 1")
    total = weights.d_vocab**weights.n_ctx
    if exact and total > MOST_SEQUENCES:
        raise InfeasibleError(
            f"exact ablations evaluate all {weights.d_vocab}^{weights.n_ctx} sequences 20 times; at most 2^25 sequences are allowed. "
            "Sample instead (exact_ablations=False)."
        )
    everything = exact or total <= samples
    evaluated = total if everything else samples
    tables = centred_tables(weights)
    tie = _TIE * max(float(np.abs(table).max()) for table in (tables.EVOU, tables.PVOU, tables.EU))
    wanted = [(subset, _without(tables, subset)) for subset in SUBSETS]
    generator = np.random.default_rng(seed)
    portion = max(1, _PORTION // ((weights.n_ctx + 20) * weights.d_vocab_out))

    def batches() -> Iterator[np.ndarray]:
        for start in range(0, evaluated, _BATCH):
            stop = min(start + _BATCH, evaluated)
            size = (stop - start, weights.n_ctx)
            yield _decoded(start, stop, weights) if everything else generator.integers(0, weights.d_vocab, size=size)

    def run(batch: np.ndarray, stopped: Callable[[], bool]) -> Outcome:
        sums = []
        for t in (t for subset, t in wanted if not _query_only(subset)):
            correct, loss = 0, 0.0
            for start in range(0, len(batch), portion):
                if stopped():
                    return []
                right, loss = evaluate(batch[start : start + portion], t.EQKE, t.EQKP, t.EVOU, t.PVOU, t.EU, tie, loss)
                correct += right
            sums.append((correct, loss))
        return sums

    sums = iter(zip(*_in_threads(run, batches()), strict=True))
    shares = _query_label_shares(weights)
    results = []
    for subset, zeroed in wanted:
        if _query_only(subset):
            accuracy, loss = _by_query(zeroed, shares, tie)
        else:
            counts = next(sums)
            accuracy = sum(correct for correct, _ in counts) / evaluated
            loss = math.fsum(part / evaluated for _, part in counts)
        results.append(Ablation(subset, accuracy, loss))
    return Ablations(tuple(results), "enumeration" if everything else "sampling", evaluated, None if everything else seed)


def _in_threads(run: Callable[[np.ndarray, Callable[[], bool]], Outcome], batches: Iterable[np.ndarray]) -> Iterator[Outcome]:
    """Outcomes in order, from all cores; few batches are in memory at a time. Ctrl-C waits for the portions that are running."""
    threads, stop = available_cores(), threading.Event()
    waiting = iter(batches)
    pending: list[Future[Outcome]] = []
    pool = ThreadPoolExecutor(threads)
    try:
        while True:
            pending += [pool.submit(run, batch, stop.is_set) for batch in islice(waiting, 2 * threads - len(pending))]
            if not pending:
                return
            yield pending.pop(0).result()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def centred_tables(weights: Weights) -> Circuits[np.ndarray]:
    """The tables with the mean over positions moved into the token tables up to float64 (not float32, as in `position_centre`)."""
    tables = float_circuits(weights)
    score, value = tables.EQKP.mean(axis=1, keepdims=True), tables.PVOU.mean(axis=0)
    return Circuits(EQKE=tables.EQKE + score, EQKP=tables.EQKP - score, EVOU=tables.EVOU + value, PVOU=tables.PVOU - value, EU=tables.EU)


def _without(tables: Circuits[np.ndarray], subset: tuple[str, ...]) -> Circuits[np.ndarray]:
    chosen = {name: np.zeros_like(table) if name in subset else table for name, table in vars(tables).items()}
    return Circuits(**{name: np.ascontiguousarray(table) for name, table in chosen.items()})


def _query_only(subset: tuple[str, ...]) -> bool:
    """Do the logits depend on the query alone? Values must not depend on tokens; nor on positions, unless attention ignores tokens."""
    return "EVOU" in subset and ("PVOU" in subset or "EQKE" in subset)


def _by_query(tables: Circuits[np.ndarray], shares: np.ndarray, tie: float) -> tuple[float, float]:
    """Accuracy and loss where logits depend on the query only: each query and label counted as often as they occur."""
    scores = tables.EQKE.diagonal()[:, None] + tables.EQKP
    attention = np.exp(scores - scores.max(axis=1, keepdims=True))
    logits = tables.EU + (attention / attention.sum(axis=1, keepdims=True)) @ tables.PVOU
    top = logits.max(axis=1, keepdims=True)
    right = (logits == top) & ((logits >= top - tie).sum(axis=1, keepdims=True) == 1)
    losses = (top - logits) + np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
    v = len(shares)
    return float((shares * right[:, :v]).sum()), float((shares * losses[:, :v]).sum())


def _query_label_shares(weights: Weights) -> np.ndarray:
    """(query, label): share of all sequences."""
    v, k = weights.d_vocab, weights.n_ctx
    return np.array([[sequences.with_label_and_query(m, q, k) / v**k for m in range(v)] for q in range(v)])


def _decoded(start: int, stop: int, weights: Weights) -> np.ndarray:
    """Sequences number `start` to `stop` - 1, the first token being the highest digit."""
    codes = np.arange(start, stop)
    return np.asarray(codes[:, None] // weights.d_vocab ** np.arange(weights.n_ctx)[::-1] % weights.d_vocab)
