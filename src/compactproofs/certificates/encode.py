"""A ledger as the JSON of a certificate, and back. The format is docs/certificate-format.md."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from compactproofs.bounds.compact_hints import Compact
from compactproofs.bounds.factors import Factors
from compactproofs.certificates.hints import certifiable_block, encoded_hints
from compactproofs.counting.grid import MOST_MANTISSA, Grid
from compactproofs.errors import CertificateError
from compactproofs.form.embedded import position_centre
from compactproofs.ledger.ledger import Apart, Both, Factored, Joint, Leaf, Ledger, Part, Split, Spoiler, Spoilers, Sum, Term, Tree
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network, NormKind
from compactproofs.tasks import AbstractTask, MaxOfK
from compactproofs.tasks.margin import margin_of_question
from compactproofs.tasks.question import FLOAT32, REAL, Question

ERROR_MODEL = "float32-1"


def encoded(ledger: Ledger, weights: Model) -> dict[str, Any]:
    """The fields `question`, `factors`, `lower` and `upper`."""
    if isinstance(ledger.factors, Compact) or (ledger.factors is not None and not ledger.factors.exact):
        raise CertificateError("factored terms with replaced scores or direct path cannot be written down: the checker has the exact ones")
    block = certifiable_block(weights)
    return {
        "question": encoded_question(ledger.question),
        "factors": None if ledger.factors is None else _factors(ledger.factors, ledger, weights),
        "lower": [_part(part, block, ledger.question) for part in ledger.lower],
        "upper": None if ledger.upper is None else [_part(part, block, ledger.question) for part in ledger.upper],
    }


def encoded_question(question: Question) -> dict[str, Any]:
    """The field `question`. That of float32 arithmetic is no margin of its own: the checker finds it."""
    margin = margin_of_question(question) if question.semantics == REAL else 0.0
    return {
        "task": _task(question.task),
        "masses": None if question.masses is None else question.masses.tolist(),
        "semantics": question.semantics,
        "error_model": ERROR_MODEL if question.semantics == FLOAT32 else None,
        **({"margin": margin.hex()} if margin else {}),
        "sha256": question.sha256,
    }


def decoded(content: dict[str, Any], task: AbstractTask, margin: np.ndarray | None = None) -> Ledger:
    """The ledger of a certificate about a task that is known; `verify` decides what it proves. A claim about float32 needs its margin."""
    if margin is None and "margin" in content["question"]:
        margin = np.full((task.d_vocab, content["model"]["d_vocab_out"]), float.fromhex(content["question"]["margin"]))
    masses = None if content["question"]["masses"] is None else np.array(content["question"]["masses"], dtype=np.int64)
    question = Question(task, masses, margin, content["question"]["semantics"])
    if question.sha256 != content["question"]["sha256"]:
        raise CertificateError(f"the certificate asks another question than {task.title!r}")
    lower, upper = (None if content[side] is None else tuple(map(_decoded_part, content[side])) for side in ("lower", "upper"))
    factors = None if content["factors"] is None else _decoded_factors(content["factors"])
    return Ledger(question, content["model"]["weights_sha256"], lower or (), upper, factors)


def _task(task: AbstractTask) -> str | dict[str, Any]:
    if isinstance(task, MaxOfK):
        return "max"
    a = task.automaton
    return {"start": a.start, "following": a.transitions.tolist(), "labels": a.labels.tolist()}


def _part(part: Part, block: Network | None, question: Question) -> dict[str, Any]:
    tokens = question.label_automaton(part.label).tokens
    larger = block.d_model if block is not None and block.norm_final is not None and block.norm_final.kind is NormKind.LN else 1

    def written(tree: Tree) -> dict[str, Any] | None:
        match tree:
            case None:
                return None
            case Split():
                return {"token": tree.token, "at_least": tree.at_least, "more": written(tree.more), "fewer": written(tree.fewer)}
            case Leaf():
                hints = {} if block is None else {"hints": encoded_hints(tree.relaxation, block, tokens)}
                return {"terms": [_term(term, larger) for term in tree.terms], "listed": [list(x) for x in tree.listed], **hints}

    return {"label": part.label, "queries": list(part.queries), "tree": written(part.tree)}


def _term(term: Term, larger: int) -> dict[str, Any]:
    """A term; the checker's harms are so many times larger, as it centres with integers (behind a final LayerNorm)."""
    if isinstance(term, Both):
        return {"both": [_sum(term.one, larger), _sum(term.other, larger)], "reach": term.reach}
    return _sum(term, larger)


