"""Models of every task of the library: trained quickly, proved about, and compared with all sequences."""

import json
from collections import Counter
from itertools import product

import numpy as np
import pytest

import compactproofs as cp
from command import done
from compactproofs.errors import TaskError
from compactproofs.model.files import training_record
from compactproofs.tasks import KNOWN, NO_LABEL, RegexTask, Rule, task_of_size
from compactproofs.tasks.imported import RuleTask
from compactproofs.training import Recipe, recipe_for, train_seeds
from compactproofs.training.models import model_of
from compactproofs.training.recipe import Sampling

torch = pytest.importorskip("torch")

SPECS = {
    **dict.fromkeys(
        ("max", "min", "first", "last", "kth-largest:2", "argmax", "sum-mod:7", "sign-of-sum", "majority", "after:5"), Sampling.UNIFORM
    ),
    **dict.fromkeys(("parity:3", "contains:1,2", "sign-of-sum:8", "regex:.* 3 [0-7] .*"), Sampling.BALANCED),
}
QUICK = ("parity:3", "contains:1,2", "after:5")
"""The others are for long runs."""


def test_every_task_of_the_library_is_trained_here():
    names = {known.partition("[")[0].partition(":")[0] for known in KNOWN}
    assert {spec.partition(":")[0] for spec in SPECS} == names


@pytest.mark.parametrize("spec", [s if s in QUICK else pytest.param(s, marks=pytest.mark.long) for s in SPECS])
def test_the_interval_of_a_trained_model_has_the_exact_count_in_it(spec, tmp_path):
    """All 16^4 sequences, the file by its own word, and the certificate by the checker."""
    from compactproofs import checker
    from compactproofs.training.batched import train_group

    options = {} if SPECS[spec] is Sampling.UNIFORM else {"sampling": "balanced"}
    recipe, task = Recipe(n_ctx=4, d_vocab=16, d_model=16, steps=300, task=spec, **options), task_of_size(spec, 4, 16)
    (trained,) = train_group(recipe, [0], automaton=None if spec == "max" else task.automaton)
    file = tmp_path / "it.safetensors"
    cp.save(model_of(recipe, trained.tensors), file)
    model = cp.load(file)
    assert model == model_of(recipe, trained.tensors) and model.task == (None if spec == "max" else spec)
    assert model.d_vocab_out == (16 if spec == "max" else max(task.labels) + 1)
    exact = cp.accuracy(model)
    sequences = np.array(list(product(range(16), repeat=4)))
    sequences = sequences[task.automaton.label(sequences) != NO_LABEL]
    assert len(sequences) == task.total == exact.total
    logits, labels = cp.forward(model, sequences), task.automaton.label(sequences)
    right = logits[np.arange(len(labels)), labels]
    others = np.where(np.arange(logits.shape[1]) == labels[:, None], -np.inf, logits).max(axis=1)
    unsure = int((np.abs(right - others) < 1e-6).sum())
    assert abs(exact.correct - int((right > others).sum())) <= unsure and exact.undecided == 0
    proof = cp.prove(model, upper=True)
    assert proof.correct_at_least == exact.correct == proof.correct_at_most and task.title in proof.theorem
    path = tmp_path / "it.cert.json"
    proof.certificate.save(path)
    verdict = checker.check(path.read_bytes(), file.read_bytes())
    assert verdict.accepted and verdict.correct_at_least <= exact.correct <= verdict.correct_at_most


def test_losses_are_about_the_labels_of_the_task():
    """After some steps the loss is that of the forward pass on the task's labels, and lower than that of knowing nothing."""
    from compactproofs.training.batched import train_group
    from compactproofs.training.data import Data

    recipe = Recipe(n_ctx=3, d_vocab=8, d_model=8, steps=200, task="first")
    task = task_of_size("first", 3, 8)
    data = Data(recipe, task.automaton)
    tokens = data.tokens([torch.Generator().manual_seed(0)])
    assert data.labels(tokens).tolist() == tokens[..., 0].tolist()
    assert train_group(recipe, [0], automaton=task.automaton)[0].loss < 0.9 * np.log(8)


def test_balanced_sequences_have_every_label_equally_often_and_are_uniform_among_those_of_a_label():
    from compactproofs.training.data import Data

    recipe = Recipe(n_ctx=3, d_vocab=5, batch_size=40_000, task="contains:1,2", sampling="balanced")
    automaton = task_of_size("contains:1,2", 3, 5).automaton
    data = Data(recipe, automaton)
    (tokens,) = data.tokens([torch.Generator().manual_seed(0)]).numpy()
    uniform, drawn = tokens[::2], tokens[1::2]
    counts = Counter(map(tuple, drawn.tolist()))
    labels = {x: int(automaton.label([x])[0]) for x in product(range(5), repeat=3)}
    ones = [x for x in labels if labels[x]]
    assert abs(sum(counts[x] for x in ones) / len(drawn) - 0.5) < 0.02
    for label in (0, 1):
        own = [counts[x] for x in labels if labels[x] == label]
        expected = len(drawn) / 2 / len(own)
        assert sum((c - expected) ** 2 / expected for c in own) < len(own) + 5 * (2 * len(own)) ** 0.5
    assert abs(automaton.label(uniform).mean() - len(ones) / 125) < 0.02


