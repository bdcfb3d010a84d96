"""A whole block prepared for fast evaluation, with a proven bound on how wrong each comparison of logits can be.

The kernels (`counting.block_kernels`) compute the logits of a sequence in float64, and with them a number E. Theorem: if E is finite, every
computed logit is within E of the logit of the real-number network, which is then defined. If besides a computed l_o < fl(l_m - 3 E), then
logit o is below logit m; if l_o > fl(l_m + 3 E), it is above.

Notation: u = 2^-53; eta = 2^-1074; a tilde marks computed values; |x| is the Euclidean norm of a vector and |x|_1 the sum of its
magnitudes, which is not smaller, does not underflow and is infinite or NaN if any entry is. A computed operation is exact (1 + e) + f with
|e| <= u and |f| <= eta / 2, f = 0 for sums. gamma_n is Higham's. All error bounds are computed in float64 from numbers that are not
negative with fewer than forty operations each, so a factor SLACK = 1 + 2^-10 covers their relative rounding, and TINY = 2^-960, added last
at every step, is more than the underflow of that step and of its error bound together (sizes are below 2^40, weights below 2^128). Nothing
that has been added is scaled without being computed again as part of the next step's error.

1. Attention. Let s be a score, s~ its computed middle and d the error of s~ - shift, radius and rounding. (The shift keeps the weight of
the query itself, which is in every sequence, from underflowing.) Where d <= 2^-10, the weight a~ = exp_approximation(s~ - shift) satisfies
|a~ - a| <= t a + eta with t = 1.1 d + 2^-45 (entries below -800 become 0: eta). With V >= |v~| entrywise and D >= |v~ - v|, the exact
averages of the tables with weights a~ and of the exact values with weights a differ by at most D + (2.1 t + 5 k eta / Z~)(V + D): the sum
of |p~_i - p_i| is at most 2 sum |a~_i - a_i| / Z. Computing the average costs (2.1 gamma_{k+1} + 4 u) V and 2 k eta / Z~ more, and adding
up the heads and the base gamma_{H+2} of their largest magnitudes. So each entry of the stream r~ is off by at most a constant plus sum_h
c_h / Z~_h with c_h = 2^-1000 k (V_h + D_h + 1), which is far above 7 k eta (V_h + D_h + 1); times sqrt(d) as a Euclidean norm. An entry
whose enclosure is not finite, or too wide, is NaN in the tables; then so is the stream, or Z~.

2. Norm. Input |x~ - x| <= e, M = |x~|_1. Centring is a projection: e_c = e + gamma_{d+4} M bounds the error of c~ (e_c = e for RMS; the
underflow of the mean is in TINY). sigma(c) = sqrt(|c|^2 / d + eps) is 1/sqrt(d)-Lipschitz, and computed with relative error gamma_{d+8}
and, as squares may underflow, absolute error sqrt(2 eta) < 2^-530: e_s = e_c / sqrt(d) + 1.01 gamma_{d+8} sigma~ + 2^-530. If sigma~ > 4
e_s then sigma > 0, so the norm is defined, and |c~| <= 2 sqrt(d) sigma~. As |c / sigma| <= sqrt(d),

    |c~/sigma~ - c/sigma| <= (e_c + sqrt(d) e_s) / sigma~ = (2 e_c + sqrt(d) 2^-530) / sigma~ + 1.01 sqrt(d) gamma_{d+8},

and three roundings add 8 u sqrt(d); the weight multiplies by at most W, and adding the bias rounds by u (3 sqrt(d) W + |b|). If the test
fails, or anything is NaN, the error is infinite.

3. MLP. With F the Frobenius norm, |y~ - y| <= e F_in + gamma_{d+4} (F_in M + |b_in|), for any order of summation. Neurons: ReLU is exact
and 1-Lipschitz; the others have slopes of at most 2.2: |Phi + y phi| <= 1.25, |s + y s (1 - s)| <= 1.37, and for the tanh approximation, y
s(w) with |y w'| <= 3 |w|, at most 1 + 3/e. Their computed values are off by at most 2^-43 |y~| + 2^-1000 (1 + |y~|): see `block_kernels`.
The output is off by e + e_h F_out + gamma_{m+6} (F_out |h~|_1 + |b_out| + |r~|_1).

4. Logits. With U the largest Euclidean norm of a column of W_U, E = e U + gamma_{d+6} (U M + |b_U|_max), which also is more than 6 u |l~|.
So from l~_o < fl(l~_m - 3 E) follows l_o <= l~_o + E < l~_m - 3 E (1 - u) + u |l~_m| + E <= l_m + (2 + 1/6 + 3 u - 3) E < l_m; likewise
above. An E above 2^800 counts as infinite, so the dot products of finite entries do not overflow.

5. Affine readouts (no MLP, no norm after attention) are folded into the tables: values and bases are then logits, d is d_vocab_out, and E
is the bound of step 1 entry by entry; its gamma_{H+2} term is more than 3 u times the largest logit, and 2 u more are added. Rows of the
tables are NaN as a whole, and then all logits are, which no comparison finds above or below: for affine readouts, read "finite" as E and
logits. QED.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from compactproofs.arrays.arithmetic import Rigorous
from compactproofs.arrays.environment import require_ieee754
from compactproofs.arrays.exponential import RELATIVE_ERROR, exp_approximation
from compactproofs.arrays.interval import Interval
from compactproofs.arrays.rounding import UNIT_ROUNDOFF, gamma_upper
from compactproofs.form.block import block_numbers
from compactproofs.memory import require_memory
from compactproofs.model.network import Activation, Mlp, Network, Norm, NormKind

SLACK = 1.0 + 2.0**-10
TINY = 2.0**-960
LIMIT = 2.0**800
"""Error bounds beyond this count as infinite."""

NONE, LAYER_NORM, RMS_NORM = 0, 1, 2
RELU, GELU, GELU_TANH, SILU = 1, 2, 3, 4
_NORMS = {NormKind.LN: LAYER_NORM, NormKind.RMS: RMS_NORM}
_ACTIVATIONS = {Activation.RELU: RELU, Activation.GELU: GELU, Activation.GELU_TANH: GELU_TANH, Activation.SILU: SILU}

_LARGEST = 2.0**130
"""Values beyond this are left to exact arithmetic."""
_HIGHEST = 600.0
"""Weights are at most exp of this: with values of at most 2^130 and 2^20 positions, sums stay below 2^1024."""
_EXPONENT_ERROR = 2.0**-10
_CLIP = -800.0


class NormNumbers(NamedTuple):
    """A norm for compiled functions; `kind` is NONE for the identity."""

    kind: int
    eps: float
    weight: Float[np.ndarray, "d_model"]
    bias: Float[np.ndarray, "d_model"]
    weight_upper: float
    """Largest magnitude of a weight."""
    bias_upper: float
    """At least the Euclidean norm of the bias."""


class MlpNumbers(NamedTuple):
    """A hidden layer for compiled functions; `act` is NONE if there is none. Matrices have one row per output."""

    act: int
    W_in: Float[np.ndarray, "d_mlp d_model"]
    b_in: Float[np.ndarray, "d_mlp"]
    W_out: Float[np.ndarray, "d_model d_mlp"]
    b_out: Float[np.ndarray, "d_model"]
    in_upper: float
    """At least the Frobenius norm of W_in; likewise `out_upper`."""
    out_upper: float
    b_in_upper: float
    """At least the Euclidean norm; likewise `b_out_upper`."""
    b_out_upper: float


class BlockEvaluation(NamedTuple):
    """Tables for compiled functions and the constants of the theorem."""

    attention: Float[np.ndarray, "n_heads d_vocab_q n_ctx d_vocab_k"]
    """a~, scaled so that the query's own weight at the last position is 1, if none is then above exp(600)."""
    values: Float[np.ndarray, "n_heads n_ctx d_vocab_k d"]
    """v~"""
    base: Float[np.ndarray, "d_vocab_q d"]
    stream_error: float
    """The constant of step 1."""
    underflow: Float[np.ndarray, "n_heads"]
    """c_h of step 1."""
    affine: bool
    """Whether d runs over outputs, and the stream is the logits."""
    post_norm: bool
    norm_2: NormNumbers
    mlp: MlpNumbers
    norm_final: NormNumbers
    W_U: Float[np.ndarray, "d_vocab_out d"]
    unembedding_bias: Float[np.ndarray, "d_vocab_out"]
    U_upper: float
    unembedding_bias_upper: float
    tied: Bool[np.ndarray, "d_vocab_out"]
    """Labels that are never right: see `tied_labels`."""


