"""What a model's configuration means.

A configuration comes from safetensors metadata, from `config.json` beside the file, or from a TransformerLens config. Fields that change
the function are modelled or must have the one value that we model; harmless fields are passed over; a field nobody knows becomes a
stated assumption, never a silent one. `fields` has the tables, `parts` reads norms, MLP and positions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from compactproofs.errors import ModelError
from compactproofs.model.fields import (
    DIRECTIONS,
    HARMLESS,
    MODELLED,
    REQUIRED,
    SIZE_FIELDS,
    agree,
    as_float,
    brief,
    integer,
    is_absent,
    parse_value,
)
from compactproofs.model.fields import require as require_fields
from compactproofs.model.network import Activation
from compactproofs.model.parts import NATIVE, NORMALIZATIONS, Found, Norms, Positions, activation_of, norms_of, positions_of, soft_cap_of


@dataclass(frozen=True)
class Told:
    """What the reader of a file was told about it, because neither shapes nor a configuration may say it."""

    n_heads: int | None = None
    normalization: str | None = None
    n_ctx: int | None = None
    """How many tokens the sequences have: at most as many as the model reads."""

    def __post_init__(self) -> None:
        for name in ("n_heads", "n_ctx"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1 << 20):
                raise ModelError(f"{name}={brief(value)}: expected a positive integer")
        if self.normalization is not None and self.normalization not in NORMALIZATIONS:
            raise ModelError(f"normalization={brief(self.normalization)}: expected {', '.join(NORMALIZATIONS)}")

    def fields(self) -> dict[str, Any]:
        """The same as fields of a configuration; `n_ctx` is another thing there, the most tokens that a model reads."""
        return {name: value for name, value in (("n_heads", self.n_heads), ("normalization_type", self.normalization)) if value is not None}


@dataclass(frozen=True)
class Interpretation:
    """What a configuration means for us."""

    score_divisor_squared: Fraction
    """Scores are divided by the square root of this."""
    n_heads: int
    n_groups: int
    """Heads with keys and values of their own; fewer than `n_heads` in grouped-query attention."""
    n_ctx: int
    """The most tokens that the model reads; with `Told.n_ctx` where nothing else says it."""
    norms: Norms
    act: Activation | None
    positions: Positions
    monotone_output: bool
    """Whether the model applies an increasing function to each logit, which is left out."""
    causal: bool | None
    """Whether a position sees the tokens up to it only; None if the configuration does not say."""
    assumptions: tuple[str, ...]
    """What had to be assumed; empty if the configuration says everything."""


def interpret(config: Mapping[str, Any] | None, found: Found, told: Told = Told()) -> Interpretation:  # noqa: B008
    """Check a configuration against the tensors and read what they leave open from it.

    Args:
        config: field names and values (strings allowed, as safetensors metadata has nothing else); None or empty if there is none.
        found: what the tensors say.
        told: what the user said. It may not contradict the configuration.
    """
    said = {name: parse_value(value) for name, value in (config or {}).items()}
    for name, value in told.fields().items():
        if name in said and not agree(said[name], value):
            raise ModelError(f"{name}={value} was asked for, but the configuration says {name}={brief(said[name])}")
    values = {**told.fields(), **said}
    require_fields(values, REQUIRED, said)
    _require_native(values, found)
    _require_decided(values, found, told)
    n_heads = found.n_heads if found.n_heads is not None else integer(values, "n_heads")
    sizes = _split(found, n_heads)
    _check_sizes(values, sizes, n_heads)
    act = activation_of(values, found)
    norms, about_norms = norms_of(values, found)
    positions, about_positions = positions_of(values, found, n_heads, sizes["d_head"])
    capped = soft_cap_of(values)
    divisor_squared, about_scale = _score_divisor(values, sizes["d_head"], found.bridge_layout)
    grouped = not is_absent(values.get("n_key_value_heads"))
    return Interpretation(
        score_divisor_squared=divisor_squared,
        n_heads=n_heads,
        n_groups=integer(values, "n_key_value_heads", n_heads) if grouped else n_heads,
        n_ctx=_length(values, found, told),
        norms=norms,
        act=act,
        positions=positions,
        monotone_output=bool(capped),
        causal=DIRECTIONS.get(str(values.get("attention_dir"))),
        assumptions=(
            *(*_told(told, said), *_unknown(values), *_unsaid(config, values, found), *about_scale),
            *(*about_norms, *about_positions, *capped),
        ),
    )


def _require_native(values: Mapping[str, Any], found: Found) -> None:
    """TransformerLens 4 gives the same names to models that another library computes."""
    if found.bridge_layout and not is_absent(values.get("architecture")) and values["architecture"] != NATIVE:
        raise ModelError(
            f"config field architecture={brief(values['architecture'])}: TransformerLens 4 leaves the forward pass of such models to the "
            f"library that they come from, which is not modelled; expected {NATIVE!r} (a model of boot_native)"
        )


def _require_decided(values: Mapping[str, Any], found: Found, told: Told) -> None:
    """Refuse where two different networks have the same tensors."""
    doubts = []
    if "n_heads" not in values and found.n_heads is None:
        doubts.append(("how many heads there are (several small heads have the shapes of a large one)", "--n-heads N", "n_heads"))
    if "normalization_type" not in values and "norm_1.bias" not in (found.norms or {}):
        doubts.append(
            ("whether there is a normalisation (LNPre and RMSPre have no tensors)", "--normalization none|LNPre|RMSPre", "normalization")
        )
    if "n_ctx" not in found.sizes and is_absent(values.get("n_ctx")) and told.n_ctx is None:
        doubts.append(("how many tokens there are (no tensor has an axis of positions)", "--n-ctx N", "n_ctx"))
    if doubts:
        what, options, arguments = zip(*doubts, strict=True)
        raise ModelError(
            f"neither the tensors nor a configuration say {', nor '.join(what)}. If you know, say so: {' '.join(options)} "
            f"(in Python the arguments {', '.join(arguments)}), or put {', '.join(_FIELDS[name] for name in arguments)} into the "
            "metadata or config.json beside the file"
        )


_FIELDS = {"n_heads": "n_heads", "normalization": "normalization_type", "n_ctx": "n_ctx"}
"""What the arguments of `load` are called in a configuration."""


def _split(found: Found, n_heads: int) -> dict[str, int]:
    """The sizes, d_head that of one head."""
    if found.n_heads is not None:
        return dict(found.sizes)
    whole = found.sizes["d_head"]
    if whole % n_heads:
        raise ModelError(f"W_Q has {whole} columns, which do not divide into n_heads={n_heads} heads of one size")
    return {**found.sizes, "d_head": whole // n_heads}


def _length(values: Mapping[str, Any], found: Found, told: Told) -> int:
    if "n_ctx" in found.sizes:
        return found.sizes["n_ctx"]
    if is_absent(values.get("n_ctx")) and told.n_ctx is not None:
        return told.n_ctx
    return integer(values, "n_ctx")


def _told(told: Told, said: Mapping[str, Any]) -> list[str]:
    heads = "one attention head" if told.n_heads == 1 else f"{told.n_heads} attention heads"
    norm = "no normalisation" if told.normalization == "none" else f"the normalisation {told.normalization}"
    words = {"n_heads": heads, "normalization_type": norm}
    return [f"{words[name]}, because the user said so" for name in told.fields() if name not in said]


def _unknown(values: Mapping[str, Any]) -> list[str]:
    unknown = set(values) - set(REQUIRED) - HARMLESS - MODELLED
    return [
        f"config field {brief(name)} ({brief(values[name])}) is not known to compactproofs and was assumed not to change the function"
        for name in sorted(unknown)
    ]


def _unsaid(config: Mapping[str, Any] | None, values: Mapping[str, Any], found: Found) -> list[str]:
    words = {"n_layers": "one layer", "attn_only": "attention only"}
    if "d_mlp" in found.sizes:
        del words["attn_only"]
    if not config:
        return [f"no config found: {', '.join(words.values())}, no soft caps, the last position sees every position, learned positions"]
    missing = [name for name in words if name not in values]
    return [f"config does not mention {', '.join(missing)}: assumed {', '.join(words[name] for name in missing)}"] if missing else []


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
    scale = as_float(given)
    if scale is None or not (0 < scale < math.inf or scale == -1):
        raise ModelError(
            f"config field attn_scale={brief(given)}: expected a positive number (scores are divided by it), or -1 for sqrt(d_head)"
        )
    if scale == -1:
        return Fraction(d_head), ()
    if scale == math.sqrt(d_head):
        irrational = math.isqrt(d_head) ** 2 != d_head
        return Fraction(d_head), (f"attn_scale={scale!r} was read as the real number sqrt({d_head})",) if irrational else ()
    return Fraction(scale) ** 2, ()


def _check_sizes(values: Mapping[str, Any], sizes: Mapping[str, int], n_heads: int) -> None:
    known = {**sizes, "n_heads": n_heads}
    for name in (*SIZE_FIELDS, "n_heads"):
        claimed = values.get(name)
        if claimed is None or claimed == -1 or name not in known:
            continue
        if not agree(claimed, known[name]):
            raise ModelError(f"config says {name}={brief(claimed)}, but the tensors have {name}={known[name]}")
