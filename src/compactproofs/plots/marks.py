"""Proofs as marks: tightness, or anything else, against length. Both ways to draw begin here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from compactproofs.results.frontier import on_frontier
from compactproofs.results.models import ModelResults
from compactproofs.results.schema import Row

FAMILIES = {
    "brute-force": ("brute force", "square", "#777777"),
    "cubic": ("cubic", "diamond", "#0072b2"),
    "subcubic": ("subcubic, repaired", "circle", "#e69f00"),
    "published": ("subcubic, as published (not proofs)", "circle-open", "#cc79a7"),
    "threshold": ("threshold", "triangle-up", "#009e73"),
}
"""Name, marker and colour of each family: told apart by shape as well as by colour (a palette for colour-blind readers)."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One strategy, on one model or on average."""

    family: str
    """One of `FAMILIES`."""
    flops: float
    value: float
    label: str
    spread: float = 0.0
    """Standard deviation of the value over models."""


def family_of(proof: Row) -> str:
    """The family under which a proof is drawn."""
    return "published" if proof["variant"] == "published" else str(proof["family"])


def marks_of(models: Iterable[ModelResults], value: Callable[[ModelResults, Row], float]) -> list[Mark]:
    """Every proof of every model, and what the authors' code computes; without what was not carried out."""
    return [
        Mark(family, float(proof["flops"]), value(model, proof), proof["label"])
        for model in models
        for proof in model.proofs
        if proof["status"] in ("proven", "computed") and (family := family_of(proof)) in FAMILIES
    ]


def frontier(marks: Sequence[Mark]) -> list[Mark]:
    """The proofs that no other beats, the shortest first."""
    proofs = [mark for mark in marks if mark.family != "published"]
    kept = on_frontier([(mark.flops, mark.value) for mark in proofs])
    return sorted((mark for mark, keep in zip(proofs, kept, strict=True) if keep), key=lambda mark: mark.flops)
