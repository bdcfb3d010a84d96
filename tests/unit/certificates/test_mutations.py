"""Flip any field of a valid certificate: it is not accepted, or what it then claims is still true by brute force."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compactproofs as cp
from compactproofs import checker
from compactproofs.certificates.checking import network
from models import weights_from_tables

CORPUS = Path(__file__).parents[2] / "corpus"
CORPUS_MODEL = (CORPUS / "models/a.safetensors").read_bytes()


def small_model():
    """Three tokens, three places, some sequences wrong: the certificates are short enough to try every field."""
    rng = np.random.default_rng(13)
    noise = [0.8 * rng.normal(size=shape) for shape in ((3, 3), (3, 3), (3, 4), (3, 4), (3, 4))]
    return weights_from_tables(noise[0] + np.arange(3), noise[1], noise[2] + 3 * np.eye(3, 4), noise[3], noise[4])


WEIGHTS = small_model()
MODEL = network(WEIGHTS)
TOTAL, TRUTH = 27, cp.accuracy(WEIGHTS).correct
STRATEGIES = "cubic subcubic threshold-cubic threshold-cubic-pooled threshold-quartic threshold-exact-output threshold-best".split()
CERTIFICATES = {
    **{name: cp.prove(WEIGHTS, name, upper=name in ("cubic", "threshold-best")).certificate.content for name in STRATEGIES},
    "float32": cp.prove(WEIGHTS, "threshold-cubic-pooled").certify("float32-any-order").content,
}

OTHER_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 6),
    st.integers(-(2**80), 2**80),
    st.sampled_from(["", "0", "1", "125", "999", "real", "float32-any-order", "cubic", "gaps", "pools", "pairs", "failures"]),
    st.just([]),
    st.just({}),
)


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
    found = checker.check(json.dumps(content).encode(), MODEL)
    assert found.verdict is not checker.Verdict.INTERNAL_ERROR, found.reason
    if found.accepted:
        assert found.total == TOTAL and found.correct_at_least <= TRUTH
        assert found.correct_at_most is None or found.correct_at_most >= TRUTH


def test_the_certificates_say_something():
    assert 0 < TRUTH < TOTAL
    assert all(checker.check(json.dumps(content).encode(), MODEL).accepted for content in CERTIFICATES.values())
    assert sum(int(content["claim"]["correct_at_least"]) > 0 for content in CERTIFICATES.values()) >= 6


def nudged(value):
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return str(int(value) + 1) if value.isdigit() else value + "x"
    return value[1:] if isinstance(value, list) else {}


def lowered(value):
    return value - 1 if isinstance(value, int) and not isinstance(value, bool) else nudged(value)


@pytest.mark.parametrize("change", [nudged, lowered])
@pytest.mark.parametrize("name", CERTIFICATES)
def test_every_field_nudged(name, change):
    for place in places(CERTIFICATES[name]):
        assert_harmless(with_change(CERTIFICATES[name], place, change))


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_any_field_replaced(data):
    content = CERTIFICATES[data.draw(st.sampled_from(sorted(CERTIFICATES)))]
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(list(places(content))))
        if place:
            value = data.draw(OTHER_VALUES)
            content = with_change(content, place, lambda _, value=value: value)
    assert_harmless(content)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_any_bytes_changed(data):
    name = data.draw(st.sampled_from(sorted(CERTIFICATES)))
    text = bytearray(json.dumps(CERTIFICATES[name]).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    found = checker.check(bytes(text), MODEL)
    assert found.verdict is not checker.Verdict.INTERNAL_ERROR, found.reason
    if found.accepted:
        assert found.correct_at_least <= TRUTH


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
