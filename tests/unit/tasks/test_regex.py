"""Regular expressions over tokens: compared with Python's over characters, on all sequences."""

import random
import re
from itertools import product

import pytest

import compactproofs as cp
import oracle
from compactproofs.errors import TaskError
from compactproofs.tasks import RegexTask
from models import random_weights

V, LETTERS = 4, "abcd"
SEQUENCES = {n: list(product(range(V), repeat=n)) for n in (1, 2, 3, 4)}
TIMES = ("*", "+", "?", "{2}", "{1,}", "{0,2}", "{1,3}", "{0}", "{0,}", "*?"[:1] + "{2}")


def drawn(rng, depth):
    """An expression over tokens and the same over letters."""
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        which = rng.random()
        if which < 0.5:
            token = rng.randrange(V)
            return str(token), LETTERS[token]
        if which < 0.65:
            return ".", "."
        low, other = sorted((rng.randrange(V), rng.randrange(V)))
        no = "^" if rng.random() < 0.4 else ""
        if which < 0.8:
            return f"[{no}{low}-{other}]", f"[{no}{LETTERS[low]}-{LETTERS[other]}]"
        return f"[{no}{low} {other}]", f"[{no}{LETTERS[low]}{LETTERS[other]}]"
    ours, pythons = drawn(rng, depth - 1)
    if kind < 0.75:
        more_ours, more_pythons = drawn(rng, depth - 1)
        return (f"{ours} {more_ours}", pythons + more_pythons) if kind < 0.6 else (f"({ours}|{more_ours})", f"(?:{pythons}|{more_pythons})")
    times = rng.choice(TIMES)
    return f"({ours}){times}", f"(?:(?:{pythons}){times[0]}){times[1:]}" if times == "*{2}" else f"(?:{pythons}){times}"


@pytest.mark.parametrize("seed", range(8))
def test_what_matches_is_what_matches_in_python(seed):
    """Python writes a repetition of a repetition with brackets, we may write it without."""
    rng = random.Random(seed)
    matches = 0
    for _ in range(20):
        ours, pythons = drawn(rng, 4)
        expected = re.compile(pythons)
        for n_ctx, sequences in SEQUENCES.items():
            wanted = [int(expected.fullmatch("".join(LETTERS[t] for t in x)) is not None) for x in sequences]
            assert RegexTask(ours, n_ctx, V).automaton.label(sequences).tolist() == wanted, (ours, n_ctx)
            matches += sum(wanted)
    assert matches > 100


@pytest.mark.parametrize(
    ("pattern", "n_states"),
    [
        (".* 1 .*", 3),
        ("(1|2|1 .|2 .) .*|[1 2] .*", 3),
        ("(0|1)* (0|1)*", 2),
        ("1{3}", 5),
        ("[^0-3]", 2),
        ("(|1) (1|)", 4),
        ("(){9999}{9999} 1", 3),
    ],
)
def test_the_automaton_is_the_smallest(pattern, n_states):
    """With the state from which nothing matches, whether or not it can be reached."""
    assert RegexTask(pattern, 3, V).automaton.n_states == n_states


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("", "nothing is written"),
        ("  ", "nothing is written"),
        ("a", "'a' cannot be read"),
        ("1 4", "there is no token 4, tokens are 0 to 3"),
        ("[2-9]", "there is no token 9"),
        ("[3-1]", "the range 3-1 is from more to less"),
        ("[]", "names no tokens"),
        ("[^]", "names no tokens"),
        ("[1;2]", "with spaces between them"),
        ("[.]", "with spaces between them"),
        ("[1", "'[1' cannot be read"),
        ("(1", "a bracket is open at the end"),
        ("1)", "a bracket is closed that was not opened"),
        ("* 1", "* has nothing before it that it repeats"),
        ("1|+", "+ has nothing before it that it repeats"),
        ("1{3,2}", "{3,2} is from more to fewer"),
        ("1{-1}", "cannot be read"),
        ("1{9999}", "more than 1000 tokens and classes"),
        ("(1{100}){100}", "more than 1000 tokens and classes"),
        ("(" * 101 + "1" + ")" * 101, "more than 100 brackets and repetitions"),
        ("1" + "*" * 101, "more than 100 brackets and repetitions"),
        ("." * 2001, "2001 characters"),
        ("\u0663", "cannot be read"),
    ],
)
def test_what_is_no_expression_is_refused(pattern, words):
    with pytest.raises(TaskError) as error:
        RegexTask(pattern, 3, V)
    assert words in str(error.value) and "expected tokens as numbers" in str(error.value)


def test_what_would_need_too_many_states_is_refused():
    with pytest.raises(TaskError, match="has to remember too much for n_ctx=40, d_vocab=200"):
        RegexTask(".* 1 .{30}", 40, 200).automaton  # noqa: B018


@pytest.mark.parametrize("pattern", [".* 3 [0-1] .*", "[^2]+", "(0|1 2?)*"])
def test_bounds_hold_and_certificates_are_accepted(pattern, tmp_path):
    for seed, scale in ((0, 1.0), (1, 30.0)):
        weights = random_weights(seed, d_vocab=V, n_ctx=3, d_vocab_out=2, scale=scale)
        task = cp.task_for(weights, f"regex:{pattern}")
        expected = re.compile(re.sub(r"\d", lambda digit: LETTERS[int(digit[0])], pattern.replace(" ", "")))
        right = oracle.count_correct(weights, lambda x, e=expected: int(e.fullmatch("".join(LETTERS[t] for t in x)) is not None))
        proof = cp.prove(weights, task=task, upper=True)
        assert proof.correct_at_least <= right <= proof.correct_at_most
        proof.certificate.save(tmp_path / "cert.json")
        checked = cp.check(tmp_path / "cert.json", weights)
        assert checked.accepted and checked.correct_at_least <= right <= checked.correct_at_most
    assert task.spec == f"regex:{pattern}" and pattern in proof.theorem and task.of_length(2).n_ctx == 2
