import numpy as np
import pytest

from compactproofs.errors import ModelError
from compactproofs.model.config import Told
from compactproofs.model.files import from_tensors
from models import random_weights

WEIGHTS = random_weights(1, n_ctx=3, d_vocab=5, d_vocab_out=6, d_model=4, d_head=2)


def legacy():
    t = WEIGHTS.tensors
    return {
        "embed.W_E": t["W_E"],
        "pos_embed.W_pos": t["W_pos"],
        "unembed.W_U": t["W_U"],
        **{f"blocks.0.attn.{n}": t[n][None] for n in ("W_Q", "W_K", "W_V", "W_O")},
        "blocks.0.attn.b_Q": np.zeros((1, 2), np.float32),
        "blocks.0.attn.b_O": np.zeros(4, np.float32),
        "unembed.b_U": np.zeros(6, np.float32),
        "blocks.0.attn.mask": np.tril(np.ones((3, 3), bool)),
        "blocks.0.attn.IGNORE": np.array(-np.inf, np.float32),
    }


def bridge():
    t = WEIGHTS.tensors
    return {
        "embed.weight": t["W_E"],
        "pos_embed.weight": t["W_pos"],
        "unembed.weight": t["W_U"].T,
        **{f"blocks.0.attn.{n[-1].lower()}.weight": t[n].T for n in ("W_Q", "W_K", "W_V", "W_O")},
        "blocks.0.attn.q.bias": np.zeros(2, np.float32),
    }


def plain_with_head_axis():
    return {n: t[None] if n in ("W_Q", "W_K", "W_V", "W_O") else t for n, t in WEIGHTS.tensors.items()}


TOLD = Told(n_heads=1, normalization="none")


@pytest.mark.parametrize("layout", [legacy, bridge, plain_with_head_axis, lambda: WEIGHTS.tensors])
def test_every_known_layout_gives_the_same_network(layout):
    assert from_tensors(layout(), None, TOLD) == WEIGHTS


@pytest.mark.parametrize("layout", [legacy, plain_with_head_axis])
def test_an_axis_of_heads_tells_how_many_there_are(layout):
    assert from_tensors(layout(), None, Told(normalization="none")) == WEIGHTS


@pytest.mark.parametrize("layout", [bridge, lambda: WEIGHTS.tensors])
def test_without_an_axis_of_heads_nobody_can_tell(layout):
    with pytest.raises(ModelError, match="how many heads there are"):
        from_tensors(layout(), None, Told(normalization="none"))


def test_an_empty_mask_is_one_that_is_made_later():
    """TransformerLens 3.9 saves it so."""
    assert from_tensors({**legacy(), "blocks.0.attn.mask": np.zeros((0, 0), bool)}, None, TOLD) == WEIGHTS


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"blocks.1.attn.W_Q": np.zeros((1, 4, 2), np.float32)}, "more than one layer"),
        ({"blocks.0.mlp.W_in": np.zeros((4, 8), np.float32)}, "has an MLP"),
        ({"blocks.0.ln1.w": np.ones(4, np.float32)}, "layer normalisation"),
        ({"ln_final.w": np.ones(4, np.float32)}, "layer normalisation"),
        ({"blocks.0.attn.rotary_sin": np.ones((3, 2), np.float32)}, "rotary"),
        ({"blocks.0.attn.b_K": np.ones((1, 3), np.float32)}, r"b_K has shape \(1, 3\); expected \(1, 2\)"),
        ({"unembed.b_U": np.full(6, np.nan, np.float32)}, r"b_U\[0\] is nan"),
        ({"blocks.0.attn.b_Z": np.ones((1, 2), np.float32)}, "b_Z .* is not known"),
        ({"blocks.0.attn.mask": np.eye(3, dtype=bool)}, "causal mask"),
        ({"blocks.0.attn.mask": np.ones((2, 2), bool)}, "causal mask"),
        ({"blocks.0.attn.mask": np.ones((6, 6), bool)}, "causal mask"),
        ({"blocks.0.attn.mask": np.ones((3, 3), np.float32)}, "causal mask"),
        ({"mystery": np.zeros(3, np.float32)}, r"tensor mystery \(shape \(3,\)\) is not known"),
        ({"blocks.0.attn.W_Q": np.zeros((2, 4, 2), np.float32)}, "n_heads is 2 in W_Q but 1 in W_O"),
    ],
)
def test_what_would_have_to_be_ignored_is_refused_by_name(extra, message):
    with pytest.raises(ModelError, match=message):
        from_tensors({**legacy(), **extra}, None, TOLD)


def test_missing_tensors_are_named_together_with_what_is_there():
    tensors = dict(WEIGHTS.tensors)
    del tensors["W_K"], tensors["W_U"]
    with pytest.raises(ModelError, match=r"tensors not found: W_K, W_U\. Expected .* The file has: W_E, W_O, W_Q, W_V, W_pos"):
        from_tensors(tensors)


def test_a_foreign_model_is_refused_for_what_it_is():
    with pytest.raises(ModelError, match="has an MLP"):
        from_tensors({"embed.W_E": WEIGHTS.W_E, "blocks.0.mlp.W_in": WEIGHTS.W_E})
    with pytest.raises(ModelError, match="no tensors"):
        from_tensors({})


def test_zero_biases_change_nothing():
    for bias in (np.zeros(2, np.float32), -np.zeros(2, np.float32)):
        assert from_tensors({**WEIGHTS.tensors, "b_Q": bias}, None, TOLD) == WEIGHTS


LOWER, ALL = np.tril(np.ones((3, 3), bool)), np.ones((3, 3), bool)


@pytest.mark.parametrize(
    ("names", "mask", "said", "causal"),
    [
        ("plain", None, None, None),
        ("plain", LOWER, None, True),
        ("plain", LOWER, "causal", True),
        ("plain", LOWER, "bidirectional", False),
        ("plain", ALL, None, False),
        ("plain", ALL, "causal", False),
        ("legacy", LOWER, None, None),  # TransformerLens saves it with bidirectional models too
        ("legacy", LOWER, "causal", True),
        ("legacy", LOWER, "bidirectional", False),
        ("legacy", np.zeros((0, 0), bool), "causal", True),
        ("legacy", np.zeros((0, 0), bool), None, None),
    ],
)
def test_whether_attention_is_causal(names, mask, said, causal):
    tensors, name = (dict(WEIGHTS.tensors), "mask") if names == "plain" else (legacy(), "blocks.0.attn.mask")
    config = {"n_heads": 1, "normalization_type": "none", **({} if said is None else {"attention_dir": said})}
    model = from_tensors({**tensors, **({} if mask is None else {name: mask})}, config)
    assert model.causal is causal and model == WEIGHTS
