"""What is wrong with result files: a report is made only from parts that hold what they should. Numbers are numbers, so none is HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

Right = Callable[[Any], bool]
"""Whether a value is of the kind that is expected."""

TABLES = {"EQKE": "vv", "EQKP": "vk", "EVOU": "vo", "PVOU": "ko", "EU": "vo"}
"""The tables and their sizes: v tokens, k positions, o outputs."""


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and (isinstance(value, int) or math.isfinite(value))


def _size(value: Any) -> bool:
    return type(value) is int and value > 0


def _or_null(right: Right) -> Right:
    return lambda value: value is None or right(value)


def _list(right: Right, length: int | None = None) -> Right:
    return lambda value: isinstance(value, list) and length in (None, len(value)) and all(map(right, value))


def _named(right: Right) -> Right:
    return lambda value: isinstance(value, dict) and all(map(right, value.values()))


def _object(fields: Mapping[str, Right], **optional: Right) -> Right:
    return lambda value: isinstance(value, dict) and not any(_wrong(value, fields, optional))


def _wrong(value: dict[str, Any], fields: Mapping[str, Right], optional: Mapping[str, Right]) -> Iterator[str]:
    """Fields that are missing or of another kind."""
    yield from (name for name, right in fields.items() if name not in value or not right(value[name]))
    yield from (name for name, right in optional.items() if name in value and not right(value[name]))


_ROWS = _list(_list(_number))
_CUBE = _list(_list(_list(_number)))

_SUMMARY: dict[str, Right] = {
    "name": _text,
    **dict.fromkeys(("d_vocab", "d_vocab_out", "d_model", "d_head", "n_ctx"), _size),
    "sha256": _text,
    "task": _text,
    "theorem": _or_null(_text),
    "best": _or_null(_text),
    "accuracy": _object({"accuracy": _number, "method": _text, "interval": _list(_number, 2), "confidence": _number}),
    "assumptions": _list(_text),
}

_PROOF: dict[str, Right] = {
    **dict.fromkeys(("label", "family", "status", "weights_sha256"), _text),
    **dict.fromkeys(("variant", "reason"), _or_null(_text)),
    **dict.fromkeys(("lower", "flops", "unexplained_dimensions", "seconds"), _number),
    "upper": _or_null(_number),
    "parameters": _object({}, attention_error=_text),
}

_EXPLORER: dict[str, Right] = {
    "strategies": _named(_object({"certified": _ROWS, "lost": _ROWS}, examples=_CUBE, examples_right=_ROWS)),
    **dict.fromkeys(("harms", "examples"), _CUBE),
    **dict.fromkeys(("budget", "output", "examples_right"), _ROWS),
}

_MEASUREMENTS: dict[str, Right] = {
    "weights_sha256": _text,
    "statistics": _named(_or_null(_number)),
    "histograms": _named(_object({"bins": _list(_number), "weights": _list(_number)}, expected=_list(_or_null(_number)))),
    "ablations": _object({"results": _list(_object({"zeroed": _list(_text), "accuracy": _or_null(_number)}))}),
}


def faults(parts: Mapping[str, Any], tables: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Names of what is damaged, such as `summary.name`; nothing if a report can be made."""
    summary, proofs, explorer, measurements = (parts[name] for name in ("summary", "proofs", "explorer", "measurements"))
    for name, value, fields in (("summary", summary, _SUMMARY), ("measurements", measurements, _MEASUREMENTS)):
        yield from [f"{name}.{field}" for field in _wrong(value, fields, {})] if isinstance(value, dict) else [name]
    if not isinstance(proofs, list):
        yield "proofs"
        return
    for number, proof in enumerate(proofs):
        yield from (
            [f"proofs[{number}].{field}" for field in _wrong(proof, _PROOF, {})] if isinstance(proof, dict) else [f"proofs[{number}]"]
        )
    if not isinstance(explorer, dict):
        yield "explorer"
    elif explorer:
        yield from (f"explorer.{field}" for field in _wrong(explorer, _EXPLORER, {}))
    yield from _faults_of_tables(summary, tables)


def _faults_of_tables(summary: Any, tables: Mapping[str, np.ndarray]) -> Iterator[str]:
    if not isinstance(summary, dict):
        return
    sizes = {"v": summary.get("d_vocab"), "k": summary.get("n_ctx"), "o": summary.get("d_vocab_out")}
    for name, axes in TABLES.items():
        if name not in tables or tables[name].shape != tuple(sizes[axis] for axis in axes) or not np.isfinite(tables[name]).all():
            yield name


def of_other_weights(parts: Mapping[str, Any]) -> Iterator[str]:
    """Parts about another network than the summary: a folder that two reports wrote to."""
    wanted = parts["summary"]["sha256"]
    if any(proof["weights_sha256"] != wanted for proof in parts["proofs"]):
        yield "proofs"
    if parts["measurements"]["weights_sha256"] != wanted:
        yield "measurements"
