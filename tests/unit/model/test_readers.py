"""Every part that a file can have: read as `Network` defines it, or refused by name. The real libraries are in tests/transformer_lens."""

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

import compactproofs as cp
from compactproofs.errors import ModelError
from compactproofs.model.config import Told
from compactproofs.model.fields import HARMLESS, MODELLED, REQUIRED
from compactproofs.model.files import from_tensors
from compactproofs.model.network import Activation, Mlp, Network, Norm, NormKind, Rotary
from compactproofs.model.weights import Weights

V, OUT, D, K, N, E, M = 5, 6, 8, 3, 4, 2, 7
UNKNOWN = "whether any were folded into the weights is not known; the weights are taken as they are"
EXTERNAL = Path(__file__).parents[4] / "shared" / "models" / "external"


def drawn(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


ATTENTION = {"embed.W_E": (V, D), "pos_embed.W_pos": (K, D), "unembed.W_U": (D, OUT), "unembed.b_U": (OUT,)}
ATTENTION |= {f"blocks.0.attn.W_{x}": (N, D, E) for x in "QKV"} | {f"blocks.0.attn.b_{x}": (N, E) for x in "QKV"}
ATTENTION |= {"blocks.0.attn.W_O": (N, E, D), "blocks.0.attn.b_O": (D,)}
MLP = {"blocks.0.mlp.W_in": (D, M), "blocks.0.mlp.b_in": (M,), "blocks.0.mlp.W_out": (M, D), "blocks.0.mlp.b_out": (D,)}
LN = {f"{place}.{name}": (D,) for place in ("blocks.0.ln1", "ln_final") for name in "wb"}
LN_2 = {f"blocks.0.ln2.{name}": (D,) for name in "wb"}
CONFIG = {"n_layers": 1, "n_heads": N, "attn_only": True, "normalization_type": None, "attn_scale": -1}
BLOCK = {**CONFIG, "attn_only": False, "act_fn": "relu", "normalization_type": "LN", "eps": 1e-6}


def without(tensors, *names):
    return {name: tensor for name, tensor in tensors.items() if name not in names}


def test_the_default_block_with_every_part():
    t = drawn(ATTENTION | MLP | LN | LN_2)
    network = from_tensors(t, BLOCK)
    ln = {place: {"weight": t[f"{theirs}.w"], "bias": t[f"{theirs}.b"]} for place, theirs in (("1", "blocks.0.ln1"), ("2", "blocks.0.ln2"))}
    expected = Network(
        W_E=t["embed.W_E"], W_pos=t["pos_embed.W_pos"], n_ctx=K, W_U=t["unembed.W_U"], b_U=t["unembed.b_U"],
        **{f"W_{x}": t[f"blocks.0.attn.W_{x}"] for x in "QKVO"}, **{f"b_{x}": t[f"blocks.0.attn.b_{x}"] for x in "QKVO"},
        norm_1=Norm(NormKind.LN, 1e-6, **ln["1"]), norm_2=Norm(NormKind.LN, 1e-6, **ln["2"]),
        norm_final=Norm(NormKind.LN, 1e-6, t["ln_final.w"], t["ln_final.b"]),
        mlp=Mlp(act=Activation.RELU, **{name: t[f"blocks.0.mlp.{name}"] for name in ("W_in", "b_in", "W_out", "b_out")}),
    )  # fmt: skip
    assert network == expected
    assert network.assumptions == ("norms LN with parameters of their own, not folded; the weights are taken as they are",)


@pytest.mark.parametrize(
    ("name", "act"),
    [
        ("relu", Activation.RELU), ("gelu", Activation.GELU), ("gelu_new", Activation.GELU_TANH), ("silu", Activation.SILU),
        ("gelu_pytorch_tanh", Activation.GELU_TANH), ("swish", Activation.SILU),
    ],
)  # fmt: skip
def test_activations_by_their_names(name, act):
    assert from_tensors(drawn(ATTENTION | MLP | LN | LN_2), {**BLOCK, "act_fn": name}).mlp.act is act


def test_the_new_layout_of_the_same_block():
    """TransformerLens 4: transposed, heads side by side, other names."""
    t = drawn(ATTENTION | MLP | LN | LN_2)
    new = {"embed.weight": t["embed.W_E"], "pos_embed.weight": t["pos_embed.W_pos"], "unembed.weight": t["unembed.W_U"].T}
    new |= {"unembed.bias": t["unembed.b_U"], "blocks.0.attn.o.bias": t["blocks.0.attn.b_O"]}
    for x in "QKV":
        new[f"blocks.0.attn.{x.lower()}.weight"] = t[f"blocks.0.attn.W_{x}"].transpose(0, 2, 1).reshape(N * E, D)
        new[f"blocks.0.attn.{x.lower()}.bias"] = t[f"blocks.0.attn.b_{x}"].reshape(N * E)
    new["blocks.0.attn.o.weight"] = t["blocks.0.attn.W_O"].reshape(N * E, D).T
    for place in ("blocks.0.ln1", "blocks.0.ln2", "ln_final"):
        new |= {f"{place}.weight": t[f"{place}.w"], f"{place}.bias": t[f"{place}.b"]}
    for way in ("in", "out"):
        new |= {f"blocks.0.mlp.{way}.weight": t[f"blocks.0.mlp.W_{way}"].T, f"blocks.0.mlp.{way}.bias": t[f"blocks.0.mlp.b_{way}"]}
    assert from_tensors(new, BLOCK) == from_tensors(t, BLOCK)


def test_four_heads_are_never_one_head():
    t = drawn(ATTENTION)
    assert from_tensors(t, CONFIG).n_heads == N
    with pytest.raises(ModelError, match="config says n_heads=1, but the tensors have n_heads=4"):
        from_tensors(t, {**CONFIG, "n_heads": 1})
    flat = {"W_E": t["embed.W_E"], "W_pos": t["pos_embed.W_pos"], "W_U": t["unembed.W_U"]}
    flat |= {f"W_{x}": t[f"blocks.0.attn.W_{x}"].transpose(1, 0, 2).reshape(D, N * E) for x in "QKV"}
    flat |= {"W_O": t["blocks.0.attn.W_O"].reshape(N * E, D)}
    with pytest.raises(ModelError, match="how many heads there are"):
        from_tensors(flat, without(CONFIG, "n_heads"))
    told = from_tensors(flat, without(CONFIG, "n_heads"), Told(n_heads=N))
    headed = from_tensors(without(t, "unembed.b_U", *(f"blocks.0.attn.b_{x}" for x in "QKVO")), CONFIG)
    assert told == headed
    assert told.assumptions == (
        "4 attention heads, because the user said so",
        "the 4 heads are consecutive blocks of the columns of W_Q, W_K and W_V and of the rows of W_O",
    )


def test_groups_of_heads_share_keys_and_values():
    t = drawn(ATTENTION)
    grouped = without(t, *(f"blocks.0.attn.{a}_{x}" for a in "Wb" for x in "KV"))
    for x in "KV":
        for a in "Wb":
            grouped[f"blocks.0.attn._{a}_{x}"] = t[f"blocks.0.attn.{a}_{x}"][:2]
    network = from_tensors(grouped, {**CONFIG, "n_key_value_heads": 2})
    for name in ("W_K", "W_V", "b_K", "b_V"):
        tensor = getattr(network, name)
        assert (tensor[0] == tensor[1]).all() and (tensor[2] == tensor[3]).all() and (tensor[1] != tensor[2]).any()
    with pytest.raises(ModelError, match="must say n_key_value_heads"):
        from_tensors(grouped, CONFIG)
    with pytest.raises(ModelError, match="W_K has 2 heads; expected 1"):
        from_tensors(grouped, {**CONFIG, "n_key_value_heads": 1})


def test_zero_biases_are_left_out_and_parameters_of_norms_stay():
    t = drawn(ATTENTION | MLP | LN | LN_2)
    zero = {name: np.zeros_like(x) if "b_" in name else x for name, x in t.items()}
    zero |= {name: np.ones_like(t[name]) if name.endswith("w") else np.zeros_like(t[name]) for name in LN | LN_2}
    network = from_tensors(zero, BLOCK)
    assert not any("b_" in name for name in network.tensors) and network.norm_1.bias is not None
    assert network.assumptions == (f"norms LN whose parameters are all 1 and 0; {UNKNOWN}",)


@pytest.mark.parametrize(("kind", "norm"), [("LNPre", NormKind.LN), ("RMSPre", NormKind.RMS), ("lnpre", NormKind.LN)])
def test_norms_without_parameters(kind, norm):
    network = from_tensors(drawn(ATTENTION), {**CONFIG, "normalization_type": kind, "eps": "1e-5"})
    assert network.norm_1.kind is norm and network.norm_final.kind is norm and network.norm_1.weight is None and network.norm_2 is None
    assert network.norm_1.eps == 1e-5
    assert network.assumptions == (f"norms {norm} without parameters; {UNKNOWN}",)


def test_eps_that_nobody_mentions_is_assumed_and_said():
    network = from_tensors(drawn(ATTENTION), {**CONFIG, "normalization_type": "LNPre"})
    assert network.norm_1.eps == 1e-5 and "config does not mention eps: assumed 1e-05, TransformerLens' default" in network.assumptions


def test_weights_and_biases_tell_that_it_is_layer_norm_and_weights_alone_do_not():
    t = drawn(ATTENTION | LN)
    assert from_tensors(t, without(CONFIG, "normalization_type")).norm_1.kind is NormKind.LN
    rms = without(t, "blocks.0.ln1.b", "ln_final.b")
    with pytest.raises(ModelError, match="whether there is a normalisation"):
        from_tensors(rms, without(CONFIG, "normalization_type"))
    assert from_tensors(rms, without(CONFIG, "normalization_type"), Told(normalization="RMS")).norm_1.kind is NormKind.RMS
    assert from_tensors(without(t, "ln_final.b"), {**CONFIG, "normalization_type": "LN", "final_rms": True}).norm_final.kind is NormKind.RMS


def test_rotary_positions():
    t = without(drawn(ATTENTION), "pos_embed.W_pos")
    rotary = {**CONFIG, "positional_embedding_type": "rotary", "n_ctx": K}
    assert from_tensors(t, rotary).rotary == Rotary(E, 10000.0, adjacent=False)
    assert from_tensors(t, {**rotary, "rotary_base": 50, "rotary_adjacent_pairs": True, "rotary_dim": 2}).rotary == Rotary(2, 50.0, True)
    with pytest.raises(ModelError, match="how many tokens there are .* --n-ctx N"):
        from_tensors(t, without(rotary, "n_ctx"))
    told = from_tensors(t, without(rotary, "n_ctx"), Told(n_ctx=5))
    assert told.n_ctx == 5
    angles = np.arange(K)[:, None] / 10000.0 ** np.zeros(2)
    tables = {"blocks.0.attn.rotary_sin": np.sin(angles).astype(np.float32), "blocks.0.attn.rotary_cos": np.cos(angles).astype(np.float32)}
    assert from_tensors(t | tables, rotary) == from_tensors(t, rotary)
    with pytest.raises(ModelError, match="these are not the angles"):
        from_tensors(t | tables | {"blocks.0.attn.rotary_sin": tables["blocks.0.attn.rotary_cos"]}, rotary)
    with pytest.raises(ModelError, match=r"rotary_sin has shape \(3, 1\)"):
        from_tensors(t | {"blocks.0.attn.rotary_sin": np.zeros((3, 1), np.float32)}, rotary)


def test_no_positions_and_alibi():
    t = without(drawn(ATTENTION), "pos_embed.W_pos")
    none = from_tensors(t, {**CONFIG, "positional_embedding_type": "none", "n_ctx": 4})
    assert none.W_pos is None and none.rotary is None and none.n_ctx == 4
    alibi = {**CONFIG, "positional_embedding_type": "alibi", "n_ctx": K}
    assert from_tensors(t, alibi).alibi == (2, 4, 6, 8)
    assert from_tensors(drawn(ATTENTION), alibi) == from_tensors(t, alibi)


def test_a_tied_unembedding():
    t = without(drawn(ATTENTION), "unembed.W_U", "unembed.b_U")
    with pytest.raises(ModelError, match=r"not found: unembed\.W_U.*the configuration must say tie_word_embeddings"):
        from_tensors(t, CONFIG)
    network = from_tensors(t, {**CONFIG, "tie_word_embeddings": True})
    assert (network.W_U == network.W_E.T).all() and network.d_vocab_out == V


def test_soft_capped_logits_are_read_and_said():
    weights = from_tensors({**cp.zoo("max-of-4").tensors}, {**CONFIG, "n_heads": 1, "output_logits_soft_cap": 30.0})
    assert isinstance(weights, Weights) and weights == cp.zoo("max-of-4") and weights.rewritten
    assert "before the soft cap 30 tanh(logit / 30)" in weights.assumptions[-1]


@pytest.mark.parametrize(
    ("shapes", "config", "words"),
    [
        (ATTENTION | MLP, CONFIG, "attn_only=True, but the file has tensors of an MLP"),
        (ATTENTION, {**CONFIG, "attn_only": False}, "attn_only=False, but the file has no tensors of an MLP"),
        (ATTENTION | MLP, {**CONFIG, "attn_only": False}, "nothing says what its neurons do: put act_fn"),
        (ATTENTION | MLP, {**CONFIG, "attn_only": False, "act_fn": "solu"}, "act_fn='solu': this activation is not supported"),
        (ATTENTION | MLP, {**CONFIG, "attn_only": False, "act_fn": "relu", "d_mlp": 9}, "config says d_mlp=9"),
        (ATTENTION | MLP, {**CONFIG, "attn_only": False, "act_fn": "relu", "gated_mlp": True}, "gated MLPs are not supported"),
        (ATTENTION | MLP | {"blocks.0.mlp.W_gate": (D, M)}, BLOCK, "gated MLP"),
        (ATTENTION | {"blocks.0.mlp.W_in": (D, M)}, BLOCK, "not found: blocks.0.mlp.W_out|MLP whose other tensors are missing"),
        (ATTENTION | LN, CONFIG, "parameters of a layer normalisation, but normalization_type is none"),
        (ATTENTION, {**CONFIG, "normalization_type": "LN"}, "not in the file: norm_1.bias, norm_1.weight, norm_final.bias"),
        (ATTENTION | LN, {**CONFIG, "normalization_type": "RMS"}, r"tensor blocks\.0\.ln1\.b: .* no such parameter"),
        (ATTENTION | MLP | LN, BLOCK, "not in the file: norm_2.bias, norm_2.weight"),
        (ATTENTION, {**CONFIG, "normalization_type": "LNPre", "eps": -1}, "eps=-1: expected a number that is not negative"),
        (ATTENTION, {**CONFIG, "normalization_type": "LNPre", "eps": "nan"}, "eps=nan"),
        (ATTENTION, {**CONFIG, "normalization_type": "LNPre", "final_rms": True}, "versions of TransformerLens differ"),
        (ATTENTION, {**CONFIG, "normalization_type": "RMSPre", "rmsnorm_uses_offset": True}, "offsets from 1"),
        (ATTENTION, {**CONFIG, "normalization_type": "LNPre", "uses_rms_norm": True}, "uses_rms_norm=True"),
        (ATTENTION, {**CONFIG, "positional_embedding_type": "rotary"}, "rotary', but the file has learned position embeddings"),
        (ATTENTION, {**CONFIG, "rotary_dim": 2}, "rotary_dim=2, but positional_embedding_type is not rotary"),
        (ATTENTION, {**CONFIG, "n_heads": 4, "positional_embedding_type": "sinusoidal"}, "expected learned position embeddings"),
    ],
)
def test_refusals_name_the_part(shapes, config, words):
    with pytest.raises(ModelError, match=words):
        from_tensors(drawn(shapes), config)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rotary_dim": 1}, "rotary_dim=1 is odd"),
        ({"rotary_dim": 4}, "between 1 and 2"),
        ({"rotary_base": 0.5}, "rotary_base=0.5: expected a number of at least 1"),
        ({"rotary_scaling_factor": 8.0}, "changed frequencies"),
        ({"rope_scaling": {"type": "linear", "factor": 2}}, "changed frequencies"),
        ({"use_yarn_rope": True}, "changed frequencies"),
        ({"n_ctx": "many"}, "n_ctx='many': expected an integer"),
    ],
)
def test_rotary_embeddings_that_are_not_modelled(change, words):
    t = without(drawn(ATTENTION), "pos_embed.W_pos")
    with pytest.raises(ModelError, match=words):
        from_tensors(t, {**CONFIG, "positional_embedding_type": "rotary", "n_ctx": K, **change})


