"""Time budgets: compiling does not count, anybody may stop, and nothing goes on behind the caller's back."""

import threading

import pytest

import compactproofs as cp
from compactproofs import budget as module
from compactproofs.budget import Budget, in_threads
from compactproofs.errors import InfeasibleError
from compactproofs.strategies.base import Request
from compactproofs.strategies.threshold import ThresholdBest, ThresholdCubic, ThresholdQuartic
from compactproofs.tasks import task_for
from models import mostly_right


class Clock:
    def __init__(self, monkeypatch):
        self.now = self.compiled = 0.0
        monkeypatch.setattr(module.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(module, "compile_seconds", lambda: self.compiled)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_compiling_does_not_count(clock):
    budget = Budget(10.0)
    clock.now, clock.compiled = 25.0, 20.0
    assert (budget.used, budget.left, budget.compiling, budget.over) == (5.0, 5.0, 20.0, False)
    clock.now = 30.0
    assert budget.over and not budget.stopped


def test_without_a_limit_only_stopping_ends_it(clock):
    stop = threading.Event()
    budget = Budget(None, stop)
    clock.now = 1e9
    assert not budget.over
    stop.set()
    assert budget.over and budget.stopped and budget.left == 0.0


def test_items_come_in_order_and_none_is_started_once_the_time_is_up():
    stop, started = threading.Event(), []

    def work(item):
        started.append(item)
        return -item

    found = []
    for item, result in in_threads(work, range(1000), Budget(None, stop), threads=2):
        found.append((item, result))
        if item == 10:
            stop.set()
    assert found == [(item, -item) for item in range(11)] and len(started) <= 15
    assert list(in_threads(work, range(3), Budget(0.0))) == []


def test_an_error_in_a_thread_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        list(in_threads(lambda item: 1 // item, range(3)))


def test_an_infinite_stream_of_items_is_fine():
    stop = threading.Event()
    numbers = in_threads(lambda n: n, iter(int, 1), Budget(None, stop))
    assert next(numbers) == (0, 0)
    stop.set()
    assert list(numbers) == []


def stopped(weights, **options):
    event = threading.Event()
    event.set()
    return Request(weights, task_for(weights), stop=event, **options)


def test_a_proof_that_is_stopped_is_true_or_none():
    weights = mostly_right(2)
    bound = ThresholdBest().bound(stopped(weights, upper=True))
    assert 0 <= bound.correct_at_least <= cp.accuracy(weights).correct <= bound.correct_at_most
    for strategy in (ThresholdQuartic(), ThresholdCubic()):
        with pytest.raises(InfeasibleError, match="was interrupted: 0 of"):
            strategy.bound(stopped(weights))
    assert cp.prove(weights, "brute-force", stop=stopped(weights).stop).status == "infeasible"


def test_a_proof_without_time_is_infeasible_and_says_what_helps():
    weights = mostly_right(2)
    proof = cp.prove(weights, "threshold-quartic", seconds=1e-9)
    assert proof.status == "infeasible" and "--seconds" in proof.reason and proof.correct_at_least == 0
    best = cp.prove(weights, "threshold-best", seconds=1e-9, upper=True)
    assert best.status == "proven" and best.correct_at_least <= cp.accuracy(weights).correct <= best.correct_at_most


def test_labels_that_were_not_reached_count_as_failing(monkeypatch):
    """The portfolio with time for some labels only: what it claims is what it looked at."""
    from compactproofs.strategies.threshold import best

    weights, original = mostly_right(2, v=6), best.Growth.add_labels
    monkeypatch.setattr(best, "seconds_for_pairs", lambda _: 1e9)
    monkeypatch.setattr(best.ThresholdCubicPooled, "estimated_seconds", lambda *_: 1e9)
    monkeypatch.setattr(best.ThresholdCubic, "estimated_seconds", lambda *_: 1e9)
    monkeypatch.setattr(best.Growth, "add_labels", lambda self, labels: original(self, list(labels)[:2]))
    request = Request(weights, task_for(weights), seconds=60.0, upper=True)
    bound, totals = ThresholdBest().bound(request), task_for(weights).automaton.label_totals(3)
    assert 0 < bound.correct_at_least <= totals[5] + totals[4]
    assert bound.correct_at_least <= cp.accuracy(weights).correct <= bound.correct_at_most < request.task.total


def test_a_proof_says_how_long_it_compiled():
    proof = cp.prove(mostly_right(2), "threshold-best")
    assert proof.compile_seconds >= 0 and proof.seconds > 0 and proof.as_json()["compile_seconds"] == proof.compile_seconds
