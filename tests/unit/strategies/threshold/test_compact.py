"""Compact strategies: within their budget, at most the truth, and a ledger that proves what they say."""

import numpy as np
import pytest

import compactproofs as cp
import oracle
from compactproofs.arrays import FlopCounter
from compactproofs.arrays.arithmetic import Counting
from compactproofs.bounds.compact import CompactTables
from compactproofs.errors import LedgerError, StrategyError, UnsupportedError
from compactproofs.ledger.ledger import Ledger
from compactproofs.strategies.base import Request
from compactproofs.strategies.registry import strategy
from compactproofs.tasks.question import Question
from models import mostly_right, random_weights

COMPACT = (cp.ThresholdNear, cp.ThresholdNearBlocks, cp.ThresholdLowRank)


@pytest.fixture(scope="module")
def weights():
    return cp.zoo("max-of-4")


@pytest.mark.parametrize(
    ("chosen", "at_least"),
    [
        pytest.param(cp.ThresholdNear(1_970_000), 0.998, marks=pytest.mark.long),
        pytest.param(cp.ThresholdNearBlocks(1_000_000), 0.9, marks=pytest.mark.long),
        pytest.param(cp.ThresholdLowRank(500_000), 0.55, marks=pytest.mark.long),
        (cp.ThresholdLowRank(350_000), 0.2),
    ],
    ids=lambda each: each.label if isinstance(each, cp.ThresholdNear | cp.ThresholdNearBlocks | cp.ThresholdLowRank) else "",
)
def test_a_budget_is_kept_and_the_ledger_proves_it(weights, chosen, at_least):
    proof = cp.prove(weights, chosen)
    assert proof.status == "proven" and at_least < proof.lower < 0.9996 and proof.flops <= chosen.flops
    verified = cp.verify(proof.ledger, weights)
    assert (verified.correct_at_least, verified.operations) == (proof.correct_at_least, proof.length.flops_breakdown["counting"])
    counter = FlopCounter()  # the proof's own hints and labels, on arrays without values
    tables = CompactTables(weights, proof.ledger.question, proof.ledger.factors, Counting(counter))
    for label in sorted({part.label for part in proof.ledger.lower}):
        tables.harms(label)
    assert sum(counter.steps.values()) + verified.operations == proof.flops


@pytest.mark.parametrize("kind", COMPACT)
@pytest.mark.parametrize("seed", range(3))
def test_proven_is_at_most_the_truth(kind, seed):
    for weights in (mostly_right(seed, v=4, k=3), random_weights(seed, n_ctx=3, d_vocab=4, d_vocab_out=5, d_model=5, d_head=2, scale=0.5)):
        truth = oracle.count_correct(weights)
        whole = cp.prove(weights, kind())
        assert 0 <= whole.correct_at_least <= truth
        for flops in (max(whole.flops // 2, 1), max(whole.flops, 1)):
            proof = cp.prove(weights, kind(flops))
            assert 0 <= proof.correct_at_least <= truth and (proof.flops <= flops or proof.correct_at_least == 0)


@pytest.mark.long
def test_more_flops_prove_more(weights):
    proofs = [cp.prove(weights, cp.ThresholdLowRank(flops)) for flops in (200_000, 350_000, 450_000)]
    assert proofs[0].correct_at_least == 0
    assert proofs[0].correct_at_least < proofs[1].correct_at_least < proofs[2].correct_at_least


@pytest.mark.long
def test_a_certificate_is_made_by_a_proof_that_proves_at_least_as_much(weights):
    proof = cp.prove(weights, cp.ThresholdLowRank(400_000))
    certificate = proof.certificate
    assert cp.check(certificate, weights).correct_at_least == certificate.correct_at_least >= proof.correct_at_least


def test_labels_and_parameters_recreate_a_strategy():
    for kind in COMPACT:
        assert strategy(kind.name) == kind()
        assert strategy(kind(10**6).label) == kind(10**6) == strategy(kind.name, **kind(10**6).parameters)
        assert kind("1e6") == kind(10**6)
        for bad in ("many", -1, float("nan")):
            with pytest.raises(StrategyError, match="flops"):
                kind(bad)


def test_other_tasks_and_networks_are_refused(weights):
    task = cp.task_for(weights, prefix=(3,))
    for kind in COMPACT:
        assert cp.prove(weights, kind(), task).status == "infeasible"
        with pytest.raises(UnsupportedError):
            kind().length(weights, task)
    proof = cp.prove(weights, cp.ThresholdLowRank(350_000))
    with pytest.raises(LedgerError, match="max-of-K"):
        cp.verify(Ledger(Question(task), weights.sha256, proof.ledger.lower, factors=proof.ledger.factors), weights)


def test_margins_make_the_bound_smaller():
    weights = mostly_right(0, v=4, k=3, noise=0.2)
    question = Question(cp.task_for(weights), margin=np.full((4, 4), 1.0))
    bounds = [cp.ThresholdNear().bound(Request(weights, question.task, asked=asked)).correct_at_least for asked in (None, question)]
    assert 0 < bounds[1] < bounds[0]
