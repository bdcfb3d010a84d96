"""How much memory there is: what cannot fit is refused in words, before anything is computed."""

from __future__ import annotations

import os

from compactproofs.errors import InfeasibleError


def require_memory(needed: int, what: str, instead: str) -> None:
    """Raise if this machine has less than `needed` bytes."""
    there = installed_memory()
    if there is not None and needed > there:
        raise InfeasibleError(f"{what} would take about {needed / 1e9:.1f} GB of memory, and there are {there / 1e9:.1f}; {instead}")


def installed_memory() -> int | None:
    """Bytes of this machine, if it tells."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else None
