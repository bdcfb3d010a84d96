"""The kernel of Coq accepts certificates, and rejects them when something is changed."""

import copy
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import compactproofs as cp
from command import inside, run
from compactproofs import checker
from compactproofs.certificates import coq
from compactproofs.certificates.checking import as_written, network
from compactproofs.certificates.encode import encoded
from compactproofs.model.biases import BIASES
from compactproofs.model.config import Told
from compactproofs.model.files import from_tensors
from compactproofs.model.kinds import as_network
from compactproofs.model.network import Norm
from compactproofs.tasks import task_for
from compactproofs.tasks.question import Question
from models import adversarial_models, mostly_right, random_weights
from random_ledgers import random_ledger
from tasks import KINDS, Named

HERE = Path(__file__).parent
FORMAL = HERE.parents[1] / "formal"
needs_coq = pytest.mark.skipif(
    shutil.which("coqc") is None or not (FORMAL / "Checker.vo").is_file(), reason="needs Coq and a compiled formal/: run `make formal`"
)


def proved(weights, strategy="threshold-best", task=None):
    """A certificate with both bounds, and the network of the checker."""
    proof = cp.prove(weights, strategy, task, upper=True)
    return proof, json.loads(proof.certificate.data), network(weights)


def leaves(tree):
    if tree is None:
        return []
    return leaves(tree["more"]) + leaves(tree["fewer"]) if "token" in tree else [tree]


def all_leaves(certificate, side):
    return [leaf for part in certificate[side] for leaf in leaves(part["tree"])]


@pytest.fixture(scope="module")
def pooled():
    weights = cp.zoo("max-of-4")
    proof = cp.prove(weights, "threshold-cubic-pooled")
    return json.loads(proof.certificate.data), network(weights)


@pytest.fixture(scope="module")
def exact():
    """The exact accuracy of a tiny network: joint terms, spoilers, and listed sequences on both sides."""
    _, certificate, weights = proved(mostly_right(2, v=5, k=4, noise=1.2))
    assert certificate["claim"]["correct_at_least"] == certificate["claim"]["correct_at_most"]
    assert all(any(leaf["listed"] for leaf in all_leaves(certificate, side)) for side in ("lower", "upper"))
    return certificate, weights


@pytest.fixture(scope="module")
def apart():
    """Bounds with splits and terms apart."""
    _, certificate, weights = proved(mostly_right(2, v=5, k=4, noise=1.2), "threshold-exact-output")
    assert any("apart" in term for leaf in all_leaves(certificate, "lower") for term in leaf["terms"])
    assert any("token" in part["tree"] for part in certificate["lower"])
    return certificate, weights


@pytest.fixture(scope="module")
def two_spoilers(exact):
    """Each spoiler joined by another output; the claim is what checker.py finds then."""
    certificate, weights = copy.deepcopy(exact[0]), exact[1]
    for part in certificate["upper"]:
        for number, leaf in enumerate(leaves(part["tree"])):
            leaf["listed"] = []
            for term in leaf["terms"]:
                o = term.pop("spoiler")
                others = [p for p in range(5) if p not in (o, part["label"])]
                term |= {"spoilers": [o, others[number % len(others)]], "factors": [7, 1 + number]}
    _, at_most, _ = checker.proven(certificate, weights, checker.Meter(checker.NO_LIMIT))
    assert 324 < at_most < 625
    certificate["claim"]["correct_at_most"] = str(at_most)
    return certificate, weights


FINE = {"step": [1, -9], "depth": 20000, "offsets": [0, 0, 0, 0]}
REACH = 1000


def claimed(certificate, weights):
    """The certificate claims what checker.py finds."""
    at_least, at_most, _ = checker.proven(certificate, weights, checker.Meter(checker.NO_LIMIT))
    certificate["claim"] = {**certificate["claim"], "correct_at_least": str(at_least), "correct_at_most": str(at_most)}
    return at_least, at_most


