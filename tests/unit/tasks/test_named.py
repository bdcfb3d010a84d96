"""The library of tasks: every one says what a plain function says, of every sequence; and is proved about like any other."""

from itertools import product

import numpy as np
import pytest

import compactproofs as cp
import oracle
from compactproofs.errors import TaskError
from compactproofs.tasks import NO_LABEL, NamedTask, Rule, explored, library, rules
from compactproofs.tasks.named import KINDS
from models import random_weights

V, K = 4, 4

PLAIN = {
    "min": min,
    "first": lambda x: x[0],
    "last": lambda x: x[-1],
    "kth-largest:1": max,
    "kth-largest:2": lambda x: sorted(x)[-2],
    "kth-largest:4": min,
    "argmax": lambda x: x.index(max(x)),
    "sum-mod:2": lambda x: sum(x) % 2,
    "sum-mod:7": lambda x: sum(x) % 7,
    "parity:3": lambda x: x.count(3) % 2,
    "majority": lambda x: int(sum(2 * t >= V for t in x) > len(x) / 2),
    "contains:1,2": lambda x: int(any(a == 1 and 2 in x[i + 1 :] for i, a in enumerate(x))),
    "contains:3,3": lambda x: int(x.count(3) >= 2),
    "after:2": lambda x: x[x.index(2) + 1] if 2 in x[:-1] else NO_LABEL,
}


def task_of(spec, n_ctx=K, d_vocab=V):
    name, _, argument = spec.partition(":")
    return NamedTask.from_text(name, n_ctx, d_vocab, argument or None)


def test_every_kind_is_compared_with_a_plain_function():
    assert {spec.partition(":")[0] for spec in PLAIN} == set(KINDS)


@pytest.mark.parametrize("spec", PLAIN)
def test_labels_are_those_of_a_plain_function(spec):
    """Of all sequences, and of those that end earlier; the automaton of each label accepts just its sequences."""
    for n_ctx in range(1, K + 1):
        if spec.startswith("kth") and int(spec[-1]) > n_ctx:
            continue
        task = task_of(spec).of_length(n_ctx) if n_ctx < K and not spec.startswith("kth") else task_of(spec, n_ctx)
        sequences = list(product(range(V), repeat=n_ctx))
        wanted = [PLAIN[spec](list(x)) for x in sequences]
        assert task.automaton.label(np.array(sequences)).tolist() == wanted
        assert task.labels == sorted(set(wanted) - {NO_LABEL}) and task.partial == (NO_LABEL in wanted)
        assert task.total == sum(label != NO_LABEL for label in wanted)
        assert {label: sum(task.label_automaton(label).totals_by_last(n_ctx)) for label in task.labels} == {
            label: wanted.count(label) for label in set(wanted) - {NO_LABEL}
        }


@pytest.mark.parametrize("spec", PLAIN)
def test_bounds_of_named_tasks_hold(spec, tmp_path):
    """Both bounds and a certificate, against exact truth."""
    for seed, scale in ((0, 1.0), (1, 30.0)):
        weights = random_weights(seed, d_vocab=V, n_ctx=3, d_vocab_out=7, scale=scale)
        if spec == "kth-largest:4":
            assert "have a 1. to 3. largest" in refused(spec, weights)
            continue
        task = cp.task_for(weights, spec)
        right = oracle.count_correct(weights, lambda x: PLAIN[spec](list(x)))
        proof = cp.prove(weights, task=task, upper=True)
        assert proof.correct_at_least <= right <= proof.correct_at_most
        assert task.title in proof.theorem
        proof.certificate.save(tmp_path / f"{seed}.cert.json")
        checked = cp.check(tmp_path / f"{seed}.cert.json", weights)
        assert checked.accepted and checked.correct_at_least <= right <= checked.correct_at_most


def refused(spec, weights):
    with pytest.raises(TaskError) as error:
        cp.task_for(weights, spec)
    return str(error.value)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("min:1", "the task min is written min"),
        ("kth-largest", "the task kth-largest is written kth-largest:N"),
        ("kth-largest:0", "have a 1. to 3. largest"),
        ("kth-largest:x", "is written kth-largest:N, with numbers for capital letters"),
        ("sum-mod:1", "expected a number from 2 on"),
        ("parity:4", "there is no token 4; tokens are 0 to 3"),
        ("contains:1", "is written contains:A,B"),
        ("contains:1,9", "there is no token 9"),
        ("parity:-1", "is written parity:T"),
        ("sum-mod:99", "has a label 9"),
    ],
)
def test_tasks_that_cannot_be(spec, words):
    weights = random_weights(0, d_vocab=V, n_ctx=3, d_vocab_out=7)
    assert words in refused(spec, weights)


def test_the_library_names_every_task():
    weights = random_weights(0, d_vocab=V, n_ctx=3, d_vocab_out=7)
    for usage, title in library().items():
        usage = usage.replace("PATTERN", "1 .*").replace("[:offset]", "")
        spec = usage.replace("N", "2").replace("P", "5").replace("T", "1").replace("A", "0").replace("B", "1")
        assert cp.task_for(weights, spec).spec == spec and title


def test_what_has_to_remember_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(rules, "_MOST_MOVES", 1000)
    with pytest.raises(TaskError, match="has to remember too much for n_ctx=30, d_vocab=10"):
        explored(Rule((), lambda seen, t: (*seen, t), len), 30, 10)
