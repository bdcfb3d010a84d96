"""What is said about a task wherever tasks are listed: on the command line, on its page, in tables of results."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Described:
    """A task in words. Its page is made from this and from its automaton."""

    usage: str
    """How it is written, with capital letters for numbers: `kth-largest:N`"""
    title: str
    """The right output, in one line"""
    example: str
    """One of them, as it is written: `kth-largest:2`"""
    definition: str
    """All there is to say about the right output: ties, copies, sequences without one"""
    remembers: str
    """What the automaton knows between two tokens, and how many states that takes"""

    @property
    def name(self) -> str:
        """Without what stands behind the colon."""
        return self.usage.partition("[")[0].partition(":")[0]
