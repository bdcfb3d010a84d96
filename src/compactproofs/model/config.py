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

import numpy as np

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
    "clip_qkv": ((False, *_ABSENT), "clipped queries, keys and values are not supported"),
    "use_attention_sinks": ((False, *_ABSENT), "attention sinks are not supported"),
    "use_logn_attn": ((False, *_ABSENT), "scores scaled by the logarithm of the length are not supported"),
    "quantization_method": (_ABSENT, "quantised models are not supported"),
    "load_in_4bit": ((False, *_ABSENT), "quantised models are not supported"),
    "positional_embedding_type": (("standard",), "only learned absolute position embeddings are supported"),
    "rotary_dim": (_ABSENT, "rotary embeddings are not supported"),
    "use_NTK_by_parts_rope": ((False, *_ABSENT), "rotary embeddings are not supported"),
    "use_dynamic_ntk_rope": ((False, *_ABSENT), "rotary embeddings are not supported"),
    "use_yarn_rope": ((False, *_ABSENT), "rotary embeddings are not supported"),
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
    initializer_range layer_norm_folding mm_tokens_per_image model_name n_devices n_params name norm_topk_prob
    NTK_by_parts_factor NTK_by_parts_high_freq_factor NTK_by_parts_low_freq_factor NTK_original_ctx_len original_architecture producer
    qk_norm_after_rope relative_attention_max_distance relative_attention_num_buckets rmsnorm_uses_offset rotary_adjacent_pairs rotary_base
    rotary_base_local rotary_interleaved_cos_sin rotary_scaling_factor seed split_attention_weights task tie_word_embeddings
    tokenizer_appends_eos tokenizer_name tokenizer_prepends_bos train_seq_length training trust_remote_code
    ungroup_grouped_query_attention use_attn_in use_attn_result use_hook_mlp_in use_hook_tokens use_split_qkv_input version
    vision_hidden_size vision_num_heads vision_num_layers yarn_attention_factor yarn_beta_fast yarn_beta_slow yarn_factor
    yarn_global_attn_only yarn_original_max_position_embeddings yarn_truncate
    """.split()
)

NORMALIZATIONS = ("none", "LN", "LNPre", "RMS", "RMSPre")
"""What `--normalization` may say; only the first is modelled."""


@dataclass(frozen=True)
class Told:
    """What the reader of a file was told about it, because neither shapes nor a configuration may say it."""

    n_heads: int | None = None
    normalization: str | None = None

    def __post_init__(self) -> None:
        if self.n_heads is not None and (isinstance(self.n_heads, bool) or not isinstance(self.n_heads, int) or self.n_heads < 1):
            raise ModelError(f"n_heads={self.n_heads!r:.40}: expected a positive integer")
        if self.normalization is not None and self.normalization not in NORMALIZATIONS:
            raise ModelError(f"normalization={self.normalization!r:.40}: expected {', '.join(NORMALIZATIONS)}")

    def fields(self) -> dict[str, Any]:
        """The same as fields of a configuration."""
        return {name: value for name, value in (("n_heads", self.n_heads), ("normalization_type", self.normalization)) if value is not None}


@dataclass(frozen=True)
class Interpretation:
    """What a configuration means for us."""

    score_divisor_squared: Fraction
    """Scores are divided by the square root of this."""
    assumptions: tuple[str, ...]
    """What had to be assumed; empty if the configuration says everything."""


@dataclass(frozen=True)
class Found:
    """What the tensors say."""

    sizes: Mapping[str, int]
    """The sizes of `SIZE_FIELDS`."""
    n_heads: int | None = None
    """None where heads have no axis of their own: four heads of 8 have the shapes of one of 32."""
    bridge_layout: bool = False
    """The tensors use TransformerLens 4's names, whose `use_attn_scale=False` means something else."""


