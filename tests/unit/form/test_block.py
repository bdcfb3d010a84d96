"""The numbers of a block, in three arithmetics, against the forward pass and the referee."""

import numpy as np
import pytest
from flint import arb

import network_oracle
import networks
from compactproofs.arrays.arithmetic import Balls, Float64, Rigorous
from compactproofs.form.block import block_numbers, readout
from compactproofs.model.forward import forward
from compactproofs.model.network import Activation, NormKind, Rotary
from compactproofs.strategies.brute_force import forward_pass_flops
from random_networks import random_network


def every_token(network):
    return np.tile(np.arange(network.d_vocab), (network.n_ctx, 1))


def streams(numbers, network, tokens):
    """Residual streams after attention, in float64, one for each sequence."""
    k, v = network.n_ctx, network.d_vocab
    flat = np.arange(k) * v + tokens
    r = numbers.base[tokens[:, -1]]
    for scores, values in zip(numbers.scores, numbers.values, strict=True):
        s = np.take_along_axis(scores[tokens[:, -1]], flat, axis=1)
        a = np.exp(s - s.max(axis=1, keepdims=True))
        r = r + np.einsum("bi,bid->bd", a / a.sum(axis=1, keepdims=True), values[flat])
    return r


@pytest.mark.parametrize("seed", range(30))
def test_the_numbers_of_a_block_make_its_forward_pass(seed):
    network = random_network(seed, scale=0.7)
    tokens = np.random.default_rng(seed).integers(0, network.d_vocab, size=(9, network.n_ctx))
    numbers = block_numbers(network, every_token(network), Float64())
    found = readout(network, streams(numbers, network, tokens), Float64())
    assert np.allclose(found, forward(network, tokens), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("seed", range(30, 50))
def test_intervals_and_balls_enclose_the_same_numbers(seed):
    network = random_network(seed, scale=0.7)
    rigorous = block_numbers(network, every_token(network), Rigorous())
    precise = block_numbers(network, every_token(network), Balls(256))
    pairs = zip([*rigorous.scores, *rigorous.values, rigorous.base], [*precise.scores, *precise.values, precise.base], strict=True)
    for interval, ball in pairs:
        middle = np.array([float(arb(int(x)) / arb(2) ** 256) for x in ball.middle.flat]).reshape(ball.shape)
        assert (interval.lower <= middle).all() and (middle <= interval.upper).all()
        assert (interval.upper - interval.lower).max() < 1e-10


@pytest.mark.parametrize("act", [None, *Activation])
@pytest.mark.parametrize("kind", [None, *NormKind])
@pytest.mark.parametrize("post_norm", [False, True])
def test_an_interval_readout_contains_the_referees_logits(act, kind, post_norm):
    """With attention to the query alone, the stream is a table entry, and the logits are a readout of it."""
    rotary = Rotary(2, 300.0, post_norm)
    network = random_network(7, act=act, norm_2=kind, norm_final=kind, sizes=(4, 1, 5, 2, 2, 7, 6), rotary=rotary, post_norm=post_norm)
    numbers = block_numbers(network, every_token(network), Rigorous())
    logits = readout(network, numbers.base + sum(numbers.values[1:], numbers.values[0]), Rigorous())
    for token in range(network.d_vocab):
        for o, truth in enumerate(network_oracle.logits(network, (token,))):
            assert arb(logits.lower[token, o]) <= truth and truth <= arb(logits.upper[token, o])
            assert logits.upper[token, o] - logits.lower[token, o] < 1e-9


def test_flops_of_a_forward_pass_are_those_of_its_steps():
    """Of the last position: a product of (r, n) and (n, c) takes r c (2 n - 1)."""
    network = networks.random_network(0)
    k, d, h, out = network.n_ctx, network.d_model, network.d_head, network.d_vocab_out
    flops = forward_pass_flops(network)
    before = k * d + (1 + 2 * k) * h * (2 * d - 1) + k * (2 * h - 1) + k + k * d * (2 * h - 1)
    assert flops["before attention"] == before
    assert flops["attention"] == (k - 1) + k + k + (k - 1) + k + d * (2 * k - 1) + d
    assert (flops["after attention"], flops["comparison"]) == (out * (2 * d - 1), out - 1)
    neurons = forward_pass_flops(networks.random_network(0, **networks.BLOCKS["MLP"]))["after attention"]
    assert neurons == out * (2 * d - 1) + 3 * (2 * d - 1) + 3 + 3 + d * (2 * 3 - 1) + d + d