@pytest.fixture(scope="module")
def both(apart):
    """Below, every term apart as two sums at once: what its output spoils, and the other one does not."""
    certificate, weights = copy.deepcopy(apart[0]), apart[1]
    before, _ = claimed(certificate, weights)
    for number, leaf in enumerate(all_leaves(certificate, "lower")):
        for place, term in enumerate(leaf["terms"]):
            if "apart" in term:
                o, p = term["apart"], term["less"]
                one = {"joint": [o], "weights": [1]} if number % 2 else {"apart": o, "less": p, "factors": [5, 1]}
                leaf["terms"][place] = {"both": [{**one, **FINE}, {"apart": o, "less": p, "factors": [0, 1], **FINE}], "reach": REACH}
    at_least, _ = claimed(certificate, weights)
    assert before < at_least <= 324
    return certificate, weights


def spoiled_by(named, groups):
    """Spoilers, and overlaps of each but the first with groups of outputs, on a grid that is fine enough."""
    overlaps = [({"joint": [o], "weights": [1]}, {"joint": group, "weights": [1] * len(group)}) for o, group in groups]
    two = [{"both": [{**each, **FINE} for each in overlap], "reach": REACH} for overlap in overlaps]
    return {"terms": [*({"spoiler": o, **FINE} for o in named), *two], "listed": []}


@pytest.fixture(scope="module")
def several():
    """Above, two spoilers of each query and label; once three, the third with two overlaps. No splits, no lists."""
    _, certificate, weights = proved(random_weights(6, n_ctx=4, d_vocab=5, scale=0.7))
    exact = int(certificate["claim"]["correct_at_most"])
    for part in certificate["upper"]:
        best = {}
        for o in sorted({0, 1, 2, 3, 4} - {part["label"]}):
            alone = {**certificate, "upper": [{**part, "tree": spoiled_by([o], [])}]}
            best[o] = checker.proven(alone, weights, checker.Meter(checker.NO_LIMIT))[1]
        part["order"] = sorted(best, key=best.get)
        part["tree"] = spoiled_by(part["order"][:1], [])
    orders = [part.pop("order") for part in certificate["upper"]]
    _, single = claimed(certificate, weights)
    for part, (o, p, _, _) in zip(certificate["upper"], orders, strict=True):
        part["tree"] = spoiled_by([o, p], [(p, [o])])
    assert exact <= claimed(certificate, weights)[1] < single
    o, p, r, _ = orders[-1]
    certificate["upper"][-1]["tree"] = spoiled_by([o, p, r], [(r, [p]), (p, [o]), (r, [o])])
    assert exact <= claimed(certificate, weights)[1] < single
    return certificate, weights


def test_no_admitted_theorem_and_no_axiom_of_our_own():
    for path in sorted(FORMAL.glob("*.v")):
        found = re.findall(r"\b(Admitted|admit|Axiom|Axioms|Parameter|Conjecture|native_compute|bypass_check)\b", path.read_text())
        assert not found, path.name


def test_overlaps_that_cannot_be_translated_are_refused(several):
    one, wide = ({"joint": outputs, "weights": [1] * len(outputs), **FINE} for outputs in ([0], [0, 1]))
    for two, reason in (([wide, one], "overlaps of one spoiler"), ([{**one, "joint": [7]}, one], "none of the spoilers")):
        certificate = copy.deepcopy(several[0])
        all_leaves(certificate, "upper")[-1]["terms"].append({"both": two, "reach": 1})
        with pytest.raises(coq.CoqError, match=reason):
            coq.translate(certificate, several[1])


