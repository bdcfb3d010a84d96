"""From the package's objects to the stand-alone checker's."""

from __future__ import annotations

import os

from compactproofs import checker
from compactproofs.certificates.certificate import Certificate
from compactproofs.errors import ModelError
from compactproofs.model.biases import with_biases
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.model.weights import Weights


def network(weights: Model) -> checker.Network:
    """The same network as the checker sees it: raw bytes."""
    divisor = weights.score_divisor_squared
    tensors = {name: (tensor.shape, tensor.astype("<f4").tobytes(order="C")) for name, tensor in weights.tensors.items()}
    settings = weights.settings if isinstance(weights, Network) else None
    return checker.Network(tensors, f"{divisor.numerator}/{divisor.denominator}", weights.assumptions, settings, weights.causal)


def as_written(weights: Model) -> checker.Network:
    """The same, but with its biases where a model with biases was read as an equal one without."""
    seen = network(weights)
    found = with_biases(weights.tensors) if isinstance(weights, Weights) and weights.rewritten else None
    if found is None:
        return seen
    narrow, biases = found
    tensors = {name: (tensor.shape, tensor.astype("<f4").tobytes(order="C")) for name, tensor in (narrow | biases).items()}
    return seen._replace(tensors=tensors)


def check(
    certificate: str | os.PathLike[str] | Certificate,
    model: Model | str | os.PathLike[str],
    *,
    n_heads: int | None = None,
    normalization: str | None = None,
    n_ctx: int | None = None,
    work: int | None = None,
) -> checker.Checked:
    """The stand-alone checker's verdict on a certificate, with the reason.

    Args:
        certificate: a file, or a `Certificate`.
        model: weights, the name of a bundled model, or a model file in any layout that `load` reads.
        n_heads: as for `load`.
        normalization: as for `load`.
        n_ctx: as for `load`.
        work: units of work, about a nanosecond each, that the check may take; by default a minute's worth.

    Example:
        >>> import compactproofs as cp
        >>> weights = cp.zoo("max-of-4")
        >>> cp.check(cp.prove(weights, "cubic").certificate, weights).verdict
        <Verdict.ACCEPTED: 0>
    """
    if not isinstance(model, Weights | Network | str | os.PathLike):
        raise ModelError(
            f"a {type(model).__name__} was given for a model; expected Weights or a Network, the name of a bundled model, or a path"
        )
    if isinstance(certificate, Certificate):
        data = certificate.data
    else:
        try:
            data = checker.read_bytes(os.fspath(certificate), "certificate")
        except checker.MalformedError as error:
            return checker.Checked(checker.Verdict.MALFORMED, str(error))
    if not isinstance(model, Weights | Network):
        from compactproofs.model.zoo import resolve

        model = resolve(os.fspath(model), n_heads=n_heads, normalization=normalization, n_ctx=n_ctx)
    found = checker.check(data, network(model), checker.MOST_WORK if work is None else work)
    if found.accepted and found.semantics == checker.FLOAT32 and model.rewritten:
        reason = "the claim is about the float32 arithmetic of an equal network without biases; the model's own takes other steps"
        return checker.Checked(checker.Verdict.REJECTED, reason)
    return found
