"""Plain PyTorch models compute what the network that is read from them computes; everything else is refused in words."""

from itertools import product

import numpy as np
import pytest

import compactproofs as cp
from compactproofs.errors import ModelError
from compactproofs.model.network import Network
from compactproofs.model.weights import Weights

torch = pytest.importorskip("torch")
nn = torch.nn

D, V, OUT, K, HEADS, HIDDEN = 6, 5, 7, 3, 2, 9
TOKENS = np.array(list(product(range(V), repeat=K)))


class Encoder(nn.Module):
    """Embeddings, torch's own layer, a final norm if there is one, and an unembedding."""

    def __init__(self, *, final=None, whole=False, positions=True, **options):
        super().__init__()
        self.tok = nn.Embedding(V, D)
        self.pos = nn.Embedding(K, D) if positions else None
        layer = nn.TransformerEncoderLayer(D, HEADS, HIDDEN, dropout=0.1, batch_first=True, **options)
        self.encoder = nn.TransformerEncoder(layer, 1, norm=final, enable_nested_tensor=False) if whole else layer
        self.norm = None if whole else final
        self.head = nn.Linear(D, OUT)

    def forward(self, tokens):
        x = self.tok(tokens) + (0 if self.pos is None else self.pos(torch.arange(tokens.shape[1])))
        x = self.encoder(x)
        return self.head(x if self.norm is None else self.norm(x))[:, -1]