def test_what_cannot_be_translated_is_refused_with_the_reason(pooled, exact):
    certificate = copy.deepcopy(pooled[0])
    certificate["lower"][0]["tree"]["terms"].append({"joint": [1], "weights": [1], "step": [1, 0], "depth": 1, "offsets": [0] * 4})
    with pytest.raises(coq.CoqError, match="factored terms alone"):
        coq.translate(certificate, pooled[1])
    certificate = copy.deepcopy(exact[0])
    leaf = next(leaf for leaf in all_leaves(certificate, "upper") if leaf["terms"] and leaf["listed"])
    leaf["terms"] *= 2
    with pytest.raises(coq.CoqError, match="one term of spoilers in a leaf"):
        coq.translate(certificate, exact[1])
    certificate = copy.deepcopy(exact[0])
    certificate["question"]["semantics"] = "float32-any-order"
    with pytest.raises(coq.CoqError, match="float32"):
        coq.translate(certificate, exact[1])
    certificate = copy.deepcopy(exact[0])
    next(leaf for leaf in all_leaves(certificate, "lower") if leaf["terms"])["terms"][0]["depth"] = "0 []). Admitted. (* "
    with pytest.raises(checker.MalformedError, match="where a whole number was expected"):
        coq.translate(certificate, exact[1])
    with pytest.raises(coq.CoqError, match="several heads"):
        coq.translate(exact[0], network(cp.zoo("max-of-4-heads")))
    with pytest.raises(coq.CoqError, match="an MLP"):
        coq.translate(exact[0], network(cp.zoo("max-of-4-mlp")))
    with pytest.raises(coq.CoqError, match="adds different numbers"):
        coq.translate(exact[0], network(cp.zoo("max-of-4-norm")))


@needs_coq
@pytest.mark.long
def test_the_kernel_accepts_max_of_4(pooled):
    verdict = coq.run(coq.translate(*pooled))
    assert verdict.accepted, verdict.message
    assert verdict.assumptions == axioms_of("Checker.check_sound")


@needs_coq
@pytest.mark.long
def test_the_kernel_accepts_an_exact_accuracy(exact):
    verdict = coq.run(coq.translate(*exact))
    assert verdict.accepted, verdict.message
    assert verdict.theorem == "(324 <= right_mass the_network 5 the_task the_masses no_margin <= 324)%Z"
    assert verdict.assumptions == axioms_of("Checker.check_sound")


@needs_coq
@pytest.mark.long
def test_the_kernel_accepts_two_spoilers_at_once(two_spoilers):
    verdict = coq.run(coq.translate(*two_spoilers), axioms=False)
    assert verdict.accepted, verdict.message


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize("which", ["both", "several"])
def test_the_kernel_accepts_two_sums_at_once(which, request):
    verdict = coq.run(coq.translate(*request.getfixturevalue(which)))
    assert verdict.accepted, verdict.message
    assert verdict.assumptions == axioms_of("Checker.check_sound")


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 5))
def test_the_kernel_accepts_terms_and_grids_from_nowhere(seed, exact):
    """It counts no more than checker.py, which claims what it finds; parts that prove nothing are left out."""
    weights = mostly_right(2, v=5, k=4, noise=1.2)
    certificate = {**exact[0], **encoded(random_ledger(weights, Question(cp.MaxOfK(4, 5)), seed), weights)}
    for leaf in [*all_leaves(certificate, "lower"), *all_leaves(certificate, "upper")]:
        leaf["listed"] = []
    while True:
        try:
            claimed(certificate, exact[1])
            break
        except checker.RejectedError as error:
            del certificate["lower"][int(str(error).partition("lower[")[2].partition("]")[0])]
    assert two_at_once(certificate) and two_at_once(certificate, "upper")
    verdict = coq.run(coq.translate(certificate, exact[1]), axioms=False)
    assert verdict.accepted, verdict.message


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize("strategy", ["threshold-quartic", "threshold-exact-output", "threshold-cubic", "threshold-cubic-pooled"])
def test_the_kernel_accepts_what_each_strategy_writes(strategy):
    _, certificate, weights = proved(mostly_right(2, v=5, k=4, noise=1.2), strategy)
    verdict = coq.run(coq.translate(certificate, weights), axioms=False)
    assert verdict.accepted, verdict.message


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_other_tasks_have_their_exact_accuracy_too(kind):
    proof, certificate, weights = proved(mostly_right(2, v=5, k=3, noise=1.2), task=Named(kind, 3, 5))
    assert proof.correct_at_least == proof.correct_at_most
    verdict = coq.run(coq.translate(certificate, weights), axioms=False)
    assert verdict.accepted, verdict.message


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize(("name", "weights"), adversarial_models(), ids=lambda x: x if isinstance(x, str) else "")
def test_ties_and_extreme_weights(name, weights):
    _, certificate, model = proved(weights)
    verdict = coq.run(coq.translate(certificate, model), axioms=False)
    assert verdict.accepted, (name, verdict.message)


