"""Text that comes from files, before anybody looks at it."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with every character that is not printable written as an escape, so that no file can move the cursor or colour a verdict."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def as_utf8(text: str) -> str:
    """The text with what UTF-8 cannot hold, bytes of odd file names, written as an escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
