"""Flip any field of a valid certificate: it is not accepted, or what it then claims is still true by brute force."""

import json
from dataclasses import replace
from functools import cache
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compactproofs as cp
from compactproofs import checker
from compactproofs.certificates.checking import network
from compactproofs.strategies.base import Request
from compactproofs.strategies.registry import strategy
from compactproofs.tasks import LabellingAutomaton, MaxOfK
from models import weights_from_tables
from oracle import is_correct
from tasks import Named
from trees import json_leaves

CORPUS = Path(__file__).parents[2] / "corpus"
CORPUS_MODEL = (CORPUS / "models/a.safetensors").read_bytes()


def small_model():
    """Three tokens, three places, some sequences wrong: the certificates are short enough to try every field."""
    rng = np.random.default_rng(6)
    noise = [0.8 * rng.normal(size=shape) for shape in ((3, 3), (3, 3), (3, 4), (3, 4), (3, 4))]
    return weights_from_tables(noise[0] + np.arange(3), noise[1], noise[2] + 3 * np.eye(3, 4), noise[3], noise[4])


WEIGHTS = small_model()
MODEL = network(WEIGHTS)
TASK, OTHER = MaxOfK(3, 3), Named("minimum", 3, 3)
STRATEGIES = "cubic subcubic threshold-cubic threshold-cubic-pooled threshold-quartic threshold-exact-output threshold-best".split()
MASSES = [[3, 1, 2], [0, 5, 1], [1, 2, 4]]


def with_masses(name, masses):
    """A certificate of a question that does not take all sequences alike."""
    question, proof = cp.Question(TASK, np.array(masses)), cp.prove(WEIGHTS, name)
    bound = strategy(name).bound(Request(WEIGHTS, TASK, asked=question))
    origin = replace(proof.origin, question=question, make_ledger=bound.make_ledger)
    return cp.certify(replace(proof, correct_at_least=bound.correct_at_least, total=question.total, origin=origin))


MAKERS = {
    **{name: lambda name=name: cp.prove(WEIGHTS, name, upper=name in ("cubic", "threshold-best")).certificate for name in STRATEGIES},
    "float32": lambda: cp.prove(WEIGHTS, "threshold-cubic-pooled").certify("float32-any-order"),
    "float32, one by one": lambda: cp.prove(WEIGHTS, "threshold-best").certify("float32-any-order"),
    "another task": lambda: cp.prove(WEIGHTS, "threshold-best", OTHER, upper=True).certificate,
    "another task, pools": lambda: cp.prove(WEIGHTS, "threshold-cubic-pooled", OTHER).certificate,
    "masses": lambda: with_masses("threshold-best", MASSES),
    "masses, pools": lambda: with_masses("threshold-cubic-pooled", [[2**30, 1, 5]] * 3),
}
"""How each certificate is made: when a test asks for it, as every worker imports this file."""


@cache
def certificate(name):
    return MAKERS[name]().content


OTHER_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 6),
    st.integers(-(2**80), 2**80),
    st.sampled_from(["", "0", "1", "27", "999", "real", "float32-any-order", "float32-1", "max"]),
    st.just([]),
    st.just({}),
    st.just([0, 1, 2]),
    st.just({"terms": [], "listed": []}),
)


@cache
def right(sequence, label):
    return label < WEIGHTS.d_vocab_out and is_correct(WEIGHTS, sequence, label)


def truth(question):
    """The mass that is answered right, and all of it, for the question that a certificate asks."""
    task = question["task"]
    automaton = TASK.automaton
    if task != "max":
        automaton = LabellingAutomaton(np.array(task["following"]), np.array(task["labels"]), task["start"])
    masses = question["masses"] or [[1] * 3] * 3
    found = {True: 0, False: 0}
    for x in product(range(3), repeat=3):
        label = int(automaton.label(np.array([x]))[0])
        found[right(x, label)] += prod(row[t] for row, t in zip(masses, x, strict=True))
    return found[True], sum(found.values())


def places(value, prefix=()):
    yield prefix
    for key, child in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(child, (*prefix, key))


def with_change(content, place, change):
    """A copy with one value changed."""
    if not place:
        return change(content)
    key, *rest = place
    copy = dict(content) if isinstance(content, dict) else list(content)
    copy[key] = with_change(content[key], rest, change)
    return copy


def assert_harmless(content):
    """Neither what it claims nor all that it could claim is wrong."""
    bold = boldest(content)
    for each in (content,) if bold == content else (content, bold):
        found = checker.check(json.dumps(each).encode(), MODEL)
        assert found.verdict is not checker.Verdict.INTERNAL_ERROR, found.reason
        if found.accepted:
            mass, total = truth(each["question"])
            assert found.total == total and found.correct_at_least <= mass
            assert found.correct_at_most is None or found.correct_at_most >= mass


def boldest(content):
    """The same, claiming whatever it proves."""
    if not isinstance(content, dict) or set(content) != set(certificate("cubic")):
        return content
    try:
        at_least, at_most, question = checker.proven(content, MODEL, checker.MOST_WORK)
    except (checker.RejectedError, checker.MalformedError):
        return content
    total = prod(map(sum, question.masses))
    return {
        **content,
        "claim": {"correct_at_least": str(at_least), "correct_at_most": None if at_most is None else str(at_most), "total": str(total)},
    }


