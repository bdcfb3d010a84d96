"""`compactproofs show`, names that are nearly right, and what proofs look like."""

import json
from contextlib import suppress

import pytest

import compactproofs as cp
from command import done, refused, run
from compactproofs.certificates.explain import explain
from compactproofs.errors import CertificateError


@pytest.fixture(scope="module")
def proof():
    return cp.prove(cp.zoo("max-of-4"), upper=True)


@pytest.fixture(scope="module")
def certificate(proof, tmp_path_factory):
    path = tmp_path_factory.mktemp("show") / "max4.cert.json"
    proof.certificate.save(path)
    return path


def test_a_certificate_is_explained(certificate, proof):
    text = run("show", certificate).stdout
    assert f"at least {proof.correct_at_least} and at most {proof.correct_at_most} of {64**4}" in text
    assert "task       max; every sequence counts alike" in text and proof.weights_sha256 in text
    assert "joint" in text and "spoiler" in text and "Nothing of this has been checked" in text


def test_numbers_are_those_of_the_file(certificate):
    (found,) = json.loads(done("show", certificate, "--json", "-").stdout)
    content = json.loads(certificate.read_text())
    for side in ("lower", "upper"):
        leaves = [part["tree"] for part in content[side] if part["tree"] is not None and "token" not in part["tree"]]
        assert found[side]["parts"] == len(content[side])
        assert found[side]["listed"] >= sum(len(leaf["listed"]) for leaf in leaves) > 0
    assert found["correct_at_least"] == content["claim"]["correct_at_least"]


def test_of_positions_each_is_explained(tmp_path):
    path = tmp_path / "every.cert.json"
    done("prove", "max-of-4", "--n-ctx", "2", "--position", "every", "--certificate", path)
    assert [each["position"] for each in json.loads(done("show", path, "--json", "-").stdout)] == [0, 1]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "compactproofs-certificate"}', '{"format":1.5}', "\x00"])
def test_what_is_no_certificate_is_refused(tmp_path, content):
    path = tmp_path / "not.json"
    path.write_text(content)
    assert "not a certificate" in refused("show", path)
    assert "No such file" in refused("show", tmp_path / "missing.json")


def test_damaged_certificates_are_explained_or_refused(certificate):
    """Whatever is missing or replaced: an explanation, or one line that says why not."""
    content = json.loads(certificate.read_text())
    content["lower"], content["upper"] = content["lower"][:3], content["upper"][:3]
    for name in content:
        for value in (None, [], {}, "text", 7, [None], [{}], {"claim": 1}):
            with suppress(CertificateError):
                explain(json.dumps(content | {name: value}).encode())


def test_names_that_are_nearly_right():
    assert "did you mean 'max-of-4'?" in refused("prove", "maxof-4")
    assert "did you mean 'threshold-best'?" in refused("prove", "max-of-4", "--strategy", "treshold-best")
    assert "did you mean 'parity'?" in refused("prove", "max-of-4", "--task", "party:3")
    assert "did you mean" not in refused("prove", "banana")


def test_a_proof_is_one_line_and_a_small_table(proof):
    assert repr(proof).startswith("Proof(threshold-best: 0.9993") and "\n" not in repr(proof) and len(repr(proof)) < 160
    html = proof._repr_html_()
    assert f"{proof.lower:.8f}" in html and "largest token" in html and "<script" not in html


def test_the_line_about_a_certificate_names_both_bounds(tmp_path):
    text = done("prove", "max-of-4", "--upper", "--certificate", tmp_path / "a.json").stdout
    assert "exactly 16765732 of 16777216" in text
    text = done("prove", "max-of-4", "--strategy", "threshold-cubic-pooled", "--certificate", tmp_path / "b.json").stdout
    assert "no upper bound" in text