@pytest.mark.parametrize("sampling", ["uniform", "balanced"])
def test_sequences_without_a_label_are_never_drawn_and_the_others_equally_often(sampling):
    from compactproofs.training.data import Data

    recipe = Recipe(n_ctx=3, d_vocab=4, batch_size=40_000, task="after:1", sampling=sampling)
    task = task_of_size("after:1", 3, 4)
    (tokens,) = Data(recipe, task.automaton).tokens([torch.Generator().manual_seed(0)]).numpy()
    uniform = tokens if sampling == "uniform" else tokens[::2]
    counts = Counter(map(tuple, uniform.tolist()))
    expected = len(uniform) / task.total
    assert len(counts) == task.total == 28 and sum((c - expected) ** 2 / expected for c in counts.values()) < 28 + 5 * 56**0.5
    labels = Counter(task.automaton.label(tokens).tolist())
    assert set(labels) == {0, 1, 2, 3}, "and every one has a label"
    assert sampling == "uniform" or max(labels.values()) < 1.1 * min(labels.values())


def test_recipes_of_other_tasks_say_so_and_those_of_max_say_nothing_new():
    named = {spec: Recipe(n_ctx=4, d_vocab=64, task=spec) for spec in ("max", "kth-largest:2", "contains:1,2", "sign-of-sum:31.5")}
    assert [recipe.name for recipe in named.values()] == [
        *("max-of-4-v64", "kth-largest-2-of-4-v64", "contains-1-2-of-4-v64", "sign-of-sum-31.5-of-4-v64")
    ]
    assert [recipe.outputs for recipe in named.values()] == [64, 64, 2, 3]
    for recipe in named.values():
        assert not {"d_vocab_out", "sampling"} & set(recipe.as_dict()) and Recipe(**recipe.as_dict()) == recipe
    balanced = Recipe(n_ctx=4, d_vocab=64, task="parity:3", sampling="balanced")
    assert balanced.name == "parity-3-of-4-v64-balanced" and Recipe(**balanced.as_dict()) == balanced
    alike = [Recipe(n_ctx=4, d_vocab=64, task=f"regex:{pattern}").name for pattern in ("1 .*", "1 .+")]
    assert len(set(alike)) == 2 and all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-") for name in alike)


@pytest.mark.long
def test_a_task_of_ones_own_is_trained_and_the_file_does_not_pretend_to_know_it(tmp_path):
    own = RuleTask("mine:second", Rule((), lambda seen, t: (*seen, t)[:2], lambda seen: seen[1]), 3, 8)
    (trained,) = cp.train(own, [0], out=tmp_path, workers=1, steps=5, d_model=8)
    assert trained.weights.d_vocab_out == 8 and training_record(trained.path)["recipe"]["d_vocab_out"] == 8
    with pytest.raises(TaskError, match="a file's word is not enough"):
        cp.prove(cp.load(trained.path))
    assert cp.accuracy(cp.load(trained.path), own).total == 512


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Recipe(n_ctx=4, d_vocab=8, task="mine:second"), "unknown task 'mine:second'"),
        (lambda: Recipe(n_ctx=4, d_vocab=8, task="min", d_vocab_out=7), "needs 8 outputs or more"),
        (lambda: recipe_for(RegexTask("1{5}", 4, 8)), "nothing to learn"),
        (lambda: recipe_for(task_of_size("after:1", 1, 8)), "no label for any sequence of 1 tokens"),
        (lambda: recipe_for(RuleTask("mine:none", Rule(0, lambda _, t: 0, lambda _: -1), 3, 8)), "no label for any sequence of 3 tokens"),
        (lambda: recipe_for("min"), "a str was given for a task"),
        (lambda: list(train_seeds(Recipe(n_ctx=4, d_vocab=8, task="min"), [0], task=task_of_size("first", 4, 8))), "with another task"),
    ],
)
def test_what_cannot_be_trained_is_refused(call, words):
    with pytest.raises(TaskError, match=words):
        call()


@pytest.mark.long
def test_train_takes_a_task_and_prove_knows_it(tmp_path):
    sizes = ("--n-ctx", 3, "--d-vocab", 8, "--d-model", 8, "--steps", 20, "--workers", 1)
    (row,) = json.loads(done("train", "--task", "argmax", *sizes, "--out", tmp_path, "--json", "-").stdout)
    (proof,) = json.loads(done("prove", row["path"], "--upper", "--json", "-").stdout)
    assert "the position of the largest token" in proof["theorem"] and proof["lower"] <= row["accuracy"] <= proof["upper"]
