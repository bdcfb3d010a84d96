"""Automata with states of their own for each position: as few of them as there can be.

What an automaton remembers is often more than what still matters. If the sum of ten tokens is asked for, then after eight of them every sum
that two more cannot bring below zero is as good as any other; and if the largest token is known to be 63, it does not matter which of the
others was the largest before it came. States after i tokens that accept the same rests are one state here.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.counting.count_up import Automaton

MANY = 64
"""Automata of so many states or fewer are left as they are: counting with them is quick."""


def smallest(automaton: Automaton, masses: np.ndarray) -> Automaton:
    """`levelled`, from Python: nothing is compiled for an automaton that is small already."""
    if len(automaton.following) <= MANY:
        return automaton
    found: Automaton = levelled(automaton, masses)
    return found


@kernel
@no_type_check
def levelled(automaton: Any, masses: Any) -> Any:
    """The smallest automaton that accepts the same sequences of tokens that have a mass where they stand, with states of its own for each
    position; the same automaton, if it is small.

    Guarantee: `count_up`, `mass_up` and walks give exactly the same numbers, rounding included, if D does not depend on the state and no
        window of sums is wider than `count_up` holds. Where one is, everything is counted there: still at least the mass.
    Assumes: masses not negative.
    Cost: O(position, state that is reached there, token).
    Source: docs/explanation/threshold-proofs.md, 7.
    """
    following, accepting, first = automaton
    k, n = masses.shape
    n_states = following.shape[0]
    if n_states <= MANY:
        return automaton
    reached = np.zeros((k + 1, n_states), np.bool_)
    reached[0, first] = True
    rows = 1
    for i in range(k):
        for s in range(n_states):
            if reached[i, s]:
                rows += 1
                for t in range(n):
                    if masses[i, t] > 0 and following[s, t] >= 0:
                        reached[i + 1, following[s, t]] = True
    # new states are numbered from the last position on; state 0 is where accepted sequences end
    new = np.empty((rows, n), np.int64)
    new[0] = -1
    used = 1
    ahead = np.empty(n_states, np.int64)  # the new state of each state after i + 1 tokens; -1: no accepted rest
    for s in range(n_states):
        ahead[s] = 0 if accepting[s] else -1
    size = 4
    while size < 2 * n_states:
        size *= 2
    slots = np.empty(size, np.int64)
    for i in range(k - 1, -1, -1):
        slots[:] = -1
        here = np.full(n_states, -1)
        for s in range(n_states):
            if not reached[i, s]:
                continue
            row = new[used]
            some, mixed = False, 0
            for t in range(n):
                z = -1
                if masses[i, t] > 0 and following[s, t] >= 0:
                    z = ahead[following[s, t]]
                row[t] = z
                some = some or z >= 0
                mixed = (mixed * 1000003 + z) & 0xFFFFFFFFFFF
            if not some:
                continue
            slot = (mixed ^ (mixed >> 17)) & (size - 1)
            while slots[slot] >= 0 and not _same(new[slots[slot]], row):
                slot = (slot + 1) & (size - 1)
            if slots[slot] < 0:
                slots[slot] = used
                used += 1
            here[s] = slots[slot]
        ahead = here
    accept = np.zeros(used, np.bool_)
    accept[0] = True
    if ahead[first] < 0:  # nothing is accepted
        return Automaton(np.full((1, n), -1), np.zeros(1, np.bool_), 0)
    return Automaton(new[:used].copy(), accept, ahead[first])


@kernel
@no_type_check
def _same(one: Any, other: Any) -> bool:
    """Whether two rows are equal."""
    for t in range(one.shape[0]):  # noqa: SIM110 - compiled
        if one[t] != other[t]:
            return False
    return True
