"""The compiled evaluation of whole blocks. It releases the GIL, so plain threads use all cores.

Sequences are evaluated in batches, one per column, so that every inner loop runs over a batch and is vectorised. Each column carries its
error bound along, step by step as in the theorem of `form.block_evaluation`; what float64 cannot decide is reported, not guessed.

Neurons. Let y be a computed input. Claim: the computed answer is off by at most 2^-43 |y| + 2^-1000 (1 + |y|). `_exp_negative(t)`, t >= 0,
is the reduction and the polynomial of `arrays.exponential` with t cut off at 700: relative error 2^-46, and at most 2^-1009 beyond 700; no
power of two in it is subnormal. With e = exp(-|z|), the computed sigmoid 1 / (1 + e) or e / (1 + e) has relative error 2^-46 + 4 u and
absolute error 2^-1008. SiLU multiplies by y, one rounding. The tanh approximation has z = sqrt(8/pi) (y + 0.044715 y^3) with relative error
12 u, constants included, as both summands have the same sign (an infinite z is cut off at 700 too); |z| exp(-|z|) < 1/2, so the sigmoid
moves by at most 12 u. GELU has z = |y| / sqrt(2) with relative error 3 u, which moves erf by at most 4 u; `erf_approximation`, whose steps
these are, errs by 2^-47, and (1 + erf) / 2 and the product round thrice.
Slices are not assigned to: the code that would check their shapes takes as long to compile as everything else here.
(`no_type_check` keeps the test suite's run-time type checker from
wrapping what numba must compile.)
"""

from typing import Any, NamedTuple, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.arrays.error_function import CELLS_PER_UNIT, COEFFICIENTS, DEGREE, LAST
from compactproofs.arrays.exponential import INVERSE_LN2, LN2_HIGH, LN2_LOW, POLYNOMIAL
from compactproofs.counting.kernels import CORRECT, UNCERTAIN, WRONG
from compactproofs.form.block_evaluation import GELU, GELU_TANH, LAYER_NORM, LIMIT, NONE, RELU, SILU, SLACK, TINY

_POLYNOMIAL = np.array(POLYNOMIAL)
_POWERS = 2.0 ** -np.arange(1024.0)
_FURTHEST = 700.0
_ROUNDER = 1.5 * 2.0**52
_SQRT_8_OVER_PI = 1.5957691216057308
_CUBIC = 0.044715
_SQRT_HALF = 0.7071067811865476
_U = 2.0**-53
_GAMMA = 2.0**-53 * (1.0 + 2.0**-10)
_SLOPE = 2.2
_NEURON_ERROR = 2.0**-43
_SQUARES_UNDERFLOW = 2.0**-530
_BATCH = 64


class Columns(NamedTuple):
    """Room for one batch."""

    stream: Any
    """(d, batch)"""
    normed: Any
    """(d, batch)"""
    hidden: Any
    """(d_mlp, batch)"""
    added: Any
    """(d, batch)"""
    logits: Any
    """(d_vocab_out, batch)"""
    error: Any
    """(batch,): of `stream`, then of `logits`"""
    size: Any
    """(batch,): the sum of the magnitudes of `stream`"""
    normed_error: Any
    normed_size: Any
    mass: Any
    """(n_heads, batch): 1 / Z~"""
    labels: Any
    """(batch,), integers"""
    verdicts: Any
    """(batch,), integers"""


class Walk(NamedTuple):
    """Which sequences a call of `count_block` goes through: those with `tokens` from `inner` + 1 on, and any allowed before."""

    tokens: Any
    """(n_ctx,): the query last"""
    inner: int
    """The position of the innermost loop."""
    choices: Any
    """(inner + 1, most): the tokens allowed at each position, and `counts` of them"""
    counts: Any
    transitions: Any
    labels: Any
    start_state: int


