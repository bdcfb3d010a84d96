"""Checking is metered: a small file cannot keep the checker busy, and more can be allowed."""

import json

import numpy as np
import pytest

import compactproofs as cp
from compactproofs import checker
from compactproofs.certificates.checking import network
from models import mostly_right, random_weights, with_tensors


def certificate(weights, rule="cubic", witness=None, name="cubic"):
    """A small certificate that claims nothing."""
    raw = network(weights)
    content = dict(cp.prove(mostly_right(0), "cubic").certificate.content)
    content["strategy"] = {"name": name, "parameters": {}}
    content["model"] = {**raw.sizes(), "score_divisor_squared": raw.divisor, "weights_sha256": raw.sha256(), "assumptions": []}
    content["claim"] = {"correct_at_least": "0", "correct_at_most": None, "total": str(weights.d_vocab**weights.n_ctx)}
    content["lower"] = {"rule": rule, "witness": witness or {}}
    return json.dumps(content).encode()


def test_tables_are_metered():
    """Scores so far apart that every exponential needs two thousand bits."""
    base = random_weights(0, n_ctx=1, d_vocab=40, d_model=8, d_head=4)
    W_E, W_Q = np.zeros((40, 8)), np.zeros((8, 4))
    W_E[:, 0], W_Q[0, 0] = np.linspace(0, 30, 40), 1
    weights = with_tensors(base, W_E=W_E, W_Q=W_Q, W_K=2 * W_Q)
    refused = checker.check(certificate(weights), network(weights), work=10**8)
    assert refused.verdict is checker.Verdict.REJECTED and "units of work" in refused.reason and "--work N" in refused.reason
    assert checker.check(certificate(weights), network(weights), work=10**10).accepted


def test_memory_is_metered():
    weights = random_weights(0, n_ctx=1, d_vocab=300, d_model=2, d_head=2)
    refused = checker.check(certificate(weights), network(weights), work=10**9)
    assert refused.verdict is checker.Verdict.REJECTED and "bytes of memory" in refused.reason


@pytest.mark.parametrize("name", ["right", "wrong"])
def test_lists_of_sequences_are_metered(name):
    weights = mostly_right(3, v=6, k=4, noise=0.6)
    content = json.loads(cp.prove(weights, "threshold-best", upper=True).certificate.data)
    T = checker.tables(network(weights), checker.REAL)
    rule = {"right": checker.check_pairs, "wrong": checker.check_failures}[name]
    witness = content["lower" if name == "right" else "upper"]["witness"]
    before = T.meter.work
    rule(T, witness)
    with_lists = T.meter.work - before
    assert any(pair[name] for pair in witness["pairs"])
    emptied = {"pairs": [{**pair, name: []} for pair in witness["pairs"]]}
    before = T.meter.work
    rule(T, emptied)
    assert with_lists > T.meter.work - before


@pytest.mark.parametrize("name", ["cubic", "subcubic", "threshold-cubic-pooled", "threshold-quartic"])
def test_every_rule_is_metered(name):
    """Each honest check is refused with a little less work than it takes, and accepted with just that."""
    weights = mostly_right(1, v=6, k=3)
    data = cp.prove(weights, name).certificate.data
    enough = next(n for n in (2**i for i in range(40)) if checker.check(data, network(weights), work=n).accepted)
    refused = checker.check(data, network(weights), work=enough // 2)
    assert refused.verdict is checker.Verdict.REJECTED and "--work N" in refused.reason


def test_more_work_can_be_allowed():
    weights = mostly_right(1)
    proof = cp.prove(weights, "cubic")
    assert cp.check(proof.certificate, weights, work=1000).verdict is cp.Verdict.REJECTED
    assert cp.check(proof.certificate, weights).accepted