def bridge():
    shapes = {"embed.weight": (V, D), "unembed.weight": (OUT, D), **{f"blocks.0.attn.{x}.weight": (N * E, D) for x in "qkv"}}
    return drawn(shapes | {"blocks.0.attn.o.weight": (D, N * E)})


def test_the_new_layout_is_read_only_for_models_that_transformer_lens_computes():
    rotary = {**CONFIG, "positional_embedding_type": "rotary", "n_ctx": K}
    with pytest.raises(ModelError, match="does not say architecture='TransformerLensNative'"):
        from_tensors(bridge(), rotary)
    assert from_tensors(bridge(), {**rotary, "architecture": "TransformerLensNative"}).rotary == Rotary(E, 10000.0, adjacent=True)
    with pytest.raises(ModelError, match="architecture='GPTNeoXForCausalLM': .* library that they come from"):
        from_tensors(bridge(), {**rotary, "architecture": "GPTNeoXForCausalLM"})
    with pytest.raises(ModelError, match="positional_embedding_type='alibi'"):
        from_tensors(bridge(), {**rotary, "positional_embedding_type": "alibi"})


@pytest.mark.parametrize("n_ctx", [1, 2, 3])
def test_shorter_sequences(n_ctx):
    t = drawn(ATTENTION) | {"blocks.0.attn.mask": np.tril(np.ones((K, K), bool))}
    network = from_tensors(t, CONFIG, Told(n_ctx=n_ctx))
    assert network.n_ctx == len(network.W_pos) == n_ctx
    said = [text for text in network.assumptions if "the model reads up to" in text]
    assert said == ([] if n_ctx == K else [f"sequences of {n_ctx} token{'s'[: n_ctx > 1]}; the model reads up to 3"])
    with pytest.raises(ModelError, match="n_ctx=4 tokens were asked for; the model reads 1 to 3"):
        from_tensors(t, CONFIG, Told(n_ctx=4))
    if n_ctx == 2:
        t["blocks.0.attn.mask"] = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 1]], bool)
        with pytest.raises(ModelError, match="causal mask"):
            from_tensors(t, CONFIG, Told(n_ctx=n_ctx))


