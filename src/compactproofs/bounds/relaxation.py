"""Hints of leaves behind which a norm, an MLP or another head follows: where bounds are tight, and how neurons and norms are bounded.

Any numbers are sound. What has to be true of a leaf (a neuron's range, the length of a direction) is checked by `bounds.majorants`; where
it is not, the leaf proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WHOLE = 1 << 12
"""Weights of places add up to this, for each head."""


@dataclass(frozen=True, eq=False)
class Typical:
    """What each head attends to on sequences that are typical of the leaf."""

    positions: np.ndarray
    """(place,)"""
    tokens: np.ndarray
    """(place,): numbers among the tokens of the label"""
    weights: np.ndarray
    """(head, place): integers, not negative, adding up to WHOLE"""


@dataclass(frozen=True, eq=False)
class NormHints:
    """How what a norm divides by is bounded, over a leaf."""

    down: np.ndarray
    """(d_model,): a direction of length at most 1, for lower bounds"""
    up: np.ndarray
    """(d_model,): the same for upper bounds; zero: a constant"""
    spread: np.ndarray
    """(d_model,): how far coordinates across `up` are from zero at most"""
    least: float
    """At most the length along `up`; positive, unless `up` is zero"""
    bent: bool
    """Whether it is bounded from above by Jensen's inequality instead of `up` and `spread`"""
    shares: np.ndarray
    """(head,): positive, adding up to at most 1: how that inequality is divided among heads"""
    low: tuple[float, float]
    """At most the lower and the upper bound"""
    high: tuple[float, float]
    """At least these"""


@dataclass(frozen=True, eq=False)
class FinalHints:
    """How what the final norm divides by is bounded, over a leaf."""

    down: np.ndarray
    """(d_model,): a direction of length at most 1, for lower bounds"""
    shares: np.ndarray
    """(head,): positive, adding up to at most 1: how Jensen's inequality is divided among heads, for upper bounds"""


@dataclass(frozen=True, eq=False)
class NeuronHints:
    """How neurons are bounded, over a leaf. Arrays have one entry for each neuron."""

    low: np.ndarray
    """At most the neuron's input; may be -inf"""
    high: np.ndarray
    """At least that; may be inf"""
    point: np.ndarray
    """Where tangents are taken"""
    bent: np.ndarray
    """Whether it is bounded by Jensen's inequality instead of a chord between `low` and `high`"""
    shares: np.ndarray
    """(head, neuron): as for norms, of neurons that are bent"""


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Hints of one leaf."""

    typical: Typical
    norm: NormHints | None = None
    """Of the norm before the MLP"""
    neurons: NeuronHints | None = None
    final: FinalHints | None = None
    """Of the final norm"""