def count_plus_one(certificate):
    certificate["claim"]["correct_at_least"] = str(int(certificate["claim"]["correct_at_least"]) + 1)


def count_minus_one_above(certificate):
    certificate["claim"]["correct_at_most"] = str(int(certificate["claim"]["correct_at_most"]) - 1)


def biased(names=tuple(BIASES)):
    """A model whose file has biases: it is read as a wider network without."""
    weights, rng = mostly_right(2, v=5, k=3, noise=1.2), np.random.default_rng(3)
    sizes = {"d_head": weights.d_head, "d_model": weights.d_model, "d_vocab_out": weights.d_vocab_out}
    biases = {name: (0.3 * rng.normal(size=sizes[BIASES[name]])).astype(np.float32) for name in names}
    return from_tensors({**weights.tensors, **biases}, None, Told(1, "none")), weights, biases


def normed(kind, seed=2, final=True):
    """Like `mostly_right`, with norms that have gains and, before attention, biases."""
    weights, rng = mostly_right(seed, v=5, k=3, noise=1.2), np.random.default_rng(seed)
    gain, bias = (rng.normal(loc=loc, scale=0.1, size=weights.d_model).astype(np.float32) for loc in (1, 0))
    first = Norm(kind, 1e-5, gain, None if kind == "RMS" else bias)
    return replace(as_network(weights), norm_1=first, norm_final=Norm(kind, 1e-5, gain) if final else None)


def bytes_changed(model, name):
    shape, data = model.tensors[name]
    return model._replace(tensors={**model.tensors, name: (shape, data[4:] + data[:4])})


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize("strategy", ["threshold-best", "threshold-cubic-pooled"])
def test_a_model_with_biases(strategy):
    """The theorem is about the biases themselves, though the certificate is about the wider network; other biases are rejected."""
    model, weights, biases = biased()
    proof = cp.prove(model, strategy, upper="own")
    certificate, written = json.loads(proof.certificate.data), as_written(model)
    assert {name: written.tensors[name][0] for name in biases} == {name: bias.shape for name, bias in biases.items()}
    assert all(written.tensors[name][1] == tensor.tobytes() for name, tensor in {**weights.tensors, **biases}.items())
    verdict = coq.check_coq(proof.certificate.data, network(model), written)
    assert verdict.accepted, verdict.message
    assert verdict.assumptions == axioms_of("Checker.check_sound")
    raised = np.frombuffer(written.tensors["b_U"][1], "<f4") + np.float32([4, 0, 0, 0, 0])  # output 0 wins more often
    assert rejected_by_the_kernel(certificate, written._replace(tensors={**written.tensors, "b_U": ((5,), raised.tobytes())}))
    for name in ("b_Q", "b_V", "b_U") if proof.correct_at_most is not None else ():
        assert rejected_by_the_kernel(certificate, bytes_changed(written, name)), name
    assert not coq.check_coq(proof.certificate.data, network(weights), written).accepted  # its SHA-256 differs


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize("names", [("b_O",), ("b_V", "b_U")], ids=" ".join)
def test_a_model_with_some_biases(names):
    model, _, _ = biased(names)
    proof = cp.prove(model, "threshold-best", upper=True)
    assert proof.correct_at_least == proof.correct_at_most
    verdict = coq.run(coq.translate(json.loads(proof.certificate.data), as_written(model)), axioms=False)
    assert verdict.accepted, verdict.message