def test_first_edition_models_of_shorter_sequences(tmp_path):
    weights = cp.zoo("max-of-10")
    cp.save(weights, tmp_path / "model.safetensors")
    short = cp.load(tmp_path / "model.safetensors", n_ctx=4)
    assert isinstance(short, Weights) and (short.W_pos == weights.W_pos[:4]).all() and not short.rewritten
    assert short.assumptions == ("sequences of 4 tokens; the model reads up to 10",)
    assert "sequences of 4 tokens; the model reads up to 10" in cp.prove(short, "cubic").theorem


def test_our_own_layout_and_what_is_told_must_agree(tmp_path):
    network = from_tensors(drawn(ATTENTION | MLP | LN | LN_2), BLOCK)
    path = tmp_path / "network.safetensors"
    cp.save(network, path)
    assert cp.load(path) == cp.load(path, n_heads=N, normalization="LN") == network
    assert cp.load(path).assumptions == network.assumptions
    assert cp.load(path, n_ctx=2).n_ctx == 2
    for told, words in (({"n_heads": 1}, "n_heads=1 was asked for"), ({"normalization": "none"}, "the file says normalization=LN")):
        with pytest.raises(ModelError, match=words):
            cp.load(path, **told)


NAMES = sorted({*REQUIRED, *MODELLED, *HARMLESS, "network", "secret"})
WORDS = [
    "none",
    "LN",
    "LNPre",
    "RMS",
    "RMSPre",
    "rotary",
    "alibi",
    "standard",
    "relu",
    "gelu",
    "true",
    "false",
    "1",
    "4",
    "1e-5",
    "-1",
    "nan",
]
PLAIN = st.none() | st.booleans() | st.integers(-3, 9) | st.integers() | st.just(10**5000) | st.floats() | st.text(max_size=8)
VALUES = PLAIN | st.sampled_from(WORDS) | st.lists(PLAIN, max_size=2) | st.dictionaries(st.text(max_size=3), PLAIN, max_size=2)
KINDS = [drawn(ATTENTION), drawn(ATTENTION | MLP | LN | LN_2), without(drawn(ATTENTION), "pos_embed.W_pos"), bridge()]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6), st.booleans())
def test_no_configuration_gives_anything_but_a_model_or_a_model_error(tensors, changes, complete):
    config = {**(BLOCK if "blocks.0.mlp.W_in" in tensors else CONFIG), **changes} if complete else changes
    with suppress(ModelError):
        assert isinstance(from_tensors(tensors, config), Weights | Network)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from([*sorted(drawn(ATTENTION | MLP | LN))]), st.integers(0, 6), max_size=3))
