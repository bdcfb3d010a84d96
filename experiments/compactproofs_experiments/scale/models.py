"""Models whose weights do not matter."""

from __future__ import annotations

import numpy as np

import compactproofs as cp


def random_weights(v: int, k: int, d: int, h: int) -> cp.Weights:
    """Normal weights of these sizes."""
    rng = np.random.default_rng(0)
    shapes = {"W_E": (v, d), "W_pos": (k, d), "W_Q": (d, h), "W_K": (d, h), "W_V": (d, h), "W_O": (h, d), "W_U": (d, v)}
    return cp.Weights(**{name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()})