def test_the_translation_has_the_biases_of_the_file():
    model, weights, biases = biased(("b_O", "b_Q"))
    certificate = json.loads(cp.prove(model, "threshold-cubic-pooled").certificate.data)
    text = coq.translate(certificate, as_written(model))
    assert f"Build_network {weights.d_model} {weights.d_head} 3 5 " in text
    numbers = re.search(r"the_b_O : tensor := {\| entries := \[\[(.*)\]\]%Z; bits := (\d+)", text)
    written = [int(x.strip("() "), 16) / 2 ** int(numbers[2]) for x in numbers[1].split(";")]
    assert written == biases["b_O"].tolist()
    assert f"the_b_V : tensor := zeros {weights.d_head}." in text and "Unchanged" in text


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize(("kind", "final"), [("LN", True), ("RMS", True), ("LN", False)])
def test_norms_before_attention_and_at_the_end(kind, final):
    model = normed(kind, final=final)
    for strategy in ("threshold-best", "threshold-cubic-pooled"):
        proof = cp.prove(model, strategy, upper="own")
        verdict = coq.run(coq.translate(json.loads(proof.certificate.data), network(model)), axioms=False)
        assert verdict.accepted, (strategy, verdict.message)
    certificate, read = json.loads(cp.prove(model, "threshold-best", upper=True).certificate.data), network(model)
    assert certificate["claim"]["correct_at_least"] == certificate["claim"]["correct_at_most"]
    assert rejected_by_the_kernel(certificate, bytes_changed(read, "norm_1.weight"))
    settings = {**read.settings, "norm_1": [kind, (4.0).hex()]}
    assert rejected_by_the_kernel(certificate, read._replace(settings=settings))
    if final:
        shape, data = read.tensors["norm_final.weight"]
        tied = {**read.tensors, "norm_final.weight": (shape, bytes(len(data)))}  # all outputs tie: nothing is right
        assert rejected_by_the_kernel(certificate, read._replace(tensors=tied))


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize("margin", ["0.25", "-0.5"])
def test_margins(margin):
    weights = mostly_right(2, v=5, k=4, noise=1.2)
    for strategy in ("threshold-best", "threshold-cubic-pooled"):
        proof = cp.prove(weights, strategy, upper="own", margin=margin)
        verdict = coq.run(coq.translate(json.loads(proof.certificate.data), network(weights)), axioms=False)
        assert verdict.accepted, verdict.message
        assert ("(Number 1 2)" if margin == "0.25" else "(Number (-1) 1)") in verdict.theorem
    proof = cp.prove(weights, "threshold-best", upper=True, margin=margin)
    assert proof.correct_at_least == proof.correct_at_most
    text = coq.translate(json.loads(proof.certificate.data), network(weights))
    number = "(Number 1 2)" if margin == "0.25" else "(Number (-1) 1)"
    other = coq.run(text.replace(number, "(Number 3 1)" if margin == "0.25" else "(Number (-3) 0)"), axioms=False)
    assert not other.accepted and 'has type "true = true" while it is expected' in " ".join(other.message.split())


def test_a_margin_behind_a_norm_is_refused():
    certificate = json.loads(cp.prove(mostly_right(2, v=5, k=3), "threshold-best", margin="0.25").certificate.data)
    with pytest.raises(coq.CoqError, match="behind a norm at the end"):
        coq.translate(certificate, network(normed("LN")))


def lowered_harm_of_a_pool(certificate):
    for each in certificate["factors"]["labels"]:
        each["weights"][0] = 0  # output 0 would do no harm


def lowered_harm(certificate):
    for leaf in all_leaves(certificate, "lower"):
        for term in leaf["terms"]:
            term["weights"][0] = 0


def dropped_output(certificate):
    for leaf in all_leaves(certificate, "lower"):
        for term in leaf["terms"]:
            del term["joint"][0], term["weights"][0]


def dropped_terms(certificate):
    for leaf in all_leaves(certificate, "lower"):
        leaf["terms"], leaf["listed"] = [], []