@kernel
@no_type_check
def columns(e: Any, batch: int) -> Columns:
    """Room for a batch of sequences of this network."""
    heads, d = e.values.shape[0], e.values.shape[3]
    n_out, d_mlp = e.W_U.shape[0], e.mlp.W_in.shape[0]
    rows = 0 if e.affine else d
    return Columns(
        np.zeros((d, batch)),
        np.zeros((rows, batch)),
        np.zeros((d_mlp, batch)),
        np.zeros((rows, batch)),
        np.zeros((0 if e.affine else n_out, batch)),
        np.zeros(batch),
        np.zeros(batch),
        np.zeros(batch),
        np.zeros(batch),
        np.zeros((heads, batch)),
        np.zeros(batch, np.int64),
        np.zeros(batch, np.int64),
    )


@kernel
@no_type_check
def _multiply(W: Any, bias: Any, x: Any, out: Any, n: int) -> None:
    """out = W x + bias for n columns."""
    rows, inner = W.shape
    for o in range(rows):
        target = out[o]
        for b in range(n):
            target[b] = bias[o]
        whole = inner - inner % 4
        for i in range(0, whole, 4):
            w0, w1, w2, w3 = W[o, i], W[o, i + 1], W[o, i + 2], W[o, i + 3]
            x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
            for b in range(n):
                target[b] += (w0 * x0[b] + w1 * x1[b]) + (w2 * x2[b] + w3 * x3[b])
        for i in range(whole, inner):
            w0, x0 = W[o, i], x[i]
            for b in range(n):
                target[b] += w0 * x0[b]


@kernel
@no_type_check
def _add_sizes(x: Any, size: Any, n: int) -> None:
    """size = sum of the magnitudes of each column; infinite or NaN if any entry is."""
    for b in range(n):
        size[b] = 0.0
    for i in range(x.shape[0]):
        row = x[i]
        for b in range(n):
            size[b] += abs(row[b])


@kernel
@no_type_check
def _normalise(norm: Any, x: Any, out: Any, error: Any, size: Any, n: int) -> None:
    """Step 2 of the theorem: out is the norm of x; error and size go from those of x to those of out. x and out may be the same."""
    d = x.shape[0]
    root = np.sqrt(float(d)) * SLACK
    mean = np.zeros(n)
    square = np.zeros(n)
    if norm.kind == LAYER_NORM:
        for i in range(d):
            row = x[i]
            for b in range(n):
                mean[b] += row[b]
        for b in range(n):
            mean[b] /= d
    for i in range(d):
        row, target = x[i], out[i]
        for b in range(n):
            c = row[b] - mean[b]
            target[b] = c
            square[b] += c * c
    gamma = (d + 8) * _GAMMA
    for b in range(n):
        sigma = np.sqrt(square[b] / d + norm.eps)
        centred = error[b] + TINY
        if norm.kind == LAYER_NORM:
            centred = SLACK * (error[b] + gamma * size[b]) + TINY
        sigma_error = SLACK * (centred / np.sqrt(float(d)) + 1.01 * gamma * sigma) + _SQUARES_UNDERFLOW
        inverse = 1.0 / sigma if sigma > 0 else 0.0
        if sigma > 4.0 * sigma_error:
            relative = (2.0 * centred + root * _SQUARES_UNDERFLOW) * inverse + root * (1.02 * gamma + 8.0 * _U)
            rounded = 4.0 * _U * (3.0 * root * norm.weight_upper + norm.bias_upper)
            error[b] = SLACK * (norm.weight_upper * relative + rounded) + TINY * (1.0 + norm.weight_upper)
        else:
            error[b] = np.inf
        square[b] = inverse
    for i in range(d):
        target, w, bias = out[i], norm.weight[i], norm.bias[i]
        for b in range(n):
            target[b] = (target[b] * square[b]) * w + bias
    _add_sizes(out, size, n)


@kernel
@no_type_check
def _exp_negative(t: float) -> float:
    """exp(-t) for t >= 0: see the module's docstring."""
    x = -min(t, _FURTHEST)
    n = (x * INVERSE_LN2 + _ROUNDER) - _ROUNDER
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    value = _POLYNOMIAL[0]
    for j in range(1, 14):
        value = value * r + _POLYNOMIAL[j]
    return value * _POWERS[int(-n)]


@kernel
@no_type_check
def _sigmoid(z: float) -> float:
    e = _exp_negative(abs(z))
    return 1.0 / (1.0 + e) if z >= 0 else e / (1.0 + e)


