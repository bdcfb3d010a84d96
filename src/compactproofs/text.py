"""Text that comes from files, before anybody looks at it."""

from __future__ import annotations

from collections.abc import Iterable


def printable(text: str) -> str:
    """The text with every character that is not printable written as an escape, so that no file can move the cursor or colour a verdict."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def as_utf8(text: str) -> str:
    """The text with what UTF-8 cannot hold, bytes of odd file names, written as an escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'max-of-4'?` if a known name is much like this one, else nothing.

    Example:
        >>> did_you_mean("treshold-best", ["threshold-best", "cubic"])
        "; did you mean 'threshold-best'?"
        >>> did_you_mean("banana", ["threshold-best", "cubic"])
        ''
    """
    from difflib import get_close_matches

    close = get_close_matches(name[:100], list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
