"""The weights of a one-layer, one-head, attention-only transformer: frozen, validated, hashed.

Everything the package proves is a statement about the real numbers that these float32 values are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compactproofs.arrays.environment import require_ieee754
from compactproofs.errors import ModelError

TENSOR_NAMES = ("W_E", "W_pos", "W_Q", "W_K", "W_V", "W_O", "W_U")

_AXES = {
    "W_E": ("d_vocab", "d_model"),
    "W_pos": ("n_ctx", "d_model"),
    "W_Q": ("d_model", "d_head"),
    "W_K": ("d_model", "d_head"),
    "W_V": ("d_model", "d_head"),
    "W_O": ("d_head", "d_model"),
    "W_U": ("d_model", "d_vocab_out"),
}


@dataclass(frozen=True, eq=False, repr=False)
class Weights:
    """One attention head, no MLP, no normalisation, no biases; every dimension may differ from every other.

    The network reads tokens x_0 .. x_{n_ctx-1}; the last one is the query. With h_i = W_E[x_i] + W_pos[i],
    scores s_i = (h_last W_Q) . (h_i W_K) / sqrt(score_divisor_squared) and attention a = softmax(s), the logits are
    (sum_i a_i h_i W_V W_O + h_last) W_U.

    Two `Weights` are equal when they define the same network bit for bit (the same `sha256`).

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> shapes = {"W_E": (5, 3), "W_pos": (2, 3), "W_Q": (3, 4), "W_K": (3, 4), "W_V": (3, 4), "W_O": (4, 3), "W_U": (3, 5)}
        >>> weights = Weights(**{name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()})
        >>> weights.d_vocab, weights.d_head, weights.n_ctx
        (5, 4, 2)
    """

    W_E: np.ndarray
    """Token embedding, (d_vocab, d_model)."""
    W_pos: np.ndarray
    """Positional embedding, (n_ctx, d_model)."""
    W_Q: np.ndarray
    """Query matrix, (d_model, d_head)."""
    W_K: np.ndarray
    """Key matrix, (d_model, d_head)."""
    W_V: np.ndarray
    """Value matrix, (d_model, d_head)."""
    W_O: np.ndarray
    """Output matrix, (d_head, d_model)."""
    W_U: np.ndarray
    """Unembedding, (d_model, d_vocab_out)."""
    score_divisor_squared: Fraction = field(default=Fraction(0))
    """Attention scores are divided by the square root of this rational; 0 (the default) stands for d_head."""
    assumptions: tuple[str, ...] = ()
    """What was assumed about the model for want of a configuration; copied into every result."""
    rewritten: bool = False
    """Whether the file has a network that is equal over the real numbers, but computes in other steps: nothing is said about its float32
    arithmetic."""
    causal: bool | None = None
    """Whether a position sees the tokens up to it only (True) or all of them (False); None if nothing says so. At the last position it
    makes no difference, so it is part of neither the hash nor equality."""
    task: str | None = None
    """The name of the task that the model was made for, as its file says; None if nothing says so. It is what is asked where nobody says
    what, and is part of neither the hash nor equality."""

    def __post_init__(self) -> None:
        require_ieee754()
        for name in TENSOR_NAMES:
            object.__setattr__(self, name, float32_tensor(name, getattr(self, name), _AXES[name]))
        _check_shapes({name: getattr(self, name) for name in TENSOR_NAMES})
        object.__setattr__(self, "score_divisor_squared", require_divisor(self.score_divisor_squared, self.d_head))
        object.__setattr__(self, "assumptions", tuple(self.assumptions))

    @classmethod
    def from_mapping(cls, tensors: Mapping[str, Any], **options: Any) -> Weights:
        """Build from a mapping that holds exactly the seven tensors, for example an open `.npz` file."""
        missing = [name for name in TENSOR_NAMES if name not in tensors]
        unknown = sorted(set(tensors) - set(TENSOR_NAMES))
        if missing or unknown:
            raise ModelError(
                f"expected exactly the tensors {', '.join(TENSOR_NAMES)}; "
                f"missing: {', '.join(missing) or 'none'}; not expected: {', '.join(unknown) or 'none'}"
            )
        return cls(**{name: tensors[name] for name in TENSOR_NAMES}, **options)

    @property
    def d_vocab(self) -> int:
        return int(self.W_E.shape[0])

    @property
    def d_vocab_out(self) -> int:
        return int(self.W_U.shape[1])

    @property
    def d_model(self) -> int:
        return int(self.W_E.shape[1])

    @property
    def d_head(self) -> int:
        return int(self.W_Q.shape[1])

    @property
    def n_ctx(self) -> int:
        return int(self.W_pos.shape[0])

    @property
    def tensors(self) -> dict[str, NDArray[np.float32]]:
        """The seven tensors by name, in canonical order."""
        return {name: getattr(self, name) for name in TENSOR_NAMES}

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the canonical bytes: a text header, then the tensors in order as little-endian float32.

        The header names every shape and the score divisor, so equal hashes mean equal networks.
        """
        header = ["compactproofs-weights-1"]
        header += [f"{name} {' '.join(map(str, tensor.shape))}" for name, tensor in self.tensors.items()]
        header += [f"score_divisor_squared {self.score_divisor_squared.numerator}/{self.score_divisor_squared.denominator}"]
        digest = hashlib.sha256("\n".join([*header, ""]).encode("ascii"))
        for tensor in self.tensors.values():
            digest.update(tensor.astype("<f4").tobytes(order="C"))
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weights) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        dims = ", ".join(f"{n}={getattr(self, n)}" for n in ("d_vocab", "d_vocab_out", "d_model", "d_head", "n_ctx"))
        return f"Weights({dims}, sha256={self.sha256[:12]}...)"


