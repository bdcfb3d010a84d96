"""What a configuration says about the optional parts of a layer: norms, MLP, positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compactproofs.errors import ModelError
from compactproofs.model.fields import WITH_MLP, WITH_RMS, WITH_ROTARY, as_float, brief, flag, integer, is_absent, number, require
from compactproofs.model.network import Activation, NormKind, Rotary

NORMALIZATIONS = ("none", "LN", "LNPre", "RMS", "RMSPre")
"""What `normalization_type` and `--normalization` may say; those that end in Pre have no parameters."""

NATIVE = "TransformerLensNative"
"""The `architecture` of models that TransformerLens 4 computes itself."""

_ACTIVATIONS = {
    "relu": Activation.RELU,
    "gelu": Activation.GELU,
    "gelu_new": Activation.GELU_TANH,
    "gelu_pytorch_tanh": Activation.GELU_TANH,
    "silu": Activation.SILU,
    "swish": Activation.SILU,
}

DEFAULT_EPS = 1e-5
"""TransformerLens' own."""


@dataclass(frozen=True)
class Found:
    """What the tensors say."""

    sizes: Mapping[str, int]
    """Of `SIZE_FIELDS` and `d_mlp`, those that there are. Without `n_heads`, `d_head` is the size of all heads together."""
    n_heads: int | None = None
    """None where heads have no axis of their own: four heads of 8 have the shapes of one of 32."""
    bridge_layout: bool = False
    """The tensors use TransformerLens 4's names, whose `use_attn_scale=False` means something else."""
    norms: Mapping[str, str] | None = None
    """Tensors of norms: `norm_1.weight` and so on, and their names in the file."""


@dataclass(frozen=True)
class Norms:
    """The kinds of the norms, and what is added under the root."""

    inner: NormKind | None
    final: NormKind | None
    eps: float = 0.0


@dataclass(frozen=True)
class Positions:
    """How positions enter."""

    learned: bool = False
    rotary: Rotary | None = None
    alibi: tuple[int, ...] | None = None


def named_normalization(value: Any) -> str | None:
    """One of `NORMALIZATIONS`, or None."""
    if is_absent(value):
        return "none"
    return {name.upper(): name for name in NORMALIZATIONS}.get(value.upper()) if isinstance(value, str) else None


def norms_of(values: Mapping[str, Any], found: Found) -> tuple[Norms, list[str]]:
    """The norms; their tensors must be those that such norms have. Without `normalization_type` the tensors tell that it is LN."""
    given = values.get("normalization_type", "LN")
    kind = named_normalization(given)
    if kind is None:
        raise ModelError(f"config field normalization_type={brief(given)}: this normalisation is not known; expected {_or(NORMALIZATIONS)}")
    final_rms = flag(values, "final_rms")
    if flag(values, "uses_rms_norm") and not kind.startswith("RMS"):
        raise ModelError(f"config field uses_rms_norm=True: the layer normalisation is {kind}; say normalization_type=RMS if you mean it")
    if final_rms and kind in ("none", "LNPre"):
        raise ModelError(
            f"config field final_rms=True: with normalization_type={kind} versions of TransformerLens differ in what the final layer "
            "normalisation is. Save the model before its norms are folded, with final_rms=False, or with normalization_type=RMSPre"
        )
    final = "RMS" if final_rms and kind == "LN" else kind
    _require_tensors(kind, final, found)
    if kind == "none":
        return Norms(None, None), []
    if "RMS" in kind + final:
        require(values, WITH_RMS)
    if "eps" in values:
        eps, about = number(values, "eps", "a number that is not negative, which norms add under the root"), []
    else:
        eps, about = DEFAULT_EPS, [f"config does not mention eps: assumed {DEFAULT_EPS}, TransformerLens' default"]
    return Norms(NormKind(kind.removesuffix("Pre")), NormKind(final.removesuffix("Pre")), eps), about


def _require_tensors(kind: str, final: str, found: Found) -> None:
    there = found.norms or {}
    parameters = {"LN": ("weight", "bias"), "RMS": ("weight",)}
    places = ["norm_1", *(["norm_2"] if "d_mlp" in found.sizes else [])]
    expected = {f"{place}.{name}" for place in places for name in parameters.get(kind, ())}
    expected |= {f"norm_final.{name}" for name in parameters.get(final, ())}
    surplus, missing = sorted(set(there) - expected), sorted(expected - set(there))
    if surplus:
        raise ModelError(
            f"tensor {there[surplus[0]]}: the model has parameters of a layer normalisation, but normalization_type is {kind}, which has "
            f"{'no such parameter' if kind in parameters else 'none'}. Say which normalisation it is"
        )
    if missing:
        raise ModelError(
            f"normalization_type is {kind}, a layer normalisation with parameters, but these are not in the file: {', '.join(missing)} "
            "(LNPre and RMSPre have none)"
        )


