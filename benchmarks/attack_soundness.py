"""Attack every bound: models at the edges of float32 and float64, ties, cancellation, hostile hints; the truth is exact brute force.

    python benchmarks/attack_soundness.py --models 20000 --workers 2
    python benchmarks/attack_soundness.py --trained DIR           # model files of real sizes instead, all sound strategies

Prints how many models, proofs, hinted proofs and certificates were tried, and every violation with the seed that repeats it
(`--seed N --models 1`). A violation is a lower bound above the truth, an upper bound below it, an accepted certificate with a false claim, or
anything that is raised. Exit code 1 if there is one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import compactproofs as cp
from compactproofs.arrays.arithmetic import Rigorous
from compactproofs.bounds.factors import Factors
from compactproofs.bounds.low_rank_scores import Directions
from compactproofs.counting.brute_force import brute_force
from compactproofs.errors import CertificateError
from compactproofs.strategies.registry import all_strategies, strategy
from compactproofs.strategies.shared import Shared
from compactproofs.strategies.subcubic.options import QueryHandling
from compactproofs.strategies.subcubic.search import Hints
from compactproofs.strategies.subcubic.workbench import Workbench
from compactproofs.strategies.threshold.tabled import Tabled
from compactproofs.tasks import task_for
from compactproofs.tasks.question import Question
from models import random_weights, underflowing_weights, weights_from_tables, with_tensors
from random_ledgers import random_ledger

NAMES = ("best", "exact-output", "quartic", "cubic", "cubic-pooled", "blocks", "quadratic-pooled", "near", "near-blocks", "low-rank")
ALWAYS = [strategy(f"threshold-{name}") for name in NAMES]
SUBCUBIC = [s for s in all_strategies("subcubic") if s.sound]
TABLED = [s for s in all_strategies("threshold") if isinstance(s, Tabled)]
TINY = -1074 * np.log(2)


def edge(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers that cancel, tie, vanish or explode: small integers times powers of ten that differ from row to row."""
    whole = rng.integers(-3, 4, size=shape).astype(float)
    power = rng.choice([0, 0, 0, -3, -20, -37, 3, 20, 30], size=(*shape[:-1], 1) if rng.random() < 0.5 else (1,) * len(shape))
    noise = rng.choice([0.0, 1e-7, 1e-3]) * rng.normal(size=shape)
    return (whole + noise) * 10.0**power


