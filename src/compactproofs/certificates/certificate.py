"""A certificate as an object: what it claims, and its bytes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from compactproofs import checker
from compactproofs.errors import CertificateError
from compactproofs.model.files import write_atomically


@dataclass(frozen=True, eq=False)
class Certificate:
    """A claim about one model and what is needed to check it. Made by `Proof.certificate` or `certify`."""

    content: dict[str, Any]
    """The JSON object of the format."""
    work: int = 0
    """About how many units of work a check takes, if it was counted when the certificate was made; see `check --work`."""

    @property
    def positions(self) -> tuple[Certificate, ...]:
        """Of a certificate about positions, that of each; else none."""
        return tuple(Certificate(each) for each in self.content.get("positions", ()))

    @property
    def _weakest(self) -> dict[str, Any]:
        """The certificate itself, or that of the position with the smallest part that is right."""
        found = min(self.positions, key=lambda each: Fraction(each.correct_at_least, each.total), default=self)
        return found.content

    @property
    def correct_at_least(self) -> int:
        """The claim (of the weakest position). It is what the checker finds; see docs/how-to/certify.md."""
        return int(self._weakest["claim"]["correct_at_least"])

    @property
    def correct_at_most(self) -> int | None:
        most = self._weakest["claim"]["correct_at_most"]
        return None if most is None else int(most)

    @property
    def total(self) -> int:
        return int(self._weakest["claim"]["total"])

    @property
    def semantics(self) -> str:
        """`real` or `float32-any-order`."""
        return str(self._weakest["question"]["semantics"])

    @cached_property
    def data(self) -> bytes:
        """The file: JSON in one line per top-level field."""
        lines = [f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}" for name, value in self.content.items()]
        written = ("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii")
        if len(written) > checker.MOST_BYTES:
            raise CertificateError(
                f"the certificate has {len(written)} bytes, and the checker reads at most {checker.MOST_BYTES}: a shorter proof has a "
                "smaller one, such as that of threshold-cubic-pooled, or of threshold-best with fewer seconds"
            )
        return written

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file. It appears whole or not at all."""
        target = Path(path)
        if not target.parent.is_dir():
            raise CertificateError(f"cannot write {target}: the folder {target.parent} does not exist")
        try:
            write_atomically(target, self.data)
        except OSError as error:
            raise CertificateError(f"cannot write {target}: {error.strerror}") from None
