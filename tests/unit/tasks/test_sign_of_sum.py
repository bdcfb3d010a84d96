"""The sign of a sum, against a direct computation."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import compactproofs as cp
from blocks import tiny_block
from compactproofs.errors import TaskError
from compactproofs.tasks import Framed, MaxOfK, SignOfSum, task_for
from compactproofs.tasks.question import Question
from models import random_weights

HALF = Fraction(1, 2)


def label_of(sequence, offset):
    return int(np.sign(sum(Fraction(t) - offset for t in sequence))) + 1


@pytest.mark.parametrize("offset", [None, Fraction(0), Fraction(2), 3 * HALF, -HALF, Fraction(-2), Fraction(7), 21 * HALF])
@pytest.mark.parametrize(("n_ctx", "d_vocab"), [(1, 1), (1, 4), (2, 3), (3, 4), (4, 3), (3, 5), (5, 2)])
def test_every_sequence_has_the_sign_of_its_sum(n_ctx, d_vocab, offset):
    task = SignOfSum(n_ctx, d_vocab, offset)
    sequences = list(product(range(d_vocab), repeat=n_ctx))
    zero = Fraction(d_vocab - 1, 2) if offset is None else offset
    expected = [label_of(x, zero) for x in sequences]
    assert task.automaton.label(np.array(sequences)).tolist() == expected
    assert task.labels == sorted(set(expected)) and task.total == len(sequences)
    assert task.automaton.label_totals(n_ctx) == {label: expected.count(label) for label in sorted(set(expected))}
    question = Question(task)
    assert sum(sum(question.totals_by_last(label)) for label in task.labels) == len(sequences)


def test_states_are_the_sums_in_ascending_order():
    automaton = SignOfSum(2, 3).automaton  # -2 .. 2
    assert automaton.n_states == 5 and automaton.start == 2 and automaton.labels.tolist() == [0, 0, 1, 2, 2]
    assert automaton.transitions[2].tolist() == [1, 2, 3] and automaton.transitions[4].tolist() == [3, 4, 4]
    assert SignOfSum(20, 11).automaton.n_states == 201
    assert SignOfSum(1, 2).automaton.labels.tolist() == [0, 1, 2]  # -1/2, nothing yet, 1/2


@pytest.mark.parametrize(
    ("spec", "d_vocab", "offset", "written"),
    [
        ("sign-of-sum", 11, Fraction(5), "sign-of-sum"),
        ("sign-of-sum", 10, Fraction(9, 2), "sign-of-sum"),
        ("sign-of-sum:5.0", 11, Fraction(5), "sign-of-sum"),
        ("sign-of-sum:4.5", 11, Fraction(9, 2), "sign-of-sum:4.5"),
        ("sign-of-sum:9/2", 11, Fraction(9, 2), "sign-of-sum:4.5"),
        ("sign-of-sum:-1/2", 11, -HALF, "sign-of-sum:-0.5"),
        ("sign-of-sum:+3", 11, Fraction(3), "sign-of-sum:3"),
        ("sign-of-sum:0", 11, Fraction(0), "sign-of-sum:0"),
    ],
)
def test_the_spec_recreates_the_task(spec, d_vocab, offset, written):
    weights = random_weights(0, d_vocab=d_vocab)
    task = task_for(weights, spec)
    assert task == SignOfSum(3, d_vocab, offset) and task.spec == written
    assert task_for(weights, task.spec) == task and task_for(weights, task.spec).sha256 == task.sha256


@pytest.mark.parametrize(("offset", "words"), [(5, "t - 5"), (9 * HALF, "t - 4.5"), (0, "t"), (-3 * HALF, "t + 1.5")])
def test_the_title_says_what_a_token_counts_as(offset, words):
    title = SignOfSum(2, 11, offset).title
    assert title == f"the sign of the sum, each token t counted as {words}: 0, 1 or 2 for negative, zero, positive"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("sign-of-sum:", "the offset is not a number; expected an integer or a half-integer, such as 5, 4.5 or 9/2"),
        ("sign-of-sum:five", "sign-of-sum:five: the offset is not a number"),
        ("sign-of-sum:1e5", "not a number"),
        ("sign-of-sum:1/0", "not a number"),
        ("sign-of-sum:0.3", "offset=3/10: expected an integer or a half-integer"),
        ("sign-of-sum:99999999", "between -1000000 and 1000000"),
        ("max:3", "the task max takes no argument"),
        ("sign", "unknown task 'sign'"),
        ("", "unknown task ''"),
    ],
)
def test_errors_list_what_is_known(spec, words):
    with pytest.raises(TaskError) as error:
        task_for(random_weights(0), spec)
    assert words in str(error.value) and "known tasks: max, min, first" in str(error.value)


def test_what_no_offset_or_size_can_be():
    for offset in (0.5, True, "1"):
        with pytest.raises(TaskError, match="expected a Fraction"):
            SignOfSum(2, 3, offset)
    with pytest.raises(TaskError, match="n_ctx=0"):
        SignOfSum(0, 3)
    with pytest.raises(TaskError, match="too many"):
        SignOfSum(1000, 1000)
    with pytest.raises(TaskError, match="too many"):
        SignOfSum(30, 20000).automaton  # noqa: B018
    with pytest.raises(TaskError, match="has a label 2, but the model has only d_vocab_out=2 outputs"):
        task_for(random_weights(0, d_vocab_out=2), "sign-of-sum")


def test_shorter_sequences():
    task = SignOfSum(4, 5, HALF)
    assert task.of_length(2) == SignOfSum(2, 5, HALF) and MaxOfK(4, 5).of_length(1) == MaxOfK(1, 5)
    framed = Framed(SignOfSum(3, 5), prefix=(4,))
    assert framed.of_length(2) == Framed(SignOfSum(1, 5), prefix=(4,)) and framed.of_length(4) is framed
    with pytest.raises(TaskError, match="position 0 lies within the prefix of 1 fixed tokens, where .*; expected 1 to 3"):
        framed.of_length(1)
    ended = Framed(SignOfSum(3, 5), suffix=(4,))
    assert ended.of_length(4) is ended
    with pytest.raises(TaskError, match="with a suffix only the last position, 3, can be read"):
        ended.of_length(3)


@pytest.mark.parametrize(("prefix", "suffix"), [((), ()), ((4,), ()), ((0,), (3,))])
@pytest.mark.parametrize("seed", range(3))
def test_proofs_agree_with_brute_force_between_fixed_tokens_too(seed, prefix, suffix):
    weights = random_weights(seed, d_vocab_out=4, n_ctx=4)
    task = task_for(weights, "sign-of-sum:1.5", prefix=prefix, suffix=suffix)
    true = cp.accuracy(weights, task)
    free = [t for t in range(5) if t not in prefix + suffix]
    inputs = list(product(free, repeat=4 - len(prefix + suffix)))
    logits = cp.forward(weights, np.array([prefix + x + suffix for x in inputs]))
    right = [label_of(x, 3 * HALF) == np.argmax(y) for x, y in zip(inputs, logits, strict=True)]
    assert (true.correct, true.total) == (sum(right), len(inputs))
    for strategy in ("threshold-best", "threshold-cubic", "brute-force"):
        proof = cp.prove(weights, strategy, task, upper=True)
        assert proof.correct_at_least <= true.correct <= proof.correct_at_most and "counted as t - 1.5" in proof.theorem
    assert cp.check(cp.prove(weights, "threshold-quartic", task).certificate, weights).accepted
    sampled = cp.accuracy(weights, task, samples=400)
    assert sampled.interval[0] <= true.accuracy <= sampled.interval[1]


def test_masses():
    task = SignOfSum(2, 3)
    masses = np.array([[1, 2, 3], [5, 0, 7]])
    question = Question(task, masses)
    by_label = dict.fromkeys(range(3), 0)
    for x in product(range(3), repeat=2):
        by_label[label_of(x, 1)] += int(masses[0, x[0]] * masses[1, x[1]])
    assert {label: sum(question.totals_by_last(label)) for label in range(3)} == by_label


def test_the_papers_strategies_refuse_it():
    weights = random_weights(0)
    proof = cp.prove(weights, "cubic", task_for(weights, "sign-of-sum"))
    assert proof.status == "infeasible" and "for max-of-K only, not for the sign of the sum" in proof.reason


def test_a_network_with_an_mlp():
    network = tiny_block(0, "MLP")
    task = task_for(network, "sign-of-sum")
    true = cp.accuracy(network, task)
    proof = cp.prove(network, task=task, upper=True)
    assert proof.correct_at_least <= true.correct <= proof.correct_at_most
