"""Hints of leaves of whole blocks, as the JSON of a certificate, and which blocks the checker knows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from compactproofs.bounds.jensen import UNITS
from compactproofs.bounds.relaxation import NeuronHints, Relaxation
from compactproofs.errors import CertificateError
from compactproofs.form.embedded import is_affine
from compactproofs.model.kinds import Model
from compactproofs.model.network import Activation, Network


def certifiable_block(weights: Model) -> Network | None:
    """The network, if it is a whole block that the checker knows; None if it is not a whole block. Raises for other blocks."""
    if not isinstance(weights, Network) or is_affine(weights):
        return None
    unknown = {
        "a norm before the MLP": weights.norm_2 is not None,
        "an MLP and a final norm": weights.mlp is not None and weights.norm_final is not None,
        "neurons other than ReLU": weights.mlp is not None and weights.mlp.act is not Activation.RELU,
        "norms on the stream (post-norm)": weights.post_norm,
    }
    reasons = [what for what, found in unknown.items() if found]
    if reasons:
        raise CertificateError(
            f"no certificate: the stand-alone checker does not know {' and '.join(reasons)}. It knows several heads, "
            "norms before attention, norms at the end without an MLP, and ReLU MLPs without norms after attention"
        )
    return weights


def encoded_hints(relaxation: Relaxation | None, network: Network, tokens: np.ndarray) -> dict[str, Any] | None:
    """The field `hints` of a leaf about sequences of these tokens."""
    if relaxation is None:
        return None
    final, typical = relaxation.final, None
    if network.n_heads > 1 or final is not None:
        of = relaxation.typical
        typical = [(of.positions * network.d_vocab + tokens[of.tokens]).tolist(), *of.weights.tolist()]
    neurons = relaxation.neurons
    return {
        "typical": typical,
        "neurons": [] if neurons is None else [_neuron(neurons, j) for j in range(len(neurons.point))],
        "shares": None if final is None or network.n_heads == 1 else _shares(final.shares),
    }


def _neuron(hints: NeuronHints, j: int) -> int | dict[str, Any]:
    low, high, tangent = float(hints.low[j]), float(hints.high[j]), int(hints.point[j] > 0.0)
    if hints.bent[j]:
        return {"tangent": tangent, "shares": _shares(hints.shares[:, j])}
    if low >= 0.0:
        return 1
    if high <= 0.0:
        return 0
    scale = max(Fraction(x).denominator.bit_length() - 1 for x in (low, high))
    return {"low": int(Fraction(low) * 2**scale), "high": int(Fraction(high) * 2**scale), "scale": scale, "tangent": tangent}


def _shares(shares: np.ndarray) -> list[int]:
    return [int(x * UNITS) for x in shares.tolist()]
