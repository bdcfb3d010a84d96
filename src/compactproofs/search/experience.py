"""What steps of a search have cost and won so far: which to take next is learnt from that, and decides nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

_KEPT = 0.98
"""How much of what is remembered is kept at every new experience."""
_BEFOREHAND = 4.0
"""An expectation counts as much as so many experiences."""


@dataclass
class Experience:
    """Of one kind of step."""

    expected: float
    """Which part of a gap it closes, beforehand"""
    _gaps: float = field(init=False, default=0.0)
    _closed: float = field(init=False, default=0.0)
    _estimated: float = field(init=False, default=0.0)
    _seconds: float = field(init=False, default=0.0)
    _number: float = field(init=False, default=0.0)

    def learn(self, gap: float, closed: float, estimated: float, seconds: float) -> None:
        """A step closed so much of a gap, and took so long instead of what was estimated."""
        for name, value in (("_gaps", gap), ("_closed", closed), ("_estimated", estimated), ("_seconds", seconds), ("_number", 1.0)):
            setattr(self, name, _KEPT * getattr(self, name) + value)

    @property
    def part(self) -> float:
        """Which part of a gap is closed, about."""
        seen = self._closed / self._gaps if self._gaps > 0 else 0.0
        return (_BEFOREHAND * self.expected + self._number * seen) / (_BEFOREHAND + self._number)

    @property
    def slowness(self) -> float:
        """How much longer than estimated it takes."""
        seen = self._seconds / self._estimated if self._estimated > 0 else 1.0
        return (_BEFOREHAND + self._number * seen) / (_BEFOREHAND + self._number)