def activation_of(values: Mapping[str, Any], found: Found) -> Activation | None:
    """What the neurons do; None without an MLP."""
    has_mlp = "d_mlp" in found.sizes
    if "attn_only" in values and values["attn_only"] is has_mlp:
        there = "has tensors of an MLP" if has_mlp else "has no tensors of an MLP"
        raise ModelError(f"config field attn_only={values['attn_only']}, but the file {there}")
    if not has_mlp:
        return None
    require(values, WITH_MLP)
    if "act_fn" not in values or is_absent(values["act_fn"]):
        raise ModelError(
            f"the model has an MLP, and nothing says what its neurons do: put act_fn ({_or(_ACTIVATIONS)}) into the metadata, or into "
            "config.json beside the file"
        )
    name = values["act_fn"]
    if not isinstance(name, str) or name not in _ACTIVATIONS:
        raise ModelError(
            f"config field act_fn={brief(name)}: this activation is not supported (expected {_or(_ACTIVATIONS)}); another one needs a "
            "definition, an enclosure and a bound"
        )
    claimed = values.get("d_mlp")
    if claimed is not None and claimed != found.sizes["d_mlp"]:
        raise ModelError(f"config says d_mlp={brief(claimed)}, but the tensors have d_mlp={found.sizes['d_mlp']}")
    return _ACTIVATIONS[name]


def positions_of(values: Mapping[str, Any], found: Found, n_heads: int, d_head: int) -> tuple[Positions, list[str]]:
    """How positions enter, which must fit the tensors."""
    kind = values.get("positional_embedding_type", "standard")
    if found.bridge_layout and kind is None:
        kind = "standard"  # TransformerLens 4 reads it so
    has_table = "n_ctx" in found.sizes
    if kind in ("rotary", "none") and has_table:
        raise ModelError(f"config field positional_embedding_type={kind!r}, but the file has learned position embeddings W_pos")
    if kind != "rotary" and not is_absent(values.get("rotary_dim")):
        raise ModelError(f"config field rotary_dim={brief(values['rotary_dim'])}, but positional_embedding_type is not rotary")
    match kind:
        case "standard" if has_table:
            return Positions(learned=True), []
        case "rotary":
            return _rotary(values, found, d_head)
        case "alibi" if not found.bridge_layout:
            return _alibi(n_heads, has_table)
        case "none":
            return Positions(), []
    raise ModelError(
        f"config field positional_embedding_type={brief(kind)}: expected learned position embeddings ('standard', with a tensor W_pos), "
        "'rotary', 'alibi' or 'none'; others would need a table of scores for each pair of positions"
    )


def _rotary(values: Mapping[str, Any], found: Found, d_head: int) -> tuple[Positions, list[str]]:
    require(values, WITH_ROTARY)
    base = number(values, "rotary_base", "a number of at least 1", low=1.0) if "rotary_base" in values else 10000.0
    given = values.get("rotary_dim")
    if not found.bridge_layout and given == 0 and not isinstance(given, bool):
        return Positions(), ["rotary_dim=0: nothing is turned, positions play no part"]
    dim = d_head if is_absent(given) else integer(values, "rotary_dim", d_head)
    if dim % 2:
        raise ModelError(f"rotary embeddings turn pairs: rotary_dim={dim} is odd; expected an even number up to d_head={d_head}")
    about = ["rotary sines and cosines are the real numbers, not their float32 roundings"]
    adjacent = flag(values, "rotary_adjacent_pairs")
    if found.bridge_layout:
        if values.get("architecture") != NATIVE:
            raise ModelError(
                f"rotary embeddings in TransformerLens 4's layout, and the configuration does not say architecture={NATIVE!r}: which "
                "coordinates are turned together is not known"
            )
        if not adjacent:
            about.append("rotary embeddings turn adjacent pairs, as TransformerLens 4 does whatever rotary_adjacent_pairs says")
        adjacent = True
    return Positions(rotary=Rotary(dim, base, adjacent)), about


def _alibi(n_heads: int, has_table: bool) -> tuple[Positions, list[str]]:
    if 8 % n_heads:
        raise ModelError(
            f"ALiBi with n_heads={n_heads}: the slopes 2^(-8 h / {n_heads}) are not all powers of two; supported: 1, 2, 4 or 8 heads"
        )
    unused = ["the position embeddings W_pos in the file are not used by ALiBi"] if has_table else []
    return Positions(alibi=tuple(8 // n_heads * (h + 1) for h in range(n_heads))), unused


def soft_cap_of(values: Mapping[str, Any]) -> list[str]:
    """A soft cap of logits increases strictly, so it does not change which logit is largest: it is left out, and said."""
    given = values.get("output_logits_soft_cap")
    if is_absent(given) or (not isinstance(given, bool) and given in (-1, 0)):
        return []
    cap = as_float(given)
    if cap is None or not 0 < cap < float("inf"):
        raise ModelError(f"config field output_logits_soft_cap={brief(given)}: expected a positive number (soft-capped logits), or -1")
    return [f"logits are those before the soft cap {cap:g} tanh(logit / {cap:g}), which increases and does not change which is the largest"]


def _or(names: Any) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}"
