"""The fields of configurations: which must have one value, which say something that we model, which change nothing.

The names are those of TransformerLens. Whatever is refused is refused with what it would take to support it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from compactproofs.errors import ModelError

SIZE_FIELDS = ("d_vocab", "d_vocab_out", "d_model", "d_head", "n_ctx")

DIRECTIONS = {"causal": True, "bidirectional": False}
"""Values of `attention_dir`: whether a position sees the tokens up to it only."""

ABSENT = (None, "", "none", "None", "null")
_OFF = (False, *ABSENT)

Rules = Mapping[str, tuple[tuple[Any, ...], str]]
"""Field, allowed values, and why there are no others."""

REQUIRED: Rules = {
    "n_layers": ((1,), "only one-layer models are supported; two layers need bounds on what the first one passes on"),
    "attn_only": ((True, False), "a boolean is needed to know whether there is an MLP"),
    "post_embedding_ln": (_OFF, "a normalisation between the embedding and the layer is not supported: it would need a norm before norm_1"),
    "use_normalization_before_and_after": (
        _OFF,
        "normalisation of what attention and MLP write is not supported: it would need norms inside the sum over heads",
    ),
    "use_qk_norm": (_OFF, "normalised queries and keys are not supported: they would need a norm inside each head"),
    "clip_qkv": (_OFF, "clipped queries, keys and values are not supported"),
    "use_attention_sinks": (_OFF, "attention sinks are not supported: they would need a score that belongs to no token"),
    "use_logn_attn": (_OFF, "scores scaled by the logarithm of the length are not supported; say the scale as attn_scale"),
    "quantization_method": (ABSENT, "quantised models are not supported; save the float32 weights that are computed with"),
    "load_in_4bit": (_OFF, "quantised models are not supported; save the float32 weights that are computed with"),
    "use_NTK_by_parts_rope": (_OFF, "rotary embeddings with changed frequencies are not supported"),
    "use_dynamic_ntk_rope": (_OFF, "rotary embeddings with changed frequencies are not supported"),
    "use_yarn_rope": (_OFF, "rotary embeddings with changed frequencies are not supported"),
    "attention_dir": (tuple(DIRECTIONS), "the last position must see every position"),
    "use_local_attn": (_OFF, "local attention is not supported: the last position must see every position"),
    "window_size": (ABSENT, "local attention is not supported: the last position must see every position"),
    "attn_types": (ABSENT, "local attention is not supported: the last position must see every position"),
    "attn_scores_soft_cap": ((-1, 0, *ABSENT), "soft-capped attention scores are not supported: the form would need a tanh of each score"),
    "scale_embedding": (_OFF, "scaled embeddings are not supported; multiply W_E yourself and save it"),
    "scale_attn_by_inverse_layer_idx": (_OFF, "scores scaled by the layer index are not supported; say the scale as attn_scale"),
    "parallel_attn_mlp": (_OFF, "an MLP beside attention is not supported: Network reads one that comes after it"),
    "num_experts": (ABSENT, "a mixture of experts instead of one MLP is not supported: it would need a bound on the routing"),
    "is_audio_model": (_OFF, "only token sequences are supported"),
    "is_visual_model": (_OFF, "only token sequences are supported"),
    "is_multimodal": (_OFF, "only token sequences are supported"),
    "is_stateful": (_OFF, "recurrent models are not supported"),
    "per_layer_head_dim": (ABSENT, "heads of different sizes are not supported"),
    "per_layer_num_key_value_heads": (ABSENT, "groups of different sizes are not supported"),
    "use_attn_scale": ((True, False), "a boolean is needed to know whether scores are divided"),
    "dtype": (("float32", "torch.float32", *ABSENT), "only float32 models are supported; convert the model with model.float()"),
}
"""Whatever else there is."""

WITH_MLP: Rules = {"gated_mlp": (_OFF, "gated MLPs are not supported: they would need a bound on products of neurons")}

WITH_RMS: Rules = {"rmsnorm_uses_offset": (_OFF, "weights that are offsets from 1 are not supported; save 1 + weight in float32")}

WITH_ROTARY: Rules = {
    "rotary_scaling_factor": ((1, *ABSENT), "rotary embeddings with changed frequencies are not supported"),
    "rope_scaling": (ABSENT, "rotary embeddings with changed frequencies are not supported"),
    "rotary_interleaved_cos_sin": (_OFF, "rotary embeddings of this order are not supported"),
}

MODELLED = frozenset(
    """
    act_fn architecture attn_scale d_mlp eps final_rms n_heads n_key_value_heads normalization_type output_logits_soft_cap
    positional_embedding_type rotary_adjacent_pairs rotary_base rotary_dim tie_word_embeddings uses_rms_norm
    """.split()
) | {*SIZE_FIELDS, *WITH_MLP, *WITH_RMS, *WITH_ROTARY}
"""Read in `config` and `parts`."""

HARMLESS = frozenset(
    """
    attn_implementation checkpoint_index checkpoint_label_type checkpoint_value decoder_start_token_id
    default_padding_side default_prepend_bos device experts_per_token format from_checkpoint init_mode init_weights
    initializer_range layer_norm_folding mm_tokens_per_image model_name n_devices n_params name norm_topk_prob
    NTK_by_parts_factor NTK_by_parts_high_freq_factor NTK_by_parts_low_freq_factor NTK_original_ctx_len original_architecture producer
    qk_norm_after_rope relative_attention_max_distance relative_attention_num_buckets rotary_base_local seed split_attention_weights task
    tokenizer_appends_eos tokenizer_name tokenizer_prepends_bos train_seq_length training trust_remote_code
    ungroup_grouped_query_attention use_attn_in use_attn_result use_hook_mlp_in use_hook_tokens use_split_qkv_input version
    vision_hidden_size vision_num_heads vision_num_layers yarn_attention_factor yarn_beta_fast yarn_beta_slow yarn_factor
    yarn_global_attn_only yarn_original_max_position_embeddings yarn_truncate
    """.split()
)


def require(values: Mapping[str, Any], rules: Rules, said: Mapping[str, Any] | None = None) -> None:
    """Raise unless every field that there is has an allowed value."""
    for name, (allowed, reason) in rules.items():
        if name in values and not any(same_value(values[name], a) for a in allowed):
            raise ModelError(f"{source(name, said)} {name}={brief(values[name])}: {reason} (expected {_spell(allowed)})")


def source(name: str, said: Mapping[str, Any] | None) -> str:
    """Who says it: the configuration, or the user."""
    return "config field" if said is None or name in said else "the option"


def is_absent(value: Any) -> bool:
    """Whether a field's value means "nothing"."""
    return any(same_value(value, absent) for absent in ABSENT)