def interpret(config: Mapping[str, Any] | None, found: Found, told: Told = Told()) -> Interpretation:  # noqa: B008
    """Check a configuration against the tensors and read the attention scale from it.

    Args:
        config: field names and values (strings allowed, as safetensors metadata has nothing else); None or empty if there is none.
        found: what the tensors say.
        told: what the user said. It may not contradict the configuration.
    """
    said = {name: parse_value(value) for name, value in (config or {}).items()}
    for name, value in told.fields().items():
        if name in said and not agree(said[name], value):
            raise ModelError(f"{name}={value} was asked for, but the configuration says {name}={_brief(said[name])}")
    values = {**told.fields(), **said}
    for name, (allowed, reason) in _REQUIRED.items():
        if name in values and not any(same_value(values[name], a) for a in allowed):
            raise ModelError(f"{_source(name, said)} {name}={_brief(values[name])}: {reason} (expected {_spell(allowed)})")
    _check_sizes(said, found.sizes)
    _require_decided(values, found)
    divisor_squared, about_scale = _score_divisor(values, found.sizes["d_head"], found.bridge_layout)
    return Interpretation(divisor_squared, (*_told(told, said), *_unknown(values), *_unsaid(config, values), *about_scale))


def _require_decided(values: Mapping[str, Any], found: Found) -> None:
    """Refuse where two different networks have the same tensors."""
    doubts = []
    if "n_heads" not in values and found.n_heads is None:
        doubts.append(("how many heads there are (several small heads have the shapes of a large one)", "--n-heads 1", "n_heads=1"))
    if "normalization_type" not in values:
        doubts.append(
            ("whether there is a normalisation (LNPre and RMSPre have no tensors)", "--normalization none", 'normalization="none"')
        )
    if doubts:
        what, options, arguments = zip(*doubts, strict=True)
        raise ModelError(
            f"neither the tensors nor a configuration say {', nor '.join(what)}. If you know, say so: {' '.join(options)} "
            f"(in Python {', '.join(arguments)}), or put n_heads and normalization_type into the metadata or config.json beside the file"
        )


def _told(told: Told, said: Mapping[str, Any]) -> list[str]:
    words = {"n_heads": "one attention head", "normalization_type": "no normalisation"}
    return [f"{words[name]}, because the user said so" for name in told.fields() if name not in said]


def _unknown(values: Mapping[str, Any]) -> list[str]:
    unknown = set(values) - set(_REQUIRED) - _HARMLESS - {*SIZE_FIELDS, "attn_scale"}
    return [
        f"config field {_brief(name)} ({_brief(values[name])}) is not known to compactproofs and was assumed not to change the function"
        for name in sorted(unknown)
    ]


def _unsaid(config: Mapping[str, Any] | None, values: Mapping[str, Any]) -> list[str]:
    if not config:
        return ["no config found: one layer, attention only, no soft caps, the last position sees every position, learned positions"]
    words = {"n_layers": "one layer", "attn_only": "attention only"}
    missing = [name for name in words if name not in values]
    return [f"config does not mention {', '.join(missing)}: assumed {', '.join(words[name] for name in missing)}"] if missing else []


def _source(name: str, said: Mapping[str, Any]) -> str:
    return "config field" if name in said else "the option"


def agree(one: Any, other: Any) -> bool:
    """Whether two values of a field mean the same: equal, or both of them "nothing"."""
    return same_value(one, other) or all(any(same_value(value, absent) for absent in _ABSENT) for value in (one, other))


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
    given = values["attn_scale"]
    scale = _as_float(given)
    if scale is None or not (0 < scale < math.inf or scale == -1):
        raise ModelError(
            f"config field attn_scale={_brief(given)}: expected a positive number (scores are divided by it), or -1 for sqrt(d_head)"
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
            raise ModelError(f"config says {name}={_brief(claimed)}, but the tensors have {name}={sizes[name]}")


def parse_value(value: Any) -> Any:
    """Strings become the booleans and numbers that they spell; everything else stays as it is."""
    if isinstance(value, np.generic):
        return value.item()
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


def _as_float(value: Any) -> float | None:
    """The float64 that a number is read as, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _brief(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python does not write integers of more than 4300 digits
        text = "an integer of very many digits"
    return text if len(text) <= 80 else text[:77] + "..."


def _spell(allowed: tuple[Any, ...]) -> str:
    named = [repr(a) for a in allowed if a not in _ABSENT or isinstance(a, bool)]
    return " or ".join([*named, "no value"] if None in allowed else named)