def query_in_two_parts(certificate):
    m = certificate["lower"][-1]["label"]
    first, second = [part for part in certificate["lower"] if part["label"] == m][:2]
    first["queries"] = [*first["queries"], second["queries"][0]]


def swapped_queries(certificate):
    for side in ("lower", "upper"):
        m = certificate[side][-1]["label"]
        parts = [part for part in certificate[side] if part["label"] == m]
        turned = [part["queries"] for part in parts[1:] + parts[:1]]
        for part, queries in zip(parts, turned, strict=True):
            part["queries"] = queries


def listed_twice(certificate):
    listed = next(leaf["listed"] for leaf in all_leaves(certificate, "lower") if leaf["listed"])
    listed.append(listed[0])


def a_wrong_sequence_listed_as_right(certificate):
    wrong = next((part["label"], x) for part in certificate["upper"] for leaf in leaves(part["tree"]) for x in leaf["listed"])
    part = next(each for each in certificate["lower"] if each["label"] == wrong[0] and wrong[1][-1] in each["queries"])
    for leaf in leaves(part["tree"]):
        leaf["listed"] = [*leaf["listed"], wrong[1]]


def a_right_sequence_listed_as_wrong(certificate):
    certificate["lower"], certificate["upper"] = copy.deepcopy(certificate["lower"]), copy.deepcopy(certificate["upper"])
    for part in certificate["upper"]:
        below = [each for each in certificate["lower"] if each["label"] == part["label"] and each["queries"] == part["queries"]]
        for leaf in leaves(part["tree"]):
            leaf["listed"] = [*leaf["listed"], *(x for each in below for other in leaves(each["tree"]) for x in other["listed"])]


def apart_from_what_nothing_covers(certificate):
    for leaf in all_leaves(certificate, "lower"):
        for term in leaf["terms"]:
            if "apart" in term:
                term["less"] = term["apart"]


def without_a_factor(certificate):
    for leaf in all_leaves(certificate, "lower"):
        for term in leaf["terms"]:
            if "apart" in term:
                term["factors"][0] = 0


def one_of_two_without_a_factor(certificate):
    for leaf in all_leaves(certificate, "upper"):
        for term in leaf["terms"]:
            term["factors"][1] = 0


def the_label_as_a_spoiler(certificate):
    for part in certificate["upper"]:
        for leaf in leaves(part["tree"]):
            for term in leaf["terms"]:
                term["spoilers"][1] = part["label"]


def two_at_once(certificate, side="lower"):
    return [term for leaf in all_leaves(certificate, side) for term in leaf["terms"] if "both" in term]


def a_factor_changed(certificate):
    for term in two_at_once(certificate):
        term["both"][1]["factors"][1] = 0  # then the second sum is always zero


def a_first_factor_changed(certificate):
    for term in two_at_once(certificate):
        term["both"][1]["factors"][0] = 1


def a_smaller_reach(certificate):
    for term in two_at_once(certificate):
        term["reach"] = 1


def a_second_sum_that_covers_too_little(certificate):
    for term in two_at_once(certificate):
        other = term["both"][1]
        term["both"][1] = {"joint": [other["less"]], "weights": [1], **FINE}


def apart_in_two_from_what_nothing_covers(certificate):
    for term in two_at_once(certificate):
        term["both"][1]["less"] = term["both"][1]["apart"]


def dropped_overlap(certificate):
    for leaf in all_leaves(certificate, "upper"):
        leaf["terms"].pop()


def an_overlap_with_another_output(certificate):
    for part in certificate["upper"]:
        terms = part["tree"]["terms"]
        named = {part["label"], *(term["spoiler"] for term in terms if "spoiler" in term)}
        for term in terms:
            if "both" in term:
                term["both"][1]["joint"] = [min({0, 1, 2, 3, 4} - named)]


def an_overlap_with_itself(certificate):
    for term in two_at_once(certificate, "upper"):
        term["both"][1]["joint"][0] = term["both"][0]["joint"][0]


