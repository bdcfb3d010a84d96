"""Certificates about positions: one file, a certificate for each."""

import copy
import json
from dataclasses import replace

import pytest

import blocks
import compactproofs as cp
from compactproofs import checker
from compactproofs.certificates.certificate import Certificate
from compactproofs.errors import CertificateError
from models import mostly_right


@pytest.fixture(scope="module")
def proven():
    network = replace(blocks.tiny_block(0, "MLP"), causal=True)
    proofs = cp.prove(network, task=cp.task_for(network, "sign-of-sum"), position="every", upper=True)
    return network, proofs, cp.certify(proofs)


@pytest.mark.long
def test_all_positions_are_checked(proven):
    network, proofs, certificate = proven
    found = cp.check(certificate, network)
    assert found.accepted and [x.position for x in found.positions] == [0, 1, 2]
    weakest = min(proofs, key=lambda proof: proof.lower)
    assert found.correct_at_least * weakest.total == weakest.correct_at_least * found.total
    assert (certificate.correct_at_least, certificate.total) == (found.correct_at_least, found.total) and certificate.semantics == "real"
    assert len(certificate.positions) == 3 and f"at position {weakest.position}, the weakest" in found.reason


def test_one_position(proven):
    network, proofs, _ = proven
    found = cp.check(proofs[1].certificate, network)
    assert found.accepted and [x.position for x in found.positions] == [1] and found.total == 25
    assert cp.check(cp.prove(mostly_right(1), "cubic", position=2).certificate, mostly_right(1)).accepted


def changed(certificate, change):
    content = copy.deepcopy(certificate.content)
    change(content)
    return Certificate(json.loads(json.dumps(content)))


def claim_more(content):
    claim = content["positions"][1]["claim"]
    claim["correct_at_least"] = str(int(claim["correct_at_least"]) + 1)


CHANGES = {
    "one more is claimed": (claim_more, "rejected"),
    "a position twice": (lambda content: content["positions"].append(content["positions"][-1]), "rejected"),
    "in another order": (lambda content: content["positions"].reverse(), "rejected"),
    "no position": (lambda content: content["positions"].clear(), "malformed"),
    "a field more": (lambda content: content.update(claim=None), "malformed"),
    "another version": (lambda content: content.update(version=2), "malformed"),
    "positions in positions": (lambda content: content["positions"].__setitem__(0, copy.deepcopy(content)), "malformed"),
    "not a certificate": (lambda content: content["positions"].__setitem__(0, 7), "malformed"),
    "a length that is none": (lambda content: content["positions"][0]["model"].update(n_ctx="1"), "malformed"),
    "too long": (lambda content: content["positions"][0]["model"].update(n_ctx=4), "rejected"),
    "another model": (lambda content: content["model"].update(weights_sha256="0" * 64), "rejected"),
    "another model at a position": (lambda content: content["positions"][0]["model"].update(weights_sha256="0" * 64), "rejected"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_certificates_are_refused(proven, name):
    network, _, certificate = proven
    change, verdict = CHANGES[name]
    assert cp.check(changed(certificate, change), network).verdict.name.lower() == verdict


def test_fewer_positions_say_so(proven):
    network, _, certificate = proven
    found = cp.check(changed(certificate, lambda content: content["positions"].pop(0)), network)
    assert found.accepted and "read at 2 of 3 positions" in found.reason


def test_work_is_for_all_positions_together(proven):
    network, _, certificate = proven
    each = [
        cp.check(changed(certificate, lambda content, p=p: content.update(positions=[content["positions"][p]])), network, work=10**8)
        for p in range(3)
    ]
    assert all(found.accepted for found in each)
    assert not cp.check(certificate, network, work=10**6).accepted


def test_proofs_of_different_models_have_no_common_certificate(proven):
    _, proofs, _ = proven
    other = cp.prove(mostly_right(1), "cubic", position=1)
    for given in ([proofs[0], other], [cp.prove(mostly_right(1), "cubic")], []):
        with pytest.raises(CertificateError):
            cp.certify(given)


def test_attention_must_be_causal(proven, tmp_path):
    """What the model says of itself; the one file reads it too."""
    network, proofs, certificate = proven
    certificate.save(tmp_path / "every.cert.json")
    for causal, accepted, assumed in ((True, True, False), (None, True, True), (False, False, False)):
        model = replace(network, causal=causal)
        cp.save(model, tmp_path / "model.safetensors")
        alone = checker.check(certificate.data, (tmp_path / "model.safetensors").read_bytes())
        for found in (cp.check(certificate, model), alone):
            assert found.accepted is accepted and any("causal" in text for text in found.assumptions) is assumed
            assert accepted or "attention is not causal" in found.reason
        assert cp.check(proofs[-1].certificate, model).accepted
