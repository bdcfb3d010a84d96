"""Small pieces that several bounds share: maxima that leave out the label, and the worst position."""

from __future__ import annotations

from typing import Any

import numpy as np


def worst_position(PVOU: Any, labels: np.ndarray) -> Any:
    """Upper-bound what positions add to output o over label m.

    Guarantee: result[m, o] = max_i (PVOU[i, o] - PVOU[i, m]) is at least any weighted mean over positions.
    Cost: O(n_ctx d_vocab d_vocab_out).
    """
    return (PVOU[:, None] - PVOU[:, labels][:, :, None]).max(axis=0)


def excluding_label(x: Any, labels: np.ndarray) -> Any:
    """x[m, o] with minus infinity at o = label m, so that a maximum over o leaves the label out."""
    return np.where(np.arange(x.shape[1])[None] == labels[:, None], -np.inf, x)


def max_excluding_label(x: Any, labels: np.ndarray) -> Any:
    """result[r, m] = max over outputs o != labels[m] of x[r, o]; minus infinity if there is no other output.

    Cost: O(rows d_vocab_out), by running maxima from both ends.
    """
    nothing = np.full((x.shape[0], 1), -np.inf)
    from_left = np.concatenate([nothing, np.maximum.accumulate(x, axis=1)], axis=1)
    from_right = np.concatenate([nothing, np.maximum.accumulate(x[:, ::-1], axis=1)], axis=1)
    return np.maximum(from_left[:, labels], from_right[:, x.shape[1] - 1 - labels])
