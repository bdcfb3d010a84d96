"""What a model's configuration may say, and what is refused.

A configuration comes from safetensors metadata, from `config.json` beside the file, or from a TransformerLens config. Fields that change
the function are modelled (the attention scale) or must have the one value that we model; harmless fields are passed over; a field
nobody knows becomes a stated assumption, never a silent one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from compactproofs.errors import ModelError

SIZE_FIELDS = ("d_vocab", "d_vocab_out", "d_model", "d_head", "n_ctx")

_ABSENT = (None, "", "none", "None", "null")

_REQUIRED: dict[str, tuple[tuple[Any, ...], str]] = {
    "n_layers": ((1,), "only one-layer models are supported"),
    "n_heads": ((1,), "only one attention head is supported"),
    "n_key_value_heads": ((1, *_ABSENT), "only one attention head is supported"),
    "attn_only": ((True,), "models with an MLP are not supported"),
    "normalization_type": (_ABSENT, "layer normalisation is not supported yet"),
    "final_rms": ((False, *_ABSENT), "layer normalisation is not supported yet"),
    "uses_rms_norm": ((False, *_ABSENT), "layer normalisation is not supported yet"),
    "post_embedding_ln": ((False, *_ABSENT), "layer normalisation is not supported yet"),
    "use_normalization_before_and_after": ((False, *_ABSENT), "layer normalisation is not supported yet"),
    "use_qk_norm": ((False, *_ABSENT), "normalised queries and keys are not supported"),
    "positional_embedding_type": (("standard",), "only learned absolute position embeddings are supported"),
    "rotary_dim": (_ABSENT, "rotary embeddings are not supported"),
    "use_NTK_by_parts_rope": ((False, *_ABSENT), "rotary embeddings are not supported"),
    "attention_dir": (("causal", "bidirectional"), "the last position must see every position"),
    "use_local_attn": ((False, *_ABSENT), "local attention is not supported"),
    "window_size": (_ABSENT, "local attention is not supported"),
    "attn_types": (_ABSENT, "local attention is not supported"),
    "attn_scores_soft_cap": ((-1, 0, *_ABSENT), "soft-capped attention scores are not supported"),
    "output_logits_soft_cap": ((-1, 0, *_ABSENT), "soft-capped logits are not supported"),
    "scale_embedding": ((False, *_ABSENT), "scaled embeddings are not supported"),
    "scale_attn_by_inverse_layer_idx": ((False, *_ABSENT), "scores scaled by the layer index are not supported"),
    "parallel_attn_mlp": ((False, *_ABSENT), "models with an MLP are not supported"),
    "num_experts": (_ABSENT, "models with an MLP are not supported"),
    "is_audio_model": ((False, *_ABSENT), "only token sequences are supported"),
    "is_visual_model": ((False, *_ABSENT), "only token sequences are supported"),
    "is_multimodal": ((False, *_ABSENT), "only token sequences are supported"),
    "is_stateful": ((False, *_ABSENT), "recurrent models are not supported"),
    "per_layer_head_dim": (_ABSENT, "only one attention head is supported"),
    "per_layer_num_key_value_heads": (_ABSENT, "only one attention head is supported"),
    "use_attn_scale": ((True, False), "a boolean is needed to know whether scores are divided"),
    "dtype": (("float32", "torch.float32", *_ABSENT), "only float32 models are supported"),
}

_HARMLESS = frozenset(
    """
    act_fn architecture attn_implementation checkpoint_index checkpoint_label_type checkpoint_value d_mlp decoder_start_token_id
    default_padding_side default_prepend_bos device eps experts_per_token format from_checkpoint gated_mlp init_mode init_weights
    initializer_range layer_norm_folding load_in_4bit mm_tokens_per_image model_name n_devices n_params name NTK_by_parts_factor
    NTK_by_parts_high_freq_factor NTK_by_parts_low_freq_factor NTK_original_ctx_len original_architecture producer qk_norm_after_rope
    relative_attention_max_distance relative_attention_num_buckets rmsnorm_uses_offset rotary_adjacent_pairs rotary_base
    rotary_interleaved_cos_sin seed task tie_word_embeddings tokenizer_appends_eos tokenizer_name tokenizer_prepends_bos training
    trust_remote_code ungroup_grouped_query_attention use_attn_in use_attn_result use_hook_mlp_in use_hook_tokens use_split_qkv_input
    version vision_hidden_size vision_num_heads vision_num_layers
    """.split()
)

_NO_CONFIG = (
    "no config found: assumed one layer, one head, attention only, no normalisation, causal attention, learned positions, "
    "attention scale 1/sqrt(d_head) = 1/sqrt({d_head})"
)

_IMPORTANT = ("n_layers", "n_heads", "attn_only", "normalization_type")


@dataclass(frozen=True)
class Interpretation:
    """What a configuration means for us."""

    score_divisor_squared: Fraction
    """Scores are divided by the square root of this."""
    assumptions: tuple[str, ...]
    """What had to be assumed; empty if the configuration says everything."""


def interpret(config: Mapping[str, Any] | None, sizes: Mapping[str, int], *, bridge_layout: bool = False) -> Interpretation:
    """Check a configuration against the tensors' sizes and read the attention scale from it.

    Args:
        config: field names and values (strings allowed, as safetensors metadata has nothing else); None if there is none.
        sizes: the sizes of `SIZE_FIELDS` according to the tensors.
        bridge_layout: the tensors use TransformerLens 4's names, whose `use_attn_scale=False` means something else.
    """
    if not config:
        return Interpretation(
            Fraction(sizes["d_head"]),
            (_NO_CONFIG.format(d_head=sizes["d_head"]),),
        )
    values = {name: parse_value(value) for name, value in config.items()}
    _check_sizes(values, sizes)
    for name, (allowed, reason) in _REQUIRED.items():
        if name in values and not any(same_value(values[name], a) for a in allowed):
            raise ModelError(f"config field {name}={values[name]!r}: {reason} (expected {_spell(allowed)})")
    unknown = set(values) - set(_REQUIRED) - _HARMLESS - {*SIZE_FIELDS, "attn_scale"}
    assumptions = [
        f"config field {name!r} ({_brief(values[name])}) is not known to compactproofs and was assumed not to change the function"
        for name in sorted(unknown)
    ]
    unsaid = [name for name in _IMPORTANT if name not in values]
    if unsaid:
        assumptions.append(f"config does not mention {', '.join(unsaid)}: assumed one layer, one head, attention only, no normalisation")
    divisor_squared, about_scale = _score_divisor(values, sizes["d_head"], bridge_layout)
    return Interpretation(divisor_squared, (*assumptions, *about_scale))


def _score_divisor(values: Mapping[str, Any], d_head: int, bridge_layout: bool) -> tuple[Fraction, tuple[str, ...]]:
    used = values.get("use_attn_scale", True)
    if used is False:
        if bridge_layout:
            raise ModelError(
                "config field use_attn_scale=False: TransformerLens 4 ignores it and divides by sqrt(d_head), earlier versions do "
                "not divide. Remove the field and set attn_scale to the divisor you mean"
            )
        return Fraction(1), ()
    if "attn_scale" not in values:
        return Fraction(d_head), (f"config does not mention attn_scale: assumed attention scale 1/sqrt(d_head) = 1/sqrt({d_head})",)
    scale = values["attn_scale"]
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not (0 < scale < math.inf or scale == -1):
        raise ModelError(
            f"config field attn_scale={scale!r}: expected a positive number (scores are divided by it), or -1 for sqrt(d_head)"
        )
    if scale == -1:
        return Fraction(d_head), ()
    if scale == math.sqrt(d_head):
        irrational = math.isqrt(d_head) ** 2 != d_head
        return Fraction(d_head), (f"attn_scale={scale!r} was read as the real number sqrt({d_head})",) if irrational else ()
    return Fraction(scale) ** 2, ()


def _check_sizes(values: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
    for name in SIZE_FIELDS:
        claimed = values.get(name)
        if claimed is None or claimed == -1:
            continue
        if not same_value(claimed, sizes[name]):
            raise ModelError(f"config says {name}={claimed!r}, but the tensors have {name}={sizes[name]}")


def parse_value(value: Any) -> Any:
    """Strings become the booleans and numbers that they spell; everything else stays as it is."""
    if not isinstance(value, str):
        return value
    words = {"true": True, "false": False}
    if value.strip().lower() in words:
        return words[value.strip().lower()]
    for number in (int, float):
        try:
            return number(value)
        except ValueError:
            continue
    return value


def same_value(value: Any, allowed: Any) -> bool:
    """Equality that does not take True for 1."""
    return isinstance(value, bool) == isinstance(allowed, bool) and bool(value == allowed)


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _spell(allowed: tuple[Any, ...]) -> str:
    named = [repr(a) for a in allowed if a not in _ABSENT or isinstance(a, bool)]
    return " or ".join([*named, "no value"] if None in allowed else named)
