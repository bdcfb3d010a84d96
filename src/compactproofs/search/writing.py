"""Records: integers that compiled searches write down one after the other. Arrays and not lists, as lists take long to compile.

The first number of a record says where the next one goes.
"""

from __future__ import annotations

from typing import Any, no_type_check

from compactproofs.arrays.compiling import kernel


@kernel
@no_type_check
def begin(record: Any) -> None:
    """Make a record empty."""
    record[0] = 1


@kernel
@no_type_check
def put(record: Any, number: int) -> None:
    """Append a number. One that there is no room for is only counted; `written` then complains."""
    at = record[0]
    if at < record.shape[0]:
        record[at] = number
    record[0] = at + 1


@kernel
@no_type_check
def put_all(record: Any, numbers: Any) -> None:
    """Append all numbers."""
    for number in numbers:
        put(record, number)


@kernel
@no_type_check
def replace(record: Any, other: Any) -> None:
    """Make a record the same as another one."""
    for x in range(min(other[0], record.shape[0])):
        record[x] = other[x]


def written(record: Any) -> Any:
    """A copy of what was written."""
    if not 1 <= record[0] <= len(record):
        raise IndexError(f"a record of {record[0]} numbers does not fit into {len(record)}")
    return record[1 : record[0]].copy()
