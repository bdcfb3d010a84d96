"""Hints from nowhere."""

from dataclasses import replace

import numpy as np

from compactproofs.bounds.jensen import UNITS
from compactproofs.bounds.relaxation import WHOLE, Typical


def hostile_hints(hints, heads, rng):
    """Hints with one part replaced."""
    n_places = len(hints.typical.tokens)
    part = rng.choice([name for name in ("typical", "neurons", "norm", "final") if getattr(hints, name) is not None])
    if part == "typical":
        weights = rng.multinomial(WHOLE, np.ones(n_places) / n_places, size=heads)
        return replace(hints, typical=Typical(hints.typical.positions, hints.typical.tokens, weights))
    old = getattr(hints, part)
    if part == "neurons":
        shares = rng.integers(1, int(UNITS) // heads + 1, size=old.shares.shape) / UNITS
        width = np.where(np.isfinite(old.high) & np.isfinite(old.low), old.high - old.low, 0.0)
        changes = {
            "point": {"point": old.point + rng.choice([1.0, 10.0]) * rng.normal(size=len(old.point))},
            "bent": {"bent": rng.random(len(old.point)) < 0.5, "shares": shares},
            "wider": {"low": old.low - rng.exponential(), "high": old.high + rng.exponential()},
            "narrower": {"low": old.low + 0.2 * width, "high": old.high - 0.2 * width},
            "on by no range": {"low": np.full_like(old.low, np.inf), "bent": np.zeros_like(old.bent)},
            "off by no range": {"high": np.full_like(old.high, -np.inf), "bent": np.zeros_like(old.bent)},
            "one share for all heads": {"bent": np.ones_like(old.bent), "shares": np.ones((1, old.shares.shape[1]))},
            "one neuron for all": {"bent": np.array([True])},
            "not numbers": {"low": old.low * np.nan, "point": old.point * np.nan},
        }
    elif part == "final":
        e = rng.normal(size=len(old.down))
        changes = {
            "shorter": {"down": old.down * rng.uniform(0.2, 1.0)},
            "other": {"down": e / np.linalg.norm(e) * rng.choice([0.5, 1.0 - 1e-9, 1.1])},
            "shares": {"shares": rng.integers(1, int(UNITS) // heads + 1, size=old.shares.shape) / UNITS},
            "one share for all heads": {"shares": np.ones(1)},
            "not numbers": {"down": old.down * np.nan},
        }
    else:
        e = rng.normal(size=len(old.down))
        shorter, other = old.down * rng.uniform(0.2, 1.0), e / np.linalg.norm(e) * rng.choice([0.5, 1.0 - 1e-9, 1.1])
        factor = rng.choice([0.9, 1.1])
        changes = {
            "shorter": {"down": shorter, "low": tuple(x - 2.0 for x in old.low)},
            "other": {"down": other, "low": tuple(x - 9.0 for x in old.low), "high": tuple(x + 9.0 for x in old.high)},
            "spread": {"spread": old.spread * factor, "least": old.least * rng.choice([1.0, 0.8, 1.2])},
            "one coordinate for all": {"spread": old.spread[:1], "bent": False},
            "one share for all heads": {"bent": True, "shares": np.ones(1)},
            "not numbers": {"spread": old.spread * np.nan, "least": np.nan, "high": (np.nan, np.nan)},
            "range": {"low": tuple(x - rng.normal() for x in old.low), "high": tuple(x + rng.normal() for x in old.high)},
        }
    return replace(hints, **{part: replace(old, **changes[rng.choice(list(changes))])})
