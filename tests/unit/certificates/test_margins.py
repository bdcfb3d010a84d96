"""Certificates that ask by how much the right output wins: true statements, about that margin and no other."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import compactproofs as cp
import network_oracle
import networks
import oracle
from compactproofs import checker
from compactproofs.certificates.certificate import Certificate
from compactproofs.certificates.encode import decoded
from compactproofs.errors import CertificateError
from compactproofs.tasks.margin import question_with_margin
from compactproofs.tasks.question import Question
from models import mostly_right, random_weights, weights_from_tables
from tasks import Random, mass_of
from thinned import thinned


def right_by(weights, task, margin):
    return oracle.mass_correct(weights, lambda x: int(task.automaton.label(np.array([x]))[0]), lambda x: mass_of(task, x), margin)


MARGINS = [0.5, -0.5, 2.0, -3.0, 1e-300, 0.1]


@pytest.mark.parametrize("name", ["threshold-best", "threshold-quartic", "threshold-cubic-pooled", "threshold-cubic", "threshold-near"])
def test_certificates_by_a_margin_are_accepted_and_true(name):
    for seed, margin in enumerate(MARGINS):
        weights = mostly_right(seed, v=4, k=3)
        task = cp.task_for(weights)
        proof = cp.prove(weights, name, upper=True, seconds=5, margin=margin)
        found = cp.check(proof.certificate, weights)
        right = right_by(weights, task, margin)
        assert found.accepted and found.margin == Fraction(margin) and f"by MORE THAN {Fraction(margin)} than" in found.reason
        assert proof.correct_at_least <= found.correct_at_least <= right <= found.correct_at_most
        assert found.question_sha256 == question_with_margin(task, weights.d_vocab_out, margin).sha256
        ledger = decoded(proof.certificate.content, task)
        assert ledger.question.sha256 == found.question_sha256
        assert cp.verify(ledger, weights).correct_at_least <= right


@pytest.mark.parametrize("seed", thinned(range(6)))
def test_certificates_by_a_margin_with_automata_and_masses(seed):
    weights = random_weights(seed, n_ctx=3, d_vocab=4, d_vocab_out=5, d_model=6, d_head=2, scale=(0.5, 1.5, 5.0)[seed % 3])
    task = Random(seed, 3, 4, 5)
    for margin in (-2.0, 0.25):
        proof = cp.prove(weights, task=task, upper=True, seconds=5, margin=margin)
        found = cp.check(proof.certificate, weights)
        assert found.accepted and found.correct_at_least <= right_by(weights, task, margin) <= found.correct_at_most


def test_a_margin_equal_to_the_gap_is_not_exceeded():
    """Uniform attention and whole numbers."""
    weights = weights_from_tables(np.zeros((2, 2)), np.zeros((2, 2)), [[2, 0], [-4, 0]], np.zeros((2, 2)), [[0, 0], [0, 0]])
    # sequences (0,0): 0 wins by 2; (0,1), (1,0): 1 wins by 1; (1,1): 1 wins by 4
    for margin, right in ((0.5, 4), (1.0, 2), (1.5, 2), (2.0, 1), (4.0, 0), (-1.0, 4)):
        found = cp.check(cp.prove(weights, upper=True, margin=margin).certificate, weights)
        assert found.accepted and found.correct_at_least <= right <= found.correct_at_most
        assert found.correct_at_least == right or margin in (1.0, 2.0, 4.0)


def changed(content, **question):
    """With another question, and the hash of that if it has none of its own."""
    both = content["question"] | question
    asked = {name: value for name, value in both.items() if name != "margin" or value is not None}
    model = content["model"]
    try:
        checker.read_question(asked, model["d_vocab"], model["n_ctx"], checker.Meter(checker.NO_LIMIT))
    except checker.RejectedError as error:
        asked = asked | {"sha256": str(error).split("SHA-256 is ")[1].split(",")[0]}
    return Certificate(content | {"question": asked})


def test_a_margin_that_was_changed_is_rejected_or_says_something_true():
    for seed in range(4):
        weights = mostly_right(seed, v=4, k=3)
        content = cp.prove(weights, upper=True, margin=0.5).certificate.content
        for margin in (1.0, 0.25, -0.5, -100.0, 100.0, None):
            text = None if margin is None else margin.hex()
            other = {name: value for name, value in (content["question"] | {"margin": text}).items() if name != "margin" or text}
            assert not cp.check(Certificate(content | {"question": other}), weights).accepted  # the hash is of another question
            found = cp.check(changed(content, margin=text), weights)
            if found.accepted:
                assert found.margin == Fraction(margin or 0)
                assert found.correct_at_least <= right_by(weights, cp.task_for(weights), margin or 0.0) <= found.correct_at_most


@pytest.mark.parametrize(
    ("margin", "words"),
    [
        ((0.0).hex(), "question.margin is 0"),
        ("nan", "not a number in hexadecimal"),
        ("inf", "not a number in hexadecimal"),
        (1, "not a number in hexadecimal"),
        (["0x1p0"], "not a number in hexadecimal"),
        ((2.0**200).hex(), "a margin of 2^160 or more"),
        ((-(2.0**200)).hex(), "a margin of 2^160 or more"),
    ],
)
def test_margins_that_are_none(margin, words):
    weights = mostly_right(0, v=3, k=2)
    content = cp.prove(weights, margin=0.5).certificate.content
    found = cp.check(Certificate(content | {"question": content["question"] | {"margin": margin}}), weights)
    assert not found.accepted and found.verdict is not checker.Verdict.INTERNAL_ERROR and words in found.reason


def test_float32_claims_have_no_margin_of_their_own():
    weights = mostly_right(0, v=3, k=2)
    with pytest.raises(CertificateError, match="over the real numbers"):
        cp.certify(cp.prove(weights, margin=0.5), "float32-any-order")
    content = cp.certify(cp.prove(weights), "float32-any-order").content
    found = cp.check(Certificate(content | {"question": content["question"] | {"margin": "0x1p0"}}), weights)
    assert not found.accepted and "float32" in found.reason


def test_the_hash_names_the_margin():
    task = cp.MaxOfK(3, 4)
    plain = Question(task)
    assert Question(task, margin=np.zeros((4, 5))).sha256 == plain.sha256
    names = {Question(task, margin=np.full((4, 5), x)).sha256 for x in (0.5, -0.5, 1.0, 0.1, 1e-300)}
    mixed = np.full((4, 5), 0.5)
    mixed[0, 0] = 0.0
    assert len(names | {plain.sha256, Question(task, margin=mixed).sha256}) == 7


@pytest.mark.parametrize("name", ["biases", "LN before attention", "rotary in part, adjacent, biases", "ALiBi"])
def test_networks_of_one_head_are_certified_by_a_margin(name):
    network = networks.random_network(1, 0.6, **networks.AFFINE[name])
    for margin in (0.25, -1.0):
        found = cp.check(cp.prove(network, upper=True, seconds=3, margin=margin).certificate, network)
        sequences = [(a, b, c) for a in range(5) for b in range(5) for c in range(5)]
        right = sum(network_oracle.is_correct(network, x, max(x), margin) is True for x in sequences)
        assert found.accepted and found.correct_at_least <= right <= found.correct_at_most


@pytest.mark.parametrize("name", ["final LN", "final RMS, constant b_U", "LN before and after"])
def test_a_final_norm_is_refused_by_the_checker_itself(name):
    """Its tables are known up to the norm's size: a certificate without a margin must not become one with a margin."""
    network = networks.random_network(0, 0.6, **networks.AFFINE[name])
    with pytest.raises(CertificateError, match="with a margin are about"):
        cp.prove(network, margin=0.5, seconds=1).certificate  # noqa: B018
    content = cp.prove(network, upper=True).certificate.content
    found = cp.check(changed(content, margin="0x1p-1"), network)
    assert found.verdict is checker.Verdict.REJECTED and "without a norm at the end" in found.reason


