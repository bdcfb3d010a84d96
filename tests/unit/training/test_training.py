import json
import sys
import time
from dataclasses import replace

import numpy as np
import psutil
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import compactproofs as cp
from command import started
from compactproofs.errors import InfeasibleError, ModelError, TaskError
from compactproofs.model.files import training_record
from compactproofs.training import Recipe, train_seeds
from compactproofs.training.recipe import derived_seed
from models import random_weights

torch = pytest.importorskip("torch")

PATIENCE = 300
"""Seconds after which a process that should have ended is taken for one that hangs."""

SMALL = Recipe(n_ctx=4, d_vocab=16, d_model=8, d_head=8, steps=40, batch_size=32)


def test_a_seed_gives_the_same_weights_alone_and_among_others():
    from compactproofs.training.batched import train_group

    recipe = Recipe(n_ctx=4, d_vocab=64, steps=30)
    alone = train_group(recipe, [5])[0]
    for companions in ([4, 5, 6], [5, 0, 1, 2, 3, 7, 8], list(range(11))):
        together = {t.seed: t for t in train_group(recipe, companions)}[5]
        for name in alone.tensors:
            np.testing.assert_array_equal(alone.tensors[name], together.tensors[name])
        assert alone.loss == together.loss


@pytest.mark.long
def test_workers_and_groups_do_not_change_the_weights():
    assert SMALL.separable
    in_two = {m.seed: m.weights for m in train_seeds(SMALL, range(5), workers=2)}
    in_one = {m.seed: m.weights for m in train_seeds(SMALL, [3, 1], workers=1)}
    assert in_one == {seed: in_two[seed] for seed in (3, 1)}
    assert len({w.sha256 for w in in_two.values()}) == 5


def test_the_gradient_is_that_of_the_reference_forward_pass():
    """The batched loss equals cross-entropy of the numpy forward pass, for rectangular heads too."""
    from compactproofs.training.batched import _losses, initial_parameters

    recipe = replace(SMALL, d_model=6, d_head=5)
    parameters = initial_parameters(recipe, [0, 1])
    tokens = torch.randint(0, 16, (2, 7, 4), generator=torch.Generator().manual_seed(0))
    losses = _losses(parameters, tokens, tokens.amax(-1), recipe)
    for i in range(2):
        weights = cp.Weights(**{n: p[i].numpy() for n, p in parameters.items()})
        logits = cp.forward(weights, tokens[i].numpy())
        log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        expected = -log_probabilities[np.arange(7), tokens[i].numpy().max(axis=1)].mean()
        assert float(losses[i]) == pytest.approx(expected, rel=1e-5)


def test_initial_weights_have_the_papers_distribution():
    from compactproofs.training.batched import initial_parameters

    parameters = initial_parameters(Recipe(n_ctx=4, d_vocab=64), range(20))
    everything = torch.cat([p.flatten() for p in parameters.values()])
    assert float(everything.std()) == pytest.approx(0.8 / 32**0.5, rel=0.01)
    assert float(everything.mean()) == pytest.approx(0, abs=0.001)


@pytest.mark.long
def test_training_learns():
    (model,) = cp.train(cp.MaxOfK(n_ctx=2, d_vocab=8), seeds=[0], d_model=16, d_head=16, steps=1000)
    assert cp.accuracy(model.weights).accuracy > 0.9
    assert model.loss < 0.5 and model.seconds > 0 and model.path is None


@pytest.mark.long
def test_finished_seeds_are_not_trained_again_and_say_how_they_came_about(tmp_path):
    first = sorted(train_seeds(SMALL, [0, 1], out=tmp_path, workers=1), key=lambda m: m.seed)
    stamps = {m.path: m.path.stat().st_mtime_ns for m in first}
    record = training_record(first[1].path)
    assert record["recipe"] == json.loads(json.dumps(SMALL.as_dict()))
    assert record["seed"] == 1 and record["torch"] == torch.__version__
    progress = []
    second = list(train_seeds(SMALL, [0, 1, 2], out=tmp_path, workers=1, progress=lambda *p: progress.append(p)))
    assert [(m.seed, m.resumed) for m in second] == [(0, True), (1, True), (2, False)]
    assert {m.path: m.path.stat().st_mtime_ns for m in first} == stamps
    assert second[0].weights == first[0].weights and second[0].loss == first[0].loss
    assert progress[-1] == (40, 40)
    first[0].path.rename(tmp_path / first[0].path.name.replace("seed0", "seed9"))
    for recipe, seed in ((SMALL, 9), (replace(SMALL, steps=41), 1)):
        with pytest.raises(ModelError, match="another recipe"):
            list(train_seeds(recipe, [seed], out=tmp_path))


