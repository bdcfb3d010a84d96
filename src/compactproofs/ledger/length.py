"""How long a proof is: what checking it costs, by the paper's conventions.

The array code runs on phantoms once per distinct shape. Tables of a (query, label) are charged once however many terms use them; walks,
listed sequences and counting are charged as executed. Upper bounds are free, as in the paper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from compactproofs.arrays import FlopCounter
from compactproofs.arrays.arithmetic import Counting
from compactproofs.bounds.terms import Terms
from compactproofs.counting.count_up import Automaton
from compactproofs.counting.subject import Subject
from compactproofs.form.additive import Form, Head, additive_form
from compactproofs.form.embedded import value_sheets
from compactproofs.model.kinds import Model


def table_flops(weights: Model) -> dict[str, int]:
    """The additive form, and attention to every token at every position."""
    counter = FlopCounter()
    arithmetic = Counting(counter)
    form = additive_form(weights, arithmetic)
    with arithmetic.step("attention"):
        for query in range(weights.d_vocab):
            form.only_head().attention(query)
    return dict(counter.steps)


def pair_flops(weights: Model, pairs: Mapping[int, int]) -> dict[str, int]:
    """The terms of so many pairs of query and label, by how many tokens occur with the label."""
    sizes = weights.n_ctx, weights.d_vocab_out, value_sheets(weights)
    return {"terms": sum(count * _term_flops(*sizes, n) for n, count in pairs.items())}


def harm_flops(weights: Model, joint: Counter[tuple[int, int]], apart: Counter[int]) -> dict[str, int]:
    """The harms of joint terms, by (outputs, tokens), and of apart terms, by tokens."""
    k = weights.n_ctx
    of_joint = sum(count * _joint_flops(outputs, k, n) for (outputs, n), count in joint.items())
    of_apart = sum(count * _apart_flops(k, n) for n, count in apart.items())
    return {"joint": of_joint, "apart": of_apart} if apart else {"joint": of_joint}


def _flops(run: Callable[[Counting], object]) -> int:
    counter = FlopCounter()
    run(Counting(counter))
    return sum(counter.steps.values())


@lru_cache(maxsize=4096)
def _term_flops(k: int, out: int, sheets: int, n: int) -> int:
    def run(arithmetic: Counting) -> object:
        zeros = [arithmetic.array(np.zeros(shape)) for shape in ((n, 1, n), (n, k), (sheets, n, out), (k, out), (n, out), (k, n))]
        form = Form((Head(*zeros[:4]),), zeros[4])
        automaton = Automaton(np.zeros((1, n), dtype=np.int64), np.ones(1, dtype=np.bool_), 0)
        subject = Subject(np.arange(n), np.ones((k, n), dtype=np.int64), automaton, 0, 0)
        return Terms.of(form, 0, zeros[5], subject, 0.0, arithmetic)

    return _flops(run)


@lru_cache(maxsize=65536)
def _joint_flops(outputs: int, k: int, n: int) -> int:
    def run(arithmetic: Counting) -> object:
        terms = Terms(arithmetic.array(np.zeros((outputs, k, n))), -1, arithmetic)
        return terms.joint(np.arange(outputs), np.ones(outputs, dtype=np.int64))

    return _flops(run)


@lru_cache(maxsize=4096)
def _apart_flops(k: int, n: int) -> int:
    return _flops(lambda arithmetic: Terms(arithmetic.array(np.zeros((2, k, n))), -1, arithmetic).apart(0, 1, 1, 1))
