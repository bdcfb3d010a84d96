"""Write the corpus: certificates that must be accepted, rejected or found malformed, each of the latter named after its attack.

    python tests/corpus/make_corpus.py

Everything is derived from a few tiny models, so the whole corpus can be read and made again at any time. `expected.json` says for each
certificate which model it is checked against, the verdict, and words that the reason must contain.
"""

from __future__ import annotations

import json
import shutil
import struct
from copy import deepcopy
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

import compactproofs as cp
from blocks import tiny_block
from compactproofs import checker
from compactproofs.certificates.checking import network
from compactproofs.certificates.encode import encoded_question
from compactproofs.model.files import save
from compactproofs.strategies.base import Request
from compactproofs.strategies.registry import strategy as strategy_named
from compactproofs.tasks import MaxOfK
from models import mostly_right
from oracle import is_correct
from tasks import Named
from trees import json_leaves

HERE = Path(__file__).parent


def at(content, path):
    """The parent object and the key of a dotted path."""
    *parents, key = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parents:
        content = content[part]
    return content, key


def changed(content, *changes):
    """A copy with values replaced: (path, value) or (path, function of the old value)."""
    result = deepcopy(content)
    for path, value in changes:
        parent, key = at(result, path)
        parent[key] = value(parent[key]) if callable(value) else value
    return result


def more(text):
    return str(int(text) + 1)


class Corpus:
    """Files and what is expected of them."""

    def __init__(self):
        self.expected = {}
        for folder in ("accept", "reject", "malformed", "models"):
            shutil.rmtree(HERE / folder, ignore_errors=True)
            (HERE / folder).mkdir()

    def add(self, verdict, name, content, model, reason):
        data = content if isinstance(content, bytes) else cp.Certificate(content).data
        folder = {"accepted": "accept", "rejected": "reject", "malformed": "malformed"}[verdict]
        (HERE / folder / f"{name}.json").write_bytes(data)
        self.expected[f"{folder}/{name}.json"] = {"model": f"models/{model}.safetensors", "verdict": verdict, "reason": reason}

    def close(self):
        (HERE / "expected.json").write_text(json.dumps(self.expected, indent=1, sort_keys=True) + "\n")


def accepted(corpus):
    """Certificates of each kind, kept for the attacks below."""
    strategies = {
        "cubic": "cubic",
        "pools": "threshold-cubic-pooled",
        "single-queries": "threshold-cubic",
        "quartic": "threshold-quartic",
        "outputs-apart": "threshold-exact-output",
        "exact-accuracy": "threshold-best",
    }
    found = {}
    for name, strategy in strategies.items():
        found[name] = cp.prove(WEIGHTS, strategy, upper=name in ("cubic", "exact-accuracy")).certificate.content
    found["another-task"] = cp.prove(WEIGHTS, "threshold-best", OTHER_TASK, upper=True).certificate.content
    masses = [[3, 1, 4, 1, 5], [9, 2, 6, 0, 3], [5, 8, 9, 7, 9]]
    found["masses"] = with_masses("threshold-best", masses)
    found["masses-beyond-64-bits"] = with_masses("threshold-quartic", [[1 << 37, 5, 1 << 36, 1 << 37, 3]] * 3)
    plain = {**found["exact-accuracy"], "upper": None}
    parts = [{**part, "tree": {**part["tree"], "listed": []}} for part in plain["lower"] if "token" not in part["tree"]]
    found["few"] = claiming_all({**plain, "lower": parts[-4:]})
    found["given-up"] = claiming_all({**plain, "lower": [{**part, "tree": None} for part in parts[:-4]] + parts[-4:]})
    found["splits"] = claiming_all({**plain, "lower": [with_splits(part) for part in parts[-4:]]})
    found["shallow"] = claiming_all({**plain, "lower": shallow(parts)})
    found["nothing"] = claiming_all({**plain, "lower": []})
    found["few-of-another-task"] = claiming_all({**found["another-task"], "lower": found["another-task"]["lower"][:1], "upper": None})
    found["few-with-masses"] = claiming_all({**found["masses"], "lower": parts_of_label(4, found["masses"])[:1]})
    found["one-apart"] = claiming_all({**plain, "lower": parts_with("apart", found["outputs-apart"]["lower"])[:1]})
    found["one-label"] = claiming_all({**found["pools"], "lower": parts_of_label(4, found["pools"])})
    lists = {side: [part for part in found["exact-accuracy"][side] if part["tree"].get("listed")] for side in ("lower", "upper")}
    found["lists"] = claiming_all({**plain, **lists, "claim": found["exact-accuracy"]["claim"]})
    for name, content in found.items():
        corpus.add("accepted", name, content, "a", "over the real numbers")
    for name, strategy in (("float32", "threshold-cubic-pooled"), ("float32-exact", "threshold-best")):
        found[name] = cp.prove(WEIGHTS, strategy).certify("float32-any-order").content
        corpus.add("accepted", name, found[name], "a", "ASSUMING the error model")
    corpus.add("accepted", "claims-less-than-it-proves", changed(found["few"], ("claim.correct_at_least", "1")), "a", "at least 1 ")
    return found


