"""The models that are made, by name: options of the library's configuration, and ours (`biases`, `folded`, and `only` for the versions)."""

BASE = {"n_layers": 1, "d_model": 8, "n_ctx": 3, "d_head": 4, "n_heads": 1, "d_vocab": 5, "d_vocab_out": 6, "seed": 0}
PLAIN = {**BASE, "attn_only": True, "normalization_type": None}
HEADS = {**PLAIN, "d_head": 2, "n_heads": 4}
MLP = {**BASE, "act_fn": "relu", "d_mlp": 7, "normalization_type": None}
BLOCK = {**MLP, "d_head": 6, "n_heads": 4, "normalization_type": "LN", "biases": True}
ROTARY = {**PLAIN, "positional_embedding_type": "rotary"}
ALIBI = {**HEADS, "positional_embedding_type": "alibi", "only": (2, 3)}

MODELS = {
    "plain": PLAIN,
    "one wide head": {**PLAIN, "d_head": 8},
    "another scale": {**PLAIN, "attn_scale": 1.7},
    "biases": {**PLAIN, "biases": True},
    "soft-capped logits": {**PLAIN, "output_logits_soft_cap": 30.0},
    "bidirectional": {**PLAIN, "attention_dir": "bidirectional"},
    "four heads": HEADS,
    "three heads with biases": {**HEADS, "n_heads": 3, "d_head": 4, "biases": True},
    "groups": {**HEADS, "n_key_value_heads": 2, "biases": True},
    "LNPre": {**PLAIN, "normalization_type": "LNPre"},
    "LN": {**PLAIN, "normalization_type": "LN", "biases": True},
    "RMS": {**PLAIN, "normalization_type": "RMS", "eps": 0.01},
    "RMSPre": {**HEADS, "normalization_type": "RMSPre"},
    "final RMS": {**MLP, "normalization_type": "LN", "final_rms": True, "biases": True},
    **{f"MLP {act}": {**MLP, "act_fn": act, "biases": True} for act in ("relu", "gelu", "gelu_new", "silu")},
    "MLP gelu_pytorch_tanh": {**MLP, "act_fn": "gelu_pytorch_tanh", "biases": True, "only": (2, 3)},
    "default block": BLOCK,
    "folded block": {**BLOCK, "folded": True},
    "folded heads": {**BLOCK, "attn_only": True, "d_mlp": None, "folded": True},
    "folded RMS": {**BLOCK, "normalization_type": "RMS", "folded": True},
    "rotary": {**ROTARY, "d_head": 6, "rotary_dim": 4, "n_heads": 2, "rotary_base": 100},
    "rotary of the whole head": ROTARY,
    "rotary in adjacent pairs": {**ROTARY, "rotary_adjacent_pairs": True},
    "rotary block": {**BLOCK, "positional_embedding_type": "rotary"},
    "ALiBi": ALIBI,
    "ALiBi one head": {**ALIBI, "n_heads": 1, "biases": True},
    "no positions": {**ROTARY, "rotary_dim": 0, "only": (2, 3)},
    "two layers": {**PLAIN, "n_layers": 2},
    "soft-capped scores": {**PLAIN, "attn_scores_soft_cap": 2.0},
    "gated MLP": {**MLP, "gated_mlp": True},
    "SoLU": {**MLP, "act_fn": "solu", "only": (2, 4)},
    "SoLU with a norm": {**MLP, "act_fn": "solu_ln", "only": (2, 4), "normalization_type": "LN"},
    "gelu_fast": {**MLP, "act_fn": "gelu_fast", "only": (2, 3)},
    "parallel": {**MLP, "parallel_attn_mlp": True, "only": (2, 3)},
    "shortformer": {**PLAIN, "positional_embedding_type": "shortformer", "only": (2, 3)},
    "embedding norm": {**PLAIN, "post_embedding_ln": True, "only": (2, 3)},
    "normalised queries": {**PLAIN, "use_qk_norm": True, "only": (2, 3)},
    "local attention": {**PLAIN, "use_local_attn": True, "window_size": 2, "attn_types": ["local"], "only": (2, 3)},
    "experts": {**MLP, "num_experts": 2, "experts_per_token": 1, "only": (2,)},
    "ALiBi three heads": {**ALIBI, "n_heads": 3},
}

OURS = ("biases", "folded", "only")


def versions_of(name):
    """The versions of the library that have such a model."""
    return MODELS[name].get("only", (2, 3, 4))
