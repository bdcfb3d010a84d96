"""The trained distribution against the published one: 151 seeds of max-of-4, about two minutes on two cores."""

import statistics

import pytest

import compactproofs as cp

PUBLISHED_MEAN, PUBLISHED_DEVIATION = 0.999152, 0.00147725  # published-results.csv of the paper, brute force, n_ctx=4


@pytest.mark.slow
def test_mean_accuracy_of_151_seeds_lies_within_the_published_spread(tmp_path):
    pytest.importorskip("torch")
    models = cp.train(cp.MaxOfK(n_ctx=4, d_vocab=64), seeds=range(151), out=tmp_path)
    accuracies = [cp.accuracy(m.weights).accuracy for m in models]
    assert abs(statistics.mean(accuracies) - PUBLISHED_MEAN) < PUBLISHED_DEVIATION
    assert statistics.stdev(accuracies) < 3 * PUBLISHED_DEVIATION
