"""The claim about float32: no order of summation moves a logit difference by more than the bound, nor a certified answer."""

from itertools import product

import numpy as np
import pytest

import compactproofs as cp
from compactproofs import checker
from compactproofs.certificates.checking import network
from compactproofs.certificates.encode import encoded_question
from compactproofs.certificates.writer import float32_margin
from compactproofs.errors import CertificateError
from compactproofs.model.forward import forward
from compactproofs.tasks import MaxOfK
from compactproofs.tasks.question import FLOAT32, REAL, Question
from models import random_weights, with_tensors
from tasks import Named

torch = pytest.importorskip("torch", reason="needs the [train] extra")
from float32_orders import passes  # noqa: E402


def tables(weights, semantics=FLOAT32, task=None):
    asked = Question(MaxOfK(weights.n_ctx, weights.d_vocab) if task is None else task, semantics=semantics)
    question = checker.read_question(encoded_question(asked), weights.d_vocab, weights.n_ctx, checker.Meter())
    nothing = checker.read_factors(None, network(weights).sizes())
    return question, checker.tables(network(weights), question, nothing, checker.Meter(checker.NO_LIMIT))


def error_bound(T):
    return np.array([[(a - b) / 2**T.scale for a, b in zip(*rows, strict=True)] for rows in zip(T.EU, T.own, strict=True)])


def differences(logits, label):
    logits = logits.astype(np.float64)
    return logits - logits[np.arange(len(label)), label][:, None]


MODELS = {
    "bundled": cp.zoo("max-of-4"),
    "large weights": random_weights(0, d_vocab=6, d_model=16, d_head=8, scale=3.0),
    "small weights": random_weights(1, d_vocab=6, d_model=16, d_head=8, scale=0.1),
    "no cancellation": with_tensors(random_weights(2), **{name: np.abs(t) for name, t in random_weights(2).tensors.items()}),
}


@pytest.mark.parametrize("name", MODELS)
def test_float32_error(name):
    weights, rng = MODELS[name], np.random.default_rng(0)
    tokens = rng.integers(0, weights.d_vocab, (300, weights.n_ctx))
    label, query = tokens.max(axis=1), tokens[:, -1]
    bound, exact = error_bound(tables(weights)[1])[query, label], differences(forward(weights, tokens), label)
    used = [np.abs(differences(one(tokens), label) - exact).max(axis=1) / bound for one in passes(weights)]
    assert 0 < np.max(used) < 1


@pytest.mark.parametrize("kind", ["minimum", "parity", "has zero"])
def test_float32_error_of_other_tasks(kind):
    weights, task = random_weights(0, d_vocab=6, d_model=16, d_head=8), Named(kind, 3, 6)
    tokens = np.random.default_rng(0).integers(0, 6, (300, 3))
    label, query = task.automaton.label(tokens), tokens[:, -1]
    bound, exact = error_bound(tables(weights, task=task)[1])[query, label], differences(forward(weights, tokens), label)
    used = [np.abs(differences(one(tokens), label) - exact).max(axis=1) / bound for one in passes(weights)]
    assert 0 < np.max(used) < 1


def test_the_prover_leaves_at_least_the_checkers_margin():
    weights = MODELS["large weights"]
    exact, margin = error_bound(tables(weights)[1]), float32_margin(weights, MaxOfK(weights.n_ctx, weights.d_vocab))
    assert margin.shape == exact.shape and (margin >= exact).all() and (margin <= exact * (1 + 1e-12)).all()


def certified_sequences(weights, semantics):
    """The sequences that are right by the checker's own bounds, one by one."""
    question, T = tables(weights, semantics)
    pairs = {
        (m, q): checker.Pair(checker.Label(T, automaton, m), q) for m, automaton in question.automata.items() for q in automaton.tokens
    }
    found = []
    for sequence in product(range(weights.d_vocab), repeat=T.k):
        pair = pairs[max(sequence), sequence[-1]]
        if all(checker.along(pair.terms(o, up=True), list(sequence)) < 0 for o in pair.others):
            found.append(sequence)
    return np.array(found)


