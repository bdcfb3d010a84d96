"""A memory of intermediate results belongs to one network and one task."""

import pytest

import compactproofs as cp
from compactproofs.errors import DisagreementError, StrategyError
from compactproofs.strategies.base import Bound, Request
from compactproofs.strategies.shared import Shared
from models import mostly_right, random_weights
from tasks import Named

WEIGHTS, OTHER, TASK = mostly_right(0), random_weights(0), cp.MaxOfK(3, 5)


@pytest.fixture
def shared():
    memory = Shared(WEIGHTS, TASK)
    cp.prove(WEIGHTS, "brute-force", shared=memory)
    return memory


@pytest.mark.parametrize(("weights", "task"), [(OTHER, None), (WEIGHTS, Named("minimum", 3, 5))])
def test_it_is_refused_for_another_network_and_for_another_task(shared, weights, task):
    with pytest.raises(StrategyError, match=r"make one for each: Shared\(weights, task\)"):
        cp.prove(weights, "brute-force", task, shared=shared)
    with pytest.raises(StrategyError, match="was used for the network"):
        cp.accuracy(weights, task, shared=shared)
    with pytest.raises(StrategyError, match="was used for the network"):
        Request(weights, cp.MaxOfK(3, 5) if task is None else task, memory=shared)


def test_bounds_that_contradict_each_other_are_an_alarm(shared, monkeypatch):
    right = cp.accuracy(WEIGHTS, shared=shared).correct
    monkeypatch.setattr(cp.Cubic, "bound", lambda self, request: Bound(right + 1, None, "wishful thinking"))
    with pytest.raises(DisagreementError, match=f"cubic proves that at least {right + 1} .* and brute-force that at most {right} are"):
        cp.prove(WEIGHTS, "cubic", shared=shared, upper=True)


def test_brute_force_contradicts_too(monkeypatch):
    shared = Shared(WEIGHTS, TASK)
    monkeypatch.setattr(cp.Cubic, "bound", lambda self, request: Bound(125, None, "wishful thinking"))
    cp.prove(WEIGHTS, "cubic", shared=shared, upper=False)
    with pytest.raises(DisagreementError, match="cubic proves that at least 125"):
        cp.accuracy(WEIGHTS, shared=shared)


def test_it_serves_the_same_question_again(shared):
    same = cp.Weights(**WEIGHTS.tensors, score_divisor_squared=WEIGHTS.score_divisor_squared)
    assert cp.accuracy(same, shared=shared).correct == cp.prove(same, "brute-force", shared=shared).correct_at_least
