"""Attack the bounds of whole blocks: networks of every kind, weights at the edges of float32, hostile hints; the truth is exact brute force.

    python benchmarks/attack_blocks.py --models 2000 --workers 2

Prints how many networks, proofs and hinted ledgers were tried, and every violation with the seed that repeats it (`--seed N --models 1`). A
violation is a lower bound above the truth, an upper bound below it, a ledger that proves less than was claimed, or anything that is raised.
Exit code 1 if there is one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import blocks
import compactproofs as cp
from compactproofs.model.network import Network
from compactproofs.strategies.threshold.whole import grown, is_whole_block
from hostile import hostile_hints
from random_networks import random_network

FACTORS = (1e-30, 1e-12, 1e-4, 0.1, 1.0, 1.0, 1.0, 1.0, 3.0, 30.0, 1e4, 1e12)

LONGER = 6
"""Tokens of longer sequences, whose leaves have terms apart."""


class OnePool(cp.ThresholdCubicPooled):
    """All queries of a label at once, of any network: so few tokens leave nothing to pool in four."""

    pools = 1

    def bound(self, request):
        return grown(request, "one pool", 1) if is_whole_block(request.weights) else super().bound(request)


def drawn(seed: int) -> Network:
    """A network: ordinary, with a scale for each tensor, with small integers, or with tensors that vanish."""
    rng = np.random.default_rng(seed)
    k = LONGER if rng.random() < 0.3 else blocks.K
    if rng.random() < 0.4:
        kind = str(rng.choice(list(blocks.KINDS)))
        network = blocks.tiny_block(seed, kind, scale=float(rng.choice([0.3, 1.0, 1.0, 2.0, 5.0])), harder=bool(rng.random() < 0.5), k=k)
    else:
        scale, eps = float(rng.choice([0.2, 0.6, 1.0, 2.0])), float(rng.choice([0.0, 1e-12, 1e-5, 0.1]))
        network = random_network(seed, scale=scale, eps=eps, post_norm=False, sizes=(4, k, 5, 2, int(rng.integers(1, 4)), 6, 5))
    kind = rng.integers(4)
    changes = {}
    for name, tensor in network.tensors.items():
        if kind == 1 and rng.random() < 0.3:
            changes[name] = tensor * rng.choice(FACTORS)
        elif kind == 2:
            changes[name] = np.rint(2 * tensor)
        elif kind == 3 and rng.random() < 0.15:
            changes[name] = tensor * 0
    return with_changes(network, changes)


def with_changes(network: Network, changes: dict[str, np.ndarray]) -> Network:
    """The network with other tensors."""
    parts: dict[str, dict[str, np.ndarray]] = {}
    for name, tensor in changes.items():
        part, _, own = name.rpartition(".")
        parts.setdefault(part, {})[own] = np.clip(tensor, -3e38, 3e38).astype(np.float32)
    new = parts.pop("", {})
    return replace(network, **new, **{part: replace(getattr(network, part), **tensors) for part, tensors in parts.items()})


def attack(seed: int) -> tuple[Counter[str], list[str]]:
    """All that is tried on one network."""
    done, bad, rng = Counter[str](networks=1), [], np.random.default_rng(seed)
    try:
        network = drawn(seed)
        exact = cp.accuracy(network)
        least, most = exact.correct, exact.correct + exact.undecided
        for name in ("threshold-quartic", "threshold-best", OnePool()):
            proof = cp.prove(network, name, upper=True, seconds=2.0 if network.n_ctx == LONGER and name == "threshold-best" else 30.0)
            done[f"proofs, {proof.status}"] += 1
            if proof.status != "proven":
                continue
            if not (proof.correct_at_least <= most and least <= proof.correct_at_most):
                bad.append(f"seed {seed}: {name} claims {proof.correct_at_least}..{proof.correct_at_most}, the truth is {least}..{most}")
            done["sequences proven"] += proof.correct_at_least
            done["sequences right"] += least
            found = cp.verify(proof.ledger, network)
            if found.correct_at_least != proof.correct_at_least:
                bad.append(f"seed {seed}: {name} claims {proof.correct_at_least}, its ledger proves {found.correct_at_least}")
            for _ in range(2):

                def changed(leaf):
                    hints = leaf.relaxation
                    return leaf if hints is None else replace(leaf, relaxation=hostile_hints(hints, len(hints.typical.weights), rng))

                lower = tuple(part.with_leaves(changed) for part in proof.ledger.lower)
                upper = None if proof.ledger.upper is None else tuple(part.with_leaves(changed) for part in proof.ledger.upper)
                hinted = cp.verify(replace(proof.ledger, lower=lower, upper=upper), network)
                done["ledgers with hostile hints"] += 1
                if hinted.correct_at_least > most or (hinted.correct_at_most is not None and hinted.correct_at_most < least):
                    bad.append(f"seed {seed}: hostile hints prove {hinted.correct_at_least}..{hinted.correct_at_most}, {least}..{most}")
    except Exception:
        bad.append(f"seed {seed}: {traceback.format_exc()}")
    return done, bad


def main() -> None:
    """Attack as many networks as asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    started, done, bad = time.perf_counter(), Counter[str](), []
    seeds = range(given.seed, given.seed + given.models)
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        for number, (counts, violations) in enumerate(pool.imap_unordered(attack, seeds), start=1):
            done += counts
            bad += violations
            for line in violations:
                print(line, flush=True)
            if number % 100 == 0:
                print(f"{number} networks, {len(bad)} violations, {time.perf_counter() - started:.0f} s", flush=True)
    print(dict(done), f"{len(bad)} violations, {time.perf_counter() - started:.0f} s")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
