"""Certificates of every strategy, for every task: accepted, as strong as the proof, and true."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compactproofs as cp
from compactproofs import checker
from compactproofs.certificates import writer
from compactproofs.certificates.certificate import Certificate
from compactproofs.certificates.checking import network
from compactproofs.certificates.encode import decoded, encoded
from compactproofs.errors import CertificateError, DisagreementError, InfeasibleError, TaskError
from compactproofs.strategies.base import Request
from compactproofs.strategies.registry import all_strategies
from compactproofs.strategies.registry import strategy as strategy_named
from compactproofs.tasks import MaxOfK
from models import adversarial_models, mostly_right, random_weights
from tasks import KINDS, Named
from thinned import thinned
from trees import json_leaves

SOUND = [s for s in all_strategies(None, "repaired") if s.sound and s.name != "brute-force"]
NAMED = [s for s in SOUND if s.family != "subcubic" and s.label == s.name]
OWN = "threshold-best threshold-quartic threshold-exact-output threshold-cubic threshold-cubic-pooled".split()
"""Their ledgers are written down as they are: the checker has the same tables, and adds up the same integers."""
MODELS = {
    "random": random_weights(3, d_vocab_out=6),
    "one position": random_weights(5, n_ctx=1),
    "two tokens, long": random_weights(6, n_ctx=6, d_vocab=2),
    "easy": random_weights(11, d_vocab=3, scale=0.7),
    "one output": random_weights(1, d_vocab=1),
    "mostly right": mostly_right(3, v=6, k=4, noise=0.6),
    **dict(adversarial_models()),
}
EXTREME = ("saturated attention", "attention beyond float64's exponent", "one dominant direction")
"""Here pools compare attention that the checker does not resolve, so that it finds less; brute force then confirms the proof.

A strategy whose ledger cannot be written down may be left without a stand-in that proves as much.
"""


@pytest.mark.long
@pytest.mark.parametrize("family", ["cubic", "subcubic", "threshold"])
def test_every_strategy_writes_a_certificate_as_strong_as_its_proof(family):
    weights = random_weights(8, d_vocab=4, scale=0.8)
    truth = cp.accuracy(weights).correct
    for strategy in (s for s in SOUND if s.family == family):
        proof = cp.prove(weights, strategy)
        assert cp.check(proof.certificate, weights).accepted, strategy.label
        assert proof.correct_at_least <= proof.certificate.correct_at_least <= truth, strategy.label
        assert proof.certificate.correct_at_least == proof.correct_at_least or strategy.label not in OWN, strategy.label


@pytest.mark.parametrize("name", thinned(MODELS))
def test_certificates_are_accepted_and_true(name):
    for strategy in NAMED:
        check_certificates(name, MODELS[name], strategy)


def check_certificates(name, weights, strategy):
    proof, truth = cp.prove(weights, strategy, upper=True), cp.accuracy(weights).correct
    try:
        certificate = proof.certificate
    except CertificateError as error:
        assert name in EXTREME and strategy.label not in OWN and "no threshold proof stands in for it" in str(error)  # noqa: PT017
        return
    checked = cp.check(certificate, weights)
    assert checked.accepted, checked.reason
    assert certificate.correct_at_least <= truth <= certificate.correct_at_most <= proof.correct_at_most
    claims_just_what_is_found(certificate, weights)
    if name not in EXTREME:
        assert certificate.correct_at_least >= proof.correct_at_least
        assert certificate.correct_at_least == proof.correct_at_least or strategy.name not in OWN, strategy.label
    narrow = _float32(cp.prove(weights, strategy))
    if narrow is not None:
        assert cp.check(narrow, weights).accepted and narrow.semantics == "float32-any-order"
        assert narrow.correct_at_least <= truth and narrow.correct_at_most is None


def claims_just_what_is_found(certificate, weights):
    """One more, or one less at most, is rejected."""
    raw, claim = network(weights), certificate.content["claim"]
    changes = [{"correct_at_least": str(certificate.correct_at_least + 1)}]
    if certificate.correct_at_most:
        changes.append({"correct_at_most": str(certificate.correct_at_most - 1)})
    for change in changes:
        found = checker.check(Certificate({**certificate.content, "claim": {**claim, **change}}).data, raw)
        assert found.verdict is checker.Verdict.REJECTED and "claimed" in found.reason


def _float32(proof):
    try:
        return proof.certify("float32-any-order")
    except CertificateError:  # float32 might overflow on this model
        return None


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from(NAMED), st.floats(0.3, 3.0))
def test_certificates_of_random_models(seed, strategy, scale):
    weights = random_weights(seed, n_ctx=2 + seed % 3, d_vocab=3 + seed % 2, d_vocab_out=4 + seed % 2, scale=scale)
    proof, truth = cp.prove(weights, strategy, upper=True), cp.accuracy(weights).correct
    checked = cp.check(proof.certificate, weights)
    assert checked.accepted and checked.correct_at_least <= truth <= checked.correct_at_most
    assert proof.certificate.correct_at_least >= proof.correct_at_least
    assert strategy.name not in OWN or strategy.name in proof.certificate.content["producer"]  # its own ledger, in exact numbers


@pytest.mark.parametrize("kind", KINDS)
def test_certificates_of_other_tasks(kind):
    weights, task = random_weights(3, d_vocab=3, d_vocab_out=5, scale=0.8), Named(kind, 3, 3)
    truth = cp.accuracy(weights, task).correct
    for name in OWN:
        proof = cp.prove(weights, name, task, upper=True)
        checked = cp.check(proof.certificate, weights)
        assert checked.accepted and checked.correct_at_least == proof.correct_at_least <= truth <= checked.correct_at_most
        assert checked.question_sha256 == cp.Question(task).sha256 != cp.Question(MaxOfK(3, 3)).sha256


def asking(strategy, weights, question):
    """A proof about a question of one's own."""
    bound = strategy_named(strategy).bound(Request(weights, question.task, asked=question))
    proof = cp.prove(weights, strategy, question.task)
    origin = replace(proof.origin, question=question, make_ledger=bound.make_ledger)
    return replace(proof, correct_at_least=bound.correct_at_least, total=question.total, origin=origin)