@kernel
@no_type_check
def _normal(y: float) -> float:
    """The distribution function of the normal distribution."""
    z = abs(y) * _SQRT_HALF
    value = 1.0
    if z < LAST:
        cell = int(z * CELLS_PER_UNIT)
        h = z - (2 * cell + 1) / (2.0 * CELLS_PER_UNIT)
        value = COEFFICIENTS[cell, 0]
        for j in range(1, DEGREE + 1):
            value = value * h + COEFFICIENTS[cell, j]
    return 0.5 * (1.0 + value) if y >= 0 else 0.5 * (1.0 - value)


@kernel
@no_type_check
def activate(act: int, y: float) -> float:
    """What a neuron answers, off by at most 2^-43 |y| + 2^-1000 (1 + |y|); ReLU is exact. Of a y that is not finite nothing is said."""
    if not abs(y) < np.inf:
        return y
    if act == GELU:
        return y * _normal(y)
    if act == GELU_TANH:
        return y * _sigmoid(_SQRT_8_OVER_PI * (y + _CUBIC * (y * (y * y))))
    if act == SILU:
        return y * _sigmoid(y)
    return max(y, 0.0)


@kernel
@no_type_check
def _add_neurons(e: Any, c: Any, n: int) -> None:
    """Step 3: the stream and its error after the MLP, which reads `normed`."""
    mlp = e.mlp
    d_mlp, d = mlp.W_in.shape
    _multiply(mlp.W_in, mlp.b_in, c.normed, c.hidden, n)
    gamma_in, gamma_out = (d + 4) * _GAMMA, (d_mlp + 6) * _GAMMA
    for b in range(n):
        rounding = gamma_in * (mlp.in_upper * c.normed_size[b] + mlp.b_in_upper)
        c.normed_error[b] = SLACK * (c.normed_error[b] * mlp.in_upper + rounding) + TINY
    _add_sizes(c.hidden, c.normed_size, n)
    for b in range(n):
        if mlp.act == RELU:
            c.normed_error[b] += TINY * c.normed_size[b]
        else:
            own = _NEURON_ERROR * c.normed_size[b]
            c.normed_error[b] = SLACK * (_SLOPE * c.normed_error[b] + own) + TINY * (1.0 + c.normed_size[b])
    for j in range(d_mlp):
        row = c.hidden[j]
        if mlp.act == RELU:
            for b in range(n):
                row[b] = max(row[b], 0.0)
        else:
            for b in range(n):
                row[b] = activate(mlp.act, row[b])
    _add_sizes(c.hidden, c.normed_size, n)
    _multiply(mlp.W_out, mlp.b_out, c.hidden, c.added, n)
    for b in range(n):
        rounding = gamma_out * (mlp.out_upper * c.normed_size[b] + mlp.b_out_upper + c.size[b])
        c.error[b] = SLACK * (c.error[b] + c.normed_error[b] * mlp.out_upper + rounding) + TINY
    for i in range(d):
        row, more = c.stream[i], c.added[i]
        for b in range(n):
            row[b] += more[b]
    _add_sizes(c.stream, c.size, n)


@kernel
@no_type_check
def _read_out(e: Any, c: Any, n: int) -> None:
    """From streams and their errors to logits and theirs."""
    _add_sizes(c.stream, c.size, n)
    if e.post_norm and e.norm_2.kind != NONE:
        _normalise(e.norm_2, c.stream, c.stream, c.error, c.size, n)
    if e.mlp.act != NONE:
        for b in range(n):
            c.normed_error[b], c.normed_size[b] = c.error[b], c.size[b]
        if e.norm_2.kind != NONE and not e.post_norm:
            _normalise(e.norm_2, c.stream, c.normed, c.normed_error, c.normed_size, n)
        else:
            for i in range(c.stream.shape[0]):
                row, target = c.stream[i], c.normed[i]
                for b in range(n):
                    target[b] = row[b]
        _add_neurons(e, c, n)
    if e.norm_final.kind != NONE:
        _normalise(e.norm_final, c.stream, c.stream, c.error, c.size, n)
    _multiply(e.W_U, e.unembedding_bias, c.stream, c.logits, n)
    gamma = (c.stream.shape[0] + 6) * _GAMMA
    for b in range(n):
        rounding = gamma * (e.U_upper * c.size[b] + e.unembedding_bias_upper)
        c.error[b] = SLACK * (c.error[b] * e.U_upper + rounding) + TINY


