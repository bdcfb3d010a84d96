"""Walks: the largest sum of table entries along the accepted sequences, for many tables at once.

Tokens that move alike from every state form a group: only the best of a group at a position matters. That is most of the speed.
All functions here are float64. Computed sums of k entries of magnitude at most s are off by at most k gamma_k s; callers add that.
"""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.counting.count_up import Automaton


class Moves(NamedTuple):
    """An automaton and where its tokens may stand, tokens that move alike in groups."""

    group: Any
    """(token,)"""
    following: Any
    """(state, group): next state, or -1"""
    accepting: Any
    first: int
    allowed: Any
    """(position, token): whether it has a mass there"""


def moves_of(automaton: Automaton, masses: np.ndarray) -> Moves:
    """The moves of sequences that have a mass."""
    columns = np.ascontiguousarray(automaton.following.T, dtype=np.int64)
    groups: dict[bytes, int] = {}
    numbers = np.array([groups.setdefault(column.tobytes(), len(groups)) for column in columns], dtype=np.int64)
    following = np.ascontiguousarray(np.frombuffer(b"".join(groups), dtype=np.int64).reshape(len(groups), columns.shape[1]).T)
    return Moves(numbers, following, automaton.accepting, int(automaton.first), np.ascontiguousarray(masses > 0))


@kernel
@no_type_check
def heaviest_product(X: Any, shift: Any, low: Any, high: Any, moves: Any) -> Any:
    """(2, table): the largest sum of F(i, x_i) = max(low X', high X'), X' = X[i, x_i, table] + shift[table], over accepted sequences, -inf
    if there are none; and the largest |F|. F is infinite where it is not a number."""
    k, n, columns = X.shape
    n_states, groups = moves.following.shape
    best = np.full((n_states, columns), -np.inf)
    best[moves.first] = 0.0
    reached = np.zeros(n_states, np.bool_)
    reached[moves.first] = True
    of_group = np.empty((groups, columns))
    result = np.full((2, columns), -np.inf)
    for i in range(k):
        present = np.zeros(groups, np.bool_)
        for t in range(n):
            g = moves.group[t]
            if moves.allowed[i, t]:
                row, target, p, q = X[i, t], of_group[g], low[i, t], high[i, t]
                if not present[g]:
                    target[:] = -np.inf
                    present[g] = True
                for j in range(columns):
                    x = row[j] + shift[j]
                    a = p * x
                    b = q * x
                    f = a if a >= b else b
                    if not (a < np.inf and b < np.inf):  # NaN too
                        f = np.inf
                    if f > target[j]:
                        target[j] = f
                    size = abs(f)
                    if size > result[1, j]:
                        result[1, j] = size
        new = np.full((n_states, columns), -np.inf)
        now = np.zeros(n_states, np.bool_)
        for s in range(n_states):
            if reached[s]:
                for g in range(groups):
                    z = moves.following[s, g]
                    if z >= 0 and present[g]:
                        now[z] = True
                        for j in range(columns):
                            new[z, j] = max(new[z, j], best[s, j] + of_group[g, j])
        best, reached = new, now
    for s in range(n_states):
        if moves.accepting[s] and reached[s]:
            for j in range(columns):
                result[0, j] = max(result[0, j], best[s, j])
    return result


@kernel
@no_type_check
def heaviest_quotient(X: Any, shift: Any, a: Any, D: Any, c: Any, moves: Any) -> Any:
    """(2, table): the largest sum of a[i, x_i] (X[i, x_i, table] + shift[table]) - c[table] D[i, x_i], and the sum of D where that is
    reached."""
    k, n, columns = X.shape
    n_states, groups = moves.following.shape
    best = np.full((n_states, columns), -np.inf)
    weight = np.zeros((n_states, columns))
    best[moves.first] = 0.0
    reached = np.zeros(n_states, np.bool_)
    reached[moves.first] = True
    of_group = np.empty((groups, columns))
    own = np.empty((groups, columns))
    for i in range(k):
        present = np.zeros(groups, np.bool_)
        for t in range(n):
            g = moves.group[t]
            if moves.allowed[i, t]:
                row, p, d = X[i, t], a[i, t], D[i, t]
                if not present[g]:
                    of_group[g, :] = -np.inf
                    present[g] = True
                for j in range(columns):
                    x = p * (row[j] + shift[j]) - c[j] * d
                    if x > of_group[g, j]:
                        of_group[g, j] = x
                        own[g, j] = d
        new = np.full((n_states, columns), -np.inf)
        above = np.zeros((n_states, columns))
        now = np.zeros(n_states, np.bool_)
        for s in range(n_states):
            if reached[s]:
                for g in range(groups):
                    z = moves.following[s, g]
                    if z >= 0 and present[g]:
                        now[z] = True
                        for j in range(columns):
                            x = best[s, j] + of_group[g, j]
                            if x > new[z, j]:
                                new[z, j] = x
                                above[z, j] = weight[s, j] + own[g, j]
        best, weight, reached = new, above, now
    result = np.full((2, columns), -np.inf)
    for s in range(n_states):
        if moves.accepting[s] and reached[s]:
            for j in range(columns):
                if best[s, j] > result[0, j]:
                    result[0, j] = best[s, j]
                    result[1, j] = weight[s, j]
    return result


