"""One pass over whole blocks: it ends where it says, whoever helps, and is all or nothing."""

from itertools import chain

import pytest

import blocks
from compactproofs.budget import Budget
from compactproofs.errors import InfeasibleError
from compactproofs.search.forest import Forest
from compactproofs.strategies.base import Request
from compactproofs.strategies.threshold import whole
from compactproofs.tasks import MaxOfK
from compactproofs.tasks.question import Question

TASK = MaxOfK(4, blocks.V)
NETWORK = blocks.tiny_block(1, "three heads, LN, MLP", harder=True, k=4)
"""One of which a good part is undecided after one look."""


def looked_at(forest):
    return sum(node.look is not None for node in chain.from_iterable(root.leaves() for root in forest.roots.values()))


def test_one_pass_ends_where_little_is_undecided(monkeypatch):
    """A looser end is reached with fewer leaves, and proves less."""
    proved = {}
    for close in (0.0, 0.1, 1.0):
        monkeypatch.setattr(whole, "_CLOSE", close)
        bound = whole.one_pass(Request(NETWORK, TASK), "one pass")
        ledger = bound.make_ledger()
        proved[close] = (bound.correct_at_least, sum(len(list(part.leaves)) for part in ledger.lower))
    (most, all_leaves), _, (least, one_each) = proved.values()
    assert most > least and all_leaves > one_each == sum(len(part.queries) for part in ledger.lower)
    assert least <= proved[0.1][0] <= most and one_each <= proved[0.1][1] <= all_leaves


def test_refining_looks_at_no_more_leaves_than_allowed():
    found = []
    for looks in (0, 1, None):
        forest = Forest.of(NETWORK, Question(TASK))
        forest.begin(forest.pairs())
        forest.grow(forest.pairs(), 1, whole.care_for(NETWORK), Budget())
        first = looked_at(forest)
        assert forest.refine(whole.care_for(NETWORK), Budget(), 0, looks=looks)
        found.append(looked_at(forest) - first)
    assert found[0] == 0 < found[1] < found[2]


def test_one_pass_does_not_depend_on_how_many_help(monkeypatch):
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("COMPACTPROOFS_THREADS", threads)
        bound = whole.one_pass(Request(NETWORK, TASK), "one pass")
        found.append((bound.correct_at_least, bound.measured, bound.make_ledger().lower))
    assert found[0][:2] == found[1][:2] and len(found[0][2]) == len(found[1][2])


def test_one_pass_that_is_not_finished_proves_nothing(monkeypatch):
    monkeypatch.setattr(Forest, "refine", lambda *_, **__: False)
    with pytest.raises(InfeasibleError, match=r"one pass is not finished after the .* s allowed"):
        whole.one_pass(Request(NETWORK, TASK), "one pass")


def test_refining_says_that_time_is_up():
    forest = Forest.of(NETWORK, Question(TASK))
    forest.begin(forest.pairs())
    assert not forest.refine(whole.care_for(NETWORK), Budget(0.0), 0)
