"""Small pieces of Markdown: tables and numbers, written the same way on every page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from compactproofs_experiments.reproduction.summaries import Spread

NOTHING = "-"
"""Stands where there is no number."""

_PLUS_MINUS = "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; columns after the first are aligned to the right, except those whose title ends in a space."""
    marks = ["---" if number == 0 or title.endswith(" ") else "---:" for number, title in enumerate(columns)]
    lines = [[title.strip() for title in columns], marks, *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines)


def number(value: float | None, digits: int = 4) -> str:
    """With so many decimals; tiny numbers in powers of ten."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value != 0 and abs(value) < 0.5 * 10**-digits:
        exponent = math.floor(math.log10(abs(value)))
        return f"{value / 10**exponent:.1f}·10{superscript(exponent)}"
    return f"{value:.{digits}f}"


def signed_number(value: float, digits: int = 4) -> str:
    """The same with its sign."""
    return ("+" if value >= 0 else "") + number(value, digits)


def plus_minus(found: Spread | None, digits: int = 4) -> str:
    """Mean ± standard deviation."""
    return NOTHING if found is None else mean_std(found.mean, found.std, digits)


def mean_std(mean: float | None, std: float | None, digits: int = 4) -> str:
    """Mean ± standard deviation, where there is one."""
    return number(mean, digits) + ("" if std is None or mean is None else f"{_PLUS_MINUS}{number(std, digits)}")


def power_of_two(value: float | None) -> str:
    """The nearest power of two, as the paper rounds lengths."""
    return NOTHING if value is None or value <= 0 else f"2{superscript(round(math.log2(value)))}"


def superscript(exponent: int) -> str:
    """Digits above the line."""
    return str(exponent).translate(_SUPERSCRIPTS)


def significant(value: float | None, digits: int = 4) -> str:
    """So many significant digits."""
    return NOTHING if value is None or not math.isfinite(value) else f"{value:.{digits}g}"


def signed(value: float | None) -> str:
    """A distance, with its sign; beyond a thousand the order of magnitude is enough."""
    if value is None or math.isnan(value):
        return NOTHING
    return f"{value:+.1f}" if abs(value) < 1000 else f"{value:+.0e}"


def duration(seconds: float | None) -> str:
    """Seconds below two minutes, then minutes, then hours."""
    if seconds is None:
        return NOTHING
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def count(n: int, thing: str, things: str | None = None) -> str:
    """`1 model`, `2 models`."""
    return f"{n:,} {thing if n == 1 else things or thing + 's'}"


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def mean_std_significant(mean: float | None, std: float | None) -> str:
    """Mean ± standard deviation, with significant digits."""
    return significant(mean) + ("" if std is None or mean is None else f"{_PLUS_MINUS}{significant(std, 3)}")


def capitalised(text: str) -> str:
    """With a capital first letter, the rest as it is."""
    return text[:1].upper() + text[1:]


def paragraph(text: str) -> str:
    """On one line."""
    return " ".join(text.split())


def joined(parts: Iterable[str]) -> str:
    """Parts that are not empty, with an empty line between them."""
    return "\n\n".join(text for part in parts if (text := part.rstrip("\n"))) + "\n"