@kernel
@no_type_check
def _judge(e: Any, c: Any, n: int) -> None:
    """Verdicts for the labels of n columns whose streams, errors and labels are there."""
    if not e.affine:
        _read_out(e, c, n)
    logits = c.stream if e.affine else c.logits
    n_out = logits.shape[0]
    cut, above, verdicts = c.normed_error, c.normed_size, c.verdicts
    for b in range(n):
        cut[b] = logits[c.labels[b], b] - 3.0 * c.error[b]
        above[b] = 0.0
    for o in range(n_out):
        row = logits[o]
        for b in range(n):
            above[b] += 1.0 if row[b] >= cut[b] else 0.0
    for b in range(n):
        label = c.labels[b]
        verdicts[b] = UNCERTAIN
        if e.tied[label]:
            verdicts[b] = WRONG
        elif c.error[b] <= LIMIT:
            if above[b] == 1.0:
                verdicts[b] = CORRECT
            else:
                high = logits[label, b] + 3.0 * c.error[b]
                for o in range(n_out):
                    if o != label and logits[o, b] > high:
                        verdicts[b] = WRONG
                        break


@kernel
@no_type_check
def _gather(e: Any, c: Any, sequences: Any) -> None:
    """Step 1 for a few sequences, one per row: their streams and errors, one per column."""
    heads, n_ctx, _, d = e.values.shape
    total = np.zeros(d)
    for b in range(len(sequences)):
        row = sequences[b]
        query = row[n_ctx - 1]
        for j in range(d):
            c.stream[j, b] = e.base[query, j]
        c.error[b] = e.stream_error
        for h in range(heads):
            mass = 0.0
            for j in range(d):
                total[j] = 0.0
            for i in range(n_ctx):
                weight, value = e.attention[h, query, i, row[i]], e.values[h, i, row[i]]
                mass += weight
                for j in range(d):
                    total[j] += weight * value[j]
            inverse = 1.0 / mass if mass > 0 else np.inf
            c.error[b] += e.underflow[h] * inverse
            for j in range(d):
                c.stream[j, b] += total[j] * inverse


@kernel
@no_type_check
def decide_block(e: Any, sequences: Any, labels: Any, verdicts: Any) -> None:
    """Write CORRECT, WRONG or UNCERTAIN for each given sequence (one per row) and its label."""
    c = columns(e, _BATCH)
    for first in range(0, len(sequences), _BATCH):
        n = min(_BATCH, len(sequences) - first)
        _gather(e, c, sequences[first : first + n])
        for b in range(n):
            c.labels[b] = labels[first + b]
        _judge(e, c, n)
        for b in range(n):
            verdicts[first + b] = c.verdicts[b]


@kernel
@no_type_check
def evaluate_block(e: Any, sequences: Any, logits: Any, errors: Any) -> None:
    """Write the logits of each given sequence, and how far each of them may be from the exact one (not, if infinite or NaN)."""
    c = columns(e, 1)
    for row in range(len(sequences)):
        _gather(e, c, sequences[row : row + 1])
        if not e.affine:
            _read_out(e, c, 1)
        found = c.stream if e.affine else c.logits
        size = 0.0
        for o in range(found.shape[0]):
            logits[row, o] = found[o, 0]
            size += abs(found[o, 0])
        errors[row] = c.error[0] if c.error[0] <= LIMIT and size < np.inf else np.inf


