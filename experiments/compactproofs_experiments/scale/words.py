"""Numbers and tables as a reader wants them."""

from __future__ import annotations

import math
from collections.abc import Sequence


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *lines))


def span(least: float, most: float, form: str) -> str:
    """A range, or one number if both ends look the same."""
    ends = [form.format(end + 0.0) for end in (least, most)]
    ends = [end.removeprefix("-") if not end.strip("-0.%") else end for end in ends]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def number(value: float, digits: int = 3) -> str:
    """Significant digits, thousands apart."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = round(value, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{rounded:,.0f}" if abs(rounded) >= 10 ** (digits - 1) else f"{rounded:.{digits}g}"


def clock(seconds: float) -> str:
    """A duration in the unit that suits it."""
    for unit, size in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= (2 if unit == "days" else 1) * size:
            return f"{number(seconds / size)} {unit}"
    return f"{number(seconds)} s"


def listed(words: Sequence[str]) -> str:
    """A, B and C."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1] if words else ""


def size(count: float) -> str:
    """Bytes in the unit that suits them."""
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if count >= 10**power:
            return f"{number(count / 10**power)} {unit}"
    return f"{count:.0f} B"


def formula(stated: str) -> str:
    """A stated complexity as a formula, with the words that follow it."""
    complexity, _, words = stated.partition(" and ")
    return (
        (f"${complexity.replace('^(k+1)', '^{k+1}').replace('log', chr(92) + 'log')}$" + (f" and {words}" if words else ""))
        if stated
        else ""
    )
