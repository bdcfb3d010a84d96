"""Ablations against loops that anyone can check."""

import math
import threading
import time
from itertools import product

import numpy as np
import pytest

import compactproofs as cp
from compactproofs.errors import InfeasibleError, TaskError
from compactproofs.interpretation.ablation_kernel import exp_near_zero
from compactproofs.interpretation.ablations import SUBSETS, TABLES, _in_threads, ablations, centred_tables
from models import random_weights, weights_from_tables


def naive(weights, zeroed):
    tables = {name: getattr(centred_tables(weights), name) * (name not in zeroed) for name in TABLES}
    v, k = weights.d_vocab, weights.n_ctx
    right, loss = 0, 0.0
    for x in product(range(v), repeat=k):
        q, m = x[-1], max(x)
        scores = [tables["EQKE"][q, t] + tables["EQKP"][q, i] for i, t in enumerate(x)]
        powers = [math.exp(s - max(scores)) for s in scores]
        logits = tables["EU"][q] + sum(
            p / sum(powers) * (tables["EVOU"][t] + tables["PVOU"][i]) for i, (p, t) in enumerate(zip(powers, x, strict=True))
        )
        right += all(logits[o] < logits[m] - 1e-8 for o in range(len(logits)) if o != m)
        top = max(logits)
        loss += top - logits[m] + math.log(sum(math.exp(value - top) for value in logits))
    return right / v**k, loss / v**k


def test_there_are_32_subsets():
    assert len(SUBSETS) == len(set(SUBSETS)) == 32 and SUBSETS[0] == () and set(SUBSETS[-1]) == set(TABLES)


@pytest.mark.parametrize(
    "weights",
    [
        random_weights(1, scale=0.7),
        random_weights(2, n_ctx=2, d_vocab=3, d_vocab_out=6, scale=3.0),  # logit differences beyond the fast exponential
        random_weights(3, n_ctx=1, d_vocab=4),
    ],
    ids=["usual", "more outputs, large logits", "one position"],
)
def test_every_subset_agrees_with_a_naive_loop(weights):
    found = ablations(weights)
    assert found.method == "enumeration" and found.evaluated == weights.d_vocab**weights.n_ctx
    for result in found.results:
        accuracy, loss = naive(weights, result.zeroed)
        assert result.accuracy == pytest.approx(accuracy) and result.loss == pytest.approx(loss, rel=1e-8), result.name


def test_nothing_zeroed_is_the_exact_accuracy():
    weights = random_weights(4, n_ctx=4, d_vocab=6, scale=0.8)
    assert ablations(weights).results[0].accuracy == pytest.approx(cp.accuracy(weights).accuracy)


def test_a_model_that_needs_attention_and_values_only():
    v, k = 4, 3
    EQKE = np.tile(30.0 * np.arange(v), (v, 1))
    weights = weights_from_tables(EQKE, np.zeros((v, k)), 10 * np.eye(v), np.zeros((k, v)), np.zeros((v, v)))
    by_name = {result.name: result for result in ablations(weights).results}
    assert by_name["none"].accuracy == by_name["EU_EQKP_PVOU"].accuracy == 1.0
    assert by_name["none"].loss == pytest.approx(math.log1p(3 * math.exp(-10)), rel=1e-6)
    assert by_name["EVOU"].accuracy == 0.0 and by_name["EVOU"].loss == pytest.approx(math.log(4))
    # Without scores the most frequent token wins, and a tie is wrong: right are the sequences with at least two labels.
    assert by_name["EQKE"].accuracy == pytest.approx(sum(x.count(max(x)) >= 2 for x in product(range(v), repeat=k)) / v**k)


def test_rounding_does_not_decide_ties():
    found = {r.name: r for r in ablations(cp.zoo("max-of-4"), samples=500).results}
    assert found["EU_EQKE_EQKP_EVOU"].accuracy == 0.0 and found["EU_EQKE_EQKP_EVOU"].loss == pytest.approx(math.log(64))


def test_a_sample_is_reproducible_and_close():
    weights = random_weights(5, n_ctx=4, d_vocab=6, scale=0.8)
    exact, sampled = ablations(weights, exact=True, samples=1000), ablations(weights, samples=1000, seed=7)
    assert sampled.method == "sampling" and sampled.evaluated == 1000 and sampled.seed == 7 and exact.seed is None
    assert sampled == ablations(weights, samples=1000, seed=7) != ablations(weights, samples=1000, seed=8)
    for a, b in zip(exact.results, sampled.results, strict=True):
        assert abs(a.accuracy - b.accuracy) < 0.08


def test_a_sample_is_the_same_in_portions_of_any_size(monkeypatch):
    weights = random_weights(5, n_ctx=4, d_vocab=9, scale=0.8)
    whole = ablations(weights, samples=3000, seed=7)
    monkeypatch.setattr("compactproofs.interpretation.ablations._PORTION", 1000)
    assert ablations(weights, samples=3000, seed=7) == whole


def test_a_sample_is_that_of_one_draw(monkeypatch):
    weights, drawn = random_weights(5, n_ctx=3, d_vocab=9), []
    monkeypatch.setattr("compactproofs.interpretation.ablations._BATCH", 100)
    monkeypatch.setattr(
        "compactproofs.interpretation.ablations._in_threads", lambda run, batches: drawn.extend(batches) or [[(0, 0.0)] * 20]
    )
    ablations(weights, samples=250, seed=3)
    assert [len(batch) for batch in drawn] == [100, 100, 50]
    assert np.array_equal(np.concatenate(drawn), np.random.default_rng(3).integers(0, 9, size=(250, 3)))


def test_a_sample_of_any_size_takes_little_memory(monkeypatch):
    def enough(*args):
        raise ZeroDivisionError("enough")

    monkeypatch.setattr("compactproofs.interpretation.ablations.evaluate", enough)
    with pytest.raises(ZeroDivisionError, match="enough"):
        ablations(cp.zoo("max-of-20"), samples=10**18)


def test_an_interrupt_ends_what_is_running(monkeypatch):
    """The second batch goes on until it is told to stop."""
    monkeypatch.setattr("compactproofs.interpretation.ablations.available_cores", lambda: 2)
    both = threading.Barrier(2)

    def run(batch, stopped):
        both.wait()
        if batch == 0:
            raise KeyboardInterrupt
        while not stopped():
            time.sleep(0)
        return []

    with pytest.raises(KeyboardInterrupt):
        list(_in_threads(run, range(2)))


def test_the_fast_exponential():
    for x in np.linspace(-64, 64, 257):
        assert exp_near_zero(x) == pytest.approx(math.exp(x), rel=2e-10)


def test_refusals():
    with pytest.raises(InfeasibleError, match="at most 2\\^25"):
        ablations(cp.zoo("max-of-10"), exact=True)
    with pytest.raises(TaskError, match="samples=0"):
        ablations(random_weights(0), samples=0)
