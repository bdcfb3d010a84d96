"""Decide single sequences exactly, whatever the margin: the last word where float64 cannot tell.

The question is the sign of F = sum_i b_i exp(a_i) with a_i = n_i / (2^e sqrt(s)), where n_i, b_i are integers and s is the rational
score divisor. The a_i are algebraic numbers. By the Lindemann-Weierstrass theorem exponentials of distinct algebraic numbers are
linearly independent over the algebraic numbers, so after merging equal exponents F is zero exactly when every merged coefficient is
zero. Otherwise enclosures of increasing precision must eventually exclude zero. Hence the procedure below is a decision procedure;
the cap on the precision exists only so that no input can make it run for ever.

Enclosures use the standard library's `decimal`: addition and multiplication with directed rounding, and `sqrt` and `exp`, which are
documented to be correctly rounded (half even), widened by one unit in the last place each way.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from compactproofs.arrays.environment import require_ieee754
from compactproofs.form.embedded import position_centre
from compactproofs.model.weights import Weights

MAX_DIGITS = 10_240
"""Give up ("undecided") beyond this many decimal digits (40 * 4^4); real models need 40."""


class ExactNetwork:
    """The five tables as exact integers over a common power of two each (the score divisor kept aside)."""

    def __init__(self, weights: Weights) -> None:
        require_ieee754()  # reading a subnormal float32 needs it
        self._divisor_squared = weights.score_divisor_squared
        tensors = {name: _dyadic(t.astype(np.float64)) for name, t in weights.tensors.items()}
        centre = _dyadic(position_centre(weights)[None])
        query = _sum(tensors["W_E"], _rows(tensors["W_pos"], -1))
        key = _sum(tensors["W_E"], centre)
        position = _sum(tensors["W_pos"], (-centre[0], centre[1]))
        QK = _product(_product(query, tensors["W_Q"]), _transpose(tensors["W_K"]))
        VOU = _product(tensors["W_V"], _product(tensors["W_O"], tensors["W_U"]))
        (self._EQKE, self._EQKP), self._score_exponent = _aligned(_product(QK, _transpose(key)), _product(QK, _transpose(position)))
        (self._EVOU, self._PVOU, self._EU), self._value_exponent = _aligned(
            _product(key, VOU), _product(position, VOU), _product(query, tensors["W_U"])
        )

    def is_correct(self, tokens: Sequence[int], label: int, margin: Fraction = Fraction(0)) -> bool | None:
        """Whether logit[o] + margin < logit[label] for every other o, over the reals; a tie is wrong; None if undecided.

        Guarantee: True and False are facts about the real-number network.
        Cost: O(n_ctx d_vocab_out) integer operations plus n_ctx exponentials.
        Source: Lindemann-Weierstrass, see this module's docstring.
        """
        undecided = False
        query = tokens[-1]
        scores = [int(self._EQKE[query, t] + self._EQKP[query, i]) for i, t in enumerate(tokens)]
        extra, common = margin.numerator << self._value_exponent, margin.denominator
        for output in range(self._EU.shape[1]):
            if output == label:
                continue
            brackets = [self._bracket(i, t, query, output) - self._bracket(i, t, query, label) for i, t in enumerate(tokens)]
            brackets = [common * bracket + extra for bracket in brackets]
            sign = self._sign(scores, brackets)
            if sign is None:
                undecided = True
            elif sign >= 0:
                return False
        return None if undecided else True

    def _bracket(self, position: int, token: int, query: int, output: int) -> int:
        return int(self._EVOU[token, output] + self._PVOU[position, output] + self._EU[query, output])

    def _sign(self, scores: Sequence[int], brackets: Sequence[int]) -> int | None:
        """Sign of sum_i brackets_i * exp(scores_i / (2^e sqrt(s))), or None if MAX_DIGITS do not suffice."""
        merged: dict[int, int] = {}
        for score, bracket in zip(scores, brackets, strict=True):
            merged[score] = merged.get(score, 0) + bracket
        terms = {score: bracket for score, bracket in merged.items() if bracket != 0}
        if not terms:
            return 0
        if all(b > 0 for b in terms.values()) or all(b < 0 for b in terms.values()):
            return 1 if next(iter(terms.values())) > 0 else -1
        top = max(terms)
        digits = 40
        while digits <= MAX_DIGITS:
            lower = upper = Decimal(0)
            down, up = _contexts(digits)
            for score, bracket in terms.items():
                exp_lower, exp_upper = self._exp_enclosure(score - top, digits)
                at_lower, at_upper = (exp_lower, exp_upper) if bracket > 0 else (exp_upper, exp_lower)
                lower = down.add(lower, down.multiply(Decimal(bracket), at_lower))
                upper = up.add(upper, up.multiply(Decimal(bracket), at_upper))
            if lower > 0:
                return 1
            if upper < 0:
                return -1
            digits *= 4
        return None

    def _exp_enclosure(self, score: int, digits: int) -> tuple[Decimal, Decimal]:
        """Enclose exp(score / (2^e sqrt(s))) for score <= 0."""
        if score == 0:
            return Decimal(1), Decimal(1)
        down, up = _contexts(digits)
        nearest = _contexts(digits, decimal.ROUND_HALF_EVEN)[0]
        s = self._divisor_squared
        # |score| / (2^e sqrt(num/den)) = |score| sqrt(den * num) / (2^e num): one square root, of an integer.
        root = nearest.sqrt(Decimal(s.numerator * s.denominator))
        denominator = Decimal(s.numerator * 2**self._score_exponent)
        size_lower = down.divide(down.multiply(Decimal(-score), down.next_minus(root)), denominator)
        size_upper = up.divide(up.multiply(Decimal(-score), up.next_plus(root)), denominator)
        exp_lower = max(Decimal(0), nearest.next_minus(nearest.exp(size_upper.copy_negate())))
        exp_upper = min(Decimal(1), nearest.next_plus(nearest.exp(size_lower.copy_negate())))
        return exp_lower, exp_upper


Dyadic = tuple[np.ndarray, int]
"""(integers, e): the matrix integers / 2^e, with Python integers in an object array."""


def _contexts(digits: int, rounding: str | None = None) -> tuple[decimal.Context, decimal.Context]:
    def context(mode: str) -> decimal.Context:
        return decimal.Context(prec=digits, rounding=mode, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])

    return context(rounding or decimal.ROUND_FLOOR), context(rounding or decimal.ROUND_CEILING)


def _dyadic(values: Float[np.ndarray, "rows columns"]) -> Dyadic:
    """Write float64 values exactly as integers over one power of two."""
    fractions = [Fraction(float(x)) for x in values.ravel()]
    exponent = max(f.denominator.bit_length() - 1 for f in fractions)
    integers = np.empty(len(fractions), dtype=object)
    integers[:] = [f.numerator * (2**exponent // f.denominator) for f in fractions]
    return integers.reshape(values.shape), exponent


def _rows(matrix: Dyadic, row: int) -> Dyadic:
    return matrix[0][[row]], matrix[1]


def _transpose(matrix: Dyadic) -> Dyadic:
    return matrix[0].T, matrix[1]


def _aligned(*matrices: Dyadic) -> tuple[tuple[np.ndarray, ...], int]:
    exponent = max(e for _, e in matrices)
    return tuple(integers * 2 ** (exponent - e) for integers, e in matrices), exponent


def _sum(a: Dyadic, b: Dyadic) -> Dyadic:
    (x, y), exponent = _aligned(a, b)
    return x + y, exponent


def _product(a: Dyadic, b: Dyadic) -> Dyadic:
    return a[0] @ b[0], a[1] + b[1]
