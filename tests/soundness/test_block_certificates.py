"""Certificates about whole blocks: they claim what was proven, and changed ones prove no more than the truth."""

import random
from copy import deepcopy
from fractions import Fraction
from functools import cache

import pytest

import blocks
import compactproofs as cp
import network_oracle
from block_certificates import KNOWN, scene, some_hints
from compactproofs import checker
from compactproofs.certificates.checking import network as raw_network
from compactproofs.certificates.encode import encoded
from thinned import thinned
from trees import json_leaves

SEEDS = {kind: blocks.tiny_block(1, kind, harder=True) for kind in KNOWN}


@cache
def truth(kind):
    return network_oracle.bounds(SEEDS[kind])


@cache
def proof(kind, strategy):
    return cp.prove(SEEDS[kind], strategy, upper=True)


@pytest.mark.parametrize("kind", KNOWN)
def test_certificates_claim_what_was_proven(kind):
    for strategy in ("threshold-quartic", "threshold-best"):
        found = cp.check(proof(kind, strategy).certificate, SEEDS[kind])
        assert found.accepted, found.reason
        assert (found.correct_at_least, found.correct_at_most) == (
            proof(kind, strategy).correct_at_least,
            proof(kind, strategy).correct_at_most,
        )
    assert (found.correct_at_least, found.correct_at_most) == truth(kind) == (found.correct_at_most, found.correct_at_least)


def claim_changed(content, name, by):
    claim = {**content["claim"], name: str(int(content["claim"][name]) + by)}
    return cp.Certificate({**content, "claim": claim}).data


@pytest.mark.parametrize("kind", KNOWN)
def test_other_claims_and_other_models_are_rejected(kind):
    content, raw = proof(kind, "threshold-best").certificate.content, raw_network(SEEDS[kind])
    for name, by in (("correct_at_least", 1), ("correct_at_most", -1)):
        found = checker.check(claim_changed(content, name, by), raw)
        assert found.verdict is checker.Verdict.REJECTED and "certificate proves a mass of" in found.reason
    other = checker.check(cp.Certificate(content).data, raw_network(blocks.tiny_block(2, kind)))
    assert other.verdict is checker.Verdict.REJECTED and "other weights" in other.reason


def proves_no_more(content, kind, network=None):
    """Whether what is proven is true; rejected or malformed certificates prove nothing. Returns whether something was proven."""
    least, most = truth(kind) if network is None else network_oracle.bounds(network)
    try:
        at_least, at_most, _ = checker.proven(content, raw_network(SEEDS[kind] if network is None else network), checker.MOST_WORK)
    except (checker.RejectedError, checker.MalformedError):
        return False
    assert at_least <= least and (at_most is None or most <= at_most)
    return True


@pytest.mark.parametrize("kind", KNOWN)
def test_a_proof_about_another_network_proves_nothing_false(kind):
    content = proof(kind, "threshold-best").certificate.content
    for seed in (2, 3):
        proves_no_more(content, kind, blocks.tiny_block(seed, kind, harder=True))