def a_weight_of_an_overlap(certificate):
    for term in two_at_once(certificate, "upper"):
        term["both"][0]["weights"] = [0]


def the_label_in_an_overlap(certificate):
    for part in certificate["upper"]:
        for leaf in leaves(part["tree"]):
            for term in leaf["terms"]:
                if "both" in term:
                    term["both"][1]["joint"].append(part["label"])
                    term["both"][1]["weights"].append(1)


def other_weights(model):
    shape, data = model.tensors["W_U"]
    return model._replace(tensors={**model.tensors, "W_U": (shape, data[4:] + data[:4])})


def rejected_by_the_kernel(certificate, model):
    """Coq computed that the check fails; nothing else went wrong."""
    verdict = coq.run(coq.translate(certificate, model), axioms=False)
    return not verdict.accepted and 'has type "true = true" while it is expected' in " ".join(verdict.message.split())


CHANGES = [
    ("pooled", count_plus_one),
    ("pooled", lowered_harm_of_a_pool),
    ("pooled", query_in_two_parts),
    ("exact", count_plus_one),
    ("exact", count_minus_one_above),
    ("exact", lowered_harm),
    ("exact", dropped_output),
    ("exact", dropped_terms),
    ("exact", query_in_two_parts),
    ("exact", swapped_queries),
    ("exact", listed_twice),
    ("exact", a_wrong_sequence_listed_as_right),
    ("exact", a_right_sequence_listed_as_wrong),
    ("apart", count_plus_one),
    ("apart", apart_from_what_nothing_covers),
    ("apart", without_a_factor),
    ("two_spoilers", count_minus_one_above),
    ("two_spoilers", one_of_two_without_a_factor),
    ("two_spoilers", the_label_as_a_spoiler),
    ("both", count_plus_one),
    ("both", a_factor_changed),
    ("both", a_first_factor_changed),
    ("both", a_smaller_reach),
    ("both", a_second_sum_that_covers_too_little),
    ("both", apart_in_two_from_what_nothing_covers),
    ("several", count_minus_one_above),
    ("several", dropped_overlap),
    ("several", an_overlap_with_another_output),
    ("several", an_overlap_with_itself),
    ("several", a_weight_of_an_overlap),
    ("several", the_label_in_an_overlap),
]


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize(("which", "change"), CHANGES)
def test_the_kernel_rejects(which, change, request):
    found, model = request.getfixturevalue(which)
    certificate = copy.deepcopy(found)
    change(certificate)
    assert certificate != found
    assert rejected_by_the_kernel(certificate, model)


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize("which", ["pooled", "exact"])
def test_the_kernel_rejects_other_weights(which, request):
    certificate, model = request.getfixturevalue(which)
    assert rejected_by_the_kernel(certificate, other_weights(model))
    assert not coq.check_coq(json.dumps(certificate).encode(), other_weights(model)).accepted  # its SHA-256 differs


def committed_axioms():
    """The axioms of each main theorem: its name on a line, and the axioms indented below, or those of another theorem."""
    found, name = {}, ""
    for line in (HERE / "axioms.txt").read_text().splitlines():
        if line.startswith("  as "):
            found[name] = found[line.removeprefix("  as ")]
        elif line.startswith("  "):
            found[name] = (*found[name], line.strip())
        elif line:
            name, found[line] = line, ()
    return found


def axioms_of(theorem):
    return committed_axioms()[theorem]


