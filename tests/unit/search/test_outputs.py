"""On how much of the inputs the label does not beat each output by a margin, output by output."""

from itertools import product

import numpy as np
import pytest

import oracle
from compactproofs.budget import Budget
from compactproofs.search.engine import Engine
from compactproofs.search.outputs import within_reach
from compactproofs.tasks import NO_LABEL
from compactproofs.tasks.margin import question_with_margin
from compactproofs.tasks.question import Question
from models import random_weights
from tasks import Random, mass_of


class Heavy(Random):
    """Masses that together are far beyond 64 bits: counts are in units of many bits."""

    @property
    def masses(self):
        return super().masses << (20 if self.seed % 3 else 0)


@pytest.mark.parametrize("seed", range(4))
def test_at_least_the_mass_of_every_output(seed):
    weights = random_weights(seed, n_ctx=3, d_vocab=4, d_vocab_out=5, d_model=6, d_head=2, scale=(0.7, 1.5)[seed % 2])
    task = Heavy(seed, 3, 4, 5)
    for margin in (-1.0, 0.0, 2.0):
        exact = 0
        for x in product(range(4), repeat=3):
            label = int(task.automaton.label(np.array([x]))[0])
            if label != NO_LABEL and mass_of(task, x):
                values = oracle.logits(weights, x)
                exact += mass_of(task, x) * sum(not values[label] - y > margin for o, y in enumerate(values) if o != label)
        engine = Engine.of(weights, question_with_margin(task, 5, margin) or Question(task))
        found = within_reach(engine, 400, Budget())
        assert exact <= found <= 4 * task.total
        assert within_reach(engine, 400, Budget(0.0)) == 4 * task.total
