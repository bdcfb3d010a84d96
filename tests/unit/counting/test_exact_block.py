"""The last word about one sequence is the referee's."""

import numpy as np
import pytest
from flint import arb, ctx

import network_oracle
from compactproofs.counting import exact_block
from compactproofs.counting.exact_block import is_correct, logits, tied_labels
from random_networks import awkward_networks, random_network


@pytest.mark.parametrize("bits", [192, 768])
@pytest.mark.parametrize("seed", range(30))
def test_the_balls_contain_the_referees_logits(seed, bits):
    network = random_network(seed)
    tokens = np.random.default_rng(seed).integers(0, network.d_vocab, size=network.n_ctx).tolist()
    ball, previous = logits(network, tokens, bits), ctx.prec
    ctx.prec = network_oracle.PRECISION
    try:
        scale = arb(2) ** bits
        for low, high, truth in zip(ball.lower(), ball.upper(), network_oracle.logits(network, tokens), strict=True):
            assert arb(int(low)) <= truth * scale and truth * scale <= arb(int(high))
    finally:
        ctx.prec = previous
    assert ball.radius < 2 ** (bits - 100)


def test_it_agrees_with_the_referee_on_awkward_networks():
    for _, network in awkward_networks():
        tokens = [3, 0, 2][-network.n_ctx :]
        assert is_correct(network, tokens, 3) in (network_oracle.is_correct(network, tokens, 3), False)
        right = int(np.argmax([float(x.mid()) for x in network_oracle.logits(network, tokens)]))
        assert is_correct(network, tokens, right) == network_oracle.is_correct(network, tokens, right)


def test_precision_is_raised_until_it_suffices(monkeypatch):
    network = dict(awkward_networks())["relu, weights of 1e-30"]
    monkeypatch.setattr(exact_block, "PRECISIONS", (192,))
    assert is_correct(network, [0, 1, 2], 2) is None
    monkeypatch.setattr(exact_block, "PRECISIONS", (192, 768))
    assert is_correct(network, [0, 1, 2], 2) is not None


def test_only_equal_columns_with_equal_biases_are_tied():
    assert not tied_labels(random_network(0)).any()
    some = dict(awkward_networks())
    assert not tied_labels(some["outputs that differ in their bias only"]).any()
    assert not tied_labels(some["outputs that differ in a bias's last digit"]).any()