def mutate(rng, content, T):
    """One to three changes of the kinds that might make a proof stronger."""
    side = rng.choice(["lower", "upper"])
    parts = content[side]
    part = rng.choice(parts)
    leaves = [leaf for leaf in json_leaves(part) if leaf["hints"] is not None] or list(json_leaves(part))
    leaf = rng.choice(leaves) if leaves else {"terms": [], "listed": [], "hints": None}
    hints, terms = leaf["hints"], leaf["terms"]
    kind = rng.choice(
        "hints neuron queries outputs weights grid listed hints-of-another none spoiler label tree typical terms spoiler spoiler".split()
    )
    if kind == "hints":
        leaf["hints"] = some_hints(rng, T, [], rng.randrange(9))
    elif kind == "neuron" and hints and hints["neurons"]:
        j, shares = rng.randrange(len(hints["neurons"])), [rng.choice([1, 1 << 15, 1 << 16, 40000]) for _ in T.value]
        low, high = -rng.randrange(1, 1 << 8), rng.randrange(1, 1 << 8)
        narrow = {"low": low, "high": high, "scale": rng.randrange(8), "tangent": rng.randrange(2)}
        hints["neurons"][j] = rng.choice([0, 1, narrow, {"tangent": rng.randrange(2), "shares": shares}])
    elif kind == "queries":
        other = rng.choice(parts)
        part["queries"], other["queries"] = other["queries"], part["queries"]
    elif kind == "outputs" and terms and "joint" in terms[0]:
        i = rng.randrange(len(terms[0]["joint"]))
        del terms[0]["joint"][i], terms[0]["weights"][i]
    elif kind == "weights" and terms and "joint" in terms[0]:
        terms[0]["weights"][rng.randrange(len(terms[0]["weights"]))] = rng.choice([1, 1 << 39])
    elif kind == "grid" and terms:
        terms[0]["step"] = [rng.randrange(1, 99), rng.randrange(-90, 20)]
        terms[0]["depth"], terms[0]["offsets"] = rng.choice([1, 20, 4000]), [rng.randrange(256) for _ in terms[0]["offsets"]]
    elif kind == "listed":
        x = [*(rng.randrange(T.v) for _ in range(T.k - 1)), rng.choice(part["queries"])]
        leaf["listed"] = [*leaf["listed"], rng.choice([x, *leaf["listed"]])]
    elif kind == "hints-of-another":
        leaf["hints"] = rng.choice([each["hints"] for p in content["lower"] + content["upper"] for each in json_leaves(p)] or [None])
    elif kind == "none":
        leaf["hints"] = None
    elif kind == "spoiler":  # provers list instead
        known = [(p, each) for p in content["lower"] for each in json_leaves(p) if each["terms"] and each["hints"]]
        if known:
            like, of = rng.choice(known)
            grid = {name: of["terms"][0][name] for name in ("step", "depth", "offsets")}
            given = of["hints"] if rng.random() < 0.7 else some_hints(rng, T, [], rng.randrange(9))
            tree = {"terms": [{"spoiler": rng.randrange(T.out), **grid}], "listed": [], "hints": given}
            content["upper"] = [{**like, "tree": tree}]
    elif kind == "label":
        part["label"] = rng.randrange(T.out)
    elif kind == "tree" and part["tree"] is not None:
        tree = {"token": rng.randrange(T.v), "at_least": rng.randrange(1, T.k + 1), "more": part["tree"], "fewer": deepcopy(part["tree"])}
        part["tree"] = rng.choice([tree, part["tree"].get("more", part["tree"])])
    elif kind == "typical" and hints:
        hints["typical"], hints["shares"] = None, rng.choice([None, [1 << 16] * len(T.value), [9] * len(T.value)])
    elif kind == "terms":
        leaf["terms"] = terms[1:]


@pytest.mark.parametrize("strategy", ["threshold-quartic", "threshold-best"])
@pytest.mark.parametrize("kind", thinned(KNOWN))
def test_changed_certificates_prove_nothing_false(kind, strategy):
    content, rng, proven = proof(kind, strategy).certificate.content, random.Random(kind + strategy), 0
    content = content if content["upper"] else {**content, "upper": proof(kind, "threshold-best").certificate.content["upper"]}
    T, _ = scene(checker, SEEDS[kind], 4)
    for _ in range(25):
        changed = deepcopy(content)
        for _ in range(rng.choice([1, 1, 2, 3])):
            mutate(rng, changed, T)
        proven += proves_no_more(changed, kind)
    assert proven >= 2


def steps_of(tree):
    """The steps of all terms of a tree in JSON."""
    if tree is None:
        return []
    if "split" in tree or "more" in tree:
        return [*steps_of(tree["fewer"]), *steps_of(tree["more"])]
    return [Fraction(term["step"][0]) * Fraction(2) ** term["step"][1] for term in tree["terms"]]


@pytest.mark.parametrize("kind", KNOWN)
def test_steps_are_as_many_times_larger_as_the_checkers_harms(kind):
    """Behind a final LayerNorm the checker's harms are d_model times the proof's; else a step is what it was."""
    network, ledger = SEEDS[kind], proof(kind, "threshold-quartic").ledger
    times = network.d_model if "final LN" in kind else 1
    written = encoded(ledger, network)["lower"]
    own = [
        Fraction(t.grid.mantissa) * Fraction(2) ** t.grid.exponent
        for part in ledger.lower
        for leaf in part.leaves
        if leaf
        for t in leaf.terms
    ]
    found = [step for part in written for step in steps_of(part["tree"])]
    assert sorted(own) and all(0 <= y - times * x <= y / 2**14 for x, y in zip(sorted(own), sorted(found), strict=True))