@pytest.mark.long
def test_a_killed_run_resumes_with_the_same_weights(tmp_path):
    """kill -9 in the middle: what was finished is whole, the rest is trained, and the result is as if nothing had happened."""
    script = (
        "from pathlib import Path; from compactproofs.training import Recipe, train_seeds\n"
        "if __name__ == '__main__':\n"
        "    recipe = Recipe(n_ctx=4, d_vocab=16, d_model=8, d_head=8, steps=400, batch_size=32)\n"
        f"    list(train_seeds(recipe, range(32), out=Path({str(tmp_path)!r}), workers=1))\n"
    )
    main = tmp_path.parent / f"{tmp_path.name}_main.py"
    main.write_text(script)
    with started(sys.executable, main) as process:
        while not list(tmp_path.glob("*.safetensors")) and process.poll() is None:
            time.sleep(0.05)
    finished = len(list(tmp_path.glob("*.safetensors")))
    assert 0 < finished < 32
    recipe = replace(SMALL, steps=400)
    models = list(train_seeds(recipe, range(32), out=tmp_path, workers=1))
    assert sum(m.resumed for m in models) == finished
    untouched = {m.seed: m.weights for m in train_seeds(recipe, [0, 31], workers=1)}
    assert {m.seed: m.weights for m in models if m.seed in (0, 31)} == untouched


@pytest.mark.long
def test_workers_do_not_outlive_training_that_was_killed(tmp_path):
    marker, main = tmp_path / "training", tmp_path / "main.py"
    main.write_text(
        "from pathlib import Path; from compactproofs.training import Recipe, train_seeds\n"
        "if __name__ == '__main__':\n"
        "    recipe = Recipe(n_ctx=4, d_vocab=16, d_model=8, d_head=8, steps=10**9, batch_size=32)\n"
        f"    marker = Path({str(marker)!r})\n"
        "    list(train_seeds(recipe, range(2), workers=2, progress=lambda done, total: done and marker.touch()))\n"
    )
    with started(sys.executable, main) as process:
        while not marker.exists():
            assert process.poll() is None
            time.sleep(0.05)
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        assert len(children) >= 2
        assert psutil.wait_procs(children, timeout=PATIENCE)[1] == []


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ("not JSON", "training record in the metadata is not JSON"),
        ("[1]", "training record in the metadata is a JSON list"),
        ("{}", "another recipe"),
        ('{"recipe": RECIPE, "seed": 0, "seconds": 1.0}', "lacks loss or seconds"),
        ('{"recipe": RECIPE, "seed": 0, "loss": "small", "seconds": 1.0}', "lacks loss or seconds"),
        ('{"recipe": RECIPE, "seed": 0, "loss": 0.5, "seconds": null}', "lacks loss or seconds"),
    ],
)
def test_a_model_with_a_damaged_record_is_not_taken_for_finished(tmp_path, record, words):
    path = tmp_path / f"{SMALL.name}-seed0.safetensors"
    cp.save(random_weights(0, n_ctx=4, d_vocab=16, d_model=8, d_head=8), path)
    with safe_open(path, framework="np") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(tensors, path, {**metadata, "training": record.replace("RECIPE", json.dumps(SMALL.as_dict()))})
    with pytest.raises(ModelError, match=words):
        list(train_seeds(SMALL, [0], out=tmp_path))


def test_a_symbolic_link_to_nowhere_is_not_replaced(tmp_path):
    path = tmp_path / f"{SMALL.name}-seed0.safetensors"
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="is a symbolic link to .*nowhere, which does not exist"):
        list(train_seeds(SMALL, [0], out=tmp_path))
    assert path.is_symlink()


def test_what_does_not_fit_into_memory_is_refused_before_training(monkeypatch):
    monkeypatch.setattr("compactproofs.memory.installed_memory", lambda: 10**6)
    with pytest.raises(InfeasibleError, match=r"training 2 x max-of-4-v16 at a time would take about .* GB of memory, and there are 0\.0"):
        list(train_seeds(replace(SMALL, batch_size=10**4), [0, 1], workers=2))


@pytest.mark.parametrize(
    "changes", [{"n_ctx": 0}, {"steps": 0}, {"task": "median"}, {"n_ctx": 10**5, "d_vocab": 2}, {"d_vocab": 10**8}, {"d_model": 10**8}]
)
def test_impossible_recipes_are_refused(changes):
    with pytest.raises(TaskError):
        replace(SMALL, **changes)


def test_derived_seeds_differ_by_purpose_and_fit_torch():
    assert derived_seed(0, "weights") != derived_seed(0, "data") != derived_seed(1, "data")
    assert all(0 <= derived_seed(s, "data") < 2**63 for s in range(100))
