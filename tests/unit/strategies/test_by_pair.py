"""Where the proven sequences are: the counts by label and query add up to the bound, and none exceeds the truth."""

from itertools import product

import pytest

from compactproofs import prove
from compactproofs.strategies.base import Request
from compactproofs.strategies.registry import all_strategies
from compactproofs.strategies.registry import strategy as named
from compactproofs.tasks import MaxOfK
from models import random_weights
from oracle import is_correct

NAMES = ["cubic", "subcubic", *(s.name for s in all_strategies("threshold") if s.label == s.name)]


@pytest.mark.parametrize("name", sorted(set(NAMES)))
@pytest.mark.parametrize("seed", [2, 8, 11])
def test_by_pair(name, seed):
    weights, task = random_weights(seed, d_vocab=4, d_vocab_out=5, scale=0.8), MaxOfK(3, 4)
    counts = named(name).by_pair(Request(weights, task, seconds=10.0))
    right = [x for x in product(range(4), repeat=3) if is_correct(weights, x, max(x))]
    for label in range(4):
        assert len(counts[label]) == label + 1
        for query, count in enumerate(counts[label]):
            assert 0 <= count <= sum(max(x) == label and x[-1] == query for x in right)
    total, proven = sum(map(sum, counts.values())), prove(weights, name).correct_at_least
    assert total == proven or "pooled" in name


def test_brute_force_does_not_tell():
    assert named("brute-force").by_pair(Request(random_weights(0), MaxOfK(3, 5))) is None


@pytest.mark.parametrize("name", ["cubic", "subcubic", "threshold-cubic", "threshold-cubic-pooled", "threshold-quadratic-pooled"])
@pytest.mark.parametrize("seed", [2, 8, 11, 12])
def test_unproven(name, seed):
    """An example exists exactly where not everything is proven, with the right label and query."""
    weights, task = random_weights(seed, d_vocab=4, d_vocab_out=5, scale=0.8), MaxOfK(3, 4)
    request = Request(weights, task, seconds=10.0)
    counts, examples = named(name).by_pair(request), named(name).unproven(request)
    for label in range(4):
        totals = task.label_automaton(label).totals_by_last(3)
        for query, example in enumerate(examples[label]):
            assert (example is not None) >= (counts[label][query] < totals[query])
            assert example is None or (max(example) == label and example[-1] == query and len(example) == 3)
            if name in ("cubic", "subcubic", "threshold-cubic"):
                assert (example is None) == (counts[label][query] == totals[query])
