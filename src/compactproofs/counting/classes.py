"""Chains of classes: "token c of an order occurs and none before it", and "none occurs". They are disjoint and cover everything.

Classes are states of an automaton, never differences of counts: counts are rounded up, and a difference of such would be unsound.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.counting.count_up import Automaton


@kernel
@no_type_check
def in_class(automaton: Any, order: Any, c: int) -> Any:
    """Accepts what the given automaton accepts, with order[c] among the tokens and none of order[:c] (c = len(order): none of order).

    State s + n_states means: order[c] has been seen.
    """
    if order.shape[0] == 0:
        return automaton
    following, accepting, first = automaton
    n_states, n = following.shape
    last = c == order.shape[0]
    copies = 1 if last else 2
    product = np.full((copies * n_states, n), -1, np.int64)
    accept = np.zeros(copies * n_states, np.bool_)
    wanted = -1 if last else order[c]
    for s in range(n_states):
        for copy in range(copies):
            for j in range(n):
                z = following[s, j]
                if z >= 0:
                    product[s + copy * n_states, j] = z + n_states if (copy == 1 or j == wanted) else z
        accept[s + (copies - 1) * n_states] = accepting[s]
    for x in range(c):
        product[:, order[x]] = -1
    return Automaton(product, accept, first)
