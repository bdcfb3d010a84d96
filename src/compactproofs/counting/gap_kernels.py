"""The compiled inner loop over gaps: by how much the label wins on each sequence, and what that costs in nats.

The gap of a sequence is min over o != label of (logit of the label - logit of o). The kernel computes S and Z as `kernels.count_query` does
and y_o = (S_o - S_m) / Z, which is logit o minus logit m.

Theorem. |computed y_o - y_o| <= eta := tolerance + n_ctx floor / Z~, and this also covers one rounded subtraction or addition of eta.

Proof, in the notation of `form.evaluation`: u = 2^-53, T = tolerance / 8 = (1.1 t + 2 u + 1.2 gamma_k) b + D, |S~ - S| <= T sum A,
sum A <= 1.2 Z~, |y_o| <= 2 b. S~_o - S~_m is off by at most 2.4 T Z~ and its own rounding, 2.4 u b Z~. Z~ is off by a factor within
1 +- 1.14 (t + 1.12 gamma_k), so that (S_o - S_m) / Z~ is off from y_o by at most 2.3 b (t + 1.12 gamma_k) <= 2.4 T; the division rounds by
2.1 u b. As T >= 250 u b (t is at least 2^-45), all of this is below 4.9 T, and 3.1 T >= 700 u b are left for what follows, which rounds by
at most u (2 b + eta). Absolute errors of S and Z (underflow) are below floor / 4 each, by that module's proof, and are divided by Z~. QED.

Loss. The cross-entropy of a sequence is log(1 + sum over o != m of exp(y_o)). Its partial derivatives by the y_o are probabilities, which
add up to at most 1: so an error of at most eta in every y_o moves the loss by at most eta. The kernel multiplies the numbers
1 + sum_o exp(y_o) of all its sequences, taking out powers of two, which is exact; its caller takes one logarithm of the product. Each
exponential has a relative error below 2^-45 (`arrays.exponential`, whose polynomial this is), each sum of n_out terms one below gamma_n,
each product one of u: the logarithm of a factor is off by at most LOSS_ERROR, 2^-44 + n_out 2^-52 generously. An exponential with
y_o < -SMALL is not computed: it is taken for 0, and exp(-SMALL) is less than 2^-46, for each output. A y_o > LARGE is taken for LARGE and
reported: the product is then a lower bound only.
"""

from typing import Any, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.arrays.exponential import INVERSE_LN2, LN2_HIGH, LN2_LOW, POLYNOMIAL
from compactproofs.counting.kernels import CORRECT, UNCERTAIN, WRONG

SMALL, LARGE = 32.0, 300.0
MANTISSA, POWER, WORST_ERROR, SMALLEST, GREATEST, BEYOND = range(6)
"""What the kernel reports in `numbers`: the product of the losses' factors as mantissa 2^power; the largest eta; bounds of all gaps; how
many logits were taken for LARGE."""
NUMBERS = 6

_COEFFICIENTS = np.array(POLYNOMIAL)
_SCALES = np.ldexp(1.0, np.arange(-80, 480))


@kernel
@no_type_check
def exponential(x: float) -> float:
    """exp(x) for -SMALL <= x <= LARGE, with a relative error below 2^-46."""
    n = np.rint(x * INVERSE_LN2)
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    value = _COEFFICIENTS[0]
    for j in range(1, _COEFFICIENTS.shape[0]):
        value = value * r + _COEFFICIENTS[j]
    return value * _SCALES[int(n) + 80]


