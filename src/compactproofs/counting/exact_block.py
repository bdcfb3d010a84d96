"""Decide single sequences of any one-layer network, whatever the margin: the last word where float64 cannot tell.

The forward pass is done again in integers over 2^bits with an error bound (`Ball`), with ever more bits. This decides every sequence but
those where two logits are exactly equal (or a norm's divisor is exactly zero): they stay undecided when the last precision is reached, and
are counted as undecided. Two cases of equal logits are known for certain: outputs with the same column of W_U and the same bias tie on
every sequence (`tied_labels`), and logits that come out without any rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from compactproofs.arrays.arithmetic import Balls
from compactproofs.arrays.ball import Ball, UndecidableError
from compactproofs.form.block import block_numbers, readout
from compactproofs.model.network import Network

PRECISIONS = (192, 768, 3072)
"""Bits, in turn. Ordinary networks need the first, networks with weights of 1e-30 the second."""


def is_correct(network: Network, tokens: Sequence[int], label: int) -> bool | None:
    """Whether logit[o] < logit[label] for every other o, over the reals; a tie is wrong; None if undecided.

    Guarantee: True and False are facts about the real-number network.
    Assumes: nothing.
    Cost: as many integer products as one forward pass has multiplications, at each precision: a few milliseconds at the first.
    Source: the definition of the network; `Ball` encloses each operation.
    """
    for bits in PRECISIONS:
        try:
            verdict = _verdict(logits(network, tokens, bits), label)
        except UndecidableError:
            continue
        if verdict is not None:
            return verdict
    return None


def tied_labels(network: Network) -> Bool[np.ndarray, "d_vocab_out"]:
    """Labels that another output equals on every sequence, because its column of W_U and its bias are the same: never right."""
    columns = network.W_U if network.b_U is None else np.vstack([network.W_U, network.b_U])
    _, kind, count = np.unique(columns + np.float32(0), axis=1, return_inverse=True, return_counts=True)  # -0 is 0
    return np.asarray(count[kind.reshape(-1)] > 1)


def logits(network: Network, tokens: Sequence[int], bits: int) -> Ball:
    """Enclosures of the logits of one sequence, (d_vocab_out,)."""
    arithmetic = Balls(bits)
    numbers = block_numbers(network, np.asarray(tokens)[:, None], arithmetic)
    r = numbers.base
    for scores, values in zip(numbers.scores, numbers.values, strict=True):
        attention = _below_zero(scores).exp_below()
        r = r + (attention @ values) / attention.sum(axis=1)[:, None]
    found: Ball = readout(network, r, arithmetic)
    return found[0]


def _below_zero(scores: Ball) -> Ball:
    """Softmax does not change when one number, here the largest middle, is taken from all scores."""
    return Ball(scores.middle - max(scores.middle.flat), scores.radius, scores.bits)


def _verdict(values: Ball, label: int) -> bool | None:
    others = np.arange(len(values)) != label
    if any(values.lower()[others] >= values.upper()[label]):
        return False
    if all(values.upper()[others] < values.lower()[label]):
        return True
    return None
