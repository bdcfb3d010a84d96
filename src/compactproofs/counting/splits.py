"""Splits of sequences by how often a token occurs. The two halves are disjoint and cover everything.

They are states of an automaton, never differences of counts: counts are rounded up, and a difference of such would be unsound.
"""

from __future__ import annotations

import numpy as np

from compactproofs.counting.count_up import Automaton


def with_fewer(automaton: Automaton, token: int, n: int) -> Automaton:
    """Accepts what the given automaton accepts with fewer than n copies of the token (numbered as in `following`)."""
    return _counting(automaton, token, n, more=False)


def with_more(automaton: Automaton, token: int, n: int) -> Automaton:
    """Accepts what the given automaton accepts with n copies of the token or more."""
    return _counting(automaton, token, n, more=True)


def _counting(automaton: Automaton, token: int, n: int, *, more: bool) -> Automaton:
    """State s + c n_states: c copies so far, n standing for n or more. States that cannot be reached are left out."""
    following, accepting, first = automaton
    n_states, n_tokens = following.shape
    copies = n + 1 if more else n
    product = np.full((copies, n_states, n_tokens), -1, dtype=np.int64)
    accept = np.zeros((copies, n_states), dtype=np.bool_)
    for c in range(copies):
        product[c] = np.where(following >= 0, following + c * n_states, -1)
        if c < copies - 1 or not more:
            after = following[:, token]
            product[c, :, token] = np.where((after >= 0) & (c + 1 < copies), after + (c + 1) * n_states, -1)
    accept[-1 if more else slice(None)] = accepting
    return _reachable(product.reshape(-1, n_tokens), accept.reshape(-1), int(first))


def _reachable(following: np.ndarray, accepting: np.ndarray, first: int) -> Automaton:
    seen, frontier = np.zeros(len(following), dtype=np.bool_), np.array([first])
    while len(frontier):
        seen[frontier] = True
        moves = following[frontier]
        frontier = np.unique(moves[moves >= 0])
        frontier = frontier[~seen[frontier]]
    number = np.append(np.cumsum(seen) - 1, -1)  # the last one is for -1
    return Automaton(np.ascontiguousarray(number[following[seen]]), np.ascontiguousarray(accepting[seen]), int(number[first]))