def integer(values: Mapping[str, Any], name: str, most: int = 1 << 20) -> int:
    """A field that must be a positive integer."""
    value = values[name]
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ModelError(f"config field {name}={brief(value)}: expected an integer between 1 and {most}")
    return value


def flag(values: Mapping[str, Any], name: str) -> bool:
    """A field that is off unless it is true."""
    require(values, {name: ((True, *_OFF), "a boolean is needed")})
    return values.get(name) is True


def number(values: Mapping[str, Any], name: str, expected: str, *, low: float = 0.0) -> float:
    """A field that must be a finite number of at least `low`."""
    found = as_float(values[name])
    if found is None or not low <= found < math.inf:
        raise ModelError(f"config field {name}={brief(values[name])}: expected {expected}")
    return found


def parse_value(value: Any) -> Any:
    """Strings become the booleans and numbers that they spell; everything else stays as it is."""
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, str):
        return value
    words = {"true": True, "false": False}
    if value.strip().lower() in words:
        return words[value.strip().lower()]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def same_value(value: Any, allowed: Any) -> bool:
    """Equality that does not take True for 1."""
    plain = value is None or isinstance(value, bool | int | float | str)
    return plain and isinstance(value, bool) == isinstance(allowed, bool) and bool(value == allowed)


def agree(one: Any, other: Any) -> bool:
    """Whether two values of a field mean the same: equal, or both of them "nothing"."""
    return same_value(one, other) or (is_absent(one) and is_absent(other))


def as_float(value: Any) -> float | None:
    """The float64 that a number is read as, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def brief(value: Any) -> str:
    """A value for a message."""
    try:
        text = repr(value)
    except Exception:  # Python does not write integers of more than 4300 digits; objects may do anything
        text = "an integer of very many digits" if isinstance(value, int) else f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def _spell(allowed: tuple[Any, ...]) -> str:
    named = [repr(a) for a in allowed if a not in ABSENT or isinstance(a, bool)]
    return " or ".join([*named, "no value"] if None in allowed else named)