def prepare_block(network: Network, tied: Bool[np.ndarray, "d_vocab_out"]) -> BlockEvaluation:
    """Build the evaluation tables.

    Guarantee: the theorem in this module's docstring.
    Assumes: `tied` marks only labels that are never right.
    Cost: O(n_heads n_ctx d_vocab (d_vocab d_head + d_model^2)).
    """
    require_ieee754()
    v, k, heads = network.d_vocab, network.n_ctx, network.n_heads
    affine = network.mlp is None and network.norm_final is None and not (network.post_norm and network.norm_2 is not None)
    what = f"a table of attention scores for {v} queries, {k} positions and {v} tokens"
    require_memory(8 * 8 * heads * v * v * k, what, "ask about fewer positions (--n-ctx) or a smaller vocabulary")
    numbers = block_numbers(network, np.tile(np.arange(v), (k, 1)), Rigorous())
    values, base = numbers.values, numbers.base
    if affine:
        W_U = Interval.exact(network.W_U)
        values, base = [x @ W_U for x in values], base @ W_U
        base = base if network.b_U is None else base + Interval.exact(network.b_U)
    d = base.shape[1]

    attention, weight_errors = zip(*(_weights(scores) for scores in numbers.scores), strict=True)
    middles, errors = zip(*(_rows(x) for x in values), strict=True)
    base_middle, base_error = _rows(base)
    base_size = _largest(base_middle)
    sizes = [_largest(middle) for middle in middles]
    error = base_error + (gamma_upper(heads + 2) + 2 * UNIT_ROUNDOFF) * (base_size + 1.1 * sum(sizes))
    for weight_error, value_error, size in zip(weight_errors, errors, sizes, strict=True):
        error += value_error + (2.1 * weight_error + 2.1 * gamma_upper(k + 1) + 4 * UNIT_ROUNDOFF) * (size + value_error)
    spread = 1.0 if affine else sqrt(d)
    return BlockEvaluation(
        attention=np.stack(attention).reshape(heads, v, k, v),
        values=np.stack(middles).reshape(heads, k, v, d),
        base=base_middle,
        stream_error=1.1 * spread * error + TINY,
        underflow=np.array([1.1 * spread * k * 2.0**-1000 * (s + e + 1.0) for s, e in zip(sizes, errors, strict=True)]),
        affine=affine,
        post_norm=network.post_norm,
        norm_2=_norm(network.norm_2, network.d_model),
        mlp=_mlp(network.mlp, network.d_model),
        norm_final=_norm(network.norm_final, network.d_model),
        W_U=_double(network.W_U.T),
        unembedding_bias=np.zeros(network.d_vocab_out) if network.b_U is None else _double(network.b_U),
        U_upper=float(np.sqrt((_double(network.W_U) ** 2).sum(axis=0)).max()) * SLACK,
        unembedding_bias_upper=0.0 if network.b_U is None else float(np.abs(network.b_U).max()),
        tied=tied,
    )


