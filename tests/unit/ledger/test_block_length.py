"""FLOPs of leaves of whole blocks: a few runs on phantoms give the cost of all leaves."""

import pytest

import blocks
from compactproofs import prove
from compactproofs.counting.walks import moves_of
from compactproofs.ledger.block_length import BlockLengths
from compactproofs.ledger.verify import Verification


@pytest.mark.long
@pytest.mark.parametrize("kind", blocks.KINDS)
def test_the_cost_of_a_leaf_is_that_of_running_it(kind):
    """Linear in products of sizes, as the module says; and few runs are enough."""
    network = blocks.tiny_block(1, kind, harder=True)
    proof = prove(network, "threshold-quartic")
    lengths, leaves = BlockLengths(network), 0
    run = Verification(proof.ledger, network, False)
    for part in proof.ledger.lower:
        for leaf, automaton in run.leaves(part):
            if leaf is not None and leaf.relaxation is not None:
                moves = moves_of(automaton, run.subject(part.label).masses)
                assert lengths.leaf(moves, leaf.relaxation) == lengths.run(moves, leaf.relaxation)
                leaves += 1
    known = sum(len(rows) for rows, _ in lengths._known.values())
    assert leaves > 10 and known <= 24 and known <= leaves
    assert sum(lengths.tables.values()) > 0


def test_what_a_proof_reports_adds_up():
    network = blocks.tiny_block(1, "GELU")
    proof = prove(network, "threshold-quartic")
    steps = proof.length.flops_breakdown
    assert proof.flops == sum(steps.values()) and {"before attention", "attention", "leaves", "walks", "joint", "counting"} <= set(steps)
    whole = proof.length.flops_breakdown["leaves"]
    lengths = BlockLengths(network)
    run = Verification(proof.ledger, network, False)
    total = 0
    for part in proof.ledger.lower:
        for leaf, automaton in run.leaves(part):
            if leaf is not None and leaf.relaxation is not None:
                total += lengths.run(moves_of(automaton, run.subject(part.label).masses), leaf.relaxation)
    assert whole == total + lengths.shared
