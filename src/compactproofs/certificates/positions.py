"""Certificates about positions: one file, with a certificate for each."""

from __future__ import annotations

from collections.abc import Sequence

from compactproofs import checker
from compactproofs.certificates.certificate import Certificate
from compactproofs.certificates.checking import network
from compactproofs.certificates.writer import about_model
from compactproofs.errors import CertificateError
from compactproofs.model.kinds import Model
from compactproofs.version import __version__


def of_positions(certificates: Sequence[Certificate], whole: Model) -> Certificate:
    """One certificate about a model read at several positions; each is about the network on the tokens up to a position."""
    if not certificates:
        raise CertificateError("there is no position to certify")
    ordered = sorted(certificates, key=lambda each: int(each.content["model"]["n_ctx"]))
    return Certificate(
        {
            "format": checker.FORMAT,
            "version": checker.VERSION,
            "producer": f"compactproofs {__version__}",
            "model": about_model(whole, network(whole)),
            "positions": [each.content for each in ordered],
            "end": checker.FORMAT,
        },
        sum(each.work for each in certificates),
    )
