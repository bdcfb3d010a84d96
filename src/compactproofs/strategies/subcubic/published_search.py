"""The authors' gap search, compiled: one uniform gap for all entries, from large to small. Float arithmetic; proves nothing."""

from typing import Any, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel


@kernel
@no_type_check
def uniform_gap_search(
    approximate: Any,
    error: Any,
    running_max: Any,
    running_min: Any,
    least_ratio: Any,
    most_ratio: Any,
    x: Any,
    delta: Any,
    x_max: Any,
    delta_max: Any,
    wrong: Any,
    rest: Any,
    use_mean: bool,
) -> Any:
    """The gap table (q, m, c): the smallest uniform gap at which the published bound is negative, else 1."""
    v = approximate.shape[0]
    k = least_ratio.shape[1]
    n_out = x.shape[1]
    gaps = np.ones((v, v, k), np.int64)
    attention = np.empty(v)
    relative = np.empty(v)
    for gap in range(v - 1, 0, -1):
        for m in range(gap, v):
            T = m - gap
            W = wrong[T]
            R = delta_max[m]
            for row in range(T + 2):
                q = m if row == T + 1 else row
                if R < W:
                    relative[row] = np.exp(running_max[q, T] - approximate[q, m] + error[q])
                else:
                    relative[row] = np.exp(running_min[q, T] - approximate[q, m] - error[q])
            for c in range(1, k):
                total = 0.0
                for row in range(T + 2):
                    q = m if row == T + 1 else row
                    own = 1 if q == m else 0
                    ratio = most_ratio[q, c, own] if R < W else least_ratio[q, c, own]
                    attention[row] = 1.0 / (1.0 + ratio * relative[row])
                    total += attention[row]
                mean = total / (T + 2) if use_mean else 0.0
                at_mean = x_max[m]
                if use_mean:
                    at_mean = -np.inf
                    for o in range(n_out):
                        at_mean = max(at_mean, x[m, o] + mean * delta[m, o])
                average = at_mean + (1.0 - mean) * W
                for row in range(T + 2):
                    q = m if row == T + 1 else row
                    if average + (attention[row] - mean) * (R - W) + rest[q] < 0:
                        gaps[q, m, c] = gap
    return gaps