def test_no_shapes_give_anything_but_a_model_or_a_model_error(changes):
    shapes = [(), (0,), (D,), (N, E), (1, D, E), (D, D, 1), (2, 2, 2, 2)]
    tensors = {**drawn(ATTENTION | MLP | LN | LN_2), **{name: np.ones(shapes[i], np.float32) for name, i in changes.items()}}
    with suppress(ModelError):
        assert from_tensors(tensors, BLOCK).d_model == D


def external(name):
    path = EXTERNAL / f"{name}.safetensors"
    if not path.exists():
        pytest.skip("the models of others are not part of the project")
    return path


@pytest.mark.parametrize(
    ("name", "described", "sizes"),
    [
        ("cumsum-sign", "one head, relu MLP of 8 neurons, biases", (11, 3, 24, 12, 20)),
        ("sorted-list", "2 heads, norm LN before attention, final norm LN, biases", (52, 52, 96, 48, 21)),
    ],
)
def test_models_that_other_people_trained(name, described, sizes):
    network = cp.load(external(name))
    assert network.described == described
    assert (network.d_vocab, network.d_vocab_out, network.d_model, network.d_head, network.n_ctx) == sizes
    assert any("does not mention attn_scale" in text for text in network.assumptions)


def test_the_sign_of_sums_at_every_position():
    """What is known of this model: it is right, at every position."""
    rng = np.random.default_rng(0)
    for n_ctx in (1, 2, 5, 20):
        network = cp.load(external("cumsum-sign"), n_ctx=n_ctx)
        tokens = rng.integers(0, 11, size=(400, n_ctx))
        labels = np.sign((tokens - 5).sum(axis=1)) + 1
        assert (cp.forward(network, tokens).argmax(axis=1) == labels).all()


def test_sorted_lists():
    rng = np.random.default_rng(0)
    lists = np.array([rng.permutation(51)[:10] for _ in range(200)])
    ordered = np.sort(lists, axis=1)
    right = []
    for n in range(10):  # the next of the sorted list, after n of them
        tokens = np.hstack([lists, np.full((200, 1), 51), ordered[:, :n]])
        right.append((cp.forward(cp.load(external("sorted-list"), n_ctx=11 + n), tokens).argmax(axis=1) == ordered[:, n]).mean())
    assert min(right) > 0.97


def test_reading_needs_no_torch(tmp_path):
    save_file(drawn(ATTENTION | MLP | LN | LN_2), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(BLOCK))
    code = "import sys, compactproofs as cp; print(cp.load(sys.argv[1]).described); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "model.safetensors")], capture_output=True, text=True)
    assert done.returncode == 0 and "4 heads" in done.stdout, done.stderr