def require_divisor(given: Fraction, d_head: int) -> Fraction:
    """The squared divisor of scores, 0 standing for d_head, if it is of a reasonable size."""
    divisor = given if given != 0 else Fraction(d_head)
    if not isinstance(divisor, Fraction) or not Fraction(1, 2**200) <= divisor <= 2**200:
        raise ModelError(f"score_divisor_squared={given!r} must be a Fraction between 2^-200 and 2^200")
    return divisor


def float32_tensor(name: str, value: Any, axes: tuple[str, ...]) -> NDArray[np.float32]:
    """A read-only float32 copy with exactly the same real values, or an error that says what is wrong."""
    if isinstance(value, np.ma.MaskedArray):
        raise ModelError(f"{name} is a masked array; fill the masked entries first")
    array = np.asarray(value)
    if array.dtype not in (np.float32, np.float64):
        raise ModelError(
            f"{name} has dtype {array.dtype}; expected float32. A theorem is about one exact network: if these are the values "
            "you mean, convert them to float32 yourself (tensor.float() in torch) and save again."
        )
    if array.ndim != len(axes):
        count = {1: "one axis", 2: "two axes"}.get(len(axes), f"{len(axes)} axes")
        raise ModelError(f"{name} has shape {array.shape}; expected {count} ({', '.join(axes)})")
    if 0 in array.shape:
        raise ModelError(f"{name} has shape {array.shape}; every axis ({', '.join(axes)}) must be at least 1")
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ModelError(f"{name}{list(where)} is {array[where]} ({int(bad.sum())} such entries); expected finite numbers")
    with np.errstate(over="ignore", under="ignore"):
        single = np.array(array, dtype=np.float32, order="C", copy=True)
    changed = single.astype(np.float64) != array
    if changed.any():
        where = tuple(int(i) for i in np.argwhere(changed)[0])
        raise ModelError(
            f"{name}{list(where)} = {array[where]!r} is not a float32 number ({int(changed.sum())} such entries). "
            "Round the weights to float32 yourself and save again: the theorem will be about the rounded network."
        )
    single.setflags(write=False)
    return single


def _check_shapes(tensors: Mapping[str, NDArray[np.float32]]) -> None:
    """Raise unless every named axis has one size in all the tensors that carry it."""
    sizes: dict[str, tuple[int, str]] = {}
    for name, tensor in tensors.items():
        for axis, size in zip(_AXES[name], tensor.shape, strict=True):
            known, first = sizes.setdefault(axis, (size, name))
            if known != size:
                shapes = ", ".join(f"{n} {tuple(t.shape)}" for n, t in tensors.items())
                raise ModelError(
                    f"shapes do not fit together: {axis} is {known} in {first} but {size} in {name}. "
                    f"Expected {', '.join(f'{n} ({chr(32).join(a)})' for n, a in _AXES.items())}; got {shapes}"
                )
