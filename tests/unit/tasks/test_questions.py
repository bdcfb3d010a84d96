"""Regions, distributions and sequences without a label: masses, bounds and certificates, against exact truth."""

import json
import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import pytest

import compactproofs as cp
import oracle
from compactproofs import checker
from compactproofs.errors import TaskError
from compactproofs.tasks import NO_LABEL, AbstractTask, LabellingAutomaton, MaxOfK, Product, Region, Where
from compactproofs.tasks.regions import restricted, smallest
from models import random_weights


@dataclass(frozen=True, eq=False)
class Random(AbstractTask):
    """A random automaton, some of whose states have no label, and random masses, some of them 0."""

    seed: int
    n_ctx: int
    d_vocab: int
    outputs: int

    spec = "random"
    title = "what a random automaton says"

    @cached_property
    def automaton(self):
        rng = np.random.default_rng(self.seed)
        n = int(rng.integers(2, 6))
        labels = rng.integers(NO_LABEL, self.outputs, n)
        labels[rng.integers(n)], labels[rng.integers(n)] = NO_LABEL, 0
        return LabellingAutomaton(rng.integers(0, n, (n, self.d_vocab)), labels, int(rng.integers(n)))

    @cached_property
    def masses(self):
        rng = np.random.default_rng(1000 + self.seed)
        masses = rng.integers(0, 5, (self.n_ctx, self.d_vocab))
        masses[:, rng.integers(self.d_vocab)] += 1
        return masses << (13 if self.seed % 3 == 2 else 0)  # the mass of everything is then beyond 64 bits, or not

    @cached_property
    def allowed(self):
        return self.masses > 0


def mass_of(task, x):
    return 1 if task.masses is None else math.prod(int(task.masses[i, t]) for i, t in enumerate(x))


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


def test_a_region_of_too_many_states_is_refused():
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
        ("markov:chain.json", "Markov chains are not supported"),
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
    weighted = [None, "product:1,2,0.5,1/3,0", "product:" + ";".join("12345"[i:] + "54321"[:i] for i in range(weights.n_ctx))][seed % 3]
    weighted = (
        weighted and weighted
        if seed % 3 != 2
        else "product:" + ";".join(",".join(row) for row in weighted.removeprefix("product:").split(";"))
    )
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
            assert not cp.check(json.dumps(change).encode(), weights).accepted
        rehashed = [with_hash(change, weights) for change in changes(content, task) if change["question"] != content["question"]]
        for change in rehashed:  # a question of its own: then it is the total that is wrong
            assert not cp.check(json.dumps(change).encode(), weights).accepted


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
