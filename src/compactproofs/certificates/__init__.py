"""Certificates: proofs written down so that anyone can check them. The format is docs/certificate-format.md."""

from compactproofs.certificates.certificate import Certificate
from compactproofs.certificates.checking import check

__all__ = ["Certificate", "check"]
