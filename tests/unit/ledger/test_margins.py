"""Questions with a margin: "right by more than tau", for each query and label."""

from itertools import product

import numpy as np
import pytest

from compactproofs.errors import LedgerError
from compactproofs.ledger.verify import verify
from compactproofs.model.forward import forward
from compactproofs.strategies.base import Request
from compactproofs.strategies.registry import strategy
from compactproofs.tasks import MaxOfK
from compactproofs.tasks.question import FLOAT32, Question
from models import mostly_right
from random_ledgers import random_ledger

NAMES = ("best", "exact-output", "quartic", "cubic", "cubic-pooled", "blocks", "quadratic-pooled")
SLACK = 1e-9  # the truth is by float64 here


def asked(seed):
    rng = np.random.default_rng(seed)
    weights = mostly_right(seed, v=5, k=3)
    margin = rng.uniform(0, 3, size=(5, 5)) if seed % 2 else np.full((5, 5), 1.5)
    return weights, Question(MaxOfK(3, 5), margin=margin)


def mass_beyond(weights, question, slack):
    """Sequences that are right by more than the margin, give or take a little."""
    sequences = np.array(list(product(range(5), repeat=3)))
    label, query = sequences.max(axis=1), sequences[:, -1]
    logits = forward(weights, sequences)
    rows = np.arange(len(sequences))
    own = logits[rows, label].copy()
    logits[rows, label] = -np.inf
    return int((own - logits.max(axis=1) > question.margin[query, label] + slack).sum())


@pytest.mark.parametrize("name", NAMES)
def test_a_margin_is_asked_of_every_answer(name):
    for seed in range(6):
        weights, question = asked(seed)
        bound = strategy(f"threshold-{name}").bound(Request(weights, question.task, upper=True, asked=question))
        least, most = mass_beyond(weights, question, SLACK), mass_beyond(weights, question, -SLACK)
        assert bound.correct_at_least <= most, seed
        assert bound.correct_at_most is None or least <= bound.correct_at_most, seed
        if name in ("best", "quartic"):
            assert bound.correct_at_least >= 0.5 * least, seed


@pytest.mark.long
def test_anybodys_ledger_about_a_margin():
    for seed in range(12):
        weights, question = asked(seed)
        least, most = mass_beyond(weights, question, SLACK), mass_beyond(weights, question, -SLACK)
        for number in range(4):
            for intervals in (False, True):
                found = verify(
                    random_ledger(weights, question, number, factored=number == 3, upper=number < 3), weights, intervals=intervals
                )
                assert found.correct_at_least <= most and (found.correct_at_most is None or least <= found.correct_at_most)


def test_a_question_about_float32_needs_its_margin():
    weights = mostly_right(1)
    ledger = random_ledger(weights, Question(MaxOfK(3, 5), semantics=FLOAT32), 0)
    with pytest.raises(LedgerError, match="needs its margin"):
        verify(ledger, weights)
