"""The additive form of a whole block: what attention averages, and the readout behind it with its norms folded into its matrices.

For a query q, head h has weights a_h(i, t) > 0 and values v_h(i, t) in the residual stream, which is r = base[q] + the sum over heads of
the a_h-weighted averages of v_h. Behind it, with C the centring matrix (the identity for RMS) and sigma(x) = sqrt(|C x|^2 / d + eps):

    y = (r W_in) / sigma_2(r) + b_in        W_in = C diag(gamma_2) W_in, b_in = beta_2 W_in + b_in    (of the network)
    s = r + act(y) W_out + b_out
    logits = (s W_U) / sigma_f(s) + b_U     W_U = C diag(gamma_f) W_U, b_U = beta_f W_U + b_U

A norm that is absent has sigma = 1. Nothing is approximated: these are the network's own numbers, written in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic, Rigorous
from compactproofs.arrays.uniform import Uniform
from compactproofs.errors import UnsupportedError
from compactproofs.form.block import block_numbers
from compactproofs.memory import require_memory
from compactproofs.model.network import Activation, Network, Norm, NormKind


@dataclass(frozen=True)
class Sigma:
    """What a norm divides by."""

    centred: bool
    """Whether the mean is taken off first."""
    eps: float


@dataclass(frozen=True)
class FoldedMlp:
    """The hidden layer, the norm before it folded in. Matrices are in some arithmetic."""

    act: Activation
    W_in: Any
    """(d_model, d_mlp)"""
    b_in: Any
    W_out: Any
    """(d_mlp, d_model)"""
    b_out: Any


@dataclass(frozen=True)
class WholeBlock:
    """The form of one network, in some arithmetic."""

    attention: tuple[np.ndarray, np.ndarray]
    """(head, query, position, token): lower and upper bounds, between 0 and 1, of exp(score) over the largest of each head and query"""
    values: Any
    """(head, position, token, d_model)"""
    base: Any
    """(query, d_model)"""
    sigma_2: Sigma | None
    mlp: FoldedMlp | None
    sigma_final: Sigma | None
    W_U: Any
    """(d_model, output)"""
    b_U: Any
    """(output,): behind the norm"""
    memory: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What leaves have in common; it is about these numbers"""

    @property
    def n_heads(self) -> int:
        return int(self.values.shape[0])

    def converted(self, convert: Callable[[Any], Any]) -> WholeBlock:
        """The same numbers as other arrays."""
        mlp = self.mlp
        if mlp is not None:
            mlp = replace(mlp, **{name: convert(getattr(mlp, name)) for name in ("W_in", "b_in", "W_out", "b_out")})
        arrays = {name: convert(getattr(self, name)) for name in ("values", "base", "W_U", "b_U")}
        return replace(self, mlp=mlp, **arrays)


def whole_block(network: Network, arithmetic: AbstractArithmetic) -> WholeBlock:
    """The form of a network, in an arithmetic.

    Guarantee: in intervals, every number encloses that of the real-number network.
    Cost: O(n_heads n_ctx d_vocab (d_vocab d_head + d_model d_head) + d_model (d_mlp + d_vocab_out)).
    """
    require_pre_norm(network)
    v, k, heads, d = network.d_vocab, network.n_ctx, network.n_heads, network.d_model
    what = f"a table of attention to {v} tokens at {k} positions for {v} queries"
    require_memory(8 * 8 * heads * v * v * k, what, "ask about fewer positions (--n-ctx) or a smaller vocabulary")
    with arithmetic.step("before attention"):
        numbers = block_numbers(network, np.tile(np.arange(v), (k, 1)), arithmetic)
    with arithmetic.step("attention"):
        attention = [np.exp(s - s.max(axis=1)[:, None]) for s in numbers.scores]
    values = np.stack(list(numbers.values)).reshape(heads, k, v, d)
    with arithmetic.step("readout"):
        W_U, b_U = _folded(network.norm_final, network.W_U, network.b_U, arithmetic)
        mlp = None
        if network.mlp is not None:
            W_in, b_in = _folded(network.norm_2, network.mlp.W_in, network.mlp.b_in, arithmetic)
            b_out = network.mlp.b_out if network.mlp.b_out is not None else np.zeros(d, np.float32)
            mlp = FoldedMlp(network.mlp.act, W_in, b_in, arithmetic.array(network.mlp.W_out), arithmetic.array(b_out))
    norms = [None if norm is None else Sigma(norm.kind is NormKind.LN, norm.eps) for norm in (network.norm_2, network.norm_final)]
    low, high = (np.stack([_end(a, end) for a in attention]).reshape(heads, v, k, v) for end in ("lower", "upper"))
    # relative to the largest, no weight is above 1, and none is negative, whatever is known of the scores
    bounds = np.where(np.isnan(low), 0.0, low), np.where(np.isnan(high), 1.0, np.minimum(high, 1.0))
    return WholeBlock(bounds, values, numbers.base, norms[0], mlp, norms[1], W_U, b_U)


def uniform_block(network: Network) -> WholeBlock:
    """The form in arrays with one error each: enclosed by intervals first."""
    return whole_block(network, Rigorous()).converted(Uniform.enclosing)


def require_pre_norm(network: Network) -> None:
    """Raise unless norms stand before what reads them."""
    if network.post_norm and (network.norm_2 is not None or network.mlp is not None):
        raise UnsupportedError(
            "threshold proofs are about norms before attention, before the MLP and at the end; in this network they stand on the stream "
            "(post-norm). `--strategy brute-force` proves its accuracy by evaluating every sequence"
        )


def _folded(norm: Norm | None, W: np.ndarray, b: np.ndarray | None, arithmetic: AbstractArithmetic) -> tuple[Any, Any]:
    """The matrix and bias that read a norm's input over sigma."""
    matrix, bias = arithmetic.array(W), arithmetic.array(np.zeros(W.shape[1], np.float32) if b is None else b)
    if norm is None:
        return matrix, bias
    if norm.bias is not None:
        bias = bias + (arithmetic.array(norm.bias[None]) @ matrix)[0]
    if norm.weight is not None:
        matrix = matrix * arithmetic.array(norm.weight)[:, None]
    return (matrix - matrix.mean(axis=0) if norm.kind is NormKind.LN else matrix), bias


def _end(a: Any, end: str) -> np.ndarray:
    """One end of intervals; of other arrays the numbers themselves."""
    return np.asarray(getattr(a, end, a if isinstance(a, np.ndarray) else np.zeros(a.shape)))
