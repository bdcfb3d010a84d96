"""Checking is metered: a small file cannot keep the checker busy, and more can be allowed."""

import json
from contextlib import suppress

import numpy as np
import pytest

import compactproofs as cp
from compactproofs import checker
from compactproofs.certificates.checking import network
from compactproofs.certificates.encode import encoded_question
from compactproofs.tasks import LabellingAutomaton, MaxOfK
from compactproofs.tasks.question import Question
from models import mostly_right, random_weights, with_tensors
from tasks import Named
from trees import json_chain, json_leaves, json_part


def certificate(weights, task=None, lower=()):
    """A small certificate that claims nothing."""
    raw, question = network(weights), Question(MaxOfK(weights.n_ctx, weights.d_vocab) if task is None else task)
    content = {
        "format": checker.FORMAT,
        "version": checker.VERSION,
        "producer": "",
        "question": encoded_question(question),
        "model": {**raw.sizes(), "score_divisor_squared": raw.divisor, "weights_sha256": raw.sha256(), "assumptions": []},
        "claim": {"correct_at_least": "0", "correct_at_most": None, "total": str(question.total)},
        "factors": None,
        "lower": list(lower),
        "upper": None,
        "end": checker.FORMAT,
    }
    return json.dumps(content).encode()


def assert_refused(found, words):
    assert found.verdict is checker.Verdict.REJECTED and words in found.reason and "--work N" in found.reason


def test_tables_are_metered():
    """Scores so far apart that every exponential needs two thousand bits."""
    base = random_weights(0, n_ctx=1, d_vocab=40, d_model=8, d_head=4)
    W_E, W_Q = np.zeros((40, 8)), np.zeros((8, 4))
    W_E[:, 0], W_Q[0, 0] = np.linspace(0, 30, 40), 1
    weights = with_tensors(base, W_E=W_E, W_Q=W_Q, W_K=2 * W_Q)
    assert_refused(checker.check(certificate(weights), network(weights), work=10**8), "units of work")
    assert checker.check(certificate(weights), network(weights), work=10**10).accepted


def test_memory_is_metered():
    weights = random_weights(0, n_ctx=1, d_vocab=200, d_model=2, d_head=2)
    assert_refused(checker.check(certificate(weights), network(weights), work=10**9), "bytes of memory")


class Chain(Named):
    """An automaton that counts up to many states, each with a label of its own: merging states takes as many rounds."""

    def __init__(self, states):
        super().__init__(str(states), 1, 1)

    @property
    def automaton(self):
        states = np.arange(int(self.kind))
        return LabellingAutomaton(np.minimum(states + 1, states[-1])[:, None], states, 0)


def test_questions_are_metered():
    """A file of a few kilobytes with an automaton that takes minutes to look at."""
    weights = random_weights(0, n_ctx=1, d_vocab=1, d_vocab_out=1000)
    data = certificate(weights, Chain(1000))
    assert len(data) < 20_000
    assert_refused(checker.check(data, network(weights), work=10**8), "units of work")
    assert checker.check(certificate(weights, Chain(20)), network(weights), work=10**8).accepted


def test_splits_are_metered():
    """A short line for each split, an automaton for each line."""
    weights = random_weights(0, n_ctx=2, d_vocab=16)
    trees = [json_chain(list(range(m + 1)), [None] * (m + 2)) for m in range(16)]
    parts = [json_part(m, [q], tree) for m, tree in enumerate(trees) for q in range(m + 1)]
    enough = next(n for n in (2**i for i in range(40)) if checker.check(certificate(weights), network(weights), work=n).accepted)
    assert_refused(checker.check(certificate(weights, lower=parts), network(weights), work=enough), "units of work")
    assert checker.check(certificate(weights, lower=parts), network(weights), work=10**10).accepted


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_lists_of_sequences_are_metered(side):
    weights = mostly_right(3, v=6, k=4, noise=0.6)
    content = json.loads(cp.prove(weights, "threshold-best", upper=True).certificate.data)
    listed = [leaf["listed"] for part in content[side] for leaf in json_leaves(part)]
    assert any(listed)

    def work():
        meter = checker.Meter(checker.NO_LIMIT)
        question = checker.read_question(content["question"], 6, 4, meter)
        factors = checker.read_factors(content["factors"], network(weights).sizes())
        T = checker.tables(network(weights), question, factors, meter)
        rule = {"lower": checker.failing, "upper": checker.right}[side]
        for part in checker.read_parts(content[side], T, question, side):
            rule(T, part)
        return meter.work

    with_lists = work()
    for each in listed:
        each.clear()
    assert with_lists > work()


@pytest.mark.parametrize("name", ["cubic", "threshold-cubic-pooled", "threshold-quartic", "threshold-exact-output", "threshold-best"])
def test_every_kind_of_term_is_metered(name):
    """Each honest check is refused with half of the work that it is allowed, and accepted with that."""
    weights = mostly_right(1, v=6, k=3)
    data = cp.prove(weights, name, upper=name == "threshold-best").certificate.data
    enough = next(n for n in (2**i for i in range(40)) if checker.check(data, network(weights), work=n).accepted)
    assert_refused(checker.check(data, network(weights), work=enough // 2), "")


@pytest.mark.parametrize(
    "change",
    [{"joint": list(range(1, 12)), "weights": [1] * 11}, {"step": [1, -(1 << 16)]}],
    ids=["many outputs", "fine steps"],
)
def test_terms_are_metered(change):
    """A term costs what its outputs and its step make of it, however often it is repeated and however little it counts."""
    weights = random_weights(1, n_ctx=3, d_vocab=12)
    plain = {"joint": [1], "weights": [1], "step": [1, 60], "depth": 1, "offsets": [0, 0, 0]}

    def work(term):
        parts = [json_part(0, [0], {"terms": [term] * 50, "listed": []})]
        meter = checker.Meter(checker.NO_LIMIT)
        question = checker.read_question(encoded_question(Question(MaxOfK(3, 12))), 12, 3, meter)
        factors = checker.read_factors(None, network(weights).sizes())
        T = checker.tables(network(weights), question, factors, meter)
        (part,) = checker.read_parts(parts, T, question, "lower")
        before = meter.work
        with suppress(checker.RejectedError):  # other outputs might win
            checker.failing(T, part)
        return meter.work - before

    assert work({**plain, **change}) > 2 * work(plain)


def test_depths_are_metered():
    """A window of sums may be as wide as the depth says; that is work, and memory."""
    weights = mostly_right(1)
    content = json.loads(cp.prove(weights, "threshold-quartic").certificate.data)
    for term in [term for part in content["lower"] for leaf in json_leaves(part) for term in leaf["terms"]]:
        term["step"], term["depth"] = [1, -24], 1 << 28
    assert_refused(checker.check(json.dumps(content).encode(), network(weights), work=10**9), "")


def test_more_work_can_be_allowed():
    weights = mostly_right(1)
    proof = cp.prove(weights, "cubic")
    assert cp.check(proof.certificate, weights, work=1000).verdict is cp.Verdict.REJECTED
    assert cp.check(proof.certificate, weights).accepted