@pytest.mark.parametrize("largest", [3, 1 << 37])
@pytest.mark.parametrize("task", [MaxOfK(3, 5), Named("minimum", 3, 5)], ids=lambda task: task.title)
def test_certificates_of_questions_with_masses(task, largest):
    weights, rng = mostly_right(2), np.random.default_rng(0)
    question = cp.Question(task, rng.integers(0, largest, size=(3, 5)))
    sequences = np.array(list(np.ndindex(5, 5, 5)))
    right = cp.forward(weights, sequences).argmax(axis=1) == task.automaton.label(sequences)
    truth = sum(question.mass_of(x) for x in sequences[right].tolist())
    for name in OWN:
        proof = asking(name, weights, question)
        checked = cp.check(cp.certify(proof), weights)
        assert checked.accepted and checked.total == question.total
        assert proof.correct_at_least <= checked.correct_at_least <= truth
        assert checked.correct_at_least - proof.correct_at_least <= question.total >> 20  # what is left of a class is rounded up less


@pytest.mark.parametrize("task", [MaxOfK(3, 5), Named("minimum", 3, 5)], ids=lambda task: task.title)
@pytest.mark.parametrize("name", OWN)
def test_what_is_written_can_be_read_again(name, task):
    weights = random_weights(3, d_vocab_out=6)
    proof = cp.prove(weights, name, task, upper=True)
    ledger = decoded(json.loads(proof.certificate.data), task)
    found, own = cp.verify(ledger, weights), cp.verify(proof.ledger, weights)
    assert (found.correct_at_least, found.failing, found.total) == (own.correct_at_least, own.failing, own.total)
    assert found.correct_at_least == proof.correct_at_least and found.correct_at_most <= proof.correct_at_most
    written = encoded(ledger, weights)
    assert {side: written[side] for side in ("question", "lower", "upper")} == {
        side: proof.certificate.content[side] for side in ("question", "lower", "upper")
    }
    with pytest.raises(CertificateError, match="asks another question than"):
        decoded(proof.certificate.content, Named("first", 3, 5))