@needs_coq
@pytest.mark.long
def test_the_axioms_of_each_main_theorem(tmp_path):
    committed = committed_axioms()
    lines = [f'Eval compute in "{name}"%string. Print Assumptions CompactProofs.{name}.' for name in committed]
    modules = " ".join(path.stem for path in FORMAL.glob("*.v"))
    text = "\n".join(["From Coq Require Import String.", f"From CompactProofs Require {modules}.", *lines])
    (tmp_path / "Axioms.v").write_text(text)
    command = ["coqc", "-q", "-Q", str(FORMAL), "CompactProofs", "Axioms.v"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    pieces = re.split(r'^ += "(.*)"%string\n +: string\n', done.stdout, flags=re.MULTILINE)
    assert dict(zip(pieces[1::2], map(coq.printed_axioms, pieces[2::2]), strict=True)) == committed


@needs_coq
@pytest.mark.long
def test_sequences_without_a_label():
    """Those outside of a region are not right, and not of its total."""
    weights = mostly_right(2, v=5, k=4, noise=1.2)
    proof, certificate, model = proved(weights, task=task_for(weights, where="max>=3,contains:1"))
    assert min(certificate["question"]["task"]["labels"]) == -1
    assert proof.correct_at_least == proof.correct_at_most < proof.total < 5**4
    text = coq.translate(certificate, model)
    verdict = coq.run(text, axioms=False)
    assert verdict.accepted, verdict.message
    assert verdict.theorem.startswith(f"({proof.correct_at_least} <= ") and verdict.theorem.endswith(f" <= {proof.correct_at_most})%Z")
    for change in (count_plus_one, count_minus_one_above):
        changed = copy.deepcopy(certificate)
        change(changed)
        assert rejected_by_the_kernel(changed, model)
    named = re.search(r"Definition upper_unlabelled : group := Build_group \(n_out the_network\) .*\n.*\.\n", text)[0]
    assert not coq.run(text.replace(named, "").replace("; upper_unlabelled]", "]"), axioms=False).accepted


@needs_coq
@pytest.mark.long
@pytest.mark.skipif(shutil.which("coqchk") is None, reason="needs coqchk, of the Debian package coq")
def test_the_independent_checker_accepts_the_theory():
    """Everything is looked at again, what the theory rests on included; only axioms of the standard library, nothing switched off."""
    done = subprocess.run(["make", "--silent", "-C", FORMAL, "coqchk"], capture_output=True, text=True, check=True)
    _, summary = (done.stdout + done.stderr).split("CONTEXT SUMMARY")
    said = {title: lines.split() for title, lines in re.findall(r"^\* (.*?):(.*?)(?=^\*|\Z)", summary, re.MULTILINE | re.DOTALL)}
    axioms = said.pop("Axioms")
    assert said.pop("Theory") == ["Set", "is", "predicative"]
    assert len(said) == 3 and all(found == ["<none>"] for found in said.values()), said
    assert all(name.startswith("Coq.") for name in axioms)
    assert {name for name in axioms_of("Checker.check_sound") if not any(each.endswith("." + name) for each in axioms)} == set()


@needs_coq
@pytest.mark.long
def test_fixed_tokens():
    """A token of mass zero may stand nowhere, not even in a walk."""
    weights = mostly_right(2, v=5, k=4, noise=1.2)
    proof, certificate, model = proved(weights, task=task_for(weights, prefix=(1,)))
    assert certificate["question"]["masses"] is not None and proof.correct_at_least == proof.correct_at_most
    verdict = coq.run(coq.translate(certificate, model), axioms=False)
    assert verdict.accepted, verdict.message


@needs_coq
@pytest.mark.long
def test_the_verb(exact, tmp_path):
    place, model = tmp_path / "tiny.cert.json", tmp_path / "tiny.safetensors"
    cp.save(mostly_right(2, v=5, k=4, noise=1.2), model)
    place.write_text(json.dumps(exact[0]))
    found = json.loads(run("check", "--coq", place, model, "--json", "-").stdout)
    assert found["verdict"] == "accepted" and tuple(found["axioms"]) == axioms_of("Checker.check_sound")


def test_the_verb_says_what_is_wrong_before_coq_is_asked(pooled, tmp_path):
    assert inside("check", "--coq", tmp_path / "nothing.json", "max-of-4").returncode == 2
    changed = copy.deepcopy(pooled[0])
    count_plus_one(changed)
    place = tmp_path / "more.cert.json"
    place.write_text(json.dumps(changed))
    assert inside("check", "--coq", place, "max-of-4").returncode == 1
