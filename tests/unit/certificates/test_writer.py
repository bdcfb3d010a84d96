"""Certificates of every strategy: accepted, as strong as the proof, and true."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compactproofs as cp
from compactproofs import checker
from compactproofs.certificates import writer
from compactproofs.certificates.certificate import Certificate
from compactproofs.certificates.writer import certify
from compactproofs.errors import CertificateError, DisagreementError, InfeasibleError
from compactproofs.strategies.registry import all_strategies
from compactproofs.tasks import MaxOfK
from models import adversarial_models, mostly_right, random_weights
from tasks import Named

SOUND = [s for s in all_strategies(None, "repaired") if s.sound and s.name != "brute-force"]
NAMED = [s for s in SOUND if s.family != "subcubic" and s.label == s.name]
MODELS = {
    "random": random_weights(3, d_vocab_out=6),
    "one position": random_weights(5, n_ctx=1),
    "two tokens, long": random_weights(6, n_ctx=6, d_vocab=2),
    "easy": random_weights(11, d_vocab=3, scale=0.7),
    "one output": random_weights(1, d_vocab=1),
    **dict(adversarial_models()),
}
EXTREME = ("saturated attention", "attention beyond float64's exponent", "tiny weights", "one dominant direction")
"""Here a witness of rule `pools` may prove less than the strategy did: its scales and grids are its own."""


@pytest.mark.parametrize("family", ["cubic", "subcubic", "threshold"])
def test_every_strategy_writes_a_certificate_as_strong_as_its_proof(family):
    weights = random_weights(8, d_vocab=4, scale=0.8)
    truth = cp.accuracy(weights).correct
    for strategy in (s for s in SOUND if s.family == family):
        proof = cp.prove(weights, strategy)
        assert cp.check(proof.certificate, weights).accepted, strategy.label
        assert proof.correct_at_least <= proof.certificate.correct_at_least <= truth, strategy.label


@pytest.mark.parametrize("name", MODELS)
def test_certificates_are_accepted_and_true(name):
    for strategy in NAMED:
        check_certificates(name, MODELS[name], strategy)


def check_certificates(name, weights, strategy):
    proof, truth = cp.prove(weights, strategy, upper=True), cp.accuracy(weights).correct
    for certificate in (proof.certificate, _float32(proof)):
        if certificate is None:
            continue
        checked = cp.check(certificate, weights)
        assert checked.accepted, checked.reason
        assert (
            certificate.correct_at_least
            <= truth
            <= (certificate.total if certificate.correct_at_most is None else certificate.correct_at_most)
        )
    assert proof.certificate.correct_at_most <= proof.correct_at_most
    if name not in EXTREME:
        assert proof.certificate.correct_at_least >= proof.correct_at_least


def _float32(proof):
    try:
        return proof.certify("float32-any-order")
    except CertificateError:  # float32 might overflow on this model
        return None


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from(NAMED), st.floats(0.3, 3.0))
def test_certificates_of_random_models(seed, strategy, scale):
    weights = random_weights(seed, n_ctx=2 + seed % 3, d_vocab=3 + seed % 2, d_vocab_out=4 + seed % 2, scale=scale)
    proof, truth = cp.prove(weights, strategy, upper=True), cp.accuracy(weights).correct
    checked = cp.check(proof.certificate, weights)
    assert checked.accepted and checked.correct_at_least <= truth <= checked.correct_at_most


@pytest.mark.parametrize("feasible", [True, False])
@pytest.mark.parametrize(("least", "most"), [(1, 0), (0, -1)])
def test_a_proof_that_the_checker_cannot_confirm_is_an_alarm(least, most, feasible, monkeypatch):
    if not feasible:
        monkeypatch.setattr(writer, "brute_force", _too_long)
    weights = random_weights(3, d_vocab_out=6)
    proof = cp.prove(weights, "threshold-best", upper=True)
    wrong = replace(proof, correct_at_least=proof.correct_at_least + least, correct_at_most=proof.correct_at_most + most)
    with pytest.raises(DisagreementError, match=f"ALARM: threshold-best claims at least .*Please report .*weights {weights.sha256}"):
        _ = wrong.certificate


def _too_long(*_, **__):
    raise InfeasibleError("too long")


def test_what_the_checker_proves_is_claimed_even_if_it_is_more():
    weights = cp.zoo("max-of-4")
    proof = cp.prove(weights, "threshold-quadratic-pooled")
    assert proof.certificate.correct_at_least > proof.correct_at_least
    assert cp.check(proof.certificate, weights).correct_at_least == proof.certificate.correct_at_least


def test_published_strategies_are_refused():
    weights = random_weights(0)
    proof = cp.prove(weights, cp.Subcubic(query_handling="mean_query+diff", repaired=False))
    with pytest.raises(CertificateError, match="as published is not a proof.*repaired=True"):
        _ = proof.certificate


def test_brute_force_and_other_tasks_are_refused():
    weights = random_weights(0)
    with pytest.raises(CertificateError, match="checking it means repeating it"):
        _ = cp.prove(weights, "brute-force").certificate
    with pytest.raises(CertificateError, match="certificates are about max-of-K; this is the task 'the minimum"):
        _ = cp.prove(weights, "threshold-cubic", Named("minimum", 3, 5)).certificate
    with pytest.raises(CertificateError, match="no proof to certify"):
        _ = cp.prove(random_weights(0, n_ctx=60, d_vocab=5), "brute-force", seconds=0.01).certificate


def test_upper_bounds_are_about_the_reals_only():
    weights = random_weights(0)
    with pytest.raises(CertificateError, match="real-number network only"):
        certify(cp.Cubic(), weights, MaxOfK(3, 5), correct_at_least=0, correct_at_most=125, semantics="float32-any-order")
    with pytest.raises(CertificateError, match="unknown semantics"):
        certify(cp.Cubic(), weights, MaxOfK(3, 5), semantics="bfloat16")


def test_certificates_without_running_the_strategy_first():
    weights = random_weights(4)
    certificate = certify(cp.ThresholdBest(), weights, MaxOfK(3, 5))
    assert certificate.correct_at_least == cp.accuracy(weights).correct and cp.check(certificate, weights).accepted


def test_the_portfolio_certifies_the_proof_it_carried_out(monkeypatch):
    from compactproofs.strategies.threshold import pairwise
    from compactproofs.strategies.threshold.engine import Engine

    monkeypatch.setattr(pairwise, "estimated_seconds", lambda _: 1e9)
    monkeypatch.setattr(Engine, "bound_labels", lambda *_: [])
    weights = mostly_right(3)
    proof = cp.prove(weights, "threshold-best", seconds=10.0, upper=True)
    assert proof.correct_at_least > 0 and proof.certificate.content["strategy"]["name"].startswith("threshold-cubic")
    assert cp.check(proof.certificate, weights).accepted


def test_the_file_is_the_object(tmp_path):
    weights = random_weights(4)
    certificate = cp.prove(weights, "cubic").certificate
    certificate.save(tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text()) == certificate.content
    cp.save(weights, tmp_path / "m.safetensors")
    for model in (weights, tmp_path / "m.safetensors"):
        assert cp.check(tmp_path / "c.json", model).verdict is cp.Verdict.ACCEPTED
    with pytest.raises(CertificateError, match="does not exist"):
        certificate.save(tmp_path / "no" / "c.json")
    assert cp.check(tmp_path / "missing.json", weights).verdict is cp.Verdict.MALFORMED


def test_a_certificate_for_other_weights_is_rejected():
    certificate = cp.prove(random_weights(4), "threshold-cubic").certificate
    assert cp.check(certificate, random_weights(5)).verdict is cp.Verdict.REJECTED


def test_exact_accuracy_of_the_bundled_model_in_one_certificate():
    weights = cp.zoo("max-of-4")
    certificate = cp.prove(weights, "threshold-best", upper=True).certificate
    assert isinstance(certificate, Certificate)
    checked = cp.check(certificate, weights)
    assert checked.accepted and checked.correct_at_least == checked.correct_at_most == cp.accuracy(weights).correct


def test_the_checker_never_reads_what_it_does_not_need():
    """The producer and the assumptions are free text, repeated in the verdict and used for nothing."""
    weights = random_weights(4)
    content = dict(cp.prove(weights, "cubic").certificate.content)
    content["producer"] = "somebody else"
    assert checker.check(Certificate(content).data, _raw(weights)).accepted


def _raw(weights):
    from compactproofs.certificates.checking import network

    return network(weights)