def test_proofs_without_a_ledger_that_can_be_written_have_a_stand_in():
    """The paper's strategies have none, and replaced tables cannot be written: a threshold proof stands in that proves as much."""
    weights = mostly_right(3)
    for name in ("cubic", "subcubic", "threshold-quadratic-pooled"):
        proof = cp.prove(weights, name, upper=True)
        assert proof.certificate.content["producer"].endswith(proof.label)
        assert proof.correct_at_least <= proof.certificate.correct_at_least <= cp.accuracy(weights).correct
    quadratic = cp.prove(weights, "threshold-quadratic-pooled").ledger
    with pytest.raises(CertificateError, match="cannot be written down"):
        encoded(quadratic, weights)
    with pytest.raises(TaskError, match="expected the same number for all"):
        encoded(replace(quadratic, factors=None, question=cp.Question(MaxOfK(3, 5), margin=np.eye(5))), weights)


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


def test_brute_force_and_proofs_without_a_result_are_refused():
    weights = random_weights(0)
    with pytest.raises(CertificateError, match="checking it means repeating it"):
        _ = cp.prove(weights, "brute-force").certificate
    with pytest.raises(CertificateError, match="no proof to certify"):
        _ = cp.prove(random_weights(0, n_ctx=60, d_vocab=5), "brute-force", seconds=0.01).certificate
    with pytest.raises(CertificateError, match="not made by prove"):
        cp.certify(replace(cp.prove(weights, "cubic"), origin=None))


def test_upper_bounds_are_about_the_reals_only():
    weights = random_weights(0)
    with pytest.raises(CertificateError, match="real-number network only"):
        cp.certify(cp.prove(weights, "cubic", upper=True), "float32-any-order")
    with pytest.raises(CertificateError, match="unknown semantics"):
        cp.certify(cp.prove(weights, "cubic"), "bfloat16")


def test_certify_is_the_proofs_own_method():
    weights = random_weights(4)
    proof = cp.prove(weights, "threshold-best")
    for semantics in ("real", "float32-any-order"):
        assert cp.certify(proof, semantics).data == proof.certify(semantics).data
    assert proof.certificate.correct_at_least == cp.accuracy(weights).correct and proof.certificate.semantics == "real"


@pytest.mark.parametrize("looked_at", [0, 2])
def test_the_portfolio_certifies_the_proof_it_carried_out(looked_at, monkeypatch):
    """If there is no time to look at pairs, or only at some, it has the ledger of pools, or of both."""
    from compactproofs.strategies.threshold import best

    add = best.Growth.add_labels
    monkeypatch.setattr(best, "seconds_for_pairs", lambda _: 1e9)
    monkeypatch.setattr(best.Growth, "add_labels", lambda self, labels: add(self, list(labels)[:looked_at]))
    weights = mostly_right(3)
    proof = cp.prove(weights, "threshold-best", seconds=10.0)
    terms = [term for part in proof.certificate.content["lower"] for leaf in json_leaves(part) for term in leaf["terms"]]
    assert any("factored" in term for term in terms) and any("joint" in term for term in terms) == (looked_at > 0)
    assert cp.check(proof.certificate, weights).correct_at_least == proof.correct_at_least > 0


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


@pytest.mark.long
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
    content["model"] = {**content["model"], "assumptions": ["anything"]}
    assert checker.check(Certificate(content).data, network(weights)).accepted


def test_a_certificate_that_the_checker_would_not_read_is_refused(monkeypatch, tmp_path):
    certificate = cp.prove(cp.zoo("max-of-4"), "threshold-cubic-pooled").certificate
    monkeypatch.setattr("compactproofs.checker.MOST_BYTES", 1000)
    with pytest.raises(CertificateError, match="the checker reads at most 1000"):
        type(certificate)(certificate.content).save(tmp_path / "c.json")
    assert not list(tmp_path.iterdir())


def test_the_work_of_a_check_is_counted():
    weights = mostly_right(2, v=4, k=3)
    certificate = cp.prove(weights, upper=True).certificate
    assert cp.check(certificate, weights, work=2 * certificate.work).accepted
    assert "allow more: --work" in cp.check(certificate, weights, work=certificate.work // 2).reason
    assert "work" not in certificate.content
