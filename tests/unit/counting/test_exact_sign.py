from itertools import product

import numpy as np
import pytest
from flint import arb, ctx

import oracle
from compactproofs.counting import exact_sign
from compactproofs.counting.exact_sign import ExactNetwork
from models import adversarial_models, random_weights, with_tensors


@pytest.mark.parametrize(("name", "weights"), adversarial_models(), ids=lambda x: x if isinstance(x, str) else "")
def test_is_correct_agrees_with_the_oracle_on_adversarial_models(name, weights):
    network = ExactNetwork(weights)
    for tokens in list(product(range(weights.d_vocab), repeat=weights.n_ctx))[::7]:
        assert network.is_correct(tokens, max(tokens)) is oracle.is_correct(weights, tokens, max(tokens)), tokens


@pytest.mark.parametrize("seed", range(10))
def test_is_correct_agrees_with_the_oracle_on_random_models(seed):
    weights = random_weights(seed, n_ctx=2 + seed % 3, d_vocab=4, d_vocab_out=6, d_model=3, d_head=5, scale=2.0)
    network = ExactNetwork(weights)
    for tokens in list(product(range(4), repeat=weights.n_ctx))[::5]:
        assert network.is_correct(tokens, max(tokens)) is oracle.is_correct(weights, tokens, max(tokens)), tokens


def network_with_scores(divisor=2):
    network = ExactNetwork(random_weights(0))
    network._score_exponent = 0
    network._divisor_squared = type(network._divisor_squared)(divisor)
    return network


def test_sign_recognises_exact_ties_through_merged_exponents():
    network = network_with_scores()
    assert network._sign([3, 3, 5], [7, -7, 0]) == 0
    assert network._sign([3, 3, 5], [7, -6, 0]) == 1
    assert network._sign([], []) == 0


def test_sign_decides_differences_far_below_double_precision():
    # exp(-1/sqrt 2) is irrational: compare it with its 300-digit truncation, from both sides.
    ctx.prec = 2000
    digits = 300
    truncated = _truncated(digits)
    network = network_with_scores()
    assert network._sign([-1, 0], [10**digits, -truncated]) == 1
    assert network._sign([-1, 0], [10**digits, -truncated - 1]) == -1


def _truncated(digits):
    ball = (arb(-1) / arb(2).sqrt()).exp() * arb(10) ** digits
    return int(ball.floor().unique_fmpz())


@pytest.mark.parametrize("digits", [2, 3, 5, 17])
def test_exp_enclosure_encloses_at_any_precision(digits):
    ctx.prec = 500
    rng = np.random.default_rng(digits)
    for _ in range(500):
        score, divisor = -int(rng.integers(1, 2000)), int(10 ** rng.uniform(0, 12))
        low, high = network_with_scores(divisor)._exp_enclosure(score, digits)
        exact = (arb(score) / arb(divisor).sqrt()).exp()
        assert not arb(str(low)) > exact
        assert not arb(str(high)) < exact
        assert high <= low * 10 or digits < 5


def test_sign_survives_exponents_beyond_every_range():
    network = network_with_scores()
    assert network._sign([0, -(10**40)], [-1, 10**50]) == -1
    assert network._sign([10**30, 0], [1, -(10**100)]) == 1


def test_sign_gives_up_honestly(monkeypatch):
    monkeypatch.setattr(exact_sign, "MAX_DIGITS", 40)
    network = network_with_scores()
    ctx.prec = 2000
    assert network._sign([-1, 0], [10**300, -_truncated(300)]) is None


def test_duplicate_outputs_are_ties_and_hence_wrong():
    base = random_weights(7)
    W_U = np.array(base.W_U)
    W_U[:] = W_U[:, :1]
    network = ExactNetwork(with_tensors(base, W_U=W_U))
    assert network.is_correct((0, 1, 2), 2) is False


def test_a_single_output_is_always_right():
    weights = random_weights(0, d_vocab=1)
    assert ExactNetwork(weights).is_correct((0, 0, 0), 0) is True