def with_masses(strategy, masses):
    """A certificate of a question that does not take all sequences alike."""
    question, proof = cp.Question(TASK, np.array(masses)), cp.prove(WEIGHTS, strategy)
    bound = strategy_named(strategy).bound(Request(WEIGHTS, TASK, asked=question))
    origin = replace(proof.origin, question=question, make_ledger=bound.make_ledger)
    return cp.certify(replace(proof, correct_at_least=bound.correct_at_least, total=question.total, origin=origin)).content


def claiming_all(content):
    """The certificate with the claim that it proves."""
    at_least, at_most, _ = checker.proven(content, network(WEIGHTS), checker.NO_LIMIT)
    claim = {**content["claim"], "correct_at_least": str(at_least), "correct_at_most": None if at_most is None else str(at_most)}
    return {**content, "claim": claim}


def with_splits(part):
    """The same terms for each leaf."""
    leaf = part["tree"]
    copies = {"token": part["label"], "at_least": 2, "more": leaf, "fewer": leaf}
    return {**part, "tree": {"token": 0, "at_least": 1, "more": leaf, "fewer": copies}}


def below_the_label(part):
    """The part about a label below the largest token, split by that token."""
    return {**part, "label": 3, "queries": [3], "tree": {"token": 4, "at_least": 1, "more": None, "fewer": None}}


def parts_with(kind, parts):
    """Those with a term of this kind."""
    return [part for part in parts if any(kind in term for leaf in json_leaves(part) for term in leaf["terms"])]


def parts_of_label(label, content):
    return [part for part in content["lower"] if part["label"] == label]


def shallow(parts):
    """With few digits: sound, though it proves less."""
    result = deepcopy(parts)
    for term in (term for part in result for leaf in json_leaves(part) for term in leaf["terms"]):
        term["depth"] = 20
    return result


def asking(content, question):
    """The same proof for another question, whose hash is right."""
    return {**content, "question": encoded_question(question), "claim": {**content["claim"], "total": str(question.total)}}


def with_true_hash(content, *changes):
    """A question that was changed, and its hash with it."""
    result = changed(content, *changes)
    sizes = network(WEIGHTS).sizes()
    try:
        checker.read_question(result["question"], sizes["d_vocab"], sizes["n_ctx"], checker.Meter())
    except checker.RejectedError as error:
        result["question"]["sha256"] = str(error).partition("SHA-256 is ")[2][:64]
    return result


def place_of(content, side, wanted):
    """The path of the first leaf that is wanted."""
    plain = [(i, part) for i, part in enumerate(content[side]) if part["tree"] is not None and "token" not in part["tree"]]
    return next(f"{side}.{i}.tree" for i, part in plain if wanted(part, part["tree"]))


