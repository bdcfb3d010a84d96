"""Our own layout of a `Network` in a file: tensors under the names of `network.AXES`, and all settings in one metadata field.

The field `network` holds `Network.settings` as JSON. Numbers that are not integers are hexadecimal float64: nothing is rounded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from compactproofs.errors import ModelError
from compactproofs.model.network import AXES, Activation, Mlp, Network, Norm, NormKind, Rotary

SETTINGS = "network"
"""The metadata field."""

_FREE = ("training", "format", "task", "producer", "seed", "name", "assumptions")
"""Metadata that does not change the function."""

_NAMES = {"n_ctx", "score_divisor_squared", "norm_1", "norm_2", "norm_final", "act", "rotary", "alibi", "post_norm"}


def encoded(network: Network) -> dict[str, str]:
    """The metadata; the tensors are `network.tensors`."""
    return {
        SETTINGS: json.dumps(network.settings, sort_keys=True, separators=(",", ":")),
        **({"assumptions": json.dumps(list(network.assumptions))} if network.assumptions else {}),
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
        said = json.loads(metadata[SETTINGS])
        if not isinstance(said, dict) or set(said) != _NAMES:
            raise ValueError(f"expected the fields {', '.join(sorted(_NAMES))}")
        assumptions = json.loads(metadata.get("assumptions", "[]"))
        if not isinstance(assumptions, list) or not all(isinstance(text, str) for text in assumptions):
            raise ValueError("assumptions are not a list of sentences")
        return _network(dict(tensors), said, tuple(assumptions))
    except (ValueError, TypeError, KeyError, RecursionError, ZeroDivisionError, AttributeError) as error:
        raise ModelError(f"the metadata field {SETTINGS!r} is damaged: {error!s:.200}") from None


def _network(tensors: dict[str, np.ndarray], said: dict[str, Any], assumptions: tuple[str, ...]) -> Network:
    parts = {name: tensors.pop(name) for name in [*tensors] if "." in name}
    whole: dict[str, Any] = dict(tensors)

    def part(prefix: str) -> dict[str, np.ndarray]:
        return {name.partition(".")[2]: parts.pop(name) for name in [*parts] if name.startswith(prefix + ".")}

    def norm(name: str) -> Norm | None:
        return None if said[name] is None else Norm(NormKind(said[name][0]), float.fromhex(said[name][1]), **part(name))

    norms: dict[str, Any] = {name: norm(name) for name in ("norm_1", "norm_2", "norm_final")}
    mlp = None if said["act"] is None else Mlp(act=Activation(said["act"]), **part("mlp"))
    if parts:
        raise ModelError(f"tensors of parts that the settings say are absent: {', '.join(sorted(parts))}")
    rotary = said["rotary"]
    return Network(
        W_pos=whole.pop("W_pos", None),
        **whole,
        **norms,
        mlp=mlp,
        n_ctx=int(said["n_ctx"]),
        rotary=None if rotary is None else Rotary(int(rotary[0]), float.fromhex(rotary[1]), bool(rotary[2])),
        alibi=None if said["alibi"] is None else tuple(int(e) for e in said["alibi"]),
        post_norm=bool(said["post_norm"]),
        score_divisor_squared=Fraction(said["score_divisor_squared"]),
        assumptions=assumptions,
    )