def _sum(term: Sum, larger: int) -> dict[str, Any]:
    match term:
        case Joint():
            named: dict[str, Any] = {"joint": list(term.outputs), "weights": list(term.weights)}
        case Apart():
            named = {"apart": term.output, "less": term.parent, "factors": [term.factor, term.less]}
        case Factored():
            named = {"factored": True}
        case Spoiler():
            named = {"spoiler": term.output}
        case Spoilers():
            named = {"spoilers": [term.output, term.other], "factors": [term.factor, term.more]}
    grid = term.grid
    mantissa, exponent = grid.mantissa * larger, grid.exponent
    while mantissa > MOST_MANTISSA:
        mantissa, exponent = -(-mantissa // 2), exponent + 1
    return {**named, "step": [mantissa, exponent], "depth": grid.depth, "offsets": list(grid.offsets)}


def _factors(factors: Factors, ledger: Ledger, weights: Model) -> dict[str, Any]:
    labels = sorted({part.label for part in ledger.lower})
    checked = factors.checked(weights)
    return {
        "centre": _dyadic(position_centre(weights)),
        "mu": _dyadic(checked.mu),
        "labels": [
            {
                "label": label,
                "relative_to": None if checked.centres is None else int(checked.centres[label]),
                "weights": None if checked.output_weights is None else checked.output_weights[label].tolist(),
            }
            for label in labels
        ],
    }


def _dyadic(x: np.ndarray) -> dict[str, Any]:
    """Numbers as integers over a power of two."""
    fractions = [Fraction(number) for number in x.tolist()]
    scale = max(f.denominator.bit_length() - 1 for f in fractions)
    if scale > 256:
        raise CertificateError("a hint has too many digits for the certificate format")
    return {"scale": scale, "entries": [int(f * 2**scale) for f in fractions]}


def _decoded_part(part: dict[str, Any]) -> Part:
    return Part(part["label"], tuple(part["queries"]), _decoded_tree(part["tree"]))


def _decoded_tree(tree: dict[str, Any] | None) -> Tree:
    if tree is None:
        return None
    if "token" in tree:
        return Split(tree["token"], tree["at_least"], _decoded_tree(tree["fewer"]), _decoded_tree(tree["more"]))
    if "hints" in tree:
        raise CertificateError("certificates about whole blocks are not read back: make their ledgers anew")
    return Leaf(tuple(map(_decoded_term, tree["terms"])), tuple(tuple(x) for x in tree["listed"]))


def _decoded_term(term: dict[str, Any]) -> Term:
    if "both" not in term:
        return _decoded_sum(term)
    one, other = map(_decoded_sum, term["both"])
    if not isinstance(one, Joint | Apart) or not isinstance(other, Joint | Apart):
        raise CertificateError(f"two terms at once that are not joint or apart: {term!s:.80}")
    return Both(one, other, term["reach"])


def _decoded_sum(term: dict[str, Any]) -> Sum:
    mantissa, exponent = term["step"]
    grid = Grid(mantissa, exponent, term["depth"], tuple(term["offsets"]))
    if "joint" in term:
        return Joint(tuple(term["joint"]), tuple(term["weights"]), grid)
    if "apart" in term:
        factor, less = term["factors"]
        return Apart(term["apart"], term["less"], factor, less, grid)
    if "spoilers" in term:
        (output, other), (factor, more) = term["spoilers"], term["factors"]
        return Spoilers(output, other, factor, more, grid)
    return Factored(grid) if "factored" in term else Spoiler(term["spoiler"], grid)


def _decoded_factors(factors: dict[str, Any]) -> Factors:
    mu = _numbers(factors["mu"])
    out, labels = len(mu), factors["labels"]
    weights, centres = np.ones((out, out), dtype=np.int64), np.zeros(out, dtype=np.int64)
    for each in labels:
        weights[each["label"]] = 1 if each["weights"] is None else each["weights"]
        centres[each["label"]] = each["relative_to"] or 0
    weighted = any(each["weights"] is not None for each in labels)
    pooled = any(each["relative_to"] is not None for each in labels)
    return Factors(mu, weights if weighted else None, centres if pooled else None)


def _numbers(vector: dict[str, Any]) -> np.ndarray:
    entries: Sequence[int] = vector["entries"]
    return np.array([float(Fraction(x, 2 ** vector["scale"])) for x in entries])