@kernel
@no_type_check
def count_block(e: Any, walk: Walk, start: int, stop: int, uncertain: Any) -> tuple[int, int]:
    """Evaluate all sequences with the query and the fixed tokens of `walk` and prefixes start..stop-1.

    Prefixes number the allowed tokens of the positions before `inner`, the first position highest. Returns how many sequences are certainly
    correct and how many are uncertain; the codes (prefix * counts[inner] + number of the inner token) of the first uncertain ones are
    written to `uncertain`. Sums over the prefix are shared by all sequences that begin with it.
    """
    heads, n_ctx, _, d = e.values.shape
    inner, query = walk.inner, walk.tokens[n_ctx - 1]
    wide = walk.counts[inner]
    choices = walk.choices[inner, :wide]
    piece = min(wide, 128)
    group = max(1, 64 // piece)
    c = columns(e, group * piece)

    inner_terms = np.empty((heads, d, wide))
    for h in range(heads):
        for t in range(wide):
            weight, value = e.attention[h, query, inner, choices[t]], e.values[h, inner, choices[t]]
            for j in range(d):
                inner_terms[h, j, t] = weight * value[j]
    inner_labels = np.empty((walk.transitions.shape[0], wide), np.int64)
    for s in range(walk.transitions.shape[0]):
        for t in range(wide):
            state = walk.transitions[s, choices[t]]
            for i in range(inner + 1, n_ctx):
                state = walk.transitions[state, walk.tokens[i]]
            inner_labels[s, t] = walk.labels[state]

    sums, mass, state = np.zeros((inner + 1, heads, d)), np.zeros((inner + 1, heads)), np.zeros(inner + 1, np.int64)
    state[0] = walk.start_state
    for i in range(inner + 1, n_ctx):
        t = walk.tokens[i]
        for h in range(heads):
            weight = e.attention[h, query, i, t]
            mass[0, h] += weight
            for j in range(d):
                sums[0, h, j] += weight * e.values[h, i, t, j]
    places = np.zeros(inner, np.int64)
    remainder = start
    for i in range(inner - 1, -1, -1):
        places[i] = remainder % walk.counts[i]
        remainder //= walk.counts[i]

    correct = n_uncertain = 0
    valid = 0  # sums[0..valid] belong to the current places
    prefix = start
    while prefix < stop:
        together = min(group, stop - prefix)
        for first in range(0, wide, piece):
            n_piece = min(piece, wide - first)
            for g in range(together):
                if first == 0:
                    for i in range(valid, inner):
                        t = walk.choices[i, places[i]]
                        for h in range(heads):
                            weight, value = e.attention[h, query, i, t], e.values[h, i, t]
                            mass[i + 1, h] = mass[i, h] + weight
                            for j in range(d):
                                sums[i + 1, h, j] = sums[i, h, j] + weight * value[j]
                        state[i + 1] = walk.transitions[state[i], t]
                begin = g * n_piece
                error, labels = c.error[begin : begin + n_piece], c.labels[begin : begin + n_piece]
                for b in range(n_piece):
                    error[b] = e.stream_error
                    labels[b] = inner_labels[state[inner], first + b]
                for h in range(heads):
                    inverse, loss = c.mass[h, begin : begin + n_piece], e.underflow[h]
                    for b in range(n_piece):
                        whole = mass[inner, h] + e.attention[h, query, inner, choices[first + b]]
                        inverse[b] = 1.0 / whole if whole > 0 else np.inf
                        error[b] += loss * inverse[b]
                for j in range(d):
                    target = c.stream[j, begin : begin + n_piece]
                    for b in range(n_piece):
                        target[b] = e.base[query, j]
                    for h in range(heads):
                        common, terms = sums[inner, h, j], inner_terms[h, j, first : first + n_piece]
                        inverse = c.mass[h, begin : begin + n_piece]
                        for b in range(n_piece):
                            target[b] += (common + terms[b]) * inverse[b]
                if first == 0:
                    valid = inner
                    while valid > 0:
                        valid -= 1
                        places[valid] += 1
                        if places[valid] < walk.counts[valid]:
                            break
                        places[valid] = 0
            n = together * n_piece
            _judge(e, c, n)
            for b in range(n):
                if c.verdicts[b] == CORRECT:
                    correct += 1
                elif c.verdicts[b] == UNCERTAIN:
                    if n_uncertain < uncertain.shape[0]:
                        uncertain[n_uncertain] = (prefix + b // n_piece) * wide + first + b % n_piece
                    n_uncertain += 1
        prefix += together
    return correct, n_uncertain
