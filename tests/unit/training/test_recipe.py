import math
from dataclasses import replace

import pytest

from compactproofs.errors import TaskError
from compactproofs.model.config import NORMALIZATIONS
from compactproofs.training import Recipe
from compactproofs.training.recipe import Normalization

PLAIN = Recipe(n_ctx=4, d_vocab=64)
BLOCK = Recipe(n_ctx=3, d_vocab=10, d_model=8, d_head=5, n_heads=2, d_mlp=7, act="gelu", norm="LN", bias=True)


def test_normalisations_have_the_names_of_files():
    assert set(Normalization) == set(NORMALIZATIONS)


def test_the_papers_model_has_its_seven_tensors_and_its_record_says_nothing_about_other_parts():
    assert PLAIN.plain and [len(shape) for shape in PLAIN.shapes.values()] == [2] * 7
    assert list(PLAIN.shapes) == ["W_E", "W_pos", "W_Q", "W_K", "W_V", "W_O", "W_U"]
    assert PLAIN.name == "max-of-4-v64" and PLAIN.d_head == 32
    sizes, optimiser = "n_ctx d_vocab d_model d_head steps batch_size", "learning_rate weight_decay beta1 beta2 epsilon init_scale task"
    assert list(PLAIN.as_dict()) == f"{sizes} {optimiser}".split()


@pytest.mark.parametrize("change", [{"n_heads": 2}, {"d_mlp": 16}, {"norm": "RMSPre"}, {"bias": True}])
def test_every_other_part_is_in_the_record_and_in_the_name(change):
    recipe = Recipe(n_ctx=4, d_vocab=64, **change)
    assert not recipe.plain and change.items() <= recipe.as_dict().items()
    assert recipe.name != PLAIN.name and Recipe(**recipe.as_dict()) == recipe


def test_a_head_has_its_share_of_the_stream_unless_told_otherwise():
    assert Recipe(n_ctx=4, d_vocab=64, d_model=64).d_head == 32
    assert Recipe(n_ctx=4, d_vocab=64, d_model=48, n_heads=3).d_head == 16
    assert Recipe(n_ctx=4, d_vocab=64, d_model=48, n_heads=5, d_head=7).d_head == 7


NORM_TENSORS = {"LN": ["bias", "weight"], "LNPre": [], "RMS": ["weight"], "RMSPre": [], "none": []}


@pytest.mark.parametrize("norm", NORMALIZATIONS)
@pytest.mark.parametrize("d_mlp", [0, 7])
@pytest.mark.parametrize("bias", [False, True])
def test_a_network_has_the_tensors_of_transformer_lens(norm, d_mlp, bias):
    recipe = Recipe(n_ctx=3, d_vocab=10, d_model=8, d_head=5, n_heads=2, d_mlp=d_mlp, norm=norm, bias=bias)
    expected = {"W_E", "W_pos", "W_Q", "W_K", "W_V", "W_O", "W_U"}
    expected |= {"mlp.W_in", "mlp.W_out"} if d_mlp else set()
    expected |= {"b_Q", "b_K", "b_V", "b_O", "b_U"} if bias else set()
    expected |= {"mlp.b_in", "mlp.b_out"} if bias and d_mlp else set()
    norms = ["norm_1", "norm_final", *(["norm_2"] if d_mlp else [])]
    expected |= {f"{part}.{own}" for part in norms for own in NORM_TENSORS[norm]}
    assert set(recipe.shapes) == expected
    assert recipe.shapes["W_Q"] == (2, 8, 5) and recipe.bytes == 4 * sum(map(math.prod, recipe.shapes.values()))
    assert recipe.training_bytes > 4 * recipe.bytes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_heads": 0}, "n_heads=0 must be at least 1"),
        ({"d_head": 0}, "d_head=0 must be at least 1"),
        ({"d_mlp": -1}, "d_mlp=-1 must not be negative; 0 is no MLP"),
        ({"act": "tanh"}, "act='tanh': expected one of relu, gelu, gelu_new, silu"),
        ({"d_mlp": 0}, "act=gelu says what neurons do, and there are none"),
        ({"norm": "BN"}, "norm='BN': expected one of none, LN, LNPre, RMS, RMSPre"),
        ({"d_mlp": 10**8}, "n_heads=2, d_mlp=100000000: the tensors would take 6800"),
    ],
)
def test_impossible_networks_are_refused(change, words):
    with pytest.raises(TaskError, match=words):
        replace(BLOCK, **change)


TOGETHER = [{}, {"n_ctx": 5}, {"d_vocab": 65}, {"d_head": 3}, {"d_mlp": 5}]
ALONE = [{"batch_size": 48}, {"d_vocab": 65, "bias": True}, {"d_model": 8, "n_ctx": 3}, {"d_mlp": 5, "bias": True}]


@pytest.mark.parametrize(("changes", "separable"), [(TOGETHER, True), (ALONE, False)], ids=["together", "alone"])
def test_seeds_are_trained_together_where_each_has_whole_vectors_of_its_own(changes, separable):
    assert [replace(PLAIN, **change).separable for change in changes] == [separable] * len(changes)
