"""The bundled models, each with its theorem: bounds, certificate, checker's verdict, and where failures may be. One row per model.

    python benchmarks/measure_gallery.py [MODEL ...]     # writes docs/gallery/rows.json; then python benchmarks/picture_pages.py

Seconds are processor seconds of the whole process and its helpers, compiling excluded. "Failing" is, for each label, how much of its mass the
ledger of the proof cannot prove right. `verify` decides that, and only where it confirms the bound is a row written.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from compare_blocks import processor_seconds

import compactproofs as cp
from compactproofs.errors import CertificateError
from compactproofs.ledger.inspect import proven_by_query
from compactproofs.model.files import write_atomically
from compactproofs.model.network import Network
from compactproofs.model.zoo import ZOO_NAMES

ROWS = Path(__file__).resolve().parents[1] / "docs" / "gallery" / "rows.json"
LEFT = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "pictures" / "left.json"
SECONDS = 60.0
SAMPLES = 10**6
MOST_EXACT = 2**24


def row(name: str, seconds: float) -> dict[str, object]:
    """Prove, certify, check, and look at what is left."""
    model = cp.zoo(name)
    question = cp.Question(cp.task_for(model))
    began = processor_seconds()
    proof = cp.prove(model, upper=True, seconds=seconds)
    taken = processor_seconds() - began
    assert proof.ledger is not None
    exact = question.total <= MOST_EXACT
    measured = cp.accuracy(model, samples=None if exact else SAMPLES, seconds=None)
    verified = cp.verify(proof.ledger, model)
    assert verified.correct_at_least == proof.correct_at_least
    failing, of = by_label(question, proof.ledger, verified)
    assert sum(failing) == question.total - proof.correct_at_least
    return {
        "model": name,
        "described": model.described if isinstance(model, Network) else "one head",
        "n_ctx": model.n_ctx,
        "d_vocab": model.d_vocab,
        "accuracy": measured.accuracy,
        "exact": exact,
        "correct_at_least": str(proof.correct_at_least),
        "correct_at_most": str(proof.correct_at_most),
        "total": str(question.total),
        "seconds": round(taken, 1),
        **certified(proof, model),
        "failing": list(map(str, failing)),
        "of": list(map(str, of)),
    }


def by_label(question: cp.Question, ledger: cp.Ledger, verified: cp.Verified) -> tuple[list[int], list[int]]:
    """How much of the mass of each label may fail, and its mass. What no part is about may fail."""
    whole = {label: sum(question.totals_by_last(label)) for label in question.task.labels}
    failing = dict(whole)
    for part, failed in zip(ledger.lower, verified.failing, strict=True):
        tokens, totals = question.label_automaton(part.label).tokens.tolist(), question.totals_by_last(part.label)
        failing[part.label] -= sum(totals[tokens.index(query)] for query in part.queries) - failed
    return [failing[label] for label in sorted(whole)], [whole[label] for label in sorted(whole)]


def certified(proof: cp.Proof, model: object) -> dict[str, object]:
    """Its size and the verdict of the checker, or why there is none."""
    try:
        size = len(proof.certificate.data)
    except CertificateError as refused:
        return {"bytes": None, "accepted": None, "reason": str(refused), "checking_seconds": None}
    began = processor_seconds()
    checked = cp.check(proof.certificate, model)
    assert not checked.accepted or checked.correct_at_least >= proof.correct_at_least  # its own bounds may be tighter
    return {
        "bytes": size,
        "accepted": checked.accepted,
        "reason": "" if checked.accepted else checked.reason,
        "checking_seconds": round(processor_seconds() - began, 1),
    }


def left(name: str) -> dict[str, object]:
    """The labels and queries of which some sequence may fail, each with how many, and of how many. The others are proven without counting."""
    model = cp.zoo(name)
    proof = cp.prove(model, upper=True)
    question = cp.Question(cp.task_for(model))
    assert proof.ledger is not None
    proven = proven_by_query(proof.ledger, model)
    squares = [
        (label, query, mass - right, mass)
        for label in question.task.labels
        for query, mass, right in zip(
            question.label_automaton(label).tokens.tolist(), question.totals_by_last(label), proven[label], strict=True
        )
    ]
    terms = {
        (part.label, query) for part in proof.ledger.lower for query in part.queries if any(leaf and leaf.terms for leaf in part.leaves)
    }
    return {
        "model": name,
        "d_vocab": model.d_vocab,
        "proven": proof.correct_at_least,
        "squares": len(squares),
        "counted": len(terms),
        "failing": [each for each in squares if each[2]],
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="only these, the other rows stay as they are", metavar="MODEL")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="wall time of each proof, at most")
    parser.add_argument("--left", action="store_true", help="write docs/explanation/pictures/left.json, and do nothing else")
    options = parser.parse_args()
    if options.left:
        write_atomically(LEFT, (json.dumps(left("max-of-4")) + "\n").encode())
        return
    known = {row["model"]: row for row in json.loads(ROWS.read_text(encoding="utf-8"))} if ROWS.exists() else {}
    for name in options.models or ZOO_NAMES:
        cp.prove(cp.zoo(name), upper=True, seconds=0.5)  # compile
        known[name] = row(name, options.seconds)
        print({key: value for key, value in known[name].items() if key not in ("failing", "of")}, flush=True)
        ROWS.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(ROWS, (json.dumps([known[each] for each in ZOO_NAMES if each in known], indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
