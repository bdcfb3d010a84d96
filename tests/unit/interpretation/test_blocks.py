"""Blocks to look at: they add up to what the ledger proves, and the inputs shown are what they are said to be."""

import pytest

import compactproofs as cp
from compactproofs.interpretation.blocks import look_into
from models import mostly_right, random_weights


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", [lambda seed: random_weights(seed, d_vocab=4, scale=0.8), lambda seed: mostly_right(seed, v=6, noise=0.5)])
@pytest.mark.parametrize("name", ["threshold-best", "threshold-cubic", "threshold-cubic-pooled"])
def test_what_is_left_adds_up_to_what_is_not_proven(make, seed, name):
    weights = make(seed)
    proof = cp.prove(weights, name)
    blocks = look_into(proof.ledger, weights)["blocks"]
    missing = 1 - sum(block["mass"] for block in blocks)
    left = sum(min(block["left"], block["mass"]) for block in blocks)
    assert left + missing == pytest.approx(1 - proof.lower, abs=1e-4)
    for block in blocks:
        for leaf in block["leaves"]:
            if "hardest" in leaf:
                sequence = leaf["hardest"]
                assert max(sequence) == block["label"] and sequence[-1] in block["queries"]
