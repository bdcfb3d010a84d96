"""Networks in the batched trainer: the function is that of `model.forward`, and seeds do not know of each other."""

from dataclasses import replace

import numpy as np
import pytest

import compactproofs as cp
from compactproofs.model.network import Network
from compactproofs.training import Recipe, train_seeds
from compactproofs.training.models import model_of

torch = pytest.importorskip("torch")

ODD = Recipe(n_ctx=3, d_vocab=11, d_model=6, d_head=5, n_heads=2, steps=6, batch_size=32)
"""All dimensions differ."""

EVEN = Recipe(n_ctx=4, d_vocab=64, n_heads=4, d_mlp=128, norm="LN", bias=True, steps=12)
"""The default block, of the size that is bundled."""

KINDS = [
    {},
    {"n_heads": 1, "bias": True},
    {"n_heads": 3, "bias": True, "norm": "LN"},
    {"n_heads": 1, "norm": "LNPre"},
    {"norm": "RMS", "d_mlp": 7, "act": "silu", "bias": True},
    {"norm": "RMSPre", "d_mlp": 7, "act": "gelu"},
    {"norm": "LN", "d_mlp": 7, "act": "gelu_new", "bias": True},
    {"norm": "none", "d_mlp": 7, "bias": True},
]


def in_words(change):
    return " ".join(f"{name}={value}" for name, value in change.items()) or "two heads"


def some_parameters(recipe, seeds):
    """None of them zero or one, as biases and weights of norms are in the beginning."""
    from compactproofs.training.batched import initial_parameters

    generator = torch.Generator().manual_seed(7)
    return {name: p + 0.3 * torch.randn(p.shape, generator=generator) for name, p in initial_parameters(recipe, seeds).items()}


@pytest.mark.parametrize("change", KINDS, ids=in_words)
def test_the_loss_is_that_of_the_reference_forward_pass(change):
    from compactproofs.training.batched import _losses

    recipe = replace(ODD, **change)
    parameters = some_parameters(recipe, [0, 1])
    tokens = torch.randint(0, 11, (2, 7, 3), generator=torch.Generator().manual_seed(0))
    losses = _losses(parameters, tokens, tokens.amax(-1), recipe)
    for i in range(2):
        model = model_of(recipe, {name: p[i].numpy() for name, p in parameters.items()})
        assert isinstance(model, cp.Weights) == (change == {"n_heads": 1, "bias": True})
        logits = cp.forward(model, tokens[i].numpy())
        log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        expected = -log_probabilities[np.arange(7), tokens[i].numpy().max(axis=1)].mean()
        assert float(losses[i]) == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize("change", KINDS, ids=in_words)
def test_every_tensor_of_the_recipe_is_in_the_model_and_is_trained(change):
    from compactproofs.training.batched import initial_parameters, train_group

    recipe = replace(ODD, **change)
    before = initial_parameters(recipe, [3])
    (trained,) = train_group(recipe, [3])
    assert trained.tensors.keys() == recipe.shapes.keys()
    for name, tensor in trained.tensors.items():
        assert tensor.shape == recipe.shapes[name], name
        if name != "b_K":  # adds the same to all scores of a query, so only rounding moves it
            assert not np.array_equal(tensor, before[name][0].numpy()), name
    model = model_of(recipe, trained.tensors)
    if isinstance(model, Network):
        assert {name: tensor.tobytes() for name, tensor in model.tensors.items()} == {n: t.tobytes() for n, t in trained.tensors.items()}


def test_matrices_start_as_in_the_paper_and_other_parts_without_effect():
    from compactproofs.training.batched import initial_parameters

    parameters = initial_parameters(EVEN, range(20))
    matrices = torch.cat([p.flatten() for name, p in parameters.items() if "W_" in name])
    assert float(matrices.std()) == pytest.approx(0.8 / 32**0.5, rel=0.01)
    for name, p in parameters.items():
        if "W_" not in name:
            assert bool((p == (1 if name.endswith("weight") else 0)).all()), name


SEPARABLE = [
    {},
    {"n_heads": 1, "d_head": 32, "d_mlp": 0, "act": None},
    {"norm": "LNPre", "act": "gelu", "bias": False},
    {"norm": "RMS", "act": "gelu_new"},
    {"norm": "RMSPre", "act": "silu", "batch_size": 32},
    {"d_mlp": 0, "act": None, "norm": "none", "bias": False},
]
NOT_SEPARABLE = [{"d_vocab": 11}, {"d_mlp": 7, "norm": "none"}, {"batch_size": 13}, {"d_model": 6, "d_head": 5, "n_ctx": 3}]


@pytest.mark.parametrize("change", SEPARABLE, ids=in_words)
def test_a_seed_gives_the_same_weights_alone_and_among_others(change):
    recipe = replace(EVEN, **change)
    assert recipe.separable
    require_the_same_in_groups(recipe)


@pytest.mark.parametrize("change", NOT_SEPARABLE, ids=in_words)
def test_a_seed_gives_the_same_weights_whatever_the_sizes(change):
    recipe = replace(EVEN, **change)
    assert not recipe.separable
    require_the_same_in_groups(recipe)


def test_models_of_the_paper_of_odd_sizes_do_not_depend_on_the_group_either():
    """Matrix products and AdamW treat numbers at odd addresses in another order: before, these differed in their last bits."""
    require_the_same_in_groups(Recipe(n_ctx=3, d_vocab=7, d_model=6, d_head=5, steps=60, batch_size=13))


def require_the_same_in_groups(recipe):
    from compactproofs.training.batched import train_group

    alone = train_group(recipe, [5])[0]
    for companions in ([4, 5, 6], list(range(8))):
        together = {t.seed: t for t in train_group(recipe, companions)}[5]
        for name in alone.tensors:
            np.testing.assert_array_equal(alone.tensors[name], together.tensors[name], err_msg=name)
        assert alone.loss == together.loss


@pytest.mark.long
@pytest.mark.parametrize("change", [{}, {"n_heads": 1, "bias": True}], ids=["network", "weights"])
def test_finished_networks_are_not_trained_again(tmp_path, change):
    recipe = replace(ODD, **change)
    (first,) = train_seeds(recipe, [2], out=tmp_path, workers=1)
    (second,) = train_seeds(recipe, [2], out=tmp_path, workers=1)
    assert (first.resumed, second.resumed) == (False, True)
    assert first.weights == second.weights == cp.load(first.path) and first.loss == second.loss
    other = replace(recipe, steps=7)
    with pytest.raises(cp.CompactProofsError, match="another recipe"):
        list(train_seeds(other, [2], out=tmp_path))


@pytest.mark.long
def test_a_block_learns():
    (model,) = cp.train(cp.MaxOfK(2, 8), seeds=[0], d_model=32, n_heads=4, d_mlp=32, norm="LN", bias=True, steps=300, batch_size=64)
    assert isinstance(model.weights, Network) and model.weights.n_heads == 4
    assert cp.accuracy(model.weights, cp.MaxOfK(2, 8)).accuracy > 0.9
    assert model.loss < 0.5


@pytest.mark.long
def test_one_head_with_biases_is_proven_about_as_ever(tmp_path):
    (model,) = cp.train(cp.MaxOfK(2, 8), seeds=[0], out=tmp_path, d_model=16, d_head=16, bias=True, steps=100)
    loaded = cp.load(model.path)
    assert isinstance(loaded, cp.Weights) and loaded == model.weights
    assert loaded.d_model == 16 + 1 + 16, "constant coordinates stand for the biases"
    assert cp.prove(loaded).correct_at_least == cp.accuracy(loaded).correct