def whole_blocks(corpus):
    """Blocks of several heads, neurons and final norms: hints of leaves, and what may be wrong with them."""
    found = {name: cp.prove(block, "threshold-best", upper=True).certificate.content for name, block in BLOCKS.items()}

    def attack(verdict, name, block, side, change, reason):
        """One part with a leaf that is changed, and a claim that anything proves."""
        part = found[block]["lower"][int(place_of(found[block], "lower", lambda _, leaf: leaf["hints"] and leaf["terms"]).split(".")[1])]
        if side == "upper":  # provers list instead
            term = {name: part["tree"]["terms"][0][name] for name in ("step", "depth", "offsets")}
            spoiler = {**term, "spoiler": part["tree"]["terms"][0]["joint"][0]}
            part = {**part, "tree": {"terms": [spoiler], "listed": [], "hints": part["tree"]["hints"]}}
        few = {**found[block], "lower": [], "upper": None, side: [part]}
        claim = {**few["claim"], "correct_at_least": "0", "correct_at_most": None if side == "lower" else few["claim"]["total"]}
        where, value = change
        corpus.add(verdict, f"{block}-{name}", changed({**few, "claim": claim}, (f"{side}.0.tree.hints{where}", value)), block, reason)

    for name, content in found.items():
        corpus.add("accepted", name, content, name, "over the real numbers")
    for name in ("block-heads", "block-mlp"):
        claimed = {
            "one-more-claimed": ("correct_at_least", 1, "less than the"),
            "one-less-at-most": ("correct_at_most", -1, "more than the"),
        }
        for attacked, (bound, by, reason) in claimed.items():
            other = changed(found[name], (f"claim.{bound}", str(int(found[name]["claim"][bound]) + by)))
            corpus.add("rejected", f"{name}-{attacked}", other, name, reason)
    for name, block, side, change, reason in (
        ("shares-above-one", "block-norm", "lower", (".shares", [40000, 40000]), "add up to more than 1"),
        ("share-zero", "block-norm", "lower", (".shares", [0, 1]), "out of range"),
        ("neurons-all-on", "block-mlp", "lower", (".neurons", [1] * 7), "may leave its range"),
        ("neurons-all-off", "block-mlp", "upper", (".neurons", [0] * 7), "may leave its range"),
        ("spoiler-without-hints", "block-mlp", "upper", ("", None), "has no hints"),
        ("place-beyond-the-vocabulary", "block-heads", "lower", (".typical.0.0", 15), "out of range"),
        ("negative-weight-of-a-place", "block-heads", "lower", (".typical.1.0", -1), "out of range"),
    ):
        attack("rejected", name, block, side, change, reason)
    for name, block, change, reason in (
        ("neurons-of-no-mlp", "block-heads", (".neurons", [1]), "expected 0"),
        ("too-few-neurons", "block-mlp", (".neurons", [1]), "expected 7"),
        ("share-of-one-head", "block-norm", (".shares", [1]), "expected 2"),
        ("typical-of-one-head", "block-heads", (".typical", lambda x: x[:2]), "expected 3"),
        ("hints-without-neurons", "block-mlp", ("", {"typical": None, "shares": None}), "fields"),
    ):
        attack("malformed", name, block, "lower", change, reason)
    asked = asking(found["block-heads"], cp.Question(TASK, semantics="float32-any-order"))
    corpus.add(
        "rejected",
        "block-heads-float32",
        changed(asked, ("claim.correct_at_most", None), ("upper", None), ("lower", lambda x: x[:1])),
        "block-heads",
        "float32",
    )


def rejected(corpus, valid):
    def reject(name, base, *changes, reason, model="a"):
        corpus.add("rejected", name, changed(valid[base], *changes), model, reason)

    reject_claims(corpus, valid, reject)
    reject_questions(corpus, valid, reject)
    reject_terms(valid, reject)
    reject_lists(valid, reject)


def reject_claims(corpus, valid, reject):
    """Another claim, another model."""
    for base in ("one-label", "few", "one-apart", "exact-accuracy", "float32", "another-task", "masses", "masses-beyond-64-bits"):
        reject(f"one-more-claimed-{base}", base, ("claim.correct_at_least", more), reason="less than the")
    for base in ("exact-accuracy", "another-task"):
        reject(f"one-less-at-most-{base}", base, ("claim.correct_at_most", lambda x: str(int(x) - 1)), reason="more than the")
    reject("another-total", "few", ("claim.total", more), reason="another total")
    reject(
        "total-of-sequences-instead-of-masses", "masses", ("claim.total", "125"), ("claim.correct_at_least", "1"), reason="another total"
    )
    reject("another-models-hash", "few", ("model.weights_sha256", "0" * 64), reason="SHA-256 differs")
    reject("certificate-for-another-model", "few", reason="SHA-256 differs", model="b")
    reject("certificate-for-another-size", "few", reason="d_vocab", model="small")
    reject("another-score-divisor", "few", ("model.score_divisor_squared", "2/1"), reason="divides scores by")
    reject("divisor-not-in-lowest-terms", "few", ("model.score_divisor_squared", "2/2"), reason="divides scores by")
    reject("zero-divisor", "few", ("model.score_divisor_squared", "0/1"), reason="divides scores by")
    reject("wrong-size", "few", ("model.n_ctx", 4), reason="n_ctx=4")
    reject("metadata-says-another-scale", "few", reason="divides scores by", model="other-scale")
    reject("no-part-at-all", "few", ("lower", []), reason="less than the")
    nothing = asking(valid["few"], cp.Question(TASK, semantics="float32-any-order"))
    corpus.add(
        "rejected",
        "upper-bound-about-float32",
        changed(nothing, ("claim.correct_at_least", "0"), ("claim.correct_at_most", "125"), ("lower", []), ("upper", [])),
        "a",
        "real-number network only",
    )


