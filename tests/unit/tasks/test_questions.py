"""Regions, distributions and sequences without a label: masses, bounds and certificates, against exact truth."""

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import compactproofs as cp
import network_oracle
import oracle
from compactproofs import checker
from compactproofs.certificates.certificate import Certificate
from compactproofs.errors import CertificateError, InfeasibleError, TaskError
from compactproofs.mixtures import MixedQuestion, mixture_accuracy, prove_mixture
from compactproofs.model.kinds import of_length
from compactproofs.strategies.registry import strategy
from compactproofs.tasks import NO_LABEL, Framed, LabellingAutomaton, MaxOfK, Product, Region, Weighted, Where, rules
from compactproofs.tasks.distribution_files import distribution_of
from compactproofs.tasks.regions import restricted, smallest
from models import random_weights
from random_networks import random_network
from tasks import Random, mass_of


def truth(weights, task):
    """The mass answered right and the total, from the definition."""
    label = {x: int(task.automaton.label([x])[0]) for x in product(range(task.d_vocab), repeat=task.n_ctx)}
    total = sum(mass_of(task, x) for x in label if label[x] != NO_LABEL)
    return oracle.mass_correct(weights, label.__getitem__, lambda x: mass_of(task, x)), total


STRATEGIES = ["threshold-best", "threshold-quartic", "threshold-exact-output", "threshold-cubic", "threshold-cubic-pooled", "brute-force"]


@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold_for_random_automata_and_masses(seed):
    """Every strategy that takes such questions, from below and above; brute force finds the truth itself."""
    scale = (1.5, 0.01, 30.0, 0.0)[seed % 4]
    weights = random_weights(seed, n_ctx=3 + seed % 2, d_vocab=4, d_vocab_out=5, d_model=6, d_head=2, scale=scale)
    task = Random(seed, weights.n_ctx, 4, 5)
    right, total = truth(weights, task)
    assert total == task.total == cp.prove(weights, "brute-force", task).total
    for name in STRATEGIES:
        proof = cp.prove(weights, name, task, upper=True, seconds=5)
        assert proof.status == "proven", proof.reason
        assert proof.correct_at_least <= right <= proof.correct_at_most
        if name == "brute-force":
            assert proof.correct_at_least == right == proof.correct_at_most
        else:
            found = cp.verify(proof.ledger, weights)
            assert proof.correct_at_least <= found.correct_at_least <= right and found.total == total


REGIONS = {
    "max>=2": lambda x: max(x) >= 2,
    "max<=1": lambda x: max(x) <= 1,
    "max=3": lambda x: max(x) == 3,
    "min>=1": lambda x: min(x) >= 1,
    "min=0,max=2": lambda x: min(x) == 0 and max(x) == 2,
    "copies:1>=2": lambda x: x.count(1) >= 2,
    "copies:0=0": lambda x: 0 not in x,
    "copies:3<=1": lambda x: x.count(3) <= 1,
    "copies-of-max=2": lambda x: x.count(max(x)) == 2,
    "copies-of-max>=2": lambda x: x.count(max(x)) >= 2,
    "contains:2": lambda x: 2 in x,
    "lacks:2,lacks:0": lambda x: 2 not in x and 0 not in x,
    "distinct": lambda x: len(set(x)) == len(x),
}


@pytest.mark.parametrize("text", REGIONS)
def test_regions_are_those_of_a_plain_function(text):
    for n_ctx in (1, 3, 4):
        task = Where(MaxOfK(n_ctx, 4), Region(text))
        sequences = list(product(range(4), repeat=n_ctx))
        wanted = [max(x) if REGIONS[text](x) else NO_LABEL for x in sequences]
        assert task.automaton.label(np.array(sequences)).tolist() == wanted
        assert task.total == sum(label != NO_LABEL for label in wanted)
        assert task.automaton.n_states <= 18
        assert f"in which {task.region.title}" in task.inputs_in_words