@kernel
@no_type_check
def heaviest_through(F: Any, moves: Any) -> Any:
    """(position, token, table): the largest sum over accepted sequences that have the token at the position; -inf if there are none."""
    k, n, columns = F.shape
    n_states, groups = moves.following.shape
    before = np.full((k + 1, n_states, columns), -np.inf)
    after = np.full((k + 1, n_states, columns), -np.inf)
    before[0, moves.first] = 0.0
    for s in range(n_states):
        if moves.accepting[s]:
            after[k, s] = 0.0
    of_group = np.full((k, groups, columns), -np.inf)
    for i in range(k):
        for t in range(n):
            if moves.allowed[i, t]:
                for j in range(columns):
                    of_group[i, moves.group[t], j] = max(of_group[i, moves.group[t], j], F[i, t, j])
    for i in range(k):
        for s in range(n_states):
            for g in range(groups):
                z = moves.following[s, g]
                if z >= 0:
                    for j in range(columns):
                        before[i + 1, z, j] = max(before[i + 1, z, j], before[i, s, j] + of_group[i, g, j])
    for i in range(k - 1, -1, -1):
        for s in range(n_states):
            for g in range(groups):
                z = moves.following[s, g]
                if z >= 0:
                    for j in range(columns):
                        after[i, s, j] = max(after[i, s, j], of_group[i, g, j] + after[i + 1, z, j])
    around = np.full((k, groups, columns), -np.inf)
    for i in range(k):
        for s in range(n_states):
            for g in range(groups):
                z = moves.following[s, g]
                if z >= 0:
                    for j in range(columns):
                        around[i, g, j] = max(around[i, g, j], before[i, s, j] + after[i + 1, z, j])
    result = np.full((k, n, columns), -np.inf)
    for i in range(k):
        for t in range(n):
            if moves.allowed[i, t]:
                for j in range(columns):
                    result[i, t, j] = around[i, moves.group[t], j] + F[i, t, j]
    return result


@kernel
@no_type_check
def frequencies(masses: Any, moves: Any) -> Any:
    """(position, token): which part of the mass of all accepted sequences has the token at the position, about."""
    k, n = masses.shape
    n_states = moves.following.shape[0]
    before = np.zeros((k + 1, n_states))
    after = np.zeros((k + 1, n_states))
    before[0, moves.first] = 1.0
    for s in range(n_states):
        after[k, s] = 1.0 if moves.accepting[s] else 0.0
    for i in range(k):
        total = 0.0
        for t in range(n):
            total += masses[i, t]
        for s in range(n_states):
            if before[i, s] > 0.0:
                for t in range(n):
                    z = moves.following[s, moves.group[t]]
                    if z >= 0:
                        before[i + 1, z] += before[i, s] * (masses[i, t] / total)
    for i in range(k - 1, -1, -1):
        total = 0.0
        for t in range(n):
            total += masses[i, t]
        for s in range(n_states):
            for t in range(n):
                z = moves.following[s, moves.group[t]]
                if z >= 0:
                    after[i, s] += (masses[i, t] / total) * after[i + 1, z]
    result = np.zeros((k, n))
    whole = after[0, moves.first]
    if whole > 0.0:
        for i in range(k):
            total = 0.0
            for t in range(n):
                total += masses[i, t]
            for s in range(n_states):
                for t in range(n):
                    z = moves.following[s, moves.group[t]]
                    if z >= 0:
                        result[i, t] += before[i, s] * (masses[i, t] / total) * after[i + 1, z] / whole
    return result


@kernel
@no_type_check
def heaviest_shares(X: Any, low: Any, high: Any, moves: Any) -> Any:
    """(2, table): with F(i, t) = sum_h max(low X_h, high X_h), X_h = X[h, i, t, table], the largest sums of F for -X and for X.

    Entries that are not numbers make every sum infinite.
    """
    heads, k, n, columns = X.shape
    n_states, groups = moves.following.shape
    best = np.full((n_states, 2, columns), -np.inf)
    best[moves.first] = 0.0
    reached = np.zeros(n_states, np.bool_)
    reached[moves.first] = True
    of_group = np.empty((groups, 2, columns))
    here = np.empty((2, columns))
    for i in range(k):
        present = np.zeros(groups, np.bool_)
        for t in range(n):
            if not moves.allowed[i, t]:
                continue
            here[:] = 0.0
            for h in range(heads):
                row, p, q = X[h, i, t], low[h, i, t], high[h, i, t]
                for j in range(columns):
                    a = p * row[j]
                    b = q * row[j]
                    here[1, j] += max(a, b)
                    here[0, j] -= min(a, b)
            for side in range(2):
                for j in range(columns):
                    if not here[side, j] < np.inf:  # NaN too
                        here[side, j] = np.inf
            g = moves.group[t]
            if present[g]:
                for side in range(2):
                    for j in range(columns):
                        of_group[g, side, j] = max(of_group[g, side, j], here[side, j])
            else:
                of_group[g] = here
                present[g] = True
        new = np.full((n_states, 2, columns), -np.inf)
        now = np.zeros(n_states, np.bool_)
        for s in range(n_states):
            if reached[s]:
                for g in range(groups):
                    z = moves.following[s, g]
                    if z >= 0 and present[g]:
                        now[z] = True
                        for side in range(2):
                            for j in range(columns):
                                new[z, side, j] = max(new[z, side, j], best[s, side, j] + of_group[g, side, j])
        best, reached = new, now
    result = np.full((2, columns), -np.inf)
    for s in range(n_states):
        if moves.accepting[s] and reached[s]:
            for side in range(2):
                for j in range(columns):
                    result[side, j] = max(result[side, j], best[s, side, j])
    return result
