"""Plain PyTorch models: a module, or its state dict, and a mapping from our parts to its names.

A state dict does not say what is computed with it. The mapping does: it is the user's word for it, and stands in every theorem.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from compactproofs.errors import ModelError
from compactproofs.model.fields import as_float, brief
from compactproofs.model.heads import apart, is_bias
from compactproofs.model.kinds import Model, shortened, simplest
from compactproofs.model.network import AXES, Activation, Mlp, Network, Norm, NormKind
from compactproofs.model.torch_files import dense
from compactproofs.model.torch_modules import PARTS, Settings, inspected, written_out

_NORMS = ("norm_1", "norm_2", "norm_final")


def from_pytorch(
    model: Any,
    mapping: Mapping[str, str],
    *,
    n_heads: int | None = None,
    n_ctx: int | None = None,
    act: str | None = None,
    norm: str | None = None,
    eps: float | None = None,
    norm_first: bool | None = None,
    attn_scale: float | None = None,
    causal: bool | None = None,
    unused: Collection[str] = (),
) -> Model:
    """Build `Weights`, or a `Network`, from a torch module or its state dict.

    The mapping names, for each of our parts, a module of the model: `embed`, `pos_embed`, `layer` (an `nn.TransformerEncoderLayer`, or an
    `nn.TransformerEncoder` of one), or `attn` (`nn.MultiheadAttention`), or `q`, `k`, `v`, `o` (or `qkv`, `o`), then `norm_1`, `mlp.in`,
    `act`, `mlp.out`, `norm_2`, `norm_final` and `unembed`. A name of `Network`'s tensors (`W_E`, `W_pos`, `W_U`, `b_U`, ...) names a tensor
    with the axes that it has there. What is computed with the parts is what `Network` says. Every tensor of the model must be mapped.

    Args:
        model: a module, whose settings are read too, or a state dict.
        mapping: from our parts to names in the model.
        n_heads: where no module says it; heads stand side by side.
        n_ctx: how many tokens the sequences have: needed without positions, else at most the rows of the position table.
        act: `relu`, `gelu`, `gelu_new` or `silu`, where no module says it.
        norm: `LN` or `RMS`, where no module says it.
        eps: of all norms, where no module says it.
        norm_first: whether norms stand before attention and MLP (the default), or on the residual stream after them.
        attn_scale: what scores are divided by, if that is not sqrt(d_head).
        causal: whether a position sees the tokens up to it only; of importance where other positions than the last are read.
        unused: tensors that play no part in the forward pass, such as masks.

    Example:
        >>> import numpy as np
        >>> draw = lambda *shape: np.random.default_rng(0).normal(size=shape).astype("float32")
        >>> state = {"tok.weight": draw(5, 4), "pos": draw(3, 4), "head.weight": draw(5, 4), "attn.in_proj_weight": draw(12, 4),
        ...          "attn.in_proj_bias": draw(12), "attn.out_proj.weight": draw(4, 4), "attn.out_proj.bias": draw(4)}
        >>> from_pytorch(state, {"embed": "tok", "pos_embed": "pos", "attn": "attn", "unembed": "head"}, n_heads=2).described
        '2 heads, biases'
    """
    _require_mapping(mapping)
    if isinstance(model, Mapping):
        found, said = _unfolded_layer(model, mapping, norm_first), Settings()
        state = {name: tensor for name, tensor in model.items() if name not in unused}
    elif callable(getattr(model, "state_dict", None)) and callable(getattr(model, "get_submodule", None)):
        found, said = inspected(model, mapping)
        state = {name: tensor for name, tensor in model.state_dict().items() if name not in unused}
    else:
        raise ModelError(f"from_pytorch takes a torch module or a state dict, not a {type(model).__name__}; for a file use load")
    if not all(isinstance(name, str) for name in state):
        raise ModelError("the state dict has names that are not strings; expected names such as attn.in_proj_weight")
    t = _Reader(dense(state)).tensors(found)
    first = _agreed("norm_first", said.norm_first, norm_first)
    network = _network(
        t,
        n_heads=_agreed("n_heads", said.n_heads, n_heads),
        n_ctx=n_ctx,
        act=_agreed("act", said.act, None if act is None else _named(Activation, "act", act)),
        norms={part: _norm(t, part, said, norm, eps) for part in _NORMS if part in found},
        post_norm=first is False,
        divisor=_divisor(attn_scale, "attn" in found),
        assumptions=(*_about(found, unused, attn_scale, causal), *said.assumptions),
        causal=causal,
    )
    return simplest(shortened(network, n_ctx))


def _require_mapping(mapping: Mapping[str, str]) -> None:
    if not isinstance(mapping, Mapping) or not all(isinstance(path, str) for path in mapping.values()):
        raise ModelError(f"the mapping is {brief(mapping)}; expected a dict from our parts to names in the model, such as 'embed': 'tok'")
    unknown = [part for part in mapping if part not in PARTS and part not in AXES]
    if unknown:
        raise ModelError(f"the mapping has {brief(unknown[0])}; expected parts ({', '.join(PARTS)}) or tensors ({', '.join(AXES)})")


def _unfolded_layer(state: Mapping[str, Any], mapping: Mapping[str, str], norm_first: bool | None) -> dict[str, str]:
    if "act" in mapping:
        raise ModelError("a state dict does not say what an activation is: leave 'act' out of the mapping and say act='relu'")
    if "layer" not in mapping:
        return dict(mapping)
    if norm_first is None:
        raise ModelError("a state dict does not say whether the norms of an nn.TransformerEncoderLayer come first: say norm_first")
    at = mapping["layer"]
    inside = any(name.startswith(f"{at}.layers.") for name in state)
    if any(name.startswith(f"{at}.layers.1.") for name in state):
        raise ModelError(f"layer={at!r} has more than one layer; only one-layer models are supported")
    final = f"{at}.norm" if inside and any(name.startswith(f"{at}.norm.") for name in state) else None
    return written_out(mapping, norm_first, ".layers.0" if inside else "", final)


class _Reader:
    """Takes tensors out of a state dict; what is left at the end was not mapped."""

    def __init__(self, state: dict[str, np.ndarray]) -> None:
        self._state, self._taken = state, set[str]()

    def tensors(self, mapping: Mapping[str, str]) -> dict[str, np.ndarray]:
        """Our tensors; heads stand side by side, except where the mapping names tensors with an axis of heads."""
        t: dict[str, np.ndarray] = {}
        for part, path in mapping.items():
            for name, tensor in self._part(part, path).items():
                if name in t:
                    raise ModelError(f"{part}={path!r} gives {name}, which another part of the mapping gives already")
                t[name] = tensor
        left = sorted(set(self._state) - self._taken)
        if left:
            raise ModelError(
                f"tensors that the mapping does not mention: {', '.join(left)[:300]}. Map them, or list them as unused if they play no "
                "part in the forward pass"
            )
        missing = [name for name in ("W_E", "W_Q", "W_K", "W_V", "W_O", "W_U") if name not in t]
        if missing:
            raise ModelError(f"the mapping does not say where {', '.join(missing)} are; expected embed, attn (or q, k, v, o) and unembed")
        return t

    def _part(self, part: str, path: str) -> dict[str, np.ndarray]:
        match part:
            case "embed":
                return {"W_E": self._weight(path)}
            case "pos_embed":
                table = self._weight(path)
                return {"W_pos": table.reshape([n for n in table.shape if n != 1]) if table.ndim > 2 else table}
            case "attn":
                return self._attention(path)
            case "qkv":
                return self._thirds(f"{path}.weight", f"{path}.bias")
            case "unembed" | "q" | "k" | "v" | "o" | "mlp.in" | "mlp.out":
                own = {"unembed": "U", "mlp.in": "in", "mlp.out": "out"}.get(part, part.upper())
                where = "mlp." if part.startswith("mlp.") else ""
                return {f"{where}W_{own}": self._weight(path, transposed=True), **self._maybe(f"{where}b_{own}", f"{path}.bias")}
            case "norm_1" | "norm_2" | "norm_final":
                return {**self._maybe(f"{part}.weight", f"{path}.weight"), **self._maybe(f"{part}.bias", f"{path}.bias")}
        return {part: self._take(path)}

    def _attention(self, path: str) -> dict[str, np.ndarray]:
        for extra in ("bias_k", "bias_v"):
            if f"{path}.{extra}" in self._state:
                raise ModelError(f"attn={path!r} has {extra}: a key that belongs to no token is not supported")
        if f"{path}.in_proj_weight" in self._state:
            inner = self._thirds(f"{path}.in_proj_weight", f"{path}.in_proj_bias")
        else:
            inner = {f"W_{x.upper()}": self._weight(f"{path}.{x}_proj_weight", transposed=True) for x in "qkv"}
            inner |= self._split_bias(f"{path}.in_proj_bias")
        return {**inner, "W_O": self._weight(f"{path}.out_proj", transposed=True), **self._maybe("b_O", f"{path}.out_proj.bias")}

    def _thirds(self, weight: str, bias: str) -> dict[str, np.ndarray]:
        rows = self._take(weight)
        if rows.ndim != 2 or rows.shape[0] % 3:
            raise ModelError(f"{weight} has shape {rows.shape}; expected queries, keys and values one below the other")
        parts = {f"W_{x}": part.T for x, part in zip("QKV", np.split(rows, 3), strict=True)}
        return {**parts, **self._split_bias(bias)}

    def _split_bias(self, bias: str) -> dict[str, np.ndarray]:
        if bias not in self._state:
            return {}
        whole = self._take(bias)
        if whole.ndim != 1 or len(whole) % 3:
            raise ModelError(f"{bias} has shape {whole.shape}; expected those of queries, keys and values one after the other")
        return {f"b_{x}": part for x, part in zip("QKV", np.split(whole, 3), strict=True)}

    def _weight(self, path: str, *, transposed: bool = False) -> np.ndarray:
        """The weight of a module, or the tensor of that name."""
        tensor = self._take(f"{path}.weight" if f"{path}.weight" in self._state else path)
        if transposed and tensor.ndim != 2:
            raise ModelError(f"{path} has shape {tensor.shape}; expected two axes, as nn.Linear has")
        return np.asarray(tensor.T) if transposed else tensor

    def _maybe(self, ours: str, name: str) -> dict[str, np.ndarray]:
        return {ours: self._take(name)} if name in self._state else {}

    def _take(self, name: str) -> np.ndarray:
        if name not in self._state:
            listing = ", ".join(sorted(self._state))[:300]
            raise ModelError(f"the mapping names {name!r}, which is not in the model. It has: {listing}")
        self._taken.add(name)
        return self._state[name]


def _network(
    t: dict[str, np.ndarray],
    *,
    n_heads: int | None,
    n_ctx: int | None,
    act: Activation | None,
    norms: Mapping[str, Norm],
    post_norm: bool,
    divisor: Fraction,
    assumptions: tuple[str, ...],
    causal: bool | None,
) -> Network:
    if t["W_Q"].ndim != 3:
        if n_heads is None:
            raise ModelError("nothing says how many heads there are (several small heads have the shapes of a large one): say n_heads")
        if not isinstance(n_heads, int) or isinstance(n_heads, bool) or n_heads < 1:
            raise ModelError(f"n_heads={brief(n_heads)}: expected a positive integer")
        flat = [name for name in ("W_Q", "W_K", "W_V", "W_O") if t[name].ndim != 2]
        if flat:
            raise ModelError(f"{flat[0]} has shape {t[flat[0]].shape}; expected two axes, as W_Q has")
        t = {**t, **apart(t, n_heads, n_heads)}
    elif n_heads is not None and n_heads != len(t["W_Q"]):
        raise ModelError(f"n_heads={n_heads} was asked for, but W_Q has {len(t['W_Q'])} heads")
    t = {name: tensor for name, tensor in t.items() if not is_bias(name) or tensor.any()}
    if "W_pos" not in t and n_ctx is None:
        raise ModelError("the mapping has no pos_embed, and nothing says how many tokens there are: say n_ctx")
    mlp = {name.partition(".")[2]: tensor for name, tensor in t.items() if name.startswith("mlp.")}
    if mlp and (act is None or not {"W_in", "W_out"} <= set(mlp)):
        raise ModelError("an MLP needs mlp.in, mlp.out and what its neurons do: map 'act', or say act='relu' (gelu, gelu_new, silu)")
    whole: dict[str, Any] = {name: tensor for name, tensor in t.items() if "." not in name}
    table = whole.pop("W_pos", None)
    return Network(
        **whole,
        **dict[str, Any](norms),
        W_pos=table,
        n_ctx=len(table) if table is not None else n_ctx or 0,
        mlp=Mlp(act=act, **mlp) if mlp and act is not None else None,
        post_norm=post_norm,
        score_divisor_squared=divisor,
        assumptions=assumptions,
        causal=causal,
    )


def _norm(t: Mapping[str, np.ndarray], part: str, said: Settings, norm: str | None, eps: float | None) -> Norm:
    """The norm of a part; a state dict with weight and bias is one of LayerNorm."""
    weight, bias = t.get(f"{part}.weight"), t.get(f"{part}.bias")
    if part not in said.norms and weight is None:
        raise ModelError(f"the mapping names a norm for {part}, and the model has no parameters of that name")
    told = None if norm is None else _named(NormKind, "norm", norm)
    kind, own_eps = said.norms.get(part, (NormKind.LN if bias is not None else None, None))
    kind = _agreed("norm", kind, told)
    if kind is None:
        raise ModelError(f"{part} has no bias, so nothing says whether it is a LayerNorm or an RMSNorm: say norm='LN' or norm='RMS'")
    if eps is not None and as_float(eps) is None:
        raise ModelError(f"eps={brief(eps)}: expected a number that is not negative")
    found = _agreed("eps", own_eps, None if eps is None else float(eps))
    if found is None:
        raise ModelError(f"nothing says what {part} adds under the root: say eps (torch's default for nn.LayerNorm is 1e-5)")
    return Norm(kind, found, weight, bias)


def _agreed(name: str, own: Any, told: Any) -> Any:
    if own is not None and told is not None and own != told:
        raise ModelError(f"{name}={told} was asked for, but the module says {name}={own}")
    return own if own is not None else told


def _named(kinds: Any, name: str, given: str) -> Any:
    try:
        return kinds(given)
    except ValueError:
        raise ModelError(f"{name}={brief(given)}: expected {', '.join(kinds)}") from None


def _divisor(attn_scale: float | None, torchs_own: bool) -> Fraction:
    """The square of what scores are divided by; 0 stands for d_head."""
    if attn_scale is None:
        return Fraction(0)
    scale = as_float(attn_scale)
    if torchs_own:
        raise ModelError("nn.MultiheadAttention divides scores by sqrt(d_head); leave attn_scale out")
    if scale is None or not 0 < scale < float("inf"):
        raise ModelError(f"attn_scale={brief(attn_scale)}: expected a positive number, which scores are divided by")
    return Fraction(scale) ** 2


def _about(mapping: Mapping[str, str], unused: Collection[str], attn_scale: float | None, causal: bool | None) -> tuple[str, ...]:
    parts = ", ".join(f"{part} = {path}" for part, path in mapping.items())
    sentences = [f"by the user's word the model computes with these parts what Network does, each position seen by the last: {parts}"]
    if "attn" not in mapping and attn_scale is None:
        sentences.append("assumed attention scale 1/sqrt(d_head)")
    if causal:
        sentences.append("attention is causal, by the user's word")
    if unused:
        sentences.append(f"by the user's word these tensors play no part: {', '.join(sorted(map(str, unused)))}")
    return tuple(sentences)