def test_the_product_of_two_automata_is_small_and_right():
    """Of random automata; no automaton with the same labels has fewer states, as all of them can be told apart."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        one, other = (LabellingAutomaton(rng.integers(0, 5, (5, 3)), rng.integers(0, 3, 5), 0) for _ in range(2))
        both = restricted(one, other)
        small = smallest(both)
        sequences = np.array(list(product(range(3), repeat=5)))
        for k in range(1, 6):
            wanted = np.where(other.label(sequences[:, :k]) > 0, one.label(sequences[:, :k]), NO_LABEL)
            assert (small.label(sequences[:, :k]) == wanted).all() and (both.label(sequences[:, :k]) == wanted).all()
        endings = {
            tuple(int(small.labels[follow(small, s, x)]) for k in range(5) for x in product(range(3), repeat=k))
            for s in range(small.n_states)
        }
        assert len(endings) == small.n_states <= both.n_states


def follow(automaton, state, tokens):
    for t in tokens:
        state = automaton.transitions[state, t]
    return int(state)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max", "is written max>=N (or <=, =)"),
        ("max>2", "unknown condition 'max>2'"),
        ("", "unknown condition ''"),
        ("max>=2,,min>=1", "unknown condition ''"),
        ("contains", "is written contains:T"),
        ("distinct>=2", "is written distinct"),
        ("copies>=2", "is written copies:T>=N"),
        ("lacks:7", "there is no token 7; tokens are 0 to 3"),
        ("max>=4", "no sequence has a label"),
    ],
)
def test_regions_that_cannot_be(text, words):
    with pytest.raises(TaskError) as error:
        cp.task_for(random_weights(0, d_vocab=4), where=text)
    assert words in str(error.value)


def test_a_region_of_too_many_states_is_refused(monkeypatch):
    monkeypatch.setattr(rules, "_MOST_MOVES", 10_000)
    with pytest.raises(TaskError, match="too much"):
        Where(MaxOfK(8, 64), Region("distinct")).automaton  # noqa: B018


def test_weights_become_the_smallest_integers():
    found = Product.from_text("product:1/3,0.5,0;2,2,4")
    assert found.masses(2, 3).tolist() == [[2, 3, 0], [1, 1, 2]]
    with pytest.raises(TaskError, match="weights for 2 positions; expected 1 list"):
        found.masses(3, 3)
    with pytest.raises(TaskError, match="lists of 3 weights; expected 4"):
        found.masses(2, 4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("product:", "is no weight"),
        ("product:1,x", "'x' is no weight"),
        ("product:1,-1", "'-1' is no weight"),
        ("product:0,0,0,0", "one of each position that is positive"),
        ("product:1,1/0,1,1", "is no weight"),
        ("product:1,1000000000000000,1,1", "more than 2^40"),
        ("normal", "unknown distribution 'normal'; expected uniform, product:"),
        ("markov:chain.json", "cannot be read"),
        ("nowhere.json", "cannot be read"),
    ],
)
def test_distributions_that_cannot_be(text, words):
    with pytest.raises(TaskError) as error:
        cp.task_for(random_weights(0, d_vocab=4), distribution=text)
    assert words in str(error.value)


def question(seed, weights):
    """Max-of-K of a region, weighted."""
    regions = [None, "max>=2", "lacks:1", "copies-of-max=1", None, "min<=1"]
    weighted = [None, "product:1,2,0.5,1/3,0", "product:1,2,3,4,5;5,0,1,1,2;2,7,1,8,2"][seed % 3]
    return cp.task_for(weights, "max" if seed % 2 else "after:2", where=regions[seed], distribution=weighted)


@pytest.mark.parametrize("seed", range(1, 6))
def test_certificates_say_what_is_true_and_nothing_else(seed):
    """The checker finds the right total, and rejects what is about another question."""
    weights = random_weights(seed, n_ctx=3, d_vocab=5, d_vocab_out=6, d_model=7, scale=(1.5, 20.0)[seed % 2])
    task = question(seed, weights)
    right, total = truth(weights, task)
    for name in ("threshold-best", "threshold-cubic-pooled"):
        certificate = cp.prove(weights, name, task, upper=True, seconds=5).certificate
        found = cp.check(certificate, weights)
        assert found.accepted, found.reason
        assert found.total == total == task.total and found.correct_at_least <= right <= found.correct_at_most
        assert ("without a label" in found.reason) == task.partial
        content = certificate.content
        for change in changes(content, task):
            assert not cp.check(Certificate(change), weights).accepted
        rehashed = [with_hash(change, weights) for change in changes(content, task) if change["question"] != content["question"]]
        for change in rehashed:  # a question of its own: then it is the total that is wrong
            assert not cp.check(Certificate(change), weights).accepted


def changes(content, task):
    """Other masses, another region, another total."""
    masses = content["question"]["masses"] or [[1] * task.d_vocab] * task.n_ctx
    other = [list(row) for row in masses]
    other[0][0] += 1
    yield content | {"question": content["question"] | {"masses": other}}
    if task.partial:
        labels = [max(label, 0) for label in content["question"]["task"]["labels"]]
        yield content | {"question": content["question"] | {"task": content["question"]["task"] | {"labels": labels}}}
    for step in (-1, 1):
        yield content | {"claim": content["claim"] | {"total": str(task.total + step)}}


def with_hash(content, weights):
    """The same with the hash of its question."""
    asked = content["question"]
    try:
        checker.read_question(asked, weights.d_vocab, weights.n_ctx, checker.Meter(checker.NO_LIMIT))
    except checker.RejectedError as error:
        name = str(error).split("SHA-256 is ")[1].split(",")[0]
        return content | {"question": asked | {"sha256": name}}
    raise AssertionError("the hash is that of another question")


def test_a_certificate_about_labels_of_minus_one_claims_no_more_than_the_labelled():
    """Without any label nothing is claimed; labels below -1 are none."""
    weights = random_weights(0, n_ctx=2, d_vocab=3)
    content = cp.prove(weights, task=cp.task_for(weights, "after:1"), seconds=5).certificate.content
    for labels, words in ((lambda m: NO_LABEL, "no sequence has a label"), (lambda m: m - 1, "out of range")):
        changed = content["question"]["task"] | {"labels": [labels(m) for m in content["question"]["task"]["labels"]]}
        asked = content["question"] | {"task": changed}
        if words != "out of range":
            asked = with_hash({"question": asked}, weights)["question"]
        assert words in cp.check(Certificate(content | {"question": asked}), weights).reason


@pytest.mark.parametrize("seed", range(4))
def test_questions_about_whole_blocks(seed):
    """Bounds, brute force and certificates of a network with two heads, an MLP or norms."""
    network = random_network(seed, post_norm=False)
    regions = ["max>=1", "copies-of-max=1", "lacks:0", None]
    task = cp.task_for(network, where=regions[seed], distribution=["uniform", "product:1,2,3,1"][seed % 2])
    label = {x: int(task.automaton.label([x])[0]) for x in product(range(4), repeat=3)}
    right = sum(mass_of(task, x) for x in label if label[x] != NO_LABEL and network_oracle.is_correct(network, x, label[x]))
    exact = cp.accuracy(network, task)
    assert exact.total == task.total and exact.correct <= right <= exact.correct + exact.undecided
    proof = cp.prove(network, task=task, upper=True, seconds=5)
    assert proof.status == "proven" and proof.correct_at_least <= right <= proof.correct_at_most
    found = cp.verify(proof.ledger, network)
    assert found.correct_at_least <= right <= found.correct_at_most and found.total == task.total


def test_fixed_tokens_around_a_region_and_a_distribution():
    weights = random_weights(3, n_ctx=4, d_vocab=4, d_vocab_out=4)
    task = cp.task_for(weights, prefix=(3,), where="distinct", distribution="product:1,2,3,0")
    assert isinstance(task, Framed) and task.total == 6 * 6 and task.mass_everywhere == 6**3
    right, total = truth(weights, task)
    assert total == task.total and cp.accuracy(weights, task).correct == right
    proof = cp.prove(weights, task=task, upper=True)
    assert proof.correct_at_least <= right <= proof.correct_at_most
    words = (
        "mass 36 of the sequences of 3 tokens from 0 to 2, after the fixed token 3, in which no token occurs twice, weighted by product:1,2"
    )
    assert words in proof.theorem
    with pytest.raises(TaskError, match="gives one of them a weight; expected 0"):
        cp.task_for(weights, prefix=(3,), distribution="product:1,2,3,1")


def test_positions_before_the_last():
    """With a product distribution they can be read; of a region or where labels are missing only the last can."""
    weights = random_weights(4, n_ctx=3, d_vocab=3, causal=True)
    task = cp.task_for(weights, distribution="product:1,2,3;4,1,0;1,1,5")
    for proof in cp.prove(weights, task=task, position="every", upper=True):
        length = proof.position + 1
        shorter, ways = task.of_length(length), math.prod(task.masses[length:].sum(axis=1).tolist())
        right, total = truth(of_length(weights, length), shorter)
        assert proof.correct_at_least <= ways * right <= proof.correct_at_most and proof.total == ways * total == task.total
        assert cp.check(proof.certificate, weights).accepted
    for other in (cp.task_for(weights, where="max>=1"), cp.task_for(weights, "after:1")):
        with pytest.raises(TaskError, match=r"[Oo]nly the last position"):
            cp.prove(weights, task=other, position=1)
        assert cp.prove(weights, task=other, position=2).total == other.total


def test_samples_are_drawn_by_mass_from_what_has_a_label():
    weights = random_weights(1, n_ctx=3, d_vocab=4)
    task = cp.task_for(weights, where="max>=2", distribution="product:5,1,1,2;1,1,1,1;0,1,3,1")
    exact, sampled = cp.accuracy(weights, task), cp.accuracy(weights, task, samples=20_000, confidence=0.9999)
    assert sampled.total == 20_000 and sampled.interval[0] <= exact.accuracy <= sampled.interval[1]
    uniform = cp.accuracy(weights, samples=20_000)
    assert sampled.correct != uniform.correct
    assert cp.accuracy(weights, task, samples=20_000).correct == sampled.correct
    rare = cp.task_for(weights, where="max<=0", distribution="product:1,50,50,50")
    with pytest.raises(InfeasibleError, match="only one sequence in"):
        cp.accuracy(weights, rare, samples=10)


def test_the_papers_strategies_refuse():
    weights = random_weights(1, n_ctx=3, d_vocab=4)
    for task in (cp.task_for(weights, where="max>=2"), cp.task_for(weights, distribution="product:1,2,1,1")):
        for name in ("cubic", "threshold-near", "threshold-low-rank"):
            proof = cp.prove(weights, name, task)
            assert proof.status == "infeasible" and "equally likely" in proof.reason and "Try the threshold" in proof.reason


def mixture_file(path):
    parts = [{"share": "1/3", "product": [1, 2, "0.5", 1]}, {"share": 0.5, "product": [["1/3", 1, 1, 0], [1, 1, 1, 1], [4, 3, 2, 1]]}]
    path.write_text(json.dumps({"mixture": parts}))
    return distribution_of(str(path))


@pytest.mark.parametrize("where", [None, "max>=2"])
def test_mixtures(where, tmp_path):
    """Bounds of a mixture are those of its parts by their shares; of a region, given the region."""
    mixture = mixture_file(tmp_path / "mix.json")
    for seed in range(3):
        weights = random_weights(seed, n_ctx=3, d_vocab=4)
        asked = MixedQuestion.of(weights, mixture, where=where)
        probability, inside, right = Fraction(0), Fraction(0), Fraction(0)
        for x in product(range(4), repeat=3):
            each = sum(
                share
                / Fraction(5, 6)
                * math.prod(row[t] / sum(row) for row, t in zip(part.weights * (3 // len(part.weights)), x, strict=True))
                for share, part in mixture.parts
            )
            probability += each
            if where is None or max(x) >= 2:
                inside += each
                right += each if oracle.is_correct(weights, x, max(x)) else 0
        assert probability == 1
        true = right / inside
        exact = mixture_accuracy(weights, asked)
        assert Fraction(exact.correct, exact.total) == true
        for proof in prove_mixture(weights, [strategy("threshold-best"), strategy("threshold-cubic")], asked, upper=True):
            assert Fraction(proof.correct_at_least, proof.total) <= true <= Fraction(proof.correct_at_most, proof.total)
            assert "weighted by the mixture mix.json" in proof.theorem and "shares 2/5, 3/5" in proof.theorem
            with pytest.raises(CertificateError):
                proof.certify()
        (refused,) = prove_mixture(weights, [strategy("cubic")], asked)
        assert refused.status == "infeasible" and refused.correct_at_least == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not JSON"),
        ("[1, 2]", "expected {"),
        ('{"product": [1, 1e-3, 1]}', "'1e-3' is no weight"),
        ('{"product": [[1, 2], 3]}', "expected {"),
        ('{"product": [1, true]}', "True is no weight"),
        ('{"mixture": []}', "expected {"),
        ('{"mixture": [{"share": 0, "product": [1]}]}', "positive shares"),
        ('{"mixture": [{"product": [1]}]}', "expected {"),
    ],
)
def test_files_that_are_no_distributions(content, words, tmp_path):
    (tmp_path / "d.json").write_text(content)
    with pytest.raises(TaskError) as error:
        distribution_of(str(tmp_path / "d.json"))
    assert words in str(error.value)


def test_a_file_with_a_product_is_read_exactly(tmp_path):
    (tmp_path / "d.json").write_text('{"product": [0.1, 0.2, 0.3]}')
    assert distribution_of(str(tmp_path / "d.json")).masses(1, 3).tolist() == [[1, 2, 3]]
    weights = random_weights(0, n_ctx=2, d_vocab=3)
    task = cp.task_for(weights, distribution=str(tmp_path / "d.json"))
    assert isinstance(task, Weighted) and "weighted by d.json (SHA-256 " in task.inputs_in_words
