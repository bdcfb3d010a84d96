"""A theorem about one model, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from compactproofs.arrays.rounding import round_down, round_up
from compactproofs.errors import CertificateError
from compactproofs.ledger.ledger import Ledger
from compactproofs.strategies.base import Origin, ProofLength
from compactproofs.tasks.question import REAL
from compactproofs.version import __version__

if TYPE_CHECKING:
    from compactproofs.certificates.certificate import Certificate


@dataclass(frozen=True, repr=False)
class Proof:
    """A theorem about one model, or the reason why there is none."""

    strategy: str
    label: str
    """Name and parameters in one word."""
    family: str
    parameters: dict[str, Any]
    variant: str | None
    sound: bool
    """False only for what the authors' code computes without proving it."""
    status: str
    """`proven`; `computed` if the strategy is not sound; `infeasible` with a `reason`, and then the bounds are the trivial ones."""
    reason: str | None
    correct_at_least: int
    """Sequences proven correct."""
    correct_at_most: int | None
    """Sequences not proven wrong; None if no upper bound was asked for."""
    total: int
    """Sequences in all."""
    length: ProofLength
    seconds: float
    """Wall time of the proof on this machine, without compiling."""
    search_seconds: float
    """How much of it was looking for hints."""
    counting_seconds: float
    """How much of it was counting sequences, summed over threads."""
    compile_seconds: float
    """Compiling, which is needed once on a machine and is not part of `seconds`."""
    arithmetic: str
    theorem: str
    """The claim in words."""
    assumptions: tuple[str, ...]
    """What was assumed about the model file."""
    weights_sha256: str
    position: int | None = None
    """Where the answer is read, counted from 0; None if nobody asked for a position: at the last."""
    margin: float = 0.0
    """The right output has to win by more than this."""
    version: str = field(default=__version__)
    advice: str = ""
    """How to get more than this, if the search ended by itself; else empty."""
    origin: Origin | None = field(default=None, repr=False, compare=False)
    """What the proof is about, for ledgers and certificates: at a position, the network and the question of the tokens up to it. Its counts
    are those of the proof divided by `total // origin.question.total`, the ways to choose the later tokens."""

    @property
    def lower(self) -> float:
        """Proven accuracy, rounded down."""
        return round_down(Fraction(self.correct_at_least, self.total))

    @property
    def upper(self) -> float | None:
        """Proven upper bound on accuracy, rounded up."""
        return None if self.correct_at_most is None else round_up(Fraction(self.correct_at_most, self.total))

    def __repr__(self) -> str:
        """One line: what was proven, and what it took."""
        if self.status == "infeasible":
            return f"Proof({self.label}: infeasible, {self.reason})"
        most = "" if self.upper is None else f" <= {self.upper:.8f}"
        return f"Proof({self.label}: {self.lower:.8f} <= accuracy{most}, {self.status}, {self.flops:.2e} FLOPs, {self.seconds:.2f} s)"

    def _repr_html_(self) -> str:
        """The theorem and its figures, for notebooks."""
        rows = {
            "strategy": self.label,
            "status": self.status,
            "accuracy, at least": "-" if self.status == "infeasible" else f"{self.lower:.8f}",
            "accuracy, at most": "not asked for" if self.upper is None else f"{self.upper:.8f}",
            "FLOPs": f"{self.flops:.3g}",
            "unexplained dimensions": f"{self.unexplained_dimensions:,}",
            "seconds": f"{self.seconds:.2f}",
        }
        cells = "".join(
            f"<tr><th style='text-align:left'>{escape(k)}</th><td style='text-align:left'>{escape(v)}</td></tr>" for k, v in rows.items()
        )
        return f"<p>{escape(self.reason or self.theorem)}</p><table>{cells}</table>"

    @property
    def flops(self) -> int:
        return self.length.flops

    @property
    def integer_ops(self) -> int:
        return self.length.integer_ops

    @property
    def unexplained_dimensions(self) -> int:
        return self.length.unexplained_dimensions

    @cached_property
    def ledger(self) -> Ledger | None:
        """What a threshold proof is: parts and terms, to look at, to save, to improve by hand. None for the paper's strategies.

        At a position it is about the network on the tokens up to it, `origin.weights`.
        """
        return None if self.origin is None or self.origin.make_ledger is None else self.origin.make_ledger()

    @cached_property
    def certificate(self) -> Certificate:
        """The proof written down for the stand-alone checker. Checking it once takes some time; it is kept."""
        return self.certify()

    def certify(self, semantics: str = REAL, work: int | None = None) -> Certificate:
        """A certificate about the real-number network, or (`float32-any-order`) about its float32 forward pass with a count of its own.

        `work` units of work, about a nanosecond each, are what a check of it may take; by default a minute's worth.
        """
        from compactproofs.certificates.positions import of_positions

        whole = None if self.origin is None else self.origin.whole
        return self._own(semantics, work) if whole is None else of_positions([self._own(semantics, work)], whole)

    def _own(self, semantics: str, work: int | None) -> Certificate:
        """The certificate about the network on the tokens up to the position, or on all of them."""
        from compactproofs.certificates.writer import certify

        if self.origin is None or self.status == "infeasible":
            raise CertificateError(f"there is no proof to certify: {self.reason or 'it was not made by prove'}")
        ways = self.total // self.origin.question.total
        most = None if self.correct_at_most is None else self.correct_at_most // ways
        return certify(self.origin, self.correct_at_least // ways, most, self.ledger, semantics, work)

    def as_json(self) -> dict[str, Any]:
        asked: dict[str, Any] = {} if self.position is None else {"position": self.position}
        asked |= {} if self.margin == 0.0 else {"margin": self.margin}
        return asked | {
            "strategy": self.strategy,
            "label": self.label,
            "family": self.family,
            "parameters": self.parameters,
            "variant": self.variant,
            "sound": self.sound,
            "status": self.status,
            "reason": self.reason,
            "lower": self.lower,
            "upper": self.upper,
            "correct_at_least": str(self.correct_at_least),
            "correct_at_most": None if self.correct_at_most is None else str(self.correct_at_most),
            "total": str(self.total),
            "flops": self.flops,
            "flops_breakdown": self.length.flops_breakdown,
            "integer_ops": self.integer_ops,
            "unexplained_dimensions": self.unexplained_dimensions,
            "seconds": self.seconds,
            "search_seconds": self.search_seconds,
            "counting_seconds": self.counting_seconds,
            "compile_seconds": self.compile_seconds,
            "arithmetic": self.arithmetic,
            "theorem": self.theorem,
            "assumptions": list(self.assumptions),
            "weights_sha256": self.weights_sha256,
            "version": self.version,
        }


def certify(proof: Proof | Sequence[Proof], semantics: str = REAL, work: int | None = None) -> Certificate:
    """A proof written down, the same as `proof.certify(semantics)`; or proofs about positions of one model, all in one certificate."""
    from compactproofs.certificates.positions import of_positions

    if isinstance(proof, Proof):
        return proof.certify(semantics, work)
    wholes = [each.origin.whole for each in proof if each.origin is not None and each.origin.whole is not None]
    if len(wholes) != len(proof) or len({whole.sha256 for whole in wholes}) != 1:
        raise CertificateError("several proofs have one certificate if they are about positions of one model")
    return of_positions([each._own(semantics, work) for each in proof], wholes[0])
