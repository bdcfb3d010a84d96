import pytest

import compactproofs as cp
from compactproofs.errors import StrategyError
from compactproofs.strategies.brute_force import BruteForce, forward_pass_flops
from compactproofs.strategies.registry import all_strategies, strategy
from models import random_weights


def test_unknown_names_list_the_known_ones():
    with pytest.raises(
        StrategyError, match="unknown strategy 'cubik'; did you mean 'cubic'\\? known strategies: brute-force, cubic, subcubic"
    ):
        strategy("cubik")
    with pytest.raises(StrategyError, match="unknown family 'x'; families: brute-force, cubic, subcubic"):
        all_strategies("x")
    with pytest.raises(StrategyError, match="does not take these parameters"):
        strategy("brute-force", colour="red")
    with pytest.raises(StrategyError, match="unknown variant 'x'; variants: repaired, published, both"):
        all_strategies(variant="x")


def test_there_are_the_papers_102_strategies_in_two_variants_and_the_envelope():
    papers = [s for s in all_strategies(variant="published") if s.family != "threshold"]
    assert len(papers) == 102
    assert len([s for s in all_strategies() if s.family != "threshold"]) == 2 + 5 * 10 * 3
    assert not any(s.sound for s in all_strategies("subcubic", "published"))


def test_brute_force_flops_follow_the_papers_conventions():
    """About 8.7e11 at K=4 (the published 1.41e14 is an error of the authors' counter)."""
    proof = cp.prove(cp.zoo("max-of-4"), BruteForce())
    assert 8.4e11 < proof.flops < 8.8e11
    assert proof.unexplained_dimensions == 2**30
    k, d, h, out = 3, 4, 2, 5
    assert forward_pass_flops(random_weights(0))["queries, keys, values"] == 3 * k * h * (2 * d - 1)
    assert forward_pass_flops(random_weights(0))["unembedding"] == k * out * (2 * d - 1)


def test_the_infeasible_is_a_value_with_a_reason():
    proof = cp.prove(cp.zoo("max-of-20"), "brute-force", upper=True)
    assert proof.status == "infeasible" and "years" in proof.reason
    assert (proof.correct_at_least, proof.correct_at_most) == (0, proof.total)
    assert (proof.lower, proof.upper) == (0.0, 1.0)
