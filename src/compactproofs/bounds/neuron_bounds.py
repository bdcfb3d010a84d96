"""Theorems L and A: norms before neurons, and neurons, bounded over a leaf.

**L (two ends).** Let L <= s <= H be blends around what the norm before the MLP divides by (s = 1 if there is none). On each sequence s =
(1 - c) L + c H for one c in [0, 1]. A bound that is convex in s, the rest of the stream given, is at most the larger of its values at
L and H. All bounds here are: y_j = w_j . r + b_j s is affine in s, lines stay lines, and a convex function of y_j is convex in s.

**A (neurons).** act = g1 - g2, both convex (`activations`). Wanted are bounds of s act(y / s).

- Upper: (chord or J of g1) - tangent of g2. Lower: tangent of g1 - (chord or J of g2). A tangent is below a convex function everywhere, a
  chord above it between the points that it joins.
- ReLU: s act(y / s) = act(y), as s > 0. So a chord needs a range of y, and J applies to act(y).
- Others behind a norm: from low <= y / s <= high, that is y - high s <= 0 <= y - low s, follows s act(y / s) <= slope y + rest s. No J.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from compactproofs.bounds.activations import Parts
from compactproofs.bounds.jensen import jensen
from compactproofs.bounds.norm_bounds import LEAST, MORE, Divisor
from compactproofs.bounds.relaxation import NeuronHints
from compactproofs.bounds.scene import Blend
from compactproofs.bounds.stream import Stream, UnprovenError
from compactproofs.form.whole_block import FoldedMlp
from compactproofs.model.network import Activation


@dataclass(frozen=True)
class Lines:
    """By neuron: slope y + rest (of others than ReLU: rest s) above and below s act(y / s), but for what J adds to bent ones."""

    up_slope: Any
    up_rest: Any
    down_slope: Any
    down_rest: Any


@dataclass(frozen=True)
class References:
    """By neuron: slope y + rest (of others than ReLU: rest s), near s act(y / s)."""

    slope: Any
    rest: Any


@dataclass(frozen=True, eq=False)
class Ends:
    """L and H, or the constant 1 alone; and the range of each."""

    blends: tuple[Blend, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def behind_norm(self) -> bool:
        return len(self.blends) == 2

    @classmethod
    def of(cls, stream: Stream, divisor: Divisor | None) -> Ends:
        """Assumes: `premises`, and those of the divisor."""
        if divisor is None:
            return cls((stream.constant(1.0),), (1.0,), (1.0,))
        if not (divisor.sigma.eps > 0.0 or divisor.hints.low[0] > 0.0):
            raise UnprovenError("the norm before the MLP may be zero")
        return cls((divisor.lower, divisor.upper), divisor.hints.low, divisor.hints.high)

    def premises(self) -> Iterator[tuple[Blend, str]]:
        """What must be nowhere positive for the ranges."""
        for blend, low, high in zip(self.blends, self.low, self.high, strict=True) if self.behind_norm else ():
            yield Blend(low - blend.constant, -blend.parts), "a bound of the norm before the MLP may be smaller"
            yield blend.minus(high), "a bound of the norm before the MLP may be larger"


@dataclass(frozen=True, eq=False)
class Neurons:
    """The neurons of an MLP on a leaf."""

    stream: Stream
    mlp: FoldedMlp
    ends: Ends
    hints: NeuronHints

    @cached_property
    def read(self) -> Blend:
        """w_j . r"""
        return self.stream.linear(self.mlp.W_in)

    def inputs(self, x: int, which: np.ndarray, less: Any = 0.0) -> Blend:
        """y_j - less_j s of some neurons, at one end of s."""
        constant, parts, b = self.read.constant[which], self.read.parts[..., which], self.mlp.b_in[which] - less
        if not self.ends.behind_norm:
            return Blend(constant + b, parts)
        end = self.ends.blends[x]
        return Blend(constant + b * end.constant, parts + end.parts * b)

    @property
    def homogeneous(self) -> bool:
        """Whether s act(y / s) = act(y)."""
        return self.mlp.act is Activation.RELU

    @cached_property
    def parts(self) -> Parts:
        return Parts(self.mlp.act, self.stream.arithmetic)

    def premises(self) -> Iterator[tuple[Blend, str]]:
        """What must be nowhere positive for chords: low <= y <= high at both ends of s (of others than ReLU: low s, high s)."""
        hints = self.hints
        for x in range(len(self.ends.blends)):
            for bound, above in ((hints.high, True), (hints.low, False)):
                which = np.flatnonzero(~hints.bent & np.isfinite(bound))
                if len(which):
                    found = self.inputs(x, which).minus(bound[which]) if self.homogeneous else self.inputs(x, which, bound[which])
                    yield found if above else -found, "a neuron may leave its range"

    @cached_property
    def lines(self) -> Lines:
        """Assumes: `premises`."""
        return self._lines_of_relu() if self.homogeneous else self._lines_of_others()

    def _lines_of_relu(self) -> Lines:
        """Chord: slope y + rest >= 0 at low and >= y at high; with 0 <= slope <= 1 it is then above ReLU between them. Tangent: y or 0."""
        hints = self.hints
        on, off = ~hints.bent & (hints.low >= 0.0), ~hints.bent & (hints.high <= 0.0)
        if not (np.isfinite(hints.low[on]).all() and np.isfinite(hints.high[off]).all()):
            raise UnprovenError("a neuron is on or off by a range that is none")
        between = ~hints.bent & ~on & ~off
        if not (np.isfinite(hints.low) & np.isfinite(hints.high))[between].all():
            raise UnprovenError("a neuron has no range")
        low, high = np.where(between, hints.low, -1.0), np.where(between, hints.high, 1.0)
        slope = np.where(between, np.minimum(high / (high - low), 1.0), np.where(on, 1.0, 0.0))
        rest = np.where(between, np.maximum(-slope * low, (1.0 - slope) * high) * MORE + LEAST, 0.0)
        tangent = np.where(on | (~off & (hints.point > 0.0)), 1.0, 0.0)
        return Lines(*(self.stream.arithmetic.array(x) for x in (slope, rest, tangent, np.zeros(len(slope)))))

    def _lines_of_others(self) -> Lines:
        hints, g = self.hints, self.parts
        chords = ~hints.bent
        if self.ends.behind_norm and not chords.all():
            raise UnprovenError(f"{self.mlp.act} behind a norm is bounded by chords only")
        if not ((hints.low < hints.high) & np.isfinite(hints.low) & np.isfinite(hints.high))[chords].all():
            raise UnprovenError("a neuron has no range")
        low, high = (np.where(chords, x, y) for x, y in ((hints.low, 0.0), (hints.high, 1.0)))
        points = self.stream.arithmetic.array(np.stack([low, high, hints.point]))
        values, found = g.with_slopes(points), []
        p, width = points[2], points[1] - points[0]
        for (bent, _), (other, slope_of_other) in ((values[:2], values[2:]), (values[2:], values[:2])):
            slope = (bent[1] - bent[0]) / width
            chord = np.where(chords, slope, 0.0), np.where(chords, bent[0] - slope * points[0], 0.0)
            tangent = slope_of_other[2]
            found += [chord[0] - tangent, chord[1] - (other[2] - tangent * p)]
        return Lines(found[0], found[1], -found[2], -found[3])

    @cached_property
    def bent(self) -> np.ndarray:
        """Numbers of the neurons that are bounded by J."""
        return np.flatnonzero(self.hints.bent)

    def at_places(self) -> tuple[Any, Any | None]:
        """(position, token, neuron): g1 and g2 (None if that is zero) of one head's neurons if all attention fell on one place, no norm
        being before them. With one head and b = 1 that is Theorem J, whatever the leaf and its centre."""
        form, query, g = self.stream.form, self.stream.query, self.parts
        if ("at places", query) not in form.memory:
            with self.stream.arithmetic.once("neurons"):
                y = form.values[0] @ self.mlp.W_in + (form.base[query] @ self.mlp.W_in + self.mlp.b_in)
                form.memory["at places", query] = g.first(y), None if g.convex else g.second(y)
        found: tuple[Any, Any | None] = form.memory["at places", query]
        return found

    def _curve_of_one_head(self, at: Any | None) -> Blend | None:
        """J of some function of the bent neurons, of which the values at places are known."""
        if at is None:
            return None
        return Blend(self.stream.arithmetic.array(np.zeros(len(self.bent))), at[:, self.stream.tokens][..., self.bent][None])

    @cached_property
    def references(self) -> References:
        """The line below; of bent neurons the tangent of g1 less that of g2, which are the lines below and above."""
        lines, bent = self.lines, self.hints.bent
        both = (lines.up_slope, lines.down_slope), (lines.up_rest, lines.down_rest)
        return References(*(down + np.where(bent, up, 0.0) for up, down in both))

    def widths(self, x: int, weights: Any) -> Blend:
        """One column, at one end of s: at least the sum of |s act(y / s) - reference| times weights (neuron, 1), which are not negative.

        With chords, s act(y / s) lies between the line below, which is the reference, and the line above. Bent: let t1 and t2 be the
        tangents of g1 and g2. Both g1 - t1 and g2 - t2 are not negative, so their difference is at most their sum, which is at most J of g1
        and J of g2 less t1 and t2; the lines above and below are -t2 and t1. In either case the lines contribute up - down.
        """
        lines, end = self.lines, self.ends.blends[x]
        slopes = weights * (lines.up_slope - lines.down_slope)[:, None]
        rest = ((lines.up_rest - lines.down_rest)[None] @ weights)[0]
        found, times_s = self.stream.linear(self.mlp.W_in @ slopes), (self.mlp.b_in[None] @ slopes)[0]
        still, times_s = (rest, times_s) if self.homogeneous else (0.0, times_s + rest)
        constant, parts = found.constant + times_s * end.constant + still, found.parts + end.parts * times_s
        if len(self.bent):
            for curve in self.curves[x]:
                if curve is not None:
                    factor = weights[self.bent]
                    constant, parts = constant + curve.constant @ factor, parts + curve.parts @ factor
        return Blend(constant, parts)

    @cached_property
    def curves(self) -> list[tuple[Blend, Blend | None]]:
        """At each end of s, J of g1 and of g2 (None if that is zero) of the bent neurons."""
        shares, found = self.hints.shares[:, self.bent], list[tuple[Blend, Blend | None]]()
        if self.stream.scene.n_heads == 1 and not self.ends.behind_norm and (shares == 1.0).all():
            first, second = map(self._curve_of_one_head, self.at_places())
            return [(first, second)] if first is not None else []
        for x in range(len(self.ends.blends)):
            y = self.inputs(x, self.bent)
            second = None if self.parts.convex else jensen(self.parts.second_perspective, y, shares)
            found.append((jensen(self.parts.first_perspective, y, shares), second))
        return found
