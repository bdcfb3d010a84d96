"""What a certificate says, in words and numbers. Nothing is checked here: that is what the checker is for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from compactproofs.checker import FORMAT, KINDS, Json, MalformedError, dyadic, natural, parse
from compactproofs.errors import CertificateError
from compactproofs.tasks.margin import in_words


@dataclass(frozen=True)
class Side:
    """How a certificate argues for one of its bounds."""

    parts: int
    """Of a label and some queries each"""
    leaves: int
    given_up: int
    """Leaves about which nothing is claimed: all their sequences count as failing, or as right"""
    terms: dict[str, int]
    """How many terms there are of each kind"""
    listed: int
    """Sequences decided one by one"""
    busiest: tuple[tuple[int, int], ...]
    """Labels with the most terms and listed sequences, and how many these are"""


@dataclass(frozen=True)
class Explanation:
    """A certificate, or the certificate about one position."""

    producer: str
    position: int | None
    correct_at_least: int
    correct_at_most: int | None
    total: int
    task: str
    distribution: str
    semantics: str
    margin: str | None
    """By more than this the right output's logit has to be larger; None: it has to be larger"""
    model: dict[str, str]
    assumptions: tuple[str, ...]
    lower: Side
    upper: Side | None


def explain(data: bytes) -> list[Explanation]:
    """What a certificate file says; one entry for each position that it is about.

    It may come from anywhere; one that is not a certificate is refused with a `CertificateError`.
    """
    try:
        content = parse(data, "certificate")
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise CertificateError(f"this is not a certificate: its format is not {FORMAT!r}")
        if "positions" in content:
            return [_explained(each, int(each["model"]["n_ctx"]) - 1) for each in content["positions"]]
        return [_explained(content, None)]
    except MalformedError as error:
        raise CertificateError(f"this is not a certificate: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise CertificateError(f"this is not a certificate: something is missing or of another type ({error!r:.80})") from None


def _explained(content: Json, position: int | None) -> Explanation:
    claim, question, model = content["claim"], content["question"], content["model"]
    most = claim["correct_at_most"]
    return Explanation(
        producer=str(content["producer"]),
        position=position,
        correct_at_least=natural(claim["correct_at_least"], "claim"),
        correct_at_most=None if most is None else natural(most, "claim"),
        total=natural(claim["total"], "claim"),
        task=_task(question["task"]),
        distribution="every sequence counts alike" if question["masses"] is None else "each token has a mass at each position",
        semantics=str(question["semantics"]),
        margin=_margin(question["margin"]) if "margin" in question else None,
        model={str(name): str(value) for name, value in model.items() if name != "assumptions"},
        assumptions=tuple(str(each) for each in model["assumptions"]),
        lower=_side(content["lower"]),
        upper=None if content["upper"] is None else _side(content["upper"]),
    )


def _margin(text: Json) -> str:
    numerator, exponent = dyadic(text)
    return in_words(float(Fraction(numerator, 1 << exponent)))


def _task(task: Json) -> str:
    return str(task) if isinstance(task, str) else f"an automaton of {len(task['labels'])} states with {len(set(task['labels']))} labels"


def _side(parts: Json) -> Side:
    terms, busy, listed, leaves, given_up = Counter[str](), Counter[int](), 0, 0, 0
    for part in parts:
        for leaf in _leaves(part["tree"]):
            leaves += 1
            if leaf is None:
                given_up += 1
                continue
            terms.update(_kind(term) for term in leaf["terms"])
            listed += len(leaf["listed"])
            busy[int(part["label"])] += len(leaf["terms"]) + len(leaf["listed"])
    return Side(len(parts), leaves, given_up, dict(terms), listed, tuple(busy.most_common(3)))


def _leaves(tree: Json) -> Iterator[Json]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict) and "token" in node:
            waiting += [node["fewer"], node["more"]]
        else:
            yield node


def _kind(term: Json) -> str:
    return next(kind for kinds in KINDS.values() for kind in kinds if kind in term)
