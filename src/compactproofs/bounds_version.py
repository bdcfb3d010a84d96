"""The version of the bounds: a hash of the code that computes them.

A package version changes with a release, the code of a bound may change in between; results are kept under the hash, so that no change, in
development or after an upgrade, leaves a number standing that today's code would not give.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

BOUNDS = (
    *("arrays", "bounds", "budget.py", "counting", "form", "ledger", "measuring.py"),
    *("model", "positions.py", "proof.py", "proving.py", "search", "strategies", "tasks", "theorems.py"),
)
"""What bounds and measured accuracies depend on, within the package."""

MEASUREMENTS = (*BOUNDS, "interpretation")
"""What measurements of the mechanism depend on."""

_NOT = ("zoo.py",)


@cache
def code_version(parts: tuple[str, ...] = BOUNDS) -> str:
    """Twelve hexadecimal digits that change with any of these files."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for part in parts:
        files = [package / part] if part.endswith(".py") else sorted((package / part).rglob("*.py"))
        for file in files:
            name = file.relative_to(package)
            if not any(word in name.parts for word in _NOT):
                digest.update(name.as_posix().encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:12]
