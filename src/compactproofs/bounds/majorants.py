"""Differences of logits of a whole block, bounded over the sequences of a leaf by blends, and the harms that follow.

r is the stream after attention, r^ its centre, s the divisor of the norm before the MLP and s_f of the final one (1 where there is none).
With D = U_o - U_m, db = b_o - b_m, a positive multiple of the difference of two logits is

    s s_f (logit_o - logit_m) = s (r + b_out) . D + sum_j (W_out D)_j s act(y_j / s) + s s_f db.

Norms, neurons and the two ends of s are in `norm_bounds` and `neuron_bounds` (Theorems N, L, A, J). The rest:

- **D (direct path).** s (r - r^) . D is, at either end of s, at most the average of max(low d . D, high d . D), d being the values less
  their centres and [low, high] the range of that end: each average has weights that are not negative, and s lies in the range.
- **F (final norm).** Write x = s r_out. db < 0: s s_f >= <e, C x> / sqrt(d), which goes into D. db > 0: `final_norm`; without an MLP s_f is
  convex in r, and J will do.

Source: docs/explanation/blocks.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from compactproofs.bounds.final_norm import final_lengths_upper
from compactproofs.bounds.jensen import jensen
from compactproofs.bounds.neuron_bounds import Ends, Neurons
from compactproofs.bounds.norm_bounds import Divisor, along, perspective, require_direction
from compactproofs.bounds.relaxation import FinalHints, Relaxation
from compactproofs.bounds.scene import Blend
from compactproofs.bounds.stream import Stream, UnprovenError


@dataclass(frozen=True, eq=False)
class Majorants:
    """Bounds of the readout over one leaf of one query."""

    stream: Stream
    neurons: Neurons | None
    final: FinalHints | None

    @classmethod
    def of(cls, stream: Stream, hints: Relaxation) -> Majorants:
        """With everything checked that hints say of the leaf; raises `UnprovenError` where that is not certain."""
        form, divisor, neurons = stream.form, None, None
        _require_shapes(stream, hints)
        if form.mlp is not None:
            if form.sigma_2 is not None:
                divisor = Divisor(stream, form.sigma_2, _given(hints.norm, "norm before the MLP"))
                require_all(stream, divisor.premises())
            ends = Ends.of(stream, divisor)
            require_all(stream, ends.premises())
            neurons = Neurons(stream, form.mlp, ends, _given(hints.neurons, "neurons"))
            require_all(stream, neurons.premises())
        return cls(stream, neurons, None if form.sigma_final is None else _given(hints.final, "final norm"))

    def stream_upper(self, D: Any, rest: Any) -> list[Blend]:
        """Blends the larger of which (L) is at least s (r_out . D + rest), for each column of D (d_model, column)."""
        stream, neurons = self.stream, self.neurons
        if neurons is None:
            found = stream.linear(D)
            return [Blend(found.constant + rest, found.parts)]
        mlp, lines, behind = neurons.mlp, neurons.lines, neurons.ends.behind_norm
        c = mlp.W_out @ D
        positive, negative = np.maximum(c, 0.0), np.minimum(c, 0.0)
        slopes = positive * lines.up_slope[:, None] + negative * lines.down_slope[:, None]
        rests = (lines.up_rest[None] @ positive + lines.down_rest[None] @ negative)[0]
        times_s = (stream.centre + mlp.b_out) @ D + mlp.b_in @ slopes + rest
        still, times_s = (rests, times_s) if neurons.homogeneous else (0.0, times_s + rests)
        E = mlp.W_in @ slopes
        linear = stream.linear(E if behind else E + D)
        direct = stream.spread @ D if behind else None
        cases = []
        for x, end in enumerate(neurons.ends.blends):
            constant, parts = linear.constant + still, linear.parts
            if direct is None:
                constant = constant + times_s - stream.centre @ D  # which is in `linear` too
            else:
                constant = constant + times_s * end.constant
                parts = parts + end.parts * times_s + np.maximum(direct * neurons.ends.low[x], direct * neurons.ends.high[x])
            if len(neurons.bent):
                for curve, factor in zip(neurons.curves[x], (positive[neurons.bent], -negative[neurons.bent]), strict=True):
                    if curve is not None:
                        constant, parts = constant + curve.constant @ factor, parts + curve.parts @ factor
            cases.append(Blend(constant, parts))
        return cases

    def larger(self, cases: list[Blend]) -> Blend:
        """One blend that is at least each of them. Averages of a constant are the constant: heads take portions of it that add up to 1."""
        if len(cases) == 1:
            return cases[0]
        portions = _portions(self.stream.scene.n_heads)[:, None, None, None]
        parts = np.maximum(*(case.parts + case.constant * portions for case in cases))
        return Blend(self.stream.arithmetic.array(np.zeros(parts.shape[-1])), parts)

    def differences_upper(self, D: Any, db: Any) -> Blend:
        """At least a positive multiple of (r_out . D) / s_f + db, for each column: differences of logits."""
        stream, hints, sigma = self.stream, self.final, self.stream.form.sigma_final
        if hints is None or sigma is None:
            return self.larger(self.stream_upper(D, db))
        require_direction(hints.down)
        nothing = stream.arithmetic.array(np.zeros(D.shape[1]))
        positive, negative = np.maximum(db, 0.0), np.minimum(db, 0.0)
        D = D + along(hints.down, sigma, stream.arithmetic) * negative
        if self.neurons is None:
            lengths = [jensen(perspective(sigma, stream.arithmetic), Blend(stream.centre, stream.spread), hints.shares[:, None])]
        else:
            lengths = final_lengths_upper(self.neurons, sigma, hints.shares)
        cases = zip(self.stream_upper(D, nothing), lengths, strict=True)
        return self.larger([Blend(x.constant + s.constant * positive, x.parts + s.parts * positive) for x, s in cases])

    def harms(self, blend: Blend) -> Any:
        """(column, position, token), for several heads: their sum along a sequence is at least the blend (Theorem P), around the typical
        averages of each head."""
        stream = self.stream
        typical = stream.arithmetic.array(stream.averages(blend.parts))
        X, constant = blend.parts - typical[:, None, None], blend.constant + typical.sum(axis=0)
        low, high = stream.scene.shares
        found = None
        for h in range(stream.scene.n_heads):
            F = np.maximum(X[h] * low[h][:, :, None], X[h] * high[h][:, :, None])
            found = F if found is None else found + F
        return np.moveaxis(np.concatenate([found[:-1], (found[-1] + constant)[None]], axis=0), 2, 0)  # type: ignore[index]


def require_all(stream: Stream, premises: Iterator[tuple[Blend, str]]) -> None:
    """Raise unless every one is nowhere positive."""
    for blend, what in premises:
        stream.require(blend, what)


def _require_shapes(stream: Stream, hints: Relaxation) -> None:
    """Raise unless hints have an entry for each coordinate, neuron and head: numpy would let one stand for many."""
    form, heads, d = stream.form, stream.scene.n_heads, stream.form.values.shape[-1]
    expected: list[tuple[Any, tuple[int, ...]]] = []
    for norm in (hints.norm, hints.final):
        if norm is not None:
            expected += [(norm.down, (d,)), (norm.shares, (heads,))]
    if hints.norm is not None:
        expected += [(hints.norm.up, (d,)), (hints.norm.spread, (d,))]
    if hints.neurons is not None and form.mlp is not None:
        n, own = form.mlp.b_in.shape[0], hints.neurons
        expected += [(x, (n,)) for x in (own.low, own.high, own.point, own.bent)] + [(own.shares, (heads, n))]
        if own.bent.dtype != np.bool_:
            raise UnprovenError("whether neurons are bent is no boolean")
    if any(array.shape != shape for array, shape in expected):
        raise UnprovenError("hints have the wrong shape")


def _given(hints: Any, what: str) -> Any:
    if hints is None:
        raise UnprovenError(f"there are no hints for the {what}")
    return hints


def _portions(heads: int) -> np.ndarray:
    """(head,): numbers that add up to 1 exactly."""
    found = np.full(heads, (1024 // heads) / 1024)
    found[-1] = 1.0 - found[:-1].sum()
    return found