def near_ties(seed):
    """A model with an output that is almost the label's twin: real margins of the size of rounding errors."""
    weights = random_weights(seed, d_vocab=4, d_model=8, scale=0.7)
    W_U, rng = np.array(weights.W_U), np.random.default_rng(seed)
    W_U[:, 1:] = W_U[:, :1] * (1 + 10.0 ** rng.uniform(-7.5, -2.5, size=(1, 3)) * rng.normal(size=(8, 3)))
    return with_tensors(weights, W_U=W_U)


def test_certified_answers_near_the_margin_hold_in_every_order():
    """Real certificates contain sequences that some float32 order gets wrong; float32 certificates contain none."""
    spoiled = kept = 0
    for seed in range(30):
        weights = near_ties(seed)
        for semantics in (REAL, FLOAT32):
            sequences = certified_sequences(weights, semantics)
            if len(sequences) == 0:
                continue
            label = sequences.max(axis=1)
            wrong = np.zeros(len(sequences), dtype=bool)
            for one in passes(weights):
                gaps = differences(one(sequences), label)
                gaps[np.arange(len(label)), label] = -1
                wrong |= (gaps >= 0).any(axis=1)
            if semantics == REAL:
                spoiled += wrong.sum()
            else:
                kept += len(sequences)
                assert not wrong.any()
    assert spoiled > 5 and kept > 50


def chain(h, V, O, U):  # noqa: E741
    """One token; a logit that is a product of four weights, so that stages can underflow or overflow."""
    W_E, W_V, W_O, W_U = np.zeros((1, 8)), np.zeros((8, 8)), np.zeros((8, 8)), np.zeros((8, 2))
    W_E[0, :4], W_V[:4], W_O[:, 4:], W_U[4:] = h, V, O, [U, -U]
    zero = np.zeros((8, 8))
    tensors = {"W_E": W_E, "W_pos": np.zeros((2, 8)), "W_Q": zero, "W_K": zero, "W_V": W_V, "W_O": W_O, "W_U": W_U}
    return cp.Weights(**{name: t.astype(np.float32) for name, t in tensors.items()})


@pytest.mark.long
def test_flushed_subnormals_are_covered():
    """Found in review: products of small numbers are flushed to zero, and the answer becomes a tie."""
    weights = chain(2.0**-65, 2.0**-63, 2.0**60, 2.0**60)
    tokens = np.array([[0, 0]])
    torch.set_flush_denormal(True)
    try:
        flushed = next(iter(passes(weights)))(tokens)
    finally:
        torch.set_flush_denormal(False)
    assert flushed[0, 0] == flushed[0, 1] and forward(weights, tokens)[0, 0] > forward(weights, tokens)[0, 1]
    proof = cp.prove(weights, "threshold-cubic")
    assert cp.certify(proof).correct_at_least == 1
    assert cp.certify(proof, "float32-any-order").correct_at_least == 0


def test_models_that_might_overflow_are_refused():
    weights = chain(1.0, 2.0**65, 2.0**65, 2.0**-60)
    with pytest.raises(CertificateError, match="overflow"):
        cp.certify(cp.prove(weights, "threshold-cubic"), "float32-any-order")


@pytest.mark.long
@pytest.mark.parametrize("name", ["threshold-best", "threshold-exact-output", "threshold-quartic", "threshold-cubic", "cubic"])
def test_float32_claims_hold_in_every_order(name):
    """A model with margins of all sizes: what is claimed is at most what no order of summation gets wrong."""
    weights = near_ties(4)
    sequences = np.array(list(product(range(4), repeat=3)))
    label, always = sequences.max(axis=1), np.ones(len(sequences), dtype=bool)
    for one in passes(weights):
        gaps = differences(one(sequences), label)
        gaps[np.arange(len(label)), label] = -1
        always &= (gaps < 0).all(axis=1)
    certificate = cp.certify(cp.prove(weights, name), "float32-any-order")
    assert cp.check(certificate, weights).accepted and certificate.correct_at_least <= always.sum()
    assert name != "threshold-best" or certificate.correct_at_least == len(certified_sequences(weights, FLOAT32)) > 0


def test_float32_claims_are_a_little_smaller():
    weights = cp.zoo("max-of-4")
    proof = cp.prove(weights, "threshold-cubic-pooled")
    narrow = proof.certify("float32-any-order")
    assert 0.999 * proof.correct_at_least < narrow.correct_at_least < proof.correct_at_least
    checked = cp.check(narrow, weights)
    assert checked.accepted and "ASSUMING the error model float32-1" in checked.reason