def scores(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Attention scores near underflow, beyond it, equal, or ordinary."""
    kind = rng.integers(5)
    if kind == 0:
        return TINY + 100 * np.log(10) * rng.integers(0, 3, size=shape) + np.log(rng.choice([0.45, 0.55, 1.0, 2.0], size=shape))
    if kind == 1:
        return rng.choice([0.0, -700.0, -744.0, -745.5, -1500.0], size=shape)
    if kind == 2:
        return rng.choice([0.0, 1.0, np.log(2), np.log(3)], size=shape)
    return rng.choice([0.3, 1.0, 5.0, 40.0]) * rng.normal(size=shape)


def from_tables(rng: np.random.Generator, v: int, k: int, out: int) -> cp.Weights:
    """Tables at the edges, as a network."""
    EVOU = edge(rng, v, out) + rng.choice([0, 1, 4]) * np.eye(v, out)
    zero = rng.integers(0, 2, size=3)
    return weights_from_tables(
        scores(rng, v, v), zero[0] * scores(rng, v, k), EVOU, zero[1] * edge(rng, k, out), zero[2] * edge(rng, v, out)
    )


def scaled_tensors(rng: np.random.Generator, v: int, k: int, out: int) -> cp.Weights:
    """Random tensors, each with a scale of its own, up to the ends of float32."""
    base = random_weights(
        int(rng.integers(2**32)), n_ctx=k, d_vocab=v, d_vocab_out=out, d_model=int(rng.integers(1, 6)), d_head=int(rng.integers(1, 5))
    )
    powers = rng.choice([0, 0, 0, -10, -30, 10, 25], size=7)
    with np.errstate(over="ignore", under="ignore"):
        return with_tensors(
            base, **{n: np.clip(t.astype(float) * 10.0**p, -3e38, 3e38) for (n, t), p in zip(base.tensors.items(), powers, strict=True)}
        )


def near_the_known_falsehood(rng: np.random.Generator, *_: int) -> cp.Weights:
    """Variations of the first edition's false theorem: terms that vanish when they are multiplied by the smallest weight, 1e-100."""
    base = underflowing_weights()
    W_K, W_V = np.array(base.W_K, dtype=float), np.array(base.W_V, dtype=float)
    W_K[[0, 3], 0] = TINY + rng.choice([99, 100, 100, 100, 101]) * np.log(10) + np.log(rng.uniform(0.2, 1.0, size=2))
    if rng.random() < 0.7:
        W_V[rng.choice([0, 1, 3]), rng.integers(3)] += rng.choice([-1.0, 1.0, 0.5])
    else:
        W_V[[0, 1, 3], :3] = rng.integers(-2, 3, size=(3, 3))
    return with_tensors(base, W_K=W_K, W_V=W_V)


def copying(rng: np.random.Generator, v: int, k: int, out: int) -> cp.Weights:
    """Models that work more or less, so that bounds have something to claim."""
    noise = rng.choice([0.1, 0.5, 1.5])
    return weights_from_tables(
        rng.choice([0.3, 1.0, 3.0]) * np.arange(v)[None] + noise * rng.normal(size=(v, v)),
        noise * rng.normal(size=(v, k)),
        rng.choice([1.0, 4.0, 8.0]) * np.eye(v, out) + noise * rng.normal(size=(v, out)),
        noise * rng.normal(size=(k, out)),
        noise * rng.normal(size=(v, out)),
    )


MAKERS = (from_tables, from_tables, scaled_tensors, near_the_known_falsehood, copying, copying)


def anything(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Hints from nowhere."""
    numbers = 10.0 ** rng.choice([-300, -100, -20, -1, 0, 0, 1, 20, 100]) * rng.normal(size=shape)
    return np.where(rng.random(shape) < 0.05, rng.choice([np.nan, np.inf, -np.inf, 0.0, 1e300, 5e-324]), numbers)


def attack(seed: int) -> tuple[Counter[str], list[str]]:
    """One model against all of it."""
    rng = np.random.default_rng(seed)
    v, k = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    out = v + int(rng.integers(0, 3))
    maker = MAKERS[seed % len(MAKERS)]
    counts, wrong = Counter(models=1), []
    try:
        with np.errstate(all="ignore"):
            weights = maker(rng, v, k, out)
    except cp.CompactProofsError:
        return Counter(refused=1), []
    task = task_for(weights)
    exact = brute_force(weights, task, threads=1)
    least, most = exact.correct, exact.correct + exact.undecided
    counts["with undecided sequences"] += exact.undecided > 0
    shared = Shared(weights, task)
    some = [SUBCUBIC[i] for i in rng.choice(len(SUBCUBIC), 2, replace=False)] + [TABLED[int(rng.integers(len(TABLED)))]]

    def claim(what: str, lower: int, upper: int | None = None) -> None:
        if not 0 <= lower <= most or (upper is not None and not least <= upper <= task.total):
            wrong.append(f"seed {seed} ({maker.__name__}): {what} says [{lower}, {upper}], the truth is [{least}, {most}]")

    for chosen in [strategy("cubic"), *ALWAYS, *some]:
        try:
            proof = cp.prove(weights, chosen, task, upper=chosen.name == "threshold-best", shared=shared)
            counts["proofs"] += 1
            claim(chosen.label, proof.correct_at_least, proof.correct_at_most)
            if seed % 40 == 0:
                checked = cp.check(proof.certificate, weights)
                counts["certificates"] += 1
                if not checked.accepted and "too large" not in checked.reason and "--work" not in checked.reason:
                    wrong.append(f"seed {seed}: certificate of {chosen.label} {checked.verdict.name} {checked.reason}")
                elif checked.accepted:
                    claim(f"certificate of {chosen.label}", checked.correct_at_least or 0, checked.correct_at_most)
        except CertificateError:  # extreme weights: nothing stands in for a strategy without a ledger
            counts["certificates refused"] += 1
        except Exception as error:
            wrong.append(f"seed {seed} ({maker.__name__}): {chosen.label} raised {type(error).__name__}: {error}")
    d, h, out, k = weights.d_model, weights.d_vocab, weights.d_vocab_out, weights.n_ctx
    directions = Directions(*(anything(rng, n) for n in [h] * 4 + [d] * 3))
    with np.errstate(all="ignore"):
        for chosen in (*(s for s in ALWAYS if isinstance(s, Tabled)), some[2]):
            factors = Factors(
                anything(rng, out),
                rng.integers(-1, 1 << int(rng.integers(1, 60)), size=(out, out)) if chosen.weighted else None,
                rng.integers(-1, 2 * h, size=out) if chosen.pools else None,
                directions,
            )
            found, _ = chosen.found(weights, Question(task), chosen.with_choices(factors))
            counts["proofs with hostile hints"] += 1
            claim(f"{chosen.label} with hints", task.total - sum(pool.failing for pool in found))
        for number in range(3):
            ledger = random_ledger(weights, Question(task), int(rng.integers(1 << 30)), factored=number == 2, upper=number < 2)
            verified = cp.verify(ledger, weights)
            counts["ledgers from nowhere"] += 1
            claim("a random ledger", verified.correct_at_least, verified.correct_at_most)
        for chosen in some[:2]:
            width = k if chosen.query_handling is QueryHandling.MEAN_QUERY_DIFF else 4
            random = Hints(directions, rng.integers(-2, h + 2, size=(h, h, k)), anything(rng, h, width))
            counts["proofs with hostile hints"] += 1
            claim(f"{chosen.label} with hints", chosen.count(Workbench(weights, Shared(weights, task)), random, Rigorous()))
    return counts, wrong


def attack_trained(path: Path) -> tuple[Counter[str], list[str]]:
    """One trained model, small enough for brute force, against every sound strategy and its upper bound."""
    weights = cp.load(path)
    task = task_for(weights)
    exact = brute_force(weights, task)
    least, most = exact.correct, exact.correct + exact.undecided
    counts, wrong = Counter(models=1), []
    for chosen in [strategy("cubic"), *SUBCUBIC, *ALWAYS, *TABLED]:
        try:
            proof = cp.prove(weights, chosen, task, upper=chosen.name in ("threshold-best", "cubic"))
        except Exception as error:
            wrong.append(f"{path.name}: {chosen.label} raised {type(error).__name__}: {error}")
            continue
        counts["proofs"] += 1
        if proof.correct_at_least > most or (proof.correct_at_most is not None and proof.correct_at_most < least):
            wrong.append(
                f"{path.name}: {chosen.label} says [{proof.correct_at_least}, {proof.correct_at_most}], the truth is [{least}, {most}]"
            )
        counts["exact"] += proof.correct_at_least == proof.correct_at_most == least
    return counts, wrong


def main() -> int:
    """Attack and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="the first model's")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--trained", type=Path, help="folder of trained models")
    options = parser.parse_args()
    started, total, bad = time.perf_counter(), Counter[str](), 0
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        if options.trained:
            results = pool.imap_unordered(attack_trained, sorted(options.trained.glob("*.safetensors")))
        else:
            results = pool.imap_unordered(attack, range(options.seed, options.seed + options.models), chunksize=10)
        for done, (counts, wrong) in enumerate(results, start=1):
            total.update(counts)
            bad += len(wrong)
            for line in wrong:
                print(line, flush=True)
            if done % 1000 == 0:
                print(f"{done} after {time.perf_counter() - started:.0f} s: {dict(total)}, {bad} violations", flush=True)
    print(f"{dict(total)} in {time.perf_counter() - started:.0f} s: {bad} violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
