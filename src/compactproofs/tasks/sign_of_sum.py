"""The sign of a sum: is it negative, zero or positive?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from compactproofs.errors import TaskError
from compactproofs.tasks.automaton import AbstractTask, LabellingAutomaton
from compactproofs.tasks.described import Described

NAME = "sign-of-sum"

DESCRIBED = Described(
    usage=f"{NAME}[:offset]",
    title="0, 1 or 2 for a negative, zero or positive sum, token t counted as t - offset",
    example=NAME,
    definition="Token t counts as t - offset. The right output is 0 if the sum is negative, 1 if it is exactly zero and 2 if it is "
    "positive. The offset is an integer or a half-integer, by default (`d_vocab` - 1) / 2, so that both signs are equally likely.",
    remembers="The sum so far: about `n_ctx` times `d_vocab` states; with the default offset of an even vocabulary nearly twice as many, "
    "because sums of an odd number of tokens are then half-integers.",
)

_NUMBER = re.compile(r"[+-]?\d{1,9}(\.\d{1,9}|/[1-9]\d{0,8})?", re.ASCII)
_LARGEST_OFFSET = 10**6
_MOST_SUMS = 2 * 10**7
_MOST_MOVES = 5 * 10**7


@dataclass(frozen=True)
class SignOfSum(AbstractTask):
    """The right output is 0, 1 or 2 for a negative, zero or positive sum; token t counts as t - offset.

    Example:
        >>> task = SignOfSum(n_ctx=2, d_vocab=3)
        >>> task.title
        'the sign of the sum, each token t counted as t - 1: 0, 1 or 2 for negative, zero, positive'
        >>> task.automaton.label_totals(2)
        {0: 3, 1: 3, 2: 3}
    """

    n_ctx: int
    d_vocab: int
    """Tokens are 0 .. d_vocab - 1."""
    offset: Fraction | int | None = None
    """The token that counts as zero: an integer or a half-integer. By default the middle, (d_vocab - 1) / 2."""

    def __post_init__(self) -> None:
        sizes = f"n_ctx={self.n_ctx}, d_vocab={self.d_vocab}"
        if self.n_ctx < 1 or self.d_vocab < 1:
            raise TaskError(f"{NAME} needs n_ctx >= 1 and d_vocab >= 1, got {sizes}")
        offset = self._middle if self.offset is None else self.offset
        if isinstance(offset, bool) or not isinstance(offset, int | Fraction):
            raise TaskError(f"{NAME} with offset={offset!r:.40}: expected a Fraction, such as Fraction(9, 2), or an integer")
        exact = Fraction(offset)
        if exact.denominator > 2 or not -_LARGEST_OFFSET <= exact <= _LARGEST_OFFSET:
            raise TaskError(f"{NAME} with offset={offset!s:.40}: expected {_expected()}")
        object.__setattr__(self, "offset", exact)
        if self.n_ctx * (self.n_ctx + 1) // 2 * (self.d_vocab - 1) > _MOST_SUMS:
            raise TaskError(f"{NAME} with {sizes}: too many sums to tell apart")

    @classmethod
    def from_text(cls, n_ctx: int, d_vocab: int, argument: str | None) -> SignOfSum:
        """The task of `sign-of-sum` or `sign-of-sum:4.5`."""
        if argument is None:
            return cls(n_ctx, d_vocab)
        if not _NUMBER.fullmatch(argument):
            raise TaskError(f"{NAME}:{argument:.40}: the offset is not a number; expected {_expected()}")
        return cls(n_ctx, d_vocab, Fraction(argument))

    @property
    def _middle(self) -> Fraction:
        return Fraction(self.d_vocab - 1, 2)

    @property
    def _doubled(self) -> int:
        """Twice the offset, an integer."""
        return int(2 * (self._middle if self.offset is None else self.offset))

    @property
    def spec(self) -> str:
        return NAME if self.offset == self._middle else f"{NAME}:{_in_words(self._doubled)}"

    @property
    def title(self) -> str:
        less = f" {'-' if self._doubled > 0 else '+'} {_in_words(abs(self._doubled))}" if self._doubled else ""
        return f"the sign of the sum, each token t counted as t{less}: 0, 1 or 2 for negative, zero, positive"

    @cached_property
    def automaton(self) -> LabellingAutomaton:
        """State = the sum so far, of those that n_ctx tokens or fewer can have, ascending.

        A sum of fewer than n_ctx tokens has all its successors among them. Of n_ctx tokens it may not; then the next state is one of the
        others, whichever, as no sequence is longer.
        """
        sums, tokens = self._doubled_sums, 2 * np.arange(self.d_vocab) - self._doubled
        if len(sums) * self.d_vocab > _MOST_MOVES:
            raise TaskError(f"{NAME} with n_ctx={self.n_ctx}, d_vocab={self.d_vocab}: {len(sums)} sums are too many to tell apart")
        following = np.searchsorted(sums, sums[:, None] + tokens)
        start = int(np.searchsorted(sums, 0))
        return LabellingAutomaton(np.minimum(following, len(sums) - 1), np.sign(sums) + 1, start)

    @property
    def _doubled_sums(self) -> np.ndarray:
        """Twice every sum of at most n_ctx tokens, ascending."""
        most = 2 * (self.d_vocab - 1)
        return np.unique(np.concatenate([np.arange(0, k * most + 1, 2) - k * self._doubled for k in range(self.n_ctx + 1)]))

    def of_length(self, n_ctx: int) -> SignOfSum:
        return SignOfSum(n_ctx, self.d_vocab, self.offset)


def _expected() -> str:
    return f"an integer or a half-integer, such as 5, 4.5 or 9/2, between -{_LARGEST_OFFSET} and {_LARGEST_OFFSET}"


def _in_words(doubled: int) -> str:
    """Half of an integer as a decimal."""
    whole, half = divmod(abs(doubled), 2)
    return f"{'-' if doubled < 0 else ''}{whole}{'.5' if half else ''}"