def reject_questions(corpus, valid, reject):
    """Another question."""
    other = "the certificate gives another"
    reject("another-question-hash", "few", ("question.sha256", "0" * 64), reason=other)
    reject("question-hash-as-a-number", "few", ("question.sha256", 7), reason=other)
    task = valid["another-task"]["question"]["task"]
    reject("another-task-with-the-old-hash", "few", ("question.task", task), reason=other)
    reject("another-start-with-the-old-hash", "few-of-another-task", ("question.task.start", 1), reason=other)
    reject("another-move-with-the-old-hash", "few-of-another-task", ("question.task.following.4.2", 1), reason=other)
    reject("another-label-with-the-old-hash", "few-of-another-task", ("question.task.labels.4", 1), reason=other)
    reject("masses-with-the-old-hash", "few", ("question.masses", [[1] * 5] * 3), reason=other)
    reject("another-mass-with-the-old-hash", "few-with-masses", ("question.masses.1.2", 5), reason=other)
    reject(
        "float32-with-the-old-hash",
        "few",
        ("question.semantics", "float32-any-order"),
        ("question.error_model", "float32-1"),
        reason=other,
    )
    reject("negative-mass", "few-with-masses", ("question.masses.1.2", -1), reason="out of range")
    reject("masses-that-add-up-to-zero", "few-with-masses", ("question.masses.1", [0] * 5), reason="add up to 0")
    reject("masses-beyond-two-to-the-40", "few-with-masses", ("question.masses.1.2", 1 << 40), reason="more than 2^40")
    reject("state-out-of-range", "few-of-another-task", ("question.task.following.0.0", 5), reason="out of range")
    reject("start-out-of-range", "few-of-another-task", ("question.task.start", -1), reason="out of range")
    reject(
        "automaton-without-states",
        "few-of-another-task",
        ("question.task", {"start": 0, "following": [], "labels": []}),
        reason="out of range",
    )
    corpus.add("rejected", "proof-of-another-task", asking(valid["few"], cp.Question(OTHER_TASK)), "a", "does not occur with label")
    corpus.add("rejected", "proof-without-the-masses", asking(valid["masses"], cp.Question(TASK)), "a", "might win")
    beyond = with_true_hash(valid["few-of-another-task"], ("question.task.labels.4", 5))
    corpus.add("rejected", "label-beyond-the-outputs", beyond, "a", "beyond the model's outputs")
    parity = asking(valid["few"], cp.Question(Named("parity", 3, 5)))
    corpus.add("rejected", "label-that-no-sequence-has", parity, "a", "no sequence has the label")
    unreached = with_true_hash(valid["few-of-another-task"], ("question.task.labels.0", 1))
    corpus.add("rejected", "label-that-no-sequence-has-any-more", unreached, "a", "no sequence has the label 0")


