"""The compiled inner loop of the ablations: accuracy and loss of a network given by its tables. A measurement in float64, not a proof.

(`no_type_check` keeps the test suite's run-time type checker from wrapping what numba must compile.)
"""

from typing import Any, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel

_FAR = 64.0
"""Logit differences are clipped to this many; what is below contributes less than 1e-27 to a loss."""


@kernel
@no_type_check
def exp_near_zero(x: float) -> float:
    """exp(x) for |x| <= 64, to ten digits; branch-free, so that loops over outputs become vector instructions."""
    r = x * (1.0 / 128.0)
    value = 1.0 / 39916800.0
    value = value * r + 1.0 / 3628800.0
    value = value * r + 1.0 / 362880.0
    value = value * r + 1.0 / 40320.0
    value = value * r + 1.0 / 5040.0
    value = value * r + 1.0 / 720.0
    value = value * r + 1.0 / 120.0
    value = value * r + 1.0 / 24.0
    value = value * r + 1.0 / 6.0
    value = value * r + 1.0 / 2.0
    value = value * r + 1.0
    value = value * r + 1.0
    value *= value
    value *= value
    value *= value
    value *= value
    value *= value
    value *= value
    value *= value
    return value


@kernel
@no_type_check
def evaluate(sequences: Any, EQKE: Any, EQKP: Any, EVOU: Any, PVOU: Any, EU: Any, tie: float, loss: float) -> tuple[int, float]:
    """How many sequences (one per row) have the largest logit, by more than `tie`, at their largest token; and `loss` plus its -log p's."""
    n_ctx = sequences.shape[1]
    n_out = EU.shape[1]
    attention = np.empty(n_ctx)
    logits = np.empty(n_out)
    terms = np.empty(n_out)
    correct = 0
    for row in range(sequences.shape[0]):
        query = sequences[row, n_ctx - 1]
        label = 0
        largest = -np.inf
        for i in range(n_ctx):
            t = sequences[row, i]
            label = max(label, t)
            attention[i] = EQKE[query, t] + EQKP[query, i]
            largest = max(largest, attention[i])
        total = 0.0
        for i in range(n_ctx):
            attention[i] = np.exp(attention[i] - largest)
            total += attention[i]
        for o in range(n_out):
            logits[o] = EU[query, o]
        for i in range(n_ctx):
            t = sequences[row, i]
            share = attention[i] / total
            for o in range(n_out):
                logits[o] += share * (EVOU[t, o] + PVOU[i, o])
        right = logits[label]
        rivals = 0
        far = 0
        for o in range(n_out):
            difference = logits[o] - right
            rivals += difference >= -tie
            far += difference > _FAR
            terms[o] = exp_near_zero(min(max(difference, -_FAR), _FAR))
        correct += rivals == 1  # the label itself
        terms[label] = 0.0
        if far == 0:
            remaining = n_out
            while remaining > 1:  # pairwise: independent additions
                half = (remaining + 1) // 2
                for o in range(remaining - half):
                    terms[o] += terms[o + half]
                remaining = half
            loss += np.log1p(terms[0])
        else:
            top = right
            for o in range(n_out):
                top = max(top, logits[o])
            others = 0.0
            for o in range(n_out):
                others += np.exp(logits[o] - top)
            loss += (top - right) + np.log(others)
    return correct, loss
