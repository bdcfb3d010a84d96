"""Tasks of one's own on the command line: imported if the user names them, and for no other reason."""

import json
import sys

import pytest

import compactproofs as cp
from command import done, refused
from compactproofs.errors import TaskError
from compactproofs.tasks.imported import task_by_user
from models import random_weights

OWN = """
from pathlib import Path
from compactproofs.tasks import MaxOfK, Rule
Path(__file__).with_name("imported").touch()
second = Rule((), lambda seen, t: (*seen, t)[:2], lambda seen: seen[1])
def smallest(n_ctx, d_vocab):
    return Rule(d_vocab - 1, min, lambda least: least)
def largest(n_ctx, d_vocab):
    return MaxOfK(n_ctx, d_vocab)
whole = MaxOfK(3, 5)
number = 7
class Group:
    inner = second
def nothing(n_ctx, d_vocab): pass
def wrong(n_ctx): pass
negative = Rule(0, lambda seen, t: t, lambda seen: -2)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "own_tasks.py").write_text(OWN)
    (tmp_path / "broken_tasks.py").write_text("import no_such_module_at_all")
    (tmp_path / "raising_tasks.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    cp.save(random_weights(0, n_ctx=3, d_vocab=5), "model.safetensors")
    yield tmp_path
    for name in ("own_tasks", "broken_tasks", "raising_tasks"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("spec", "label"), [("second", 1), ("smallest", 1), ("largest", 4), ("whole", 4), ("Group.inner", 1)])
def test_a_rule_a_task_or_what_makes_one(folder, spec, label):
    before = list(sys.path)
    task = task_by_user(f"own_tasks:{spec}", 3, 5)
    assert task.automaton.label([[4, 1, 2]]).tolist() == [label] and (task.n_ctx, task.d_vocab) == (3, 5)
    assert sys.path == before


def test_a_task_of_the_library_is_not_imported(folder):
    (folder / "min.py").write_text("1 / 0")
    assert task_by_user("min", 3, 5).spec == "min" and task_by_user("sum-mod:4", 3, 5).spec == "sum-mod:4"


def test_prove_and_accuracy_take_them(folder):
    (found,) = json.loads(done("prove", "model.safetensors", "--task", "own_tasks:second", "--upper", "--json", "-").stdout)
    measured = json.loads(done("accuracy", "model.safetensors", "--task", "own_tasks:second", "--json", "-").stdout)
    assert "what own_tasks:second says" in found["theorem"]
    assert int(found["correct_at_least"]) == int(measured["correct"]) == int(found["correct_at_most"])


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("no_such_tasks:one", "there is no module of that name, neither installed nor in the current folder"),
        ("broken_tasks:one", "No module named 'no_such_module_at_all'"),
        ("raising_tasks:one", "importing raising_tasks raised ZeroDivisionError"),
        ("own_tasks:missing", "own_tasks has no missing; expected a Rule, a task"),
        ("own_tasks:Group.missing", "own_tasks has no Group.missing"),
        ("own_tasks:number", "it is a int; expected a Rule"),
        ("own_tasks:nothing", "it gives a NoneType; expected a Rule"),
        ("own_tasks:wrong", "it raised TypeError"),
        ("own_tasks:negative", "a label out of range"),
        ("own_tasks", "unknown task 'own_tasks'; known tasks: max"),
        ("own tasks:one", "unknown task"),
        ("../own_tasks:one", "unknown task"),
    ],
)
def test_what_is_missing_or_no_task_is_refused(folder, spec, words):
    assert words in refused("prove", "model.safetensors", "--task", spec)


def test_a_task_of_another_size_is_refused(folder):
    cp.save(random_weights(0, n_ctx=4, d_vocab=5), "longer.safetensors")
    assert "the task has n_ctx=3, d_vocab=5; the model has n_ctx=4" in refused("prove", "longer.safetensors", "--task", "own_tasks:whole")


def test_what_a_file_names_is_never_imported(folder):
    """Neither by the commands nor in Python."""
    weights = random_weights(0, n_ctx=3, d_vocab=5, task="own_tasks:second")
    cp.save(weights, "named.safetensors")
    assert cp.load("named.safetensors").task == "own_tasks:second"
    for verb in ("prove", "accuracy"):
        assert "says that its task is 'own_tasks:second', which is none of the library" in refused(verb, "named.safetensors")
    for call in (cp.task_for, cp.prove, cp.accuracy):
        with pytest.raises(TaskError, match="a file's word is not enough to import one"):
            call(cp.load("named.safetensors"))
    with pytest.raises(TaskError, match="unknown task 'own_tasks:second'"):
        cp.task_for(weights, "own_tasks:second")
    assert not (folder / "imported").exists()
    assert cp.task_for(weights, "max").spec == "max"


def test_what_a_file_names_is_asked_where_nobody_says_what(folder):
    cp.save(random_weights(0, n_ctx=3, d_vocab=5, task="parity:1"), "named.safetensors")
    shown = done("prove", "named.safetensors", "--strategy", "brute-force", "--json", "-")
    assert "whether token 1 occurs an odd number of times" in json.loads(shown.stdout)[0]["theorem"]
    assert "note: the task is parity:1, as the model's file says" in shown.stderr
    other = json.loads(done("prove", "named.safetensors", "--task", "min", "--strategy", "brute-force", "--json", "-").stdout)
    assert "the smallest token" in other[0]["theorem"]
    weights = cp.load("named.safetensors")
    assert "whether token 1 occurs" in cp.prove(weights).theorem and weights == random_weights(0, n_ctx=3, d_vocab=5)
    network = cp.load("named.safetensors", n_ctx=2)
    assert network.task == "parity:1" and cp.task_for(network).n_ctx == 2
