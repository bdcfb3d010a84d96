"""Biases: the network without them is equal, in exact arithmetic and to the last bit of what is stored."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import compactproofs as cp
from compactproofs.checker import Verdict
from compactproofs.errors import CertificateError, ModelError
from compactproofs.model.biases import BIASES, with_biases, without_biases
from compactproofs.model.config import Told
from compactproofs.model.files import from_tensors
from models import random_weights

TOLD = Told(1, "none")


def biases_for(weights, seed, names=tuple(BIASES), scale=1.0):
    rng = np.random.default_rng(seed)
    sizes = {"d_head": weights.d_head, "d_model": weights.d_model, "d_vocab_out": weights.d_vocab_out}
    return {name: (scale * rng.normal(size=sizes[BIASES[name]])).astype(np.float32) for name in names}


def forward(weights, biases, tokens):
    """The network with biases, as everybody writes it."""
    W = {name: tensor.astype(np.float64) for name, tensor in weights.tensors.items()}
    b = {name: biases.get(name, np.zeros(1)).astype(np.float64) for name in BIASES}
    h = W["W_E"][tokens] + W["W_pos"]
    q, key, value = h[:, -1] @ W["W_Q"] + b["b_Q"], h @ W["W_K"] + b["b_K"], h @ W["W_V"] + b["b_V"]
    scores = np.einsum("bh,bih->bi", q, key) / float(weights.score_divisor_squared) ** 0.5
    attention = np.exp(scores - scores.max(axis=1, keepdims=True))
    attention /= attention.sum(axis=1, keepdims=True)
    return (np.einsum("bi,bih->bh", attention, value) @ W["W_O"] + b["b_O"] + h[:, -1]) @ W["W_U"] + b["b_U"]


SOME = [(), ("b_U",), ("b_O",), ("b_Q", "b_K"), ("b_V",), ("b_O", "b_U"), tuple(BIASES)]


@pytest.mark.parametrize("names", SOME, ids=" ".join)
@pytest.mark.parametrize("seed", range(4))
def test_the_network_without_biases_is_equal(names, seed):
    weights = random_weights(seed)
    biases = biases_for(weights, seed, names)
    found = from_tensors({**weights.tensors, **biases}, None, TOLD)
    tokens = np.array(list(product(range(weights.d_vocab), repeat=weights.n_ctx)))
    expected = forward(weights, biases, tokens)
    assert np.abs(cp.forward(found, tokens) - expected).max() <= 1e-12 * max(1.0, np.abs(expected).max())
    ranked = np.sort(expected, axis=1)
    if (ranked[:, -1] - ranked[:, -2]).min() > 1e-9:
        right = expected.argmax(axis=1) == tokens.max(axis=1)
        assert cp.accuracy(found).correct == cp.prove(found, "threshold-best").correct_at_least == int(right.sum())


def test_nothing_is_multiplied_out_or_rounded():
    """In exact arithmetic, with entries of very different sizes: scores and logits of the two networks are the same rationals."""
    weights = random_weights(1, scale=2.0**40)
    biases = biases_for(weights, 1, scale=2.0**-40)
    found = from_tensors({**weights.tensors, **biases}, None, TOLD)
    assert set(np.unique(found.W_pos[:, weights.d_model :])) == {0.0}

    def exact(x):
        return [[Fraction(float(y)) for y in row] for row in np.atleast_2d(x)]

    def times(x, y):
        return [[sum((a * b for a, b in zip(row, column, strict=True)), Fraction(0)) for column in zip(*y, strict=True)] for row in x]

    def plus(x, y):
        return [[a + b for a, b in zip(row, y[0], strict=True)] for row in x]

    W, b = {name: exact(t) for name, t in weights.tensors.items()}, {name: exact(t) for name, t in biases.items()}
    V = {name: exact(t) for name, t in found.tensors.items()}
    for i in range(weights.n_ctx):
        h, wide = plus(W["W_E"], [W["W_pos"][i]]), plus(V["W_E"], [V["W_pos"][i]])
        for x in "QKV":
            assert times(wide, V[f"W_{x}"]) == plus(times(h, W[f"W_{x}"]), b[f"b_{x}"])
        assert times(wide, V["W_U"]) == plus(times(plus(h, b["b_O"]), W["W_U"]), b["b_U"])
        values = times(plus(times(h, W["W_V"]), b["b_V"]), W["W_O"])
        assert times(times(times(wide, V["W_V"]), V["W_O"]), V["W_U"]) == times(values, W["W_U"])


def test_the_width_grows_by_what_is_needed():
    weights = random_weights(0)
    for names, more in ((("b_Q",), 1), (("b_U",), 1), (("b_O",), 1 + weights.d_model), (tuple(BIASES), 1 + weights.d_model)):
        widened, (about,) = without_biases(weights.tensors, biases_for(weights, 0, names))
        assert widened["W_E"].shape[1] == weights.d_model + more and f"instead of {weights.d_model}" in about


@pytest.mark.parametrize("names", SOME, ids=" ".join)
def test_the_way_back(names):
    weights = random_weights(3)
    biases = biases_for(weights, 3, names)
    found = with_biases(without_biases(weights.tensors, biases)[0])
    if not names:
        assert found is None
        return
    narrow, again = found
    assert again.keys() == biases.keys() and all(np.array_equal(again[name], biases[name]) for name in biases)
    assert all(np.array_equal(narrow[name], weights.tensors[name]) for name in narrow)
    spoiled = {name: np.array(tensor) for name, tensor in without_biases(weights.tensors, biases)[0].items()}
    spoiled["W_O"][0, -1] = 1  # writes to a coordinate that is to be constant
    assert with_biases(spoiled) is None


def test_theorems_and_certificates_say_so(tmp_path):
    weights = random_weights(2)
    found = from_tensors({**weights.tensors, **biases_for(weights, 2)}, None, TOLD)
    proof = cp.prove(found, "threshold-cubic", upper=True)
    assert "b_K, b_O, b_Q, b_U, b_V are constant coordinates" in proof.theorem
    assert cp.check(proof.certificate, found).verdict is Verdict.ACCEPTED
    assert any("constant coordinates" in text for text in proof.certificate.content["model"]["assumptions"])
    with pytest.raises(CertificateError, match="float32 claims are about networks of one head without biases"):
        cp.prove(found, "threshold-cubic").certify("float32-any-order")
    cp.save(found, tmp_path / "equal.safetensors")  # what the stand-alone checker reads
    equal = cp.load(tmp_path / "equal.safetensors")
    claim = cp.prove(equal, "threshold-cubic").certify("float32-any-order")
    assert equal == found and cp.check(claim, equal).verdict is Verdict.ACCEPTED
    refused = cp.check(claim, found)  # the same weights, but the file with biases computes otherwise
    assert refused.verdict is Verdict.REJECTED and "takes other steps" in refused.reason


NO_BIASES = [np.ones((2, 2), np.float32), np.ones(3, np.int64), np.array([1, np.inf], np.float32), np.ones((1, 1, 2), np.float32)]


@pytest.mark.parametrize("bias", NO_BIASES, ids=str)
def test_what_is_no_bias_is_refused(bias):
    with pytest.raises(ModelError, match=r"b_Q(\[1\] is inf| has)"):
        from_tensors({**random_weights(0).tensors, "b_Q": bias}, None, TOLD)


def test_a_bias_that_is_not_float32_is_refused():
    with pytest.raises(ModelError, match="is not a float32 number"):
        from_tensors({**random_weights(0).tensors, "b_Q": np.full(random_weights(0).d_head, 0.1)}, None, TOLD)