def reject_terms(valid, reject):
    """Parts and terms."""
    reject("query-in-two-parts", "few", ("lower", lambda x: [*x, x[-1]]), reason="is in two parts")
    reject("query-in-two-parts-above", "lists", ("upper", lambda x: [*x, x[-1]]), reason="is in two parts")
    reject("query-in-two-parts-of-pools", "one-label", ("lower", lambda x: [*x, {**x[-1], "queries": [3]}]), reason="is in two parts")
    reject("query-twice-in-a-part", "few", ("lower.3.queries", [4, 4]), reason="a query stands twice")
    reject("no-queries", "few", ("lower.3.queries", []), reason="or there is none")
    reject("query-above-the-label", "few", ("lower.3.label", 3), reason="does not occur with label")
    reject("query-beyond-the-vocabulary", "few", ("lower.3.queries", [5]), reason="out of range")
    reject("split-by-an-unknown-token", "splits", ("lower.0.tree.token", 5), reason="out of range")
    reject("split-by-a-token-above-the-label", "few", ("lower.0", below_the_label), reason="does not occur with the label")
    reject("split-by-no-copies", "splits", ("lower.0.tree.at_least", 0), reason="out of range")
    reject("split-by-too-many-copies", "splits", ("lower.0.tree.fewer.at_least", 4), reason="out of range")
    reject("half-of-a-split-given-up", "splits", ("lower.0.tree.fewer", None), reason="less than the")
    reject(
        "queries-swapped", "few", ("lower", lambda x: [{**p, "queries": x[i - 1]["queries"]} for i, p in enumerate(x)]), reason="might win"
    )
    base, apart, label = "one-apart", "lower.0.tree", valid["one-apart"]["lower"][0]["label"]
    terms = valid[base]["lower"][0]["tree"]["terms"]
    first, last = terms[0], next(term for term in terms if "apart" in term)
    reject("output-uncovered", base, (f"{apart}.terms", [first]), reason="might win, and no term covers it")
    reject("no-term-at-all", base, (f"{apart}.terms", []), reason="might win, and no term covers it")
    reject("output-of-a-leaf-uncovered", "splits", ("lower.0.tree.fewer.fewer.terms", []), reason="might win, and no term covers it")
    reject("apart-without-parent-covered", base, (f"{apart}.terms", [last]), reason="no earlier term covers that")
    reject("apart-with-parent-covered-later", base, (f"{apart}.terms", [last, first]), reason="no earlier term covers that")
    reject("apart-less-itself", base, (f"{apart}.terms", [first, {**last, "less": last["apart"]}]), reason="no earlier term covers that")
    reject("apart-less-the-label", base, (f"{apart}.terms", [first, {**last, "less": label}]), reason="no earlier term covers that")
    reject("apart-covers-the-label", base, (f"{apart}.terms", [first, {**last, "apart": label}]), reason="the label cannot spoil")
    reject("apart-with-factor-zero", base, (f"{apart}.terms", [first, {**last, "factors": [0, 1]}]), reason="less than the")
    reject("apart-with-negative-factor", base, (f"{apart}.terms", [first, {**last, "factors": [1, -1]}]), reason="out of range")
    term = place_of(valid["few"], "lower", lambda _, leaf: leaf["terms"]) + ".terms.0"
    reject("joint-covers-the-label", "few", (f"{term}.joint.0", 4), reason="outputs other than the label")
    reject("joint-covers-nothing", "few", (f"{term}.joint", []), (f"{term}.weights", []), reason="outputs other than the label")
    reject("joint-covers-an-unknown-output", "few", (f"{term}.joint.0", 5), reason="out of range")
    reject("weight-zero", "few", (f"{term}.weights.0", 0), reason="out of range")
    reject("weight-beyond-two-to-the-40", "few", (f"{term}.weights.0", (1 << 40) + 1), reason="out of range")
    reject("step-zero", "few", (f"{term}.step.0", 0), reason="step is not positive")
    reject("negative-step", "few", (f"{term}.step.0", -1), reason="step is not positive")
    reject("step-too-large-to-write", "few", (f"{term}.step.1", 1 << 17), reason="out of range")
    reject("huge-step-hides-nothing", "few", (f"{term}.step.1", 1 << 16), reason="less than the")
    reject("depth-zero", "few", (f"{term}.depth", 0), reason="out of range")
    reject("depth-that-needs-all-memory", "few", (f"{term}.depth", 10**9), reason="out of range")
    reject("shallow-depth-hides-nothing", "few", (f"{term}.depth", 1), reason="less than the")
    reject("offset-beyond-a-step", "few", (f"{term}.offsets.0", 256), reason="out of range")
    reject("negative-offset", "few", (f"{term}.offsets.0", -1), reason="out of range")
    reject("pools-without-factors", "one-label", ("factors", None), reason="no factors")
    reject("pools-without-factors-of-a-label", "one-label", ("factors.labels", lambda x: x[:-1]), reason="no factors")
    reject("pools-with-other-factors", "one-label", ("factors.mu.entries", lambda x: x[::-1]), reason="less than the")
    reject("factors-relative-to-no-token", "one-label", ("factors.labels.4.relative_to", 5), reason="out of range")
    reject("factors-with-weight-zero", "one-label", ("factors.labels.4.weights.0", 0), reason="out of range")
    reject("factors-of-an-unknown-label", "one-label", ("factors.labels.4.label", 5), reason="out of range")
    reject("factors-with-negative-scale", "one-label", ("factors.mu.scale", -1), reason="out of range")
    reject("factors-with-a-huge-scale", "one-label", ("factors.centre.scale", 257), reason="out of range")
    reject("factors-with-a-huge-entry", "one-label", ("factors.mu.entries.0", 1 << 4097), reason="out of range")


