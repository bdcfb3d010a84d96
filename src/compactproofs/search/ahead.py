"""Compiling what a first proof will need, from another process: this one can only compile one function at a time.

Both write to the cache on disk, where each finds what the other has compiled. Nothing depends on it but the time of the first proof.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numba import typeof

from compactproofs.bounds.pairs import Pair, walk_operations
from compactproofs.counting.count_up import mass_up, unit_exponents
from compactproofs.model.zoo import zoo
from compactproofs.search.compact import look as look_where_alike
from compactproofs.search.covers import Ranking, cover
from compactproofs.search.engine import Engine
from compactproofs.search.grids import Leaf, count_on_grid
from compactproofs.search.listing import list_doubtful
from compactproofs.search.looking import Place, Rooms, look_at
from compactproofs.search.pairs import Tries
from compactproofs.search.pools import look_at_tables
from compactproofs.tasks import task_for
from compactproofs.tasks.question import Question

Kernel = tuple[Any, tuple[object, ...]]
"""A kernel, and arguments of the types that it is called with"""


def compile_ahead(verb: str = "prove") -> None:
    """Compile parts of what all searches call, and then the kernels that a proof needs last; those it needs first it compiles itself.

    The demo proves in many ways, and first in ways for which the main kernel is not needed: that comes first here.
    """
    if hasattr(os, "nice"):
        os.nice(10)  # where there is no core to spare, the proof goes first
    parts, wholes = needed()
    for kernel, arguments in parts:
        kernel.get_call_template(tuple(map(typeof, arguments)), {})
    for kernel, arguments in reversed(wholes) if verb == "demo" else wholes:
        kernel.compile(tuple(map(typeof, arguments)))


def needed() -> tuple[list[Kernel], list[Kernel]]:
    """Kernels that kernels call, and kernels that Python calls, in the order in which they are worth compiling."""
    weights = zoo("max-of-4")
    engine = Engine.of(weights, Question(task_for(weights)))
    evaluation, subject = engine.evaluation, engine.subjects[1]
    integers, rows, tables = (np.empty((1,) * d, dtype=np.int64) for d in (1, 2, 3))
    reals, h, G = (np.empty((1,) * d) for d in (1, 2, 3))
    leaf, pair = Leaf(subject.masses, subject.masses, subject.automaton, 0, 0), Pair(G, h, 0, 0.0, 0.0)
    place, tries = Place(subject.automaton, integers, 0, integers), Tries(1, 1, 1, True, True, True)
    parts: list[Kernel] = [
        (count_on_grid, (h, leaf, 1.0, 1, 1, False, integers)),
        (cover, (pair, Ranking(integers, reals, integers, integers), leaf, tries, 1, integers)),
    ]
    wholes: list[Kernel] = [
        (list_doubtful, (evaluation, subject, 1, place, (integers, integers), (rows, rows))),
        (walk_operations, (subject.masses, subject.automaton)),
        (unit_exponents, (subject.masses,)),
        (mass_up, (subject.masses, subject.automaton)),
        (look_at_tables, (G, subject, tables, 1, 1, 1, rows)),
        (look_where_alike, (h, h, reals, integers, reals)),
        (look_at, (evaluation, subject, integers, place, tries, Rooms(rows, rows, rows))),
    ]
    return parts, wholes
