"""The compiled inner loops of exact evaluation. They release the GIL, so plain threads use all cores.

Both kernels answer with certain facts only: a sequence whose comparison float64 cannot decide is reported, not guessed.
(`no_type_check` keeps the test suite's run-time type checker from wrapping what numba must compile.)
"""

from typing import Any, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel

CORRECT, WRONG, UNCERTAIN = 1, 0, 2


@kernel
@no_type_check
def count_query(evaluation: Any, labelling: Any, choices: Any, query: int, start: int, stop: int, uncertain: Any) -> tuple[int, int]:
    """Evaluate all sequences with one query token and prefixes start..stop-1 (numbers in a mixed base, first position highest).

    Returns how many are certainly correct and how many are uncertain; the codes (prefix * n_last + number of the last free token) of the
    first uncertain ones are written to `uncertain`. `labelling` is (transitions, labels, first state) of the task's automaton. `choices` is
    (tokens, sizes, last): position i may have any of tokens[i, : sizes[i]], `last` is the last position before the query that has a
    choice, and those behind it have one token each.

    That last free position is the innermost, vectorised loop: for a fixed prefix, every output is compared with a cut just below
    the label's score, for all tokens at once. Exactly one output (the label itself) above the cut means certainly correct.
    """
    attention = evaluation.attention[query]
    EVOU, PVOU, EU = evaluation.EVOU, evaluation.PVOU, evaluation.EU
    tolerance, floor = evaluation.tolerance, evaluation.floor
    transitions, labels, start_state = labelling
    n_ctx = attention.shape[0]
    allowed, sizes, last = choices
    sheets, _, n_out = EVOU.shape
    n_prefix = last
    n_last = sizes[last]

    prefix_terms = np.empty((n_prefix, allowed.shape[1], n_out))
    for i in range(n_prefix):
        for j in range(sizes[i]):
            t = allowed[i, j]
            for o in range(n_out):
                prefix_terms[i, j, o] = attention[i, t] * ((EVOU[i % sheets, t, o] + PVOU[i, o]) + EU[query, o])
    last_attention = np.empty(n_last)
    last_terms = np.empty((n_out, n_last))
    last_labels = np.empty((transitions.shape[0], n_last), np.int64)
    for j in range(n_last):
        t = allowed[last, j]
        last_attention[j] = attention[last, t]
        for o in range(n_out):
            last_terms[o, j] = attention[last, t] * ((EVOU[last % sheets, t, o] + PVOU[last, o]) + EU[query, o])
        for s in range(transitions.shape[0]):
            z = transitions[s, t]
            for i in range(last + 1, n_ctx - 1):
                z = transitions[z, allowed[i, 0]]
            last_labels[s, j] = labels[transitions[z, query]]

    sums = np.empty((n_prefix + 1, n_out))
    mass = np.empty(n_prefix + 1)
    state = np.empty(n_prefix + 1, np.int64)
    for o in range(n_out):
        sums[0, o] = attention[n_ctx - 1, query] * ((EVOU[(n_ctx - 1) % sheets, query, o] + PVOU[n_ctx - 1, o]) + EU[query, o])
    mass[0] = attention[n_ctx - 1, query]
    for i in range(last + 1, n_ctx - 1):
        t = allowed[i, 0]
        for o in range(n_out):
            sums[0, o] += attention[i, t] * ((EVOU[i % sheets, t, o] + PVOU[i, o]) + EU[query, o])
        mass[0] += attention[i, t]
    state[0] = start_state
    tokens = np.zeros(n_prefix, np.int64)
    remainder = start
    for i in range(n_prefix - 1, -1, -1):
        tokens[i] = remainder % sizes[i]
        remainder //= sizes[i]

    cut = np.empty(n_last)
    above = np.empty(n_last, np.int64)
    correct = 0
    n_uncertain = 0
    valid = 0  # sums[0..valid] belong to the current tokens
    for prefix in range(start, stop):
        for i in range(valid, n_prefix):
            j = tokens[i]
            t = allowed[i, j]
            for o in range(n_out):
                sums[i + 1, o] = sums[i, o] + prefix_terms[i, j, o]
            mass[i + 1] = mass[i] + attention[i, t]
            state[i + 1] = transitions[state[i], t]
        total = sums[n_prefix]
        label_row = last_labels[state[n_prefix]]
        for t in range(n_last):
            label = label_row[t]
            threshold = tolerance * (mass[n_prefix] + last_attention[t]) + floor
            cut[t] = (total[label] + last_terms[label, t]) - threshold
            above[t] = 0
        for o in range(n_out):
            base = total[o]
            for t in range(n_last):
                above[t] += base + last_terms[o, t] >= cut[t]
        for t in range(n_last):
            if above[t] == 1 and tolerance < np.inf:
                correct += 1
                continue
            label = label_row[t]
            threshold = tolerance * (mass[n_prefix] + last_attention[t]) + floor
            high = (total[label] + last_terms[label, t]) + threshold
            certainly_wrong = False
            for o in range(n_out):
                if o != label and total[o] + last_terms[o, t] > high:
                    certainly_wrong = True
                    break
            if not certainly_wrong:
                if n_uncertain < uncertain.shape[0]:
                    uncertain[n_uncertain] = prefix * n_last + t
                n_uncertain += 1
        valid = n_prefix
        while valid > 0:
            valid -= 1
            tokens[valid] += 1
            if tokens[valid] < sizes[valid]:
                break
            tokens[valid] = 0
    return correct, n_uncertain


@kernel
@no_type_check
def decide_sequences(evaluation: Any, sequences: Any, labels: Any, verdicts: Any) -> None:
    """Write CORRECT, WRONG or UNCERTAIN for each given sequence (one per row) and its label."""
    attention, EVOU, PVOU, EU = evaluation.attention, evaluation.EVOU, evaluation.PVOU, evaluation.EU
    tolerance, floor = evaluation.tolerance, evaluation.floor
    n_ctx = sequences.shape[1]
    sheets, _, n_out = EVOU.shape
    total = np.empty(n_out)
    for row in range(sequences.shape[0]):
        query = sequences[row, n_ctx - 1]
        label = labels[row]
        mass = 0.0
        for o in range(n_out):
            total[o] = 0.0
        for i in range(n_ctx):
            t = sequences[row, i]
            weight = attention[query, i, t]
            mass += weight
            for o in range(n_out):
                total[o] += weight * ((EVOU[i % sheets, t, o] + PVOU[i, o]) + EU[query, o])
        threshold = tolerance * mass + floor
        cut = total[label] - threshold
        high = total[label] + threshold
        verdict = CORRECT
        for o in range(n_out):
            if o != label:
                if total[o] > high:
                    verdict = WRONG
                    break
                if not total[o] < cut:
                    verdict = UNCERTAIN
        verdicts[row] = verdict
