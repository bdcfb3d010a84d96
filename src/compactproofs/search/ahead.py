"""Compiling what a first proof will need, from another process: this one can only compile one function at a time.

Both write to the cache on disk, where each finds what the other has compiled. Nothing depends on it but the time of the first proof.
"""

from __future__ import annotations

import os

import numpy as np
from numba import typeof

from compactproofs.model.zoo import zoo
from compactproofs.search.engine import Engine
from compactproofs.search.grids import Leaf, count_on_grid
from compactproofs.search.listing import list_doubtful
from compactproofs.search.pairs import Place
from compactproofs.search.pools import look_at_tables
from compactproofs.tasks import task_for
from compactproofs.tasks.question import Question


def compile_ahead() -> None:
    """Compile what all searches call, and the kernels that a proof needs last; `look` itself is for the process that proves."""
    if hasattr(os, "nice"):
        os.nice(10)  # where there is no core to spare, the proof goes first
    weights = zoo("max-of-4")
    engine = Engine.of(weights, Question(task_for(weights)))
    evaluation, subject = engine.evaluation, engine.subjects[1]
    numbers, rows, harms = np.empty(1, dtype=np.int64), np.empty((1, 1), dtype=np.int64), np.empty((1, 1, 1))
    leaf = Leaf(subject.masses, subject.automaton, 0, 0)
    count_on_grid.get_call_template(tuple(map(typeof, (harms[0], leaf, 1.0, 1, 1, False, numbers))), {})
    place = Place(subject.automaton, numbers, 0, numbers)
    list_doubtful.compile(tuple(map(typeof, (evaluation, subject, 1, place, (numbers, numbers), (rows, rows)))))
    look_at_tables.compile(tuple(map(typeof, (harms, subject, np.empty((1, 1, 1), dtype=np.int64), 1, 1, 1, rows))))
