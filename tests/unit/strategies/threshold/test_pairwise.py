import numpy as np
import pytest

from compactproofs.budget import Budget
from compactproofs.counting.brute_force import brute_force
from compactproofs.errors import DisagreementError
from compactproofs.search.engine import Cells, Claim, Effort, Engine
from compactproofs.strategies.base import Request
from compactproofs.strategies.threshold import ThresholdBest, ThresholdCubicPooled, ThresholdExactOutput, ThresholdQuartic
from compactproofs.strategies.threshold.pairwise import first_effort
from compactproofs.tasks import task_for
from compactproofs.tasks.question import Question
from models import random_weights, underflowing_weights, weights_from_tables
from tasks import Named


def test_no_branch_is_left_because_a_sum_underflowed():
    """The first edition's false theorem: two sequences were claimed, one is right."""
    weights = underflowing_weights()
    request = Request(weights, task_for(weights), upper=True)
    assert brute_force(weights, request.task).correct == 1
    bound = ThresholdBest().bound(request)
    assert (bound.correct_at_least, bound.correct_at_most) == (1, 1)


def test_bounds_that_contradict_each_other_are_an_error_not_a_theorem():
    cells = Cells(3, [5])
    cells.tighten(0, Claim(4), Claim(3))
    assert (cells.failing[0].mass, cells.right[0].mass, cells.gap(0)) == (4, 3, 2)
    with pytest.raises(DisagreementError, match="ALARM: of 5 sequences at most 1 fail and at most 3 are right.*Please report this"):
        cells.tighten(0, Claim(1), Claim(4))


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("apart", [True, False])
def test_no_effort_overflows_its_counts(joint, apart):
    """Without joint and apart nothing is known, in every class: adding that up must not wrap around."""
    weights = random_weights(0)
    engine = Engine.of(weights, Question(task_for(weights)))
    engine.look_at_labels(engine.by_weight(), Effort(5, classes=4, joint=joint, apart=apart, upper=True, ignore=0.0), Budget())
    right = brute_force(weights, task_for(weights), threads=1).correct
    assert engine.question.total - engine.failing <= right <= engine.right
    assert all(0 <= cells.gap(q) <= total for cells in engine.cells.values() for q, total in enumerate(cells.totals))


def test_a_model_that_is_always_wrong_in_many_ways_gets_no_credit():
    """Three hundred outputs beat every label: the union bound exceeds 64 bits."""
    v = k = 16
    EVOU = np.zeros((v, 300))
    EVOU[:, 16:] = 1.0
    weights = weights_from_tables(np.zeros((v, v)), np.zeros((v, k)), EVOU, np.zeros((k, 300)), np.zeros((v, 300)))
    engine = Engine.of(weights, Question(task_for(weights)))
    engine.look_at([(15, 0)], first_effort(weights, joint=False, apart=True), Budget())
    assert engine.cells[15].failing[0].mass == engine.cells[15].totals[0]


def test_weights_beyond_float64_prove_nothing_about_tasks_with_several_accepting_states():
    weights = random_weights(1, n_ctx=2, d_vocab=3, d_vocab_out=3, d_model=3, d_head=2, scale=1e9)
    task = Named("mostly zero", 2, 3)
    right = brute_force(weights, task, threads=1).correct
    for strategy in (ThresholdBest(), ThresholdQuartic(), ThresholdExactOutput()):
        bound = strategy.bound(Request(weights, task, upper=True))
        assert bound.correct_at_least <= right
        assert bound.correct_at_most is None or right <= bound.correct_at_most


def test_a_network_of_zeros_is_never_right_and_nothing_divides_by_zero():
    weights = weights_from_tables(np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3)))
    for strategy in (ThresholdBest(), ThresholdQuartic(), ThresholdExactOutput()):
        assert strategy.bound(Request(weights, task_for(weights))).correct_at_least == 0


@pytest.mark.parametrize("strategy", [ThresholdQuartic(), ThresholdCubicPooled(), ThresholdBest()])
def test_sequences_may_be_long(strategy):
    """2^1030 sequences are beyond floating point."""
    weights = random_weights(0, n_ctx=1030, d_vocab=2, d_vocab_out=2)
    bound = strategy.bound(Request(weights, task_for(weights), seconds=30.0))
    assert 0 <= bound.correct_at_least <= 2**1030
