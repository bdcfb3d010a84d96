"""Activations as differences of two convex functions, in any arithmetic: act = g1 - g2.

ReLU is convex: g2 = 0. GELU (exact and by tanh) and SiLU are convex between -c and c and concave outside, c > 0 being their inflection
point. g1 is the activation between -c and c and goes on along its tangents outside; g2 = g1 - act is zero between and minus the
activation's curvature outside. Both are convex and differentiable.

That there is one inflection point c > 0, and where. All three are y S(y) with S(y) + S(-y) = 1, so act(y) - act(-y) = y: second
derivatives are even, and positive at 0.
GELU: Phi'' = -y phi, so act'' = phi(y) (2 - y^2): c = sqrt 2.
SiLU: act'' = s'(y) (2 - y tanh(y / 2)), and y tanh(y / 2) grows: c tanh(c / 2) = 2.
GELU by tanh: S = s(w), w = K (y + B y^3): act'' = s'(w) (2 w' + y w'' - y w'^2 tanh(w / 2)). With b = B y^2 the bracket is positive exactly
where (2 + 12 b) / (K y (1 + 3 b)^2) > tanh(w / 2). The right side grows. The left side falls: the derivative of its logarithm times y is
12 b / (1 + 6 b) - 1 - 12 b / (1 + 3 b) < 0.
Where c is a decimal number it was found by bisection with more digits; the ends of its enclosure are checked by a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic
from compactproofs.form.block import CUBIC, activated
from compactproofs.model.network import Activation

INFLECTION = {
    Activation.SILU: (Fraction(23993572805154676678, 10**19), Fraction(23993572805154676679, 10**19)),
    Activation.GELU_TANH: (Fraction(14185040087908283555, 10**19), Fraction(14185040087908283556, 10**19)),
}
"""Enclosures of c."""


@dataclass(frozen=True)
class Parts:
    """g1 and g2 of one activation, in some arithmetic."""

    act: Activation
    arithmetic: AbstractArithmetic

    @property
    def convex(self) -> bool:
        """Whether g2 is zero."""
        return self.act is Activation.RELU

    def first(self, y: Any) -> Any:
        """g1"""
        if self.convex:
            return self.arithmetic.relu(y)
        inside = self._clipped(y)
        return activated(self.act, inside, self.arithmetic) + self.slope(inside) * (y - inside)

    def second(self, y: Any) -> Any:
        """g2"""
        return self.first(y) - activated(self.act, y, self.arithmetic)

    def with_slopes(self, y: Any) -> tuple[Any, Any, Any, Any]:
        """g1, its derivative, g2, its derivative, all at once."""
        n, inside = len(y), self._clipped(y)
        both = np.concatenate([inside, y], axis=0)
        values, slopes = activated(self.act, both, self.arithmetic), self.slope(both)
        first = values[:n] + slopes[:n] * (y - inside)
        return first, slopes[:n], first - values[n:], slopes[:n] - slopes[n:]

    def first_perspective(self, x: Any, b: np.ndarray) -> Any:
        """b g1(x / b); ReLU does not need the division."""
        return self.first(x) if self.convex else self.first(x / b) * b

    def second_perspective(self, x: Any, b: np.ndarray) -> Any:
        """b g2(x / b)"""
        return self.second(x / b) * b

    def slope(self, y: Any) -> Any:
        """The derivative of the activation."""
        a = self.arithmetic
        half, one = a.number(Fraction(1, 2)), a.number(Fraction(1))
        match self.act:
            case Activation.GELU:
                phi = np.exp(-(y * y) * half) * a.inverse_sqrt(Fraction(2)) / a.sqrt(a.pi())
                return (a.erf(y * a.inverse_sqrt(Fraction(2))) + one) * half + y * phi
            case Activation.SILU:
                s = a.sigmoid(y)
                return s + y * s * (one - s)
            case _:
                K = a.sqrt(a.number(Fraction(8)) / a.pi())
                square = y * y
                s = a.sigmoid((y + a.number(CUBIC) * (y * square)) * K)
                return s + y * s * (one - s) * (K * (one + a.number(3 * CUBIC) * square))

    def _clipped(self, y: Any) -> Any:
        c = self.inflection()
        return np.minimum(np.maximum(y, -c), c)

    def inflection(self) -> Any:
        """c"""
        if self.act is Activation.GELU:
            return self.arithmetic.sqrt(self.arithmetic.number(Fraction(2)))
        return self.arithmetic.between(*INFLECTION[self.act])