@kernel
@no_type_check
def gaps_of_query(evaluation: Any, walk: Any, portion: Any, margins: Any, tally: Any, doubtful: Any) -> int:
    """Evaluate all sequences of one query with prefixes start..stop-1, portion being (query, start, stop, whether losses are wanted).

    `margins` ascend. counts[0, j] becomes the number of sequences that certainly win by more than just the first j of them,
    counts[1, j] of those that possibly do. Codes of sequences where the two differ, and these j, are written to the rows of
    `doubtful`, as far as it has room; returns how many there are. `walk` is the labelling and the choices of `kernels.count_query`,
    `tally` the counts and the numbers.
    """
    labelling, choices = walk
    counts, numbers = tally
    query, start, stop, losses = portion
    attention = evaluation.attention[query]
    EVOU, PVOU, EU = evaluation.EVOU, evaluation.PVOU, evaluation.EU
    tolerance, floor = evaluation.tolerance, evaluation.floor
    transitions, labels, start_state = labelling
    n_ctx = attention.shape[0]
    allowed, sizes, last = choices
    sheets, _, n_out = EVOU.shape
    free = max(last, 0)
    n_last = sizes[last] if last >= 0 else 1
    tokens = np.zeros(n_ctx, np.int64)
    for i in range(n_ctx - 1):
        tokens[i] = allowed[i, 0]
    tokens[n_ctx - 1] = query
    digits = np.zeros(free, np.int64)
    remainder = start
    for i in range(free - 1, -1, -1):
        digits[i] = remainder % sizes[i]
        remainder //= sizes[i]
    base = np.empty(n_out)
    scores = np.empty(n_out)
    unknown = 0
    for prefix in range(start, stop):
        for i in range(free):
            tokens[i] = allowed[i, digits[i]]
        base_mass = 0.0
        base[:] = 0.0
        for i in range(n_ctx):
            if i == last:
                continue
            weight = attention[i, tokens[i]]
            base_mass += weight
            for o in range(n_out):
                base[o] += weight * ((EVOU[i % sheets, tokens[i], o] + PVOU[i, o]) + EU[query, o])
        for j in range(n_last):
            mass = base_mass
            if last >= 0:
                t = allowed[last, j]
                tokens[last] = t
                weight = attention[last, t]
                mass += weight
                for o in range(n_out):
                    scores[o] = base[o] + weight * ((EVOU[last % sheets, t, o] + PVOU[last, o]) + EU[query, o])
            else:
                for o in range(n_out):
                    scores[o] = base[o]
            state = start_state
            for i in range(n_ctx):
                state = transitions[state, tokens[i]]
            label = labels[state]
            eta = np.inf
            known = mass > 0.0 and tolerance < np.inf
            if known:
                eta = tolerance + n_ctx * (floor / mass)
            gap = np.inf
            total = 0.0
            own = scores[label]
            inverse = mass if known else 1.0
            for o in range(n_out):
                if o != label:
                    y = (scores[o] - own) / inverse
                    if not -y >= gap and gap == gap:  # what is no number stays
                        gap = -y
                    if losses and known and y >= -SMALL:
                        if y > LARGE:
                            numbers[BEYOND] += 1.0
                            y = LARGE
                        total += exponential(y)
            least, most = -np.inf, np.inf
            if known and gap == gap:
                least, most = gap - eta, gap + eta
            if losses:
                numbers[MANTISSA] *= 1.0 + total
                if numbers[MANTISSA] > 2.0**500:
                    numbers[MANTISSA] *= 2.0**-500
                    numbers[POWER] += 500.0
            numbers[WORST_ERROR] = max(numbers[WORST_ERROR], eta)
            numbers[SMALLEST] = min(numbers[SMALLEST], least)
            numbers[GREATEST] = max(numbers[GREATEST], most)
            below = np.searchsorted(margins, least)
            above = np.searchsorted(margins, most)
            counts[0, below] += 1
            counts[1, above] += 1
            if below != above:
                if unknown < doubtful.shape[0]:
                    doubtful[unknown, 0] = prefix * n_last + j
                    doubtful[unknown, 1] = below
                    doubtful[unknown, 2] = above
                unknown += 1
        i = free
        while i > 0:
            i -= 1
            digits[i] += 1
            if digits[i] < sizes[i]:
                break
            digits[i] = 0
    return unknown


@kernel
@no_type_check
def gaps_of_sequences(evaluation: Any, sequences: Any, labels: Any, gaps: Any) -> None:
    """Write bounds of the gap of each sequence (one per row) with its label: gaps[row, 0] from below, gaps[row, 1] from above."""
    attention, EVOU, PVOU, EU = evaluation.attention, evaluation.EVOU, evaluation.PVOU, evaluation.EU
    tolerance, floor = evaluation.tolerance, evaluation.floor
    n_ctx = sequences.shape[1]
    sheets, _, n_out = EVOU.shape
    scores = np.empty(n_out)
    for row in range(sequences.shape[0]):
        query = sequences[row, n_ctx - 1]
        mass = 0.0
        scores[:] = 0.0
        for i in range(n_ctx):
            t = sequences[row, i]
            weight = attention[query, i, t]
            mass += weight
            for o in range(n_out):
                scores[o] += weight * ((EVOU[i % sheets, t, o] + PVOU[i, o]) + EU[query, o])
        gaps[row, 0], gaps[row, 1] = -np.inf, np.inf
        if not (mass > 0.0 and tolerance < np.inf):
            continue
        eta = tolerance + n_ctx * (floor / mass)
        gap = np.inf
        for o in range(n_out):
            if o != labels[row]:
                y = (scores[o] - scores[labels[row]]) / mass
                if not -y >= gap and gap == gap:
                    gap = -y
        if gap == gap:
            gaps[row, 0], gaps[row, 1] = gap - eta, gap + eta


def verdict_of_gap(least: float, most: float, margin: float) -> int:
    """CORRECT if a gap between these certainly exceeds the margin, WRONG if it certainly does not."""
    return CORRECT if least > margin else WRONG if most <= margin else UNCERTAIN
