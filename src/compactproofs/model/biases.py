"""Networks with biases as equal networks without: the residual stream gets coordinates that are constant.

With h' = [h, 1, b_O], that is W_E' = [W_E, 1, b_O] and W_pos' = [W_pos, 0, 0], let

    W_Q' = [W_Q; b_Q; 0],  W_K' = [W_K; b_K; 0],  W_V' = [W_V; b_V; 0],  W_O' = [W_O, 0, 0],  W_U' = [W_U; b_U; W_U].

Then h' W_Q' = h W_Q + b_Q, likewise keys and values; and as attention adds up to 1,

    (sum_i a_i h'_i W_V' W_O' + h'_q) W_U' = (sum_i a_i (h_i W_V + b_V) W_O + b_O + h_q) W_U + b_U.

Every entry is a float32 number of the file, or 0, or 1: nothing is multiplied out, nothing rounded. So everything that is proven about the
one network is true of the other, over the real numbers; and proofs, certificates and the checker need not know.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compactproofs.errors import ModelError

BIASES = {"b_Q": "d_head", "b_K": "d_head", "b_V": "d_head", "b_O": "d_model", "b_U": "d_vocab_out"}
"""The biases that an attention-only network can have, and the axes they add to."""


def without_biases(tensors: Mapping[str, np.ndarray], biases: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """The seven tensors of the equal network, and a sentence about it; the same tensors, and nothing, if all biases are zero."""
    sizes = {"d_head": tensors["W_Q"].shape[-1], "d_model": tensors["W_E"].shape[-1], "d_vocab_out": tensors["W_U"].shape[-1]}
    found = {name: _checked(name, biases[name], sizes[axis]) for name, axis in BIASES.items() if name in biases}
    used = {name: bias for name, bias in found.items() if np.any(bias)}
    if not used:
        return dict(tensors), ()
    d, kept = sizes["d_model"], "b_O" in used
    b = {name: used.get(name, np.zeros(sizes[axis], np.float32)) for name, axis in BIASES.items()}
    v, k = len(tensors["W_E"]), len(tensors["W_pos"])
    one, own = np.ones((v, 1), np.float32), np.tile(b["b_O"], (v, 1))[:, : d if kept else 0]
    extra = 1 + own.shape[1]
    nothing = np.zeros((own.shape[1], sizes["d_head"]), np.float32)
    widened = {
        "W_E": np.hstack([tensors["W_E"], one, own]),
        "W_pos": np.hstack([tensors["W_pos"], np.zeros((k, extra), np.float32)]),
        **{f"W_{x}": np.vstack([tensors[f"W_{x}"], b[f"b_{x}"][None], nothing]) for x in "QKV"},
        "W_O": np.hstack([tensors["W_O"], np.zeros((sizes["d_head"], extra), np.float32)]),
        "W_U": np.vstack([tensors["W_U"], b["b_U"][None], tensors["W_U"][: own.shape[1]]]),
    }
    names = ", ".join(sorted(used))
    about = f"the biases {names} are constant coordinates of the residual stream: an equal network with d_model {d + extra} instead of {d}"
    return widened, (about,)


def with_biases(tensors: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]] | None:
    """The other way: seven tensors and biases, of which `without_biases` makes just these tensors; None if there are none."""
    wide = tensors["W_E"].shape[1]
    for d, kept in (((wide - 1) // 2, True), (wide - 1, False)):
        if d < 1 or wide != (2 * d + 1 if kept else d + 1):
            continue
        narrow = {name: tensors[name][:, :d] if name in ("W_E", "W_pos", "W_O") else tensors[name][:d] for name in tensors}
        biases = {f"b_{x}": tensors[f"W_{x}"][d] for x in "QKVU"} | ({"b_O": tensors["W_E"][0, d + 1 :]} if kept else {})
        again, _ = without_biases(narrow, biases)
        if all(np.array_equal(again[name], tensors[name]) for name in tensors):
            return narrow, {name: bias for name, bias in biases.items() if np.any(bias)}
    return None


def _checked(name: str, bias: np.ndarray, size: int) -> np.ndarray:
    """A vector of float32 numbers; a head axis of its own is left out."""
    vector = bias[0] if bias.ndim == 2 and bias.shape[0] == 1 else bias
    if vector.shape != (size,):
        raise ModelError(f"{name} has shape {tuple(bias.shape)}; expected ({size},)")
    if vector.dtype not in (np.float32, np.float64) or not np.isfinite(vector).all():
        raise ModelError(f"{name} has type {bias.dtype} or entries that are not finite; expected finite float32 numbers")
    return np.asarray(vector)
