"""Every strategy times every property. A new strategy is tested by adding a row to STRATEGIES.

The truth comes from `oracle`, which shares no code with the package.
"""

from functools import cache

import pytest

import oracle
from compactproofs import prove
from compactproofs.strategies.registry import all_strategies, strategy
from models import adversarial_models, random_weights

STRATEGIES = [s for s in all_strategies() if s.sound]

MODELS = {
    **{
        f"random {seed}": random_weights(
            seed, n_ctx=2 + seed % 3, d_vocab=3 + seed % 4, d_vocab_out=7, d_model=2 + seed % 5, d_head=1 + seed % 3, scale=0.5 + seed % 7
        )
        for seed in range(12)
    },
    **dict(adversarial_models()),
}


@cache
def truth(name):
    return oracle.count_correct(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("chosen", STRATEGIES, ids=lambda s: s.name)
def test_correct_at_least_and_correct_at_most_enclose_the_truth(chosen, name):
    proof = prove(MODELS[name], chosen, upper=True)
    assert proof.status == "proven" and proof.sound
    assert 0 <= proof.correct_at_least <= truth(name) <= proof.correct_at_most <= proof.total
    assert proof.lower <= truth(name) / proof.total <= proof.upper


@pytest.mark.parametrize("chosen", STRATEGIES, ids=lambda s: s.name)
def test_name_and_parameters_recreate_the_strategy(chosen):
    assert strategy(chosen.name, **chosen.parameters) == chosen


@pytest.mark.parametrize("chosen", STRATEGIES, ids=lambda s: s.name)
def test_length_depends_on_sizes_only_and_adds_up(chosen):
    one, other = (prove(random_weights(seed), chosen) for seed in (0, 1))
    assert one.length == other.length
    assert one.flops == sum(one.length.flops_breakdown.values()) > 0


@pytest.mark.parametrize("chosen", STRATEGIES, ids=lambda s: s.name)
def test_the_theorem_states_the_claim(chosen):
    proof = prove(random_weights(0), chosen)
    assert str(proof.correct_at_least) in proof.theorem and str(proof.total) in proof.theorem
    assert proof.weights_sha256[:16] in proof.theorem
    assert proof.upper is None and proof.correct_at_most is None
