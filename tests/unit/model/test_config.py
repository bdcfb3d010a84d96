from dataclasses import replace
from fractions import Fraction

import pytest

from compactproofs.errors import ModelError
from compactproofs.model.config import Found, Told, interpret

FOUND = Found({"d_vocab": 64, "d_vocab_out": 64, "d_model": 32, "d_head": 32, "n_ctx": 4})
TOLD = Told(n_heads=1, normalization="none")
GOOD = {"n_layers": "1", "n_heads": "1", "attn_only": "true", "normalization_type": "none", "attn_scale": "-1"}


def test_a_complete_config_leaves_nothing_to_assume():
    meaning = interpret(GOOD, FOUND)
    assert meaning.score_divisor_squared == 32
    assert meaning.assumptions == ()


@pytest.mark.parametrize("config", [None, {}])
def test_without_a_config_the_assumptions_are_stated(config):
    text = "; ".join(interpret(config, FOUND, TOLD).assumptions)
    assert "one attention head, because the user said so; no normalisation, because the user said so; no config found: one layer" in text
    assert "attention scale 1/sqrt(d_head) = 1/sqrt(32)" in text


def test_an_incomplete_config_states_what_it_leaves_open():
    text = " ".join(interpret({"n_heads": 1, "normalization_type": None}, FOUND).assumptions)
    assert "does not mention n_layers, attn_only: assumed one layer, attention only" in text
    assert "does not mention attn_scale" in text


@pytest.mark.parametrize(
    ("config", "found", "told", "words"),
    [
        (None, FOUND, Told(), "how many heads .* nor whether there is a normalisation .* --n-heads N --normalization none"),
        ({"n_ctx": 4}, FOUND, Told(n_heads=1), "say so: --normalization none.LNPre.RMSPre .in Python the arguments normalization."),
        (None, FOUND, Told(normalization="none"), "say so: --n-heads N .in Python the arguments n_heads."),
        (None, replace(FOUND, n_heads=1), Told(), "say so: --normalization none"),
    ],
)
def test_what_two_networks_have_in_common_is_not_guessed(config, found, told, words):
    with pytest.raises(ModelError, match=words):
        interpret(config, found, told)


@pytest.mark.parametrize(
    ("config", "told", "words"),
    [
        ({**GOOD, "n_heads": 4}, Told(n_heads=1), "n_heads=1 was asked for, but the configuration says n_heads=4"),
        ({**GOOD, "normalization_type": "LNPre"}, Told(normalization="none"), "the configuration says normalization_type='LNPre'"),
        (None, Told(n_heads=5, normalization="none"), "W_Q has 32 columns, which do not divide into n_heads=5 heads"),
        (None, Told(n_heads=1, normalization="LN"), "LN, a layer normalisation with parameters, but .* not in the file: norm_1.bias"),
    ],
)
def test_what_is_told_must_agree_and_be_supported(config, told, words):
    with pytest.raises(ModelError, match=words):
        interpret(config, FOUND, told)


@pytest.mark.parametrize("told", [{"n_heads": 0}, {"n_heads": True}, {"normalization": "batch"}])
def test_nonsense_cannot_be_told(told):
    with pytest.raises(ModelError, match="expected"):
        Told(**told)