def reject_lists(valid, reject):
    """Sequences decided one by one."""
    exact, base = valid["lists"], "lists"
    leaf = place_of(exact, "lower", lambda _, leaf: leaf["listed"])
    part = exact["lower"][int(leaf.split(".")[1])]
    m, q = part["label"], part["queries"][0]
    right = [x for x in SEQUENCES if max(x) == m and x[-1] == q and is_correct(WEIGHTS, x, m)]
    wrong = [x for x in SEQUENCES if max(x) == m and x[-1] == q and not is_correct(WEIGHTS, x, m)]
    listed = part["tree"]["listed"]
    uncounted = next(list(x) for x in right if list(x) not in listed)
    reject("listed-twice", base, (f"{leaf}.listed", [listed[0], *listed]), reason="is listed twice")
    more = ("claim.correct_at_least", lambda x: str(int(x) + 1))
    reject("listed-not-counted", base, (f"{leaf}.listed", [*listed, uncounted]), more, reason="less than the")
    reject("listed-not-right", base, (f"{leaf}.listed", [*listed, list(wrong[0])]), reason="is not certainly right")
    reject("listed-of-another-label", base, (f"{leaf}.listed.0", [0, 0, q]), reason="is listed, but not of this leaf")
    reject("listed-with-an-unknown-token", base, (f"{leaf}.listed.0", [9, m, q]), reason="is listed, but not of this leaf")
    reject("listed-ends-in-no-query", base, (f"{leaf}.listed.0", [m, 0, 0 if q else 1]), reason="ends in no query")
    split = {"token": 0, "at_least": 1, "more": part["tree"], "fewer": {**part["tree"], "listed": []}}
    reject("listed-of-another-leaf", base, (leaf, split), reason="is listed, but not of this leaf")
    above = place_of(exact, "upper", lambda _, leaf: leaf["listed"])
    part = exact["upper"][int(above.split(".")[1])]
    m, q = part["label"], part["queries"][0]
    right = [x for x in SEQUENCES if max(x) == m and x[-1] == q and is_correct(WEIGHTS, x, m)]
    wrong = [x for x in SEQUENCES if max(x) == m and x[-1] == q and not is_correct(WEIGHTS, x, m)]
    listed, spoiler = part["tree"]["listed"], part["tree"]["terms"][0]
    uncounted = next(list(x) for x in wrong if list(x) not in listed)
    reject("listed-twice-above", base, (f"{above}.listed", [listed[0], *listed]), reason="is listed twice")
    fewer = ("claim.correct_at_most", lambda x: str(int(x) - 1))
    reject("listed-not-counted-above", base, (f"{above}.listed", [*listed, uncounted]), fewer, reason="more than the")
    reject("listed-not-wrong", base, (f"{above}.listed", [*listed, list(right[0])]), reason="is not certainly wrong")
    reject("listed-of-another-label-above", base, (f"{above}.listed.0", [0, 0, q]), reason="is listed, but not of this leaf")
    reject("spoiler-is-the-label", base, (f"{above}.terms.0.spoiler", m), reason="the label cannot spoil")
    reject("two-spoilers", base, (f"{above}.terms", [spoiler, spoiler]), reason="of several spoilers, one is named twice")
    reject("spoiler-unknown", base, (f"{above}.terms.0.spoiler", 5), reason="out of range")


VERSION_1 = {
    "format": "compactproofs-certificate",
    "version": 1,
    "producer": "compactproofs 0.1.0",
    "theorem": "correct-at-least",
    "semantics": "real",
    "error_model": None,
    "task": "max",
    "distribution": "uniform",
    "strategy": {"name": "cubic", "parameters": {}},
    "model": {},
    "claim": {"correct_at_least": "72", "correct_at_most": None, "total": "125"},
    "lower": {"rule": "cubic", "witness": {}},
    "upper": None,
    "end": "compactproofs-certificate",
}
"""What certificates looked like before this format"""


def malformed(corpus, valid):
    def malform(name, content, reason, model="a"):
        corpus.add("malformed", name, content, model, reason)

    malform_files(valid, malform)
    malform_fields(valid, malform)
    malform_models(valid, malform)


