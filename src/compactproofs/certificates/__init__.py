"""Certificates: proofs written down so that anyone can check them. The format is docs/certificate-format.md."""

from compactproofs.certificates.certificate import Certificate
from compactproofs.certificates.checking import check
from compactproofs.certificates.writer import certify

__all__ = ["Certificate", "certify", "check"]
