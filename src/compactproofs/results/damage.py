"""What is wrong with results: pages are made only of rows that hold what they should. Numbers are numbers, so none is HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from compactproofs.results.schema import EXPLORER, LEDGER, MECHANISM, STATISTICS, TABLES

Right = Callable[[Any], bool]
"""Whether a value is of the kind that is expected."""

_AXES = {
    "EQKE": ("d_vocab", "d_vocab"),
    "EQKP": ("d_vocab", "n_ctx"),
    "EVOU": ("d_vocab", "d_vocab_out"),
    "PVOU": ("n_ctx", "d_vocab_out"),
    "EU": ("d_vocab", "d_vocab_out"),
}
"""The tables and their sizes."""


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and (isinstance(value, int) or math.isfinite(value))


def _one_of(*words: str) -> Right:
    return lambda value: isinstance(value, str) and value in words


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

_NUMBERS = ("lower", "upper", "flops", "unexplained_dimensions", "seconds", "accuracy", "accuracy_low", "accuracy_high", "singular_ratio")

_EXPLORER: dict[str, Right] = {
    "strategies": _named(_object({"certified": _ROWS, "lost": _ROWS}, examples=_CUBE, examples_right=_ROWS)),
    **dict.fromkeys(("harms", "examples"), _CUBE),
    **dict.fromkeys(("budget", "output", "examples_right"), _ROWS),
}

_MECHANISM: dict[str, Right] = {
    "histograms": _named(_object({"bins": _list(_number), "weights": _list(_number)}, expected=_list(_or_null(_number)))),
    "ablations": _object({"results": _list(_object({"zeroed": _list(_text), "accuracy": _or_null(_number)}))}),
}


_TERM = _object({"kind": _text, "outputs": _list(_number), "number": _number, "counted": _number, "harmful": _list(_list(_number, 2))})
_LEAF = _object(
    {
        "when": _list(_list(_number, 3)),
        "fate": _one_of("given up", "refused", "counted"),
        "terms": _list(_TERM),
        **dict.fromkeys(("mass", "left", "covered", "listed"), _number),
    },
    hardest=_list(_number),
    answer=_number,
)
_LEDGER: dict[str, Right] = {
    "blocks": _list(
        _object({"queries": _list(_number), "leaves": _list(_LEAF), **dict.fromkeys(("label", "mass", "left", "number"), _number)})
    ),
    "outputs": _number,
}

_OBJECTS = {EXPLORER: _EXPLORER, MECHANISM: _MECHANISM, LEDGER: _LEDGER}


def faults_of_proof(row: Mapping[str, Any]) -> Iterator[str]:
    """Names of columns that cannot be shown: numbers that are none, parameters that are no object."""
    yield from (name for name in _NUMBERS if row[name] is not None and not _number(row[name]))
    if not _object({}, attention_error=_text)(row["parameters"]):
        yield "parameters"


def faults_of_document(kind: str, data: Any, sizes: Mapping[str, int]) -> Iterator[str]:
    """Names of what is damaged in a document, such as `explorer.budget`; nothing if a report can be made."""
    if kind == STATISTICS:
        yield from () if _named(_or_null(_number))(data) else (kind,)
    elif not isinstance(data, dict):
        yield kind
    elif kind == TABLES:
        yield from (f"{kind}.{name}" for name, axes in _AXES.items() if not _is_table(data.get(name), [sizes[axis] for axis in axes]))
    elif data:
        yield from (f"{kind}.{field}" for field in _wrong(data, _OBJECTS.get(kind, {}), {}))


def _is_table(value: Any, shape: list[int]) -> bool:
    return _list(_list(_number, shape[1]), shape[0])(value)