def test_what_is_told_and_said_is_said():
    assert interpret(GOOD, FOUND, TOLD).assumptions == ()
    assert interpret({**GOOD, "normalization_type": None}, FOUND, TOLD).assumptions == ()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("n_layers", 2, "one-layer"),
        ("n_layers", "2", "one-layer"),
        ("n_heads", 5, "do not divide into n_heads=5"),
        ("n_heads", 0, "n_heads=0: expected an integer"),
        ("n_heads", True, "n_heads=True: expected an integer"),
        ("attn_only", False, "MLP"),
        ("attn_only", "false", "MLP"),
        ("normalization_type", "LN", "layer normalisation"),
        ("normalization_type", "batch", "this normalisation is not known"),
        ("normalization_type", 3, "this normalisation is not known"),
        ("normalization_type", "RMS", "layer normalisation"),
        ("final_rms", True, "layer normalisation"),
        ("positional_embedding_type", "rotary", "position embeddings"),
        ("positional_embedding_type", "shortformer", "position embeddings"),
        ("rotary_dim", 16, "rotary"),
        ("attn_scores_soft_cap", 30.0, "soft-capped attention"),
        ("output_logits_soft_cap", "nan", "soft-capped logits"),
        ("use_local_attn", True, "local attention"),
        ("window_size", 2, "local attention"),
        ("scale_attn_by_inverse_layer_idx", True, "layer index"),
        ("scale_embedding", True, "scaled embeddings"),
        ("use_qk_norm", True, "queries and keys"),
        ("num_experts", 2, "MLP"),
        ("n_key_value_heads", 2, "n_key_value_heads=2: expected an integer between 1 and 1"),
        ("dtype", "torch.float16", "float32"),
        ("d_head", 16, "config says d_head=16, but the tensors have d_head=32"),
        ("n_ctx", "5", "config says n_ctx=5, but the tensors have n_ctx=4"),
        ("positional_embedding_type", None, "position embeddings"),
        ("positional_embedding_type", "none", "position embeddings"),
        ("attention_dir", "none", "the last position must see every position"),
        ("use_attn_scale", 0, "a boolean is needed"),
        ("use_attn_scale", None, "a boolean is needed"),
        ("use_attn_scale", "no", "a boolean is needed"),
        ("is_multimodal", True, "token sequences"),
        ("attn_scale", 0, "attn_scale=0: expected a positive number"),
        ("attn_scale", -2.0, "expected a positive number"),
        ("attn_scale", "nan", "expected a positive number"),
        ("attn_scale", "big", "expected a positive number"),
        ("attn_scale", True, "expected a positive number"),
        pytest.param("attn_scale", 10**4000, "expected a positive number", id="4001 digits"),
        pytest.param("d_model", 10**4400, "config says d_model=an integer of very many digits", id="4401 digits"),
        ("use_attention_sinks", True, "attention sinks"),
        ("clip_qkv", 8.0, "clipped"),
        ("use_logn_attn", True, "logarithm of the length"),
        ("quantization_method", "awq", "quantised"),
    ],
)
def test_fields_that_change_the_function_are_refused(field, value, message):
    with pytest.raises(ModelError, match=message):
        interpret({**GOOD, field: value}, FOUND)


@pytest.mark.parametrize(
    ("fields", "divisor_squared"),
    [
        ({"attn_scale": 5.656854249492381}, Fraction(32)),
        ({"attn_scale": "5.656854249492381"}, Fraction(32)),
        ({"attn_scale": 1.0}, Fraction(1)),
        ({"attn_scale": 2.5}, Fraction(25, 4)),
        ({"use_attn_scale": False}, Fraction(1)),
        ({"use_attn_scale": True, "attn_scale": -1.0}, Fraction(32)),
    ],
)
def test_the_attention_scale_is_modelled(fields, divisor_squared):
    assert interpret({**GOOD, **fields}, FOUND).score_divisor_squared == divisor_squared


def test_use_attn_scale_is_ambiguous_in_the_new_layout():
    with pytest.raises(ModelError, match="TransformerLens 4 ignores it"):
        interpret({**GOOD, "use_attn_scale": False}, replace(FOUND, bridge_layout=True))


def test_unknown_fields_become_assumptions_even_when_switched_off():
    meaning = interpret({**GOOD, "secret_gate": 3, "softmax": False, "long\x1b[31m": "y" * 1000, "model_name": "x"}, FOUND)
    assert [a.split(" is not known")[0] for a in meaning.assumptions] == [
        "config field 'long\\x1b[31m' ('" + "y" * 76 + "...)",
        "config field 'secret_gate' (3)",
        "config field 'softmax' (False)",
    ]


def test_a_transformer_lens_config_with_its_defaults_is_understood():
    defaults = {
        "n_layers": 1, "d_model": 32, "n_ctx": 4, "d_head": 32, "model_name": "custom", "n_heads": 1, "d_mlp": None, "act_fn": None,
        "d_vocab": 64, "eps": 1e-5, "use_attn_result": False, "use_attn_scale": True, "attn_scale": 5.656854249492381,
        "use_local_attn": False, "window_size": None, "attn_types": None, "init_mode": "gpt2", "normalization_type": None, "device": "cpu",
        "attention_dir": "causal", "attn_only": True, "seed": 1,
        "scale_attn_by_inverse_layer_idx": False, "positional_embedding_type": "standard",
        "final_rms": False, "d_vocab_out": 64, "parallel_attn_mlp": False, "rotary_dim": None, "n_params": 4096, "gated_mlp": False,
        "dtype": "torch.float32", "post_embedding_ln": False, "num_experts": None,
        "attn_scores_soft_cap": -1.0, "output_logits_soft_cap": -1.0,
        "use_NTK_by_parts_rope": False, "tie_word_embeddings": False, "use_normalization_before_and_after": False,
    }  # fmt: skip
    assert interpret(defaults, FOUND).assumptions == ("attn_scale=5.656854249492381 was read as the real number sqrt(32)",)


@pytest.mark.parametrize(("said", "causal"), [({}, None), ({"attention_dir": "causal"}, True), ({"attention_dir": "bidirectional"}, False)])
def test_whether_attention_is_causal(said, causal):
    assert interpret({**GOOD, **said}, FOUND).causal is causal