def test_whole_blocks_are_refused():
    network = networks.random_network(1, 0.6, **networks.BLOCKS["two heads"])
    with pytest.raises(CertificateError, match="with a margin are about"):
        cp.prove(network, margin=0.5, seconds=1).certificate  # noqa: B018
    content = cp.prove(network, seconds=1).certificate.content
    found = cp.check(changed(content, margin="0x1p-1"), network)
    assert found.verdict is checker.Verdict.REJECTED and "without an MLP" in found.reason


def test_positions_have_one_margin():
    weights = random_weights(4, n_ctx=3, d_vocab=3, causal=True)
    one, other = (cp.certify(cp.prove(weights, position="every", upper=True, margin=margin)) for margin in (-1.0, -2.0))
    found = cp.check(one, weights)
    assert found.accepted and found.margin == -1 and "of them so on all inputs" in found.reason
    assert all(each.margin == -1 for each in found.positions)
    content = json.loads(one.data)
    content["positions"][0] = json.loads(other.data)["positions"][0]
    assert "different margins" in cp.check(Certificate(content), weights).reason


def test_a_ledger_about_another_margin_is_not_the_proofs():
    weights = mostly_right(0, v=4, k=3)
    ledger = cp.prove(weights, margin=0.5).ledger
    other = replace(ledger, question=question_with_margin(ledger.question.task, 4, 1.5))
    assert cp.verify(other, weights).correct_at_least <= right_by(weights, ledger.question.task, 1.5)
