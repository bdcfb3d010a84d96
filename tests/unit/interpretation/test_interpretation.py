import dataclasses
import json

import numpy as np
import pytest

import compactproofs as cp
from compactproofs.interpretation import comparable, explain, published_statistics, summarise
from compactproofs.interpretation.explanations import SECTIONS
from compactproofs.interpretation.numbers import histogram, mean_and_std, norm
from models import adversarial_models, random_weights


def test_every_published_statistic_is_measured_under_its_name():
    statistics = cp.interpret(random_weights(0)).statistics
    published = published_statistics()
    assert len(published) == 40 and published.keys() <= statistics.keys()
    assert sum(p.source == "authors results file" for p in published.values()) == 34


def test_every_statistic_is_explained_and_every_explanation_used():
    statistics = cp.interpret(random_weights(0)).statistics
    explained = {name for names in SECTIONS.values() for name in names}
    assert explained | {name for name in statistics if "_zeroing_" in name} == set(statistics)
    assert sum("_zeroing_" in name for name in statistics) == 64
    assert explain("loss_zeroing_EU_PVOU") == ("zero-ablations: mean -log p", "mean -log p with EU, PVOU zeroed")


@pytest.mark.parametrize(("name", "weights"), adversarial_models(), ids=lambda x: x if isinstance(x, str) else "")
def test_adversarial_models_give_plain_json(name, weights):
    data = cp.interpret(weights).as_json()
    text = json.dumps(data, allow_nan=False)
    assert json.loads(text)["ablations"]["results"][0]["accuracy"] == pytest.approx(cp.accuracy(weights).accuracy)
    for key in ("EVOU_diagonal_margin", "gap"):
        assert sum(data["histograms"][key]["weights"]) == pytest.approx(1) or data["histograms"][key]["total"] == "0"


@pytest.mark.parametrize("sizes", [{"d_vocab": 1}, {"n_ctx": 1}, {"d_vocab": 1, "n_ctx": 1}, {"d_vocab": 2, "d_model": 1, "d_head": 1}])
def test_the_smallest_models(sizes):
    json.dumps(cp.interpret(random_weights(0, **sizes)).as_json(), allow_nan=False)


def test_weights_beyond_the_squares_of_floats():
    weights = random_weights(1)
    huge = cp.Weights(**{name: np.sign(t).astype(np.float32) * np.float32(3e38) for name, t in weights.tensors.items()})
    statistics = cp.interpret(huge).statistics
    assert statistics["EQKEFirstSingularFloat"] > 1e150 and statistics["EQKEErrProdFroNormFloat"] > 1e150


def test_a_trained_model_has_the_published_mechanism():
    measured = cp.interpret(cp.zoo("max-of-4"), samples=2000)
    assert comparable([measured]) and not comparable([measured, cp.interpret(random_weights(0))])
    statistics = measured.statistics
    for name, published in published_statistics().items():
        distance = published.distance(statistics[name])
        assert distance is None or abs(distance) < 4.5, name
    assert statistics["accuracy_zeroing_EQKP"] > 0.99 > 0.2 > statistics["accuracy_zeroing_EQKE"]
    assert statistics["BruteForceAccuracyFloat"] == 16765732 / 64**4


def test_a_model_without_an_output_for_every_token_is_refused():
    with pytest.raises(cp.CompactProofsError):
        cp.interpret(random_weights(0, d_vocab=5, d_vocab_out=3))


def test_summaries():
    base = cp.interpret(random_weights(0))
    models = [
        dataclasses.replace(base, statistics={"a": value, "b": None, "c": other}) for value, other in [(1.0, 2.0), (2.0, None), (6.0, None)]
    ]
    found = summarise(models)
    a = found["a"]
    assert (a.models, a.mean, a.minimum, a.lower_quartile, a.median, a.upper_quartile, a.maximum) == (3, 3.0, 1.0, 1.5, 2.0, 4.0, 6.0)
    assert a.std == pytest.approx(7**0.5)  # (4 + 1 + 9) / 2
    assert found["b"].models == 0 and found["b"].mean is None
    assert found["c"].models == 1 and found["c"].mean == 2.0 and found["c"].std is None


def test_histograms_count_exactly():
    found = histogram(np.array([0.0, 1.0, 2.0]), [10**40, 1, 2], bins=2)
    np.testing.assert_array_equal(found.edges, [0, 1, 2])
    assert found.counts == (10**40, 3) and found.as_json()["total"] == str(10**40 + 3)
    constant = histogram(np.full(4, 1e300))
    assert constant.counts == (4,) and constant.as_json()["weights"] == [1.0]


def test_norms_and_deviations_do_not_overflow():
    assert norm(np.array([3e200, 4e200])) == pytest.approx(5e200) and norm(np.zeros(2)) == 0.0
    mean, std = mean_and_std(np.array([1e200, 3e200]))
    assert mean == pytest.approx(2e200) and std == pytest.approx(1e200)
    assert mean_and_std(np.array([0.0, 3.0]), np.array([2.0, 1.0])) == pytest.approx((1.0, 2**0.5))