class Own(nn.Module):
    """A layer that somebody wrote by hand: pre-norms, an MLP in a Sequential, a tied unembedding, a sinusoidal table, a mask."""

    def __init__(self, act, norm, fused=False):
        super().__init__()
        self.tok = nn.Embedding(V, D)
        self.register_buffer("table", torch.randn(1, K, D))
        self.register_buffer("mask", torch.tril(torch.ones(K, K, dtype=torch.bool)))
        self.ln1, self.ln2, self.ln3 = norm(), norm(), norm()
        self.fused = nn.Linear(D, 3 * D) if fused else None
        self.wq, self.wk, self.wv = (None,) * 3 if fused else (nn.Linear(D, 2 * D, bias=False) for _ in range(3))
        self.wo = nn.Linear(D if fused else 2 * D, D)
        self.ff = nn.Sequential(nn.Linear(D, HIDDEN), act, nn.Linear(HIDDEN, D, bias=False))

    def forward(self, tokens):
        x = self.tok(tokens) + self.table[:, : tokens.shape[1]]
        n = self.ln1(x)
        q, k, v = self.fused(n).chunk(3, dim=-1) if self.fused is not None else (self.wq(n), self.wk(n), self.wv(n))
        q, k, v = (t.unflatten(-1, (3, -1)).transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(~self.mask, -torch.inf)
        x = x + self.wo((scores.softmax(-1) @ v).transpose(1, 2).flatten(-2))
        x = x + self.ff(self.ln2(x))
        return (self.ln3(x) @ self.tok.weight.T)[:, -1]


def drawn(module, seed=0):
    """The same module with parameters that are all different from what they begin with."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return module.eval()


def same(model, module):
    with torch.no_grad():
        theirs = module(torch.from_numpy(TOKENS)).numpy()
    ours = cp.forward(model, TOKENS)
    assert np.abs(ours - theirs).max() <= 1e-5 * np.abs(ours).max()
    assert (ours.argmax(axis=1) == theirs.argmax(axis=1)).all()


MAPPING = {"embed": "tok", "pos_embed": "pos", "layer": "encoder", "unembed": "head"}
ENCODERS = {
    "pre-norm": {"norm_first": True},
    "post-norm": {"norm_first": False},
    "post-norm gelu": {"norm_first": False, "activation": "gelu", "layer_norm_eps": 0.01},
    "pre-norm silu": {"norm_first": True, "activation": nn.functional.silu},
    "pre-norm without biases": {"norm_first": True, "bias": False},
    "pre-norm and final": {"norm_first": True, "final": nn.LayerNorm(D, eps=0.1)},
    "pre-norm and final RMS": {"norm_first": True, "final": nn.RMSNorm(D)},
    "whole pre-norm and final": {"norm_first": True, "final": nn.LayerNorm(D, elementwise_affine=False), "whole": True},
    "whole post-norm": {"norm_first": False, "whole": True},
}


@pytest.mark.parametrize("name", ENCODERS)
def test_torchs_own_layer(name):
    module = drawn(Encoder(**ENCODERS[name]))
    mapping = MAPPING | ({"norm_final": "norm"} if module.norm is not None else {})
    model = cp.from_pytorch(module, mapping)
    assert isinstance(model, Network) and model.post_norm is not ENCODERS[name]["norm_first"] and model.n_heads == HEADS
    assert "by the user's word" in model.assumptions[0] and any("dropout" in text for text in model.assumptions)
    assert any("that of float32" in text for text in model.assumptions) is (name == "pre-norm and final RMS")
    same(model, module)


def test_a_root_mean_square_norm_without_an_eps_has_that_of_float32():
    model = cp.from_pytorch(drawn(Encoder(**ENCODERS["pre-norm and final RMS"])), MAPPING | {"norm_final": "norm"})
    assert model.norm_final.eps == 2.0**-23
    x = 1e-4 * torch.randn(D, generator=torch.Generator().manual_seed(0))
    exact = x.double() / (x.double().square().mean() + 2.0**-23).sqrt()
    assert (nn.RMSNorm(D)(x) - exact).abs().max() < 1e-6 * exact.abs().max() and exact.abs().max() < 0.9


@pytest.mark.parametrize("name", ["pre-norm", "post-norm", "whole post-norm"])
def test_a_state_dict_needs_to_be_told_what_modules_say(name):
    module = drawn(Encoder(**ENCODERS[name]))
    told = {"n_heads": HEADS, "act": "relu", "eps": 1e-5, "norm_first": ENCODERS[name]["norm_first"]}
    assert cp.from_pytorch(module.state_dict(), MAPPING, **told) == cp.from_pytorch(module, MAPPING)
    for left_out, words in {"n_heads": "say n_heads", "act": "say act", "eps": "say eps", "norm_first": "say norm_first"}.items():
        with pytest.raises(ModelError, match=words):
            cp.from_pytorch(module.state_dict(), MAPPING, **{key: value for key, value in told.items() if key != left_out})
    numpy_only = {key: value.numpy() for key, value in module.state_dict().items()}
    assert cp.from_pytorch(numpy_only, MAPPING, **told) == cp.from_pytorch(module, MAPPING)


OWN = {"embed": "tok", "pos_embed": "table", "norm_1": "ln1", "norm_2": "ln2", "norm_final": "ln3", "unembed": "tok"}
OWN |= {"mlp.in": "ff.0", "act": "ff.1", "mlp.out": "ff.2", "o": "wo"}
SPLIT, FUSED = {"q": "wq", "k": "wk", "v": "wv"}, {"qkv": "fused"}


@pytest.mark.parametrize("act", [nn.ReLU(), nn.GELU(), nn.GELU(approximate="tanh"), nn.SiLU()], ids=str)
@pytest.mark.parametrize("norm", [lambda: nn.LayerNorm(D), lambda: nn.LayerNorm(D, bias=False), lambda: nn.RMSNorm(D, eps=1e-3)])
def test_a_layer_of_ones_own(act, norm):
    module = drawn(Own(act, norm))
    model = cp.from_pytorch(module, OWN | SPLIT, n_heads=3, unused=["mask"])
    assert model.n_heads == 3 and model.d_head == 4 and "these tensors play no part: mask" in " ".join(model.assumptions)
    same(model, module)


def test_queries_keys_and_values_in_one_matrix():
    module = drawn(Own(nn.ReLU(), lambda: nn.LayerNorm(D), fused=True))
    same(cp.from_pytorch(module, OWN | FUSED, n_heads=3, unused=["mask"]), module)


class Attention(nn.Module):
    """One head of `nn.MultiheadAttention` and nothing else: what the first edition reads."""

    def __init__(self, heads=1, **options):
        super().__init__()
        self.tok, self.pos = nn.Embedding(V, D), nn.Parameter(torch.zeros(K, D))
        self.attn, self.head = nn.MultiheadAttention(D, heads, batch_first=True, **options), nn.Linear(D, OUT, bias=False)

    def forward(self, tokens):
        x = self.tok(tokens) + self.pos[: tokens.shape[1]]
        return self.head(x + self.attn(x, x, x, need_weights=False)[0])[:, -1]


ATTENTION = {"embed": "tok", "pos_embed": "pos", "attn": "attn", "unembed": "head"}


def test_one_head_of_torchs_attention_is_weights_and_proven():
    module = drawn(Attention())
    model = cp.from_pytorch(module, ATTENTION)
    assert isinstance(model, Weights) and model.rewritten
    same(model, module)
    with torch.no_grad():
        right = module(torch.from_numpy(TOKENS)).argmax(dim=1).numpy() == TOKENS.max(axis=1)
    proof = cp.prove(model, "threshold-cubic", upper=True)
    assert cp.accuracy(model).correct == right.sum() and "by the user's word" in proof.theorem
    assert proof.lower <= right.mean() <= proof.upper
    assert not cp.from_pytorch(drawn(Attention(bias=False)), ATTENTION).rewritten


def test_shorter_sequences_and_no_positions():
    module = drawn(Attention(heads=3))
    short = cp.from_pytorch(module, ATTENTION, n_ctx=2)
    assert short.n_ctx == 2 and "sequences of 2 tokens; the model reads up to 3" in short.assumptions
    with pytest.raises(ModelError, match="the model reads 1 to 3"):
        cp.from_pytorch(module, ATTENTION, n_ctx=4)
    without = {part: path for part, path in MAPPING.items() if part != "pos_embed"}
    module = drawn(Encoder(norm_first=True, positions=False))
    with pytest.raises(ModelError, match="say n_ctx"):
        cp.from_pytorch(module, without)
    same(cp.from_pytorch(module, without, n_ctx=K), module)


class Linear(nn.Linear):
    """A subclass."""


def changed(**parts):
    module = drawn(Attention(heads=2))
    for name, part in parts.items():
        setattr(module, name, part)
    return module


def hooked():
    module = changed()
    module.head.register_forward_hook(lambda *_: None)
    return module


@pytest.mark.parametrize(
    ("module", "mapping", "options", "words"),
    [
        (changed(), {**ATTENTION, "unembed": "nowhere"}, {}, "names 'nowhere', which is not in the model"),
        (changed(), {"embed": "tok", "pos_embed": "pos", "attn": "attn"}, {}, r"does not mention: head\.weight"),
        (changed(), {"embed": "tok", "attn": "attn", "unembed": "head"}, {"n_ctx": 2}, "does not mention: pos"),
        (changed(), {**ATTENTION, "heads": "attn"}, {}, "the mapping has 'heads'; expected parts"),
        (changed(), {**ATTENTION, "attn": "head"}, {}, r"is a torch\.nn\.modules\.linear\.Linear; expected nn\.MultiheadAttention"),
        (changed(head=Linear(D, OUT)), ATTENTION, {}, "Another class may compute something else"),
        (hooked(), ATTENTION, {}, "has hooks"),
        (changed(tok=nn.Embedding(V, D, max_norm=1.0)), ATTENTION, {}, "max_norm"),
        (changed(attn=nn.MultiheadAttention(D, 2, add_bias_kv=True)), ATTENTION, {}, "add_bias_kv"),
        (changed(attn=nn.MultiheadAttention(D, 2, add_zero_attn=True)), ATTENTION, {}, "add_zero_attn"),
        (changed(), ATTENTION, {"n_heads": 3}, "n_heads=3 was asked for, but the module says n_heads=2"),
        (changed(), ATTENTION, {"attn_scale": 2.0}, "divides scores by sqrt"),
        (changed(head=nn.Linear(D, OUT).half()), ATTENTION, {}, "dtype torch.float16"),
        (changed(norm=nn.LayerNorm((K, D), elementwise_affine=False)), {**ATTENTION, "norm_final": "norm"}, {}, "across positions"),
        (changed(), {**ATTENTION, "norm_final": "nothing"}, {}, "has no parameters of that name"),
        (changed(), {**ATTENTION, "W_U": "head.weight"}, {}, "gives W_U, which another part"),
        (changed(), {**ATTENTION, "layer": "nothing"}, {}, "no such module"),
        (changed(), [1], {}, "expected a dict"),
        (7, ATTENTION, {}, "not a int"),
        ({1: np.zeros(3)}, ATTENTION, {}, "not strings"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(module, mapping, options, words):
    with pytest.raises(ModelError, match=words):
        cp.from_pytorch(module, mapping, **options)


def test_layers_that_are_not_modelled():
    for options, words in (
        ({"norm_first": False, "final": nn.LayerNorm(D), "whole": True}, "two norms one after the other"),
        ({"norm_first": True, "activation": torch.tanh}, "activation .* is not supported"),
        ({"norm_first": True, "activation": nn.GELU(approximate="tanh")}, "for the other GELU when it evaluates"),
    ):
        with pytest.raises(ModelError, match=words):
            cp.from_pytorch(drawn(Encoder(**options)), MAPPING)
    two = Encoder(norm_first=True)
    two.encoder = nn.TransformerEncoder(two.encoder, 2, enable_nested_tensor=False)
    with pytest.raises(ModelError, match="2 layers; only one-layer"):
        cp.from_pytorch(two, MAPPING)
    with pytest.raises(ModelError, match="more than one layer"):
        cp.from_pytorch(two.state_dict(), MAPPING, norm_first=True)
    two.encoder = nn.TransformerDecoderLayer(D, HEADS)
    with pytest.raises(ModelError, match=r"expected nn\.TransformerEncoderLayer"):
        cp.from_pytorch(two, MAPPING)


def test_an_attention_scale_of_ones_own():
    state = {name: tensor.detach().numpy() for name, tensor in drawn(Own(nn.ReLU(), lambda: nn.LayerNorm(D))).state_dict().items()}
    mapping = {part: path for part, path in (OWN | SPLIT).items() if part != "act"}
    told = {"n_heads": 3, "act": "relu", "eps": 1e-5, "unused": ["mask"]}
    assert cp.from_pytorch(state, mapping, **told).score_divisor_squared == 4
    assert cp.from_pytorch(state, mapping, attn_scale=1.5, **told).score_divisor_squared == 2.25
    for bad in (0, -1.0, "x", float("nan")):
        with pytest.raises(ModelError, match="attn_scale"):
            cp.from_pytorch(state, mapping, attn_scale=bad, **told)
    with pytest.raises(ModelError, match="act='tanh': expected relu, gelu"):
        cp.from_pytorch(state, mapping, **{**told, "act": "tanh"})


def test_nobody_but_the_user_knows_whether_attention_is_causal():
    model = Encoder(positions=True)
    mapping = {"embed": "tok", "pos_embed": "pos", "layer": "encoder", "unembed": "head"}
    assert cp.from_pytorch(model, mapping).causal is None
    assert cp.from_pytorch(model, mapping, causal=False).causal is False
    said = cp.from_pytorch(model, mapping, causal=True)
    assert said.causal is True and "attention is causal, by the user's word" in said.assumptions
