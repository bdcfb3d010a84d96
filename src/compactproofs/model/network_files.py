"""Our own layout of a `Network` in a file: tensors under the names of `network.AXES`, and all settings in one metadata field.

The field `network` holds `Network.settings` as JSON. Numbers that are not integers are hexadecimal float64: nothing is rounded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from compactproofs.errors import ModelError
from compactproofs.model.fields import DIRECTIONS
from compactproofs.model.network import AXES, Activation, Mlp, Network, Norm, NormKind, Rotary

SETTINGS = "network"
"""The metadata field."""

_FREE = ("training", "format", "task", "producer", "seed", "name", "assumptions", "attention_dir")
"""Metadata that does not change the function."""

_NAMES = {"n_ctx", "score_divisor_squared", "norm_1", "norm_2", "norm_final", "act", "rotary", "alibi", "post_norm"}


def encoded_assumptions(assumptions: tuple[str, ...]) -> dict[str, str]:
    """The metadata field in which they are kept, if there are any."""
    return {"assumptions": json.dumps(list(assumptions))} if assumptions else {}


def decoded_assumptions(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """What the field holds."""
    try:
        assumptions = json.loads(metadata.get("assumptions", "[]"))
    except (ValueError, TypeError, RecursionError):
        assumptions = None
    if not isinstance(assumptions, list) or not all(isinstance(text, str) for text in assumptions):
        raise ModelError("the metadata field 'assumptions' is damaged: expected a JSON list of sentences")
    return tuple(assumptions)


def encoded_direction(causal: bool | None) -> dict[str, str]:
    """The metadata field that says whether attention is causal, if anything does."""
    return {} if causal is None else {"attention_dir": next(name for name, value in DIRECTIONS.items() if value is causal)}


def encoded(network: Network) -> dict[str, str]:
    """The metadata; the tensors are `network.tensors`."""
    return {
        SETTINGS: json.dumps(network.settings, sort_keys=True, separators=(",", ":")),
        **encoded_assumptions(network.assumptions),
        **encoded_direction(network.causal),
    }


def decoded(tensors: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> Network:
    """The network of a file in this layout."""
    other = sorted(set(metadata) - {SETTINGS, *_FREE})
    if other:
        raise ModelError(f"the file has {SETTINGS!r} in its metadata, which says everything, and besides it says {', '.join(other)!s:.200}")
    unknown, missing = sorted(set(tensors) - set(AXES)), sorted({"W_E", *(f"W_{x}" for x in "QKVOU")} - set(tensors))
    if unknown or missing:
        raise ModelError(f"tensors that are not known: {', '.join(unknown) or 'none'}; missing: {', '.join(missing) or 'none'}")
    try:
        said = json.loads(metadata[SETTINGS], object_pairs_hook=_unique)
        if not isinstance(said, dict) or set(said) != _NAMES:
            raise ValueError(f"expected the fields {', '.join(sorted(_NAMES))}")
        direction = metadata.get("attention_dir")
        if direction is not None and direction not in DIRECTIONS:
            raise ModelError(f"the metadata says attention_dir={direction!r:.40}; expected {' or '.join(DIRECTIONS)}")
        network = _network(dict(tensors), said, decoded_assumptions(metadata))
        return replace(network, causal=None if direction is None else DIRECTIONS[direction])
    except (ValueError, TypeError, KeyError, RecursionError, ZeroDivisionError, AttributeError) as error:
        raise ModelError(f"the metadata field {SETTINGS!r} is damaged: {error!s:.200}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a field occurs twice")
    return dict(pairs)


def _typed(value: Any, *kinds: type) -> Any:
    """A value of just these types, several for a list of just that length."""
    if len(kinds) > 1:
        if not isinstance(value, list) or [type(x) for x in value] != list(kinds):
            raise ValueError(f"{value!r:.60} where {', '.join(kind.__name__ for kind in kinds)} were expected")
    elif type(value) is not kinds[0]:
        raise ValueError(f"{value!r:.60} where {kinds[0].__name__} was expected")
    return value


def _network(tensors: dict[str, np.ndarray], said: dict[str, Any], assumptions: tuple[str, ...]) -> Network:
    parts = {name: tensors.pop(name) for name in [*tensors] if "." in name}
    whole: dict[str, Any] = dict(tensors)

    def part(prefix: str) -> dict[str, np.ndarray]:
        return {name.partition(".")[2]: parts.pop(name) for name in [*parts] if name.startswith(prefix + ".")}

    def norm(name: str) -> Norm | None:
        if said[name] is None:
            return None
        kind, eps = _typed(said[name], str, str)
        return Norm(NormKind(kind), float.fromhex(eps), **part(name))

    norms: dict[str, Any] = {name: norm(name) for name in ("norm_1", "norm_2", "norm_final")}
    mlp = None if said["act"] is None else Mlp(act=Activation(_typed(said["act"], str)), **part("mlp"))
    if parts:
        raise ModelError(f"tensors of parts that the settings say are absent: {', '.join(sorted(parts))}")
    rotary = None if said["rotary"] is None else _typed(said["rotary"], int, str, bool)
    divisor = Fraction(_typed(said["score_divisor_squared"], str))
    if divisor <= 0:
        raise ValueError("score_divisor_squared is not positive")
    return Network(
        W_pos=whole.pop("W_pos", None),
        **whole,
        **norms,
        mlp=mlp,
        n_ctx=_typed(said["n_ctx"], int),
        rotary=None if rotary is None else Rotary(rotary[0], float.fromhex(rotary[1]), rotary[2]),
        alibi=None if said["alibi"] is None else tuple(_typed(e, int) for e in _typed(said["alibi"], list)),
        post_norm=_typed(said["post_norm"], bool),
        score_divisor_squared=divisor,
        assumptions=assumptions,
    )