def test_the_certificates_say_something():
    contents = [certificate(name) for name in MAKERS]
    for content in contents:
        mass, total = truth(content["question"])
        assert 0 < mass < total and checker.check(json.dumps(content).encode(), MODEL).accepted
    assert sum(int(content["claim"]["correct_at_least"]) > 0 for content in contents) >= 10
    terms = [t for c in contents for p in c["lower"] + (c["upper"] or []) for leaf in json_leaves(p) for t in leaf["terms"]]
    assert all(any(kind in term for term in terms) for kind in ("joint", "apart", "factored", "spoiler"))


def nudged(value):
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return str(int(value) + 1) if value.isdigit() else value + "x"
    return value[1:] if isinstance(value, list) else {}


def lowered(value):
    return value - 1


def places_for(change, value):
    """All places, or those of integers: nothing else can be lowered."""
    return places(value) if change is nudged else [place for place in places(value) if type(value_at(value, place)) is int]


@pytest.mark.long
@pytest.mark.parametrize("change", [nudged, lowered])
@pytest.mark.parametrize("name", MAKERS)
def test_every_field_nudged(name, change):
    for place in places_for(change, certificate(name)):
        assert_harmless(with_change(certificate(name), place, change))


def renamed(content):
    """The hash of a question that was changed: an attacker can compute it."""
    try:
        checker.read_question(content["question"], 3, 3, checker.Meter())
    except checker.RejectedError as error:
        if "SHA-256 is " in str(error):
            sha256 = str(error).partition("SHA-256 is ")[2][:64]
            return {**content, "question": {**content["question"], "sha256": sha256}}
    except checker.MalformedError:
        pass
    return content


@pytest.mark.parametrize("change", [nudged, lowered])
@pytest.mark.parametrize("name", ["another task", "another task, pools", "masses", "masses, pools"])
def test_every_field_of_a_question_nudged_and_its_hash_with_it(name, change):
    """Then another question is asked, and the answer must be right for that one."""
    for place in places_for(change, certificate(name)["question"]):
        if place:
            assert_harmless(renamed(with_change(certificate(name), ("question", *place), change)))


@settings(deadline=None, max_examples=400)
@given(st.data())
def test_any_field_replaced(data):
    content = certificate(data.draw(st.sampled_from(sorted(MAKERS))))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(list(places(content))))
        if place:
            value = data.draw(OTHER_VALUES)
            content = with_change(content, place, lambda _, value=value: value)
    assert_harmless(renamed(content) if isinstance(content.get("question"), dict) else content)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_any_part_leaf_or_term_moved(data):
    """Parts, leaves, terms and sequences of all certificates, put where they do not belong."""
    content = certificate(data.draw(st.sampled_from(sorted(MAKERS))))
    donor = certificate(data.draw(st.sampled_from(sorted(MAKERS))))
    kind = data.draw(st.sampled_from([("label",), ("listed",), ("step",), (0,)]))
    sides = [(side, *place) for side in ("lower", "upper") if content[side] for place in places(content[side])]
    pieces = [piece for side in ("lower", "upper") if donor[side] for piece in pieces_of(donor[side])]
    here = [place for place in sides if place and kind_of(value_at(content, place)) == kind]
    fitting = [piece for piece in pieces if kind_of(piece) == kind]
    if here and fitting:
        content = with_change(content, data.draw(st.sampled_from(here)), lambda _: data.draw(st.sampled_from(fitting)))
    if data.draw(st.booleans()) and donor["factors"] is not None:
        content = {**content, "factors": donor["factors"]}
    assert_harmless(content)


def value_at(value, place):
    for key in place:
        value = value[key]
    return value


def pieces_of(value):
    return [value_at(value, place) for place in places(value)]


def kind_of(value):
    """What a piece of a bound is: a part, a leaf, a term, or a list of integers."""
    if isinstance(value, dict):
        return next(((name,) for name in ("label", "listed", "step") if name in value), None)
    return (0,) if isinstance(value, list) and value and all(type(x) is int for x in value) else None


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_any_bytes_changed(data):
    name = data.draw(st.sampled_from(sorted(MAKERS)))
    text = bytearray(json.dumps(certificate(name)).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    found = checker.check(bytes(text), MODEL)
    assert found.verdict is not checker.Verdict.INTERNAL_ERROR, found.reason
    if found.accepted:
        assert found.correct_at_least <= truth(json.loads(text)["question"])[0]


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_any_model_bytes_changed(data):
    model = bytearray(CORPUS_MODEL)
    place = data.draw(st.integers(0, len(model) - 1))
    model[place : place + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    found = checker.check((CORPUS / "accept/cubic.json").read_bytes(), bytes(model))
    assert found.verdict is not checker.Verdict.INTERNAL_ERROR, found.reason
    if found.accepted:
        assert checker.read_safetensors(bytes(model)) == checker.read_safetensors(CORPUS_MODEL)