def _weights(scores: Interval) -> tuple[np.ndarray, float]:
    """Weights of one head, NaN where a score is not known well enough; and t of step 1."""
    with np.errstate(invalid="ignore", over="ignore"):
        middle, radius = scores.midpoint_radius()
        known = np.isfinite(middle) & np.isfinite(radius)
        top, own = np.where(known, middle, -np.inf).max(axis=1), middle[np.arange(len(middle)), np.arange(-len(middle), 0)]
        shift = np.clip(own, top - _HIGHEST, top)[:, None]
        exponent = middle - shift
        matters = ~(exponent + radius < _CLIP / 1.05)  # elsewhere the weight is below 2^-1074, computed and exact
        good = known & (~matters | ((radius <= _EXPONENT_ERROR) & (exponent >= _CLIP)))
        largest = float(np.where(good & matters, radius, 0.0).max()) - 2 * UNIT_ROUNDOFF * _CLIP
        attention = exp_approximation(np.where(matters, exponent, 2 * _CLIP))
    return np.where(good, attention, np.nan), 1.1 * largest + 2 * RELATIVE_ERROR


def _rows(table: Interval) -> tuple[np.ndarray, float]:
    """Middles, a row being NaN if any of its entries is not known well; and the largest error of the others."""
    with np.errstate(invalid="ignore", over="ignore"):
        middle, radius = table.midpoint_radius()
        good = (np.isfinite(radius) & (np.abs(middle) <= _LARGEST) & (radius <= _LARGEST)).all(axis=1, keepdims=True)
    return np.where(good, middle, np.nan), float(np.where(good, radius, 0.0).max())


def _largest(middle: np.ndarray) -> float:
    return float(np.nan_to_num(np.abs(middle), nan=0.0).max())


def _norm(norm: Norm | None, d: int) -> NormNumbers:
    weight = np.ones(d) if norm is None or norm.weight is None else _double(norm.weight)
    bias = np.zeros(d) if norm is None or norm.bias is None else _double(norm.bias)
    kind, eps = (NONE, 0.0) if norm is None else (_NORMS[norm.kind], norm.eps)
    return NormNumbers(kind, eps, weight, bias, float(np.abs(weight).max()), _norm_upper(bias))


def _mlp(mlp: Mlp | None, d: int) -> MlpNumbers:
    if mlp is None:
        return MlpNumbers(NONE, np.zeros((0, d)), np.zeros(0), np.zeros((d, 0)), np.zeros(d), 0.0, 0.0, 0.0, 0.0)
    W_in, W_out = _double(mlp.W_in.T), _double(mlp.W_out.T)
    b_in = np.zeros(len(W_in)) if mlp.b_in is None else _double(mlp.b_in)
    b_out = np.zeros(d) if mlp.b_out is None else _double(mlp.b_out)
    uppers = [_norm_upper(x) for x in (W_in, W_out, b_in, b_out)]
    return MlpNumbers(_ACTIVATIONS[mlp.act], W_in, b_in, W_out, b_out, *uppers)


def _norm_upper(x: np.ndarray) -> float:
    """At least the Euclidean (Frobenius) norm of float32 numbers: their squares neither overflow nor underflow."""
    return float(np.sqrt((x * x).sum())) * SLACK


def _double(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x, dtype=np.float64)