def malform_files(valid, malform):
    """Not JSON, or not this format."""
    few = valid["few"]
    data = cp.Certificate(few).data
    version = b'"version": 3'
    malform("empty", b"", "not valid JSON")
    malform("truncated-file", data[: len(data) // 2], "not valid JSON")
    malform("without-its-last-byte", data.rstrip()[:-1], "not valid JSON")
    malform("trailing-data", data + b"{}", "Extra data")
    malform("duplicate-keys", data.replace(version, version + b",\n" + version), "occurs twice")
    malform("duplicate-claim", data.replace(b'"total":', b'"total":"1","total":'), "occurs twice")
    malform("duplicate-tree", data.replace(b'"tree":', b'"tree":null,"tree":'), "occurs twice")
    malform("deep-nesting", b"[" * 5_000 + b"]" * 5_000, "nested too deeply")
    malform("deep-nesting-inside", data.replace(b'"factors": null', b'"factors": ' + b"[" * 5_000 + b"]" * 5_000), "nested too deeply")
    malform("huge-integer", data.replace(version, version + b"0" * 5000), "not valid JSON")
    malform("huge-claim", changed(few, ("claim.correct_at_least", "9" * 5000)), "not a natural number")
    malform("not-a-number", data.replace(version, b'"version": NaN'), "not an integer")
    malform("floating-point", data.replace(version, b'"version": 3.0'), "not an integer")
    malform("floating-point-inside", data.replace(b'"depth":6400', b'"depth":6.4e3'), "not an integer")
    malform("not-utf-8", b"\xff\xfe" + data, "not valid JSON")
    malform("another-format", changed(few, ("format", "zip")), "not a certificate")
    malform("a-list", b"[]", "not a certificate")
    malform("version-1", VERSION_1, "this checker knows version 3. Make it anew")
    malform("another-version", changed(few, ("version", 4)), "this checker knows version 3")
    malform("version-true", changed(few, ("version", True)), "this checker knows version 3")
    malform("version-as-a-string", changed(few, ("version", "3")), "this checker knows version 3")
    malform("no-end-marker", {k: v for k, v in few.items() if k != "end"}, "fields")
    malform("end-marker-first", {"end": few["end"], **{k: v for k, v in few.items() if k != "end"}}, "end marker")
    malform("unknown-field", {"comment": "hello", **few}, "fields")
    malform("no-factors-field", {k: v for k, v in few.items() if k != "factors"}, "fields")


def malform_fields(valid, malform):
    """Fields of other types and shapes."""

    def change(name, *changes, reason, base="few"):
        malform(name, changed(valid[base], *changes), reason)

    change("claim-as-a-number", ("claim.correct_at_least", 5), reason="not a natural number")
    change("negative-claim", ("claim.correct_at_least", "-5"), reason="not a natural number")
    change("claim-with-leading-zero", ("claim.correct_at_least", "05"), reason="not a natural number")
    change("claim-in-other-digits", ("claim.correct_at_least", "\u0661"), reason="not a natural number")
    change("upper-claim-without-proof", ("claim.correct_at_most", "125"), reason="needs a proof")
    change("upper-proof-without-claim", ("upper", []), reason="needs a proof")
    change("at-most-more-than-all", ("claim.correct_at_most", "126"), ("upper", []), reason="larger than claim.total")
    change("producer-as-a-number", ("producer", 1), reason="producer is not a string")
    change("assumptions-as-numbers", ("model.assumptions", [1]), reason="an assumption is not a string")
    change("divisor-as-a-number", ("model.score_divisor_squared", 1), reason="is not a string")
    change("size-as-a-string", ("model.n_ctx", "3"), reason="is not an integer")
    change("unknown-semantics", ("question.semantics", "bfloat16"), reason="semantics")
    change("float32-without-error-model", ("question.error_model", None), reason="error model", base="float32")
    change("error-model-for-the-reals", ("question.error_model", "float32-1"), reason="error model")
    change("unknown-task", ("question.task", "min"), reason="question.task is not an object")
    change("task-without-labels", ("question.task", {"start": 0, "following": [[0] * 5]}), reason="fields")
    change("too-few-moves", ("question.task.following.0", [0]), reason="expected 5", base="few-of-another-task")
    change("too-few-labels", ("question.task.labels", [0]), reason="expected 5", base="few-of-another-task")
    change("masses-of-another-shape", ("question.masses", lambda x: x[:-1]), reason="expected 3", base="few-with-masses")
    change("masses-of-too-few-tokens", ("question.masses.0", [1, 2]), reason="expected 5", base="few-with-masses")
    change("mass-as-a-string", ("question.masses.0.0", "3"), reason="not an integer", base="few-with-masses")
    change("no-parts", ("lower", None), reason="lower is not a list")
    change("part-as-a-list", ("lower.0", []), reason="is not an object")
    change("part-with-a-strategy", ("lower.0", lambda x: {**x, "strategy": "oracle"}), reason="fields")
    change("leaf-as-a-list", ("lower.0.tree", []), reason="is not an object")
    change("leaf-without-a-list", ("lower.0.tree", {"terms": []}), reason="fields")
    change("split-without-a-half", ("lower.0.tree", {"token": 0, "at_least": 1, "more": None}), reason="fields")
    change("split-with-terms", ("lower.0.tree", lambda x: {**x, "token": 0, "at_least": 1, "more": x, "fewer": x}), reason="fields")
    change("split-by-a-number-as-a-string", ("lower.0.tree.at_least", "1"), reason="not an integer", base="splits")
    change("sequence-too-short", ("lower.0.tree.listed", [[4, 4]]), reason="expected 3")
    term = place_of(valid["few"], "lower", lambda _, leaf: leaf["terms"]) + ".terms.0"
    change("term-as-a-list", (term, []), reason="a term is not an object")
    change("term-of-no-kind", (term, {}), reason="fields")
    change("term-of-two-kinds", (term, lambda x: {**x, "factored": True}), reason="fields")
    change("spoiler-below", (term, lambda x: {"spoiler": 0, **{k: x[k] for k in ("step", "depth", "offsets")}}), reason="fields")
    above = place_of(valid["lists"], "upper", lambda _, leaf: leaf["terms"]) + ".terms.0"
    joint = at(valid["few"], term)
    change("joint-above", (above, joint[0][joint[1]]), reason="fields", base="lists")
    change("weights-as-strings", (f"{term}.weights.0", "7"), reason="not an integer")
    change("weights-as-booleans", (f"{term}.weights.0", True), reason="not an integer")
    change("too-few-weights", (f"{term}.weights", []), reason="expected")
    change("too-few-offsets", (f"{term}.offsets", [0, 0]), reason="expected 3")
    change("step-of-three-numbers", (f"{term}.step", [1, 2, 3]), reason="expected 2")
    change("depth-as-a-list", (f"{term}.depth", [1]), reason="not an integer")
    change("factored-beside-joint", ("lower.0.tree.terms", lambda x: [*x, joint[0][joint[1]]]), reason="by themselves", base="one-label")
    change("listed-beside-factored", ("lower.0.tree.listed", [[4, 4, 4]]), reason="listed beside factored", base="one-label")
    change("factors-of-another-shape", ("factors.mu.entries", [1, 2]), reason="expected 5", base="one-label")
    change("factors-as-a-list", ("factors", []), reason="is not an object", base="one-label")


def malform_models(valid, malform):
    """Files that are not models of this kind."""
    for name in ("nan-weights", "infinite-weights"):  # with the hash of just these weights
        sha256 = checker.read_safetensors((HERE / "models" / f"{name}.safetensors").read_bytes()).sha256()
        malform(name, changed(valid["few"], ("model.weights_sha256", sha256)), "infinite or not a number", model=name)
    for name, words in {
        "truncated-model": "may be truncated",
        "empty-model": "shorter than a safetensors header",
        "header-longer-than-file": "longer than the file",
        "model-without-a-tensor": "expected",
        "model-with-a-bias": "expected",
        "half-precision-model": "expected F32",
        "two-layers": "n_layers",
        "scores-not-scaled": "use_attn_scale",
        "negative-scale": "expected a positive number or -1",
        "unknown-metadata": "attn_scores_soft_cap",
        "metadata-of-another-size": "d_vocab",
        "overlapping-tensors": "overlap",
    }.items():
        malform(name, valid["nothing"], words, model=name)


def models():
    """The models, good and bad."""
    folder = HERE / "models"
    save(WEIGHTS, folder / "a.safetensors")
    save(mostly_right(5), folder / "b.safetensors")
    for name, block in BLOCKS.items():
        save(block, folder / f"{name}.safetensors")
    save(mostly_right(2, v=4, k=2), folder / "small.safetensors")
    data = (folder / "a.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]

    def write(name, header, body):
        text = json.dumps(header).encode()
        (folder / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)

    def without(name):
        return {key: value for key, value in header.items() if key != name}

    write("nan-weights", header, struct.pack("<f", float("nan")) + body[4:])
    write("infinite-weights", header, struct.pack("<f", float("inf")) + body[4:])
    write("truncated-model", header, body[:-5])
    write("model-without-a-tensor", without("W_U"), body)
    write("model-with-a-bias", {**header, "b_U": header["W_U"]}, body)
    write("half-precision-model", {**header, "W_E": {**header["W_E"], "dtype": "F16"}}, body)
    write("two-layers", {**header, "__metadata__": {**header["__metadata__"], "n_layers": "2"}}, body)
    metadata = header["__metadata__"]
    for name, change in {
        "scores-not-scaled": {"use_attn_scale": "false"},
        "negative-scale": {"attn_scale": "-2"},
        "unknown-metadata": {"attn_scores_soft_cap": "1"},
        "metadata-of-another-size": {"d_vocab": "999"},
    }.items():
        write(name, {**header, "__metadata__": {**metadata, **change}}, body)
    last = max((name for name in header if name != "__metadata__"), key=lambda name: header[name]["data_offsets"][1])
    first, end = header[last]["data_offsets"]
    write("overlapping-tensors", {**header, last: {**header[last], "data_offsets": [0, end - first]}}, body[:first])
    write("other-scale", {**header, "__metadata__": {**header["__metadata__"], "attn_scale": "2.0"}}, body)
    (folder / "empty-model.safetensors").write_bytes(b"")
    (folder / "header-longer-than-file.safetensors").write_bytes(struct.pack("<Q", 2**62) + data[8:])


WEIGHTS = mostly_right(4)
BLOCKS = {
    "block-heads": tiny_block(1, "two heads"),
    "block-norm": tiny_block(1, "two heads, final LN", harder=True),
    "block-mlp": tiny_block(1, "MLP", harder=True),
}
TASK, OTHER_TASK = MaxOfK(3, 5), Named("minimum", 3, 5)
SEQUENCES = list(product(range(5), repeat=3))


def main():
    corpus = Corpus()
    models()
    valid = accepted(corpus)
    rejected(corpus, valid)
    malformed(corpus, valid)
    whole_blocks(corpus)
    corpus.close()


if __name__ == "__main__":
    main()
