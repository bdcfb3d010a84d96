"""One layer of a transformer, every optional part explicit: the real-number network that all theorems are about.

    x_i = W_E[token_i] + W_pos[i]                                              (W_pos may be absent)
    n_i = norm_1(x_i)
    head h:  q = n_p W_Q + b_Q,  k_i = n_i W_K + b_K,  v_i = n_i W_V + b_V     (p: the last position; rotary turns q and k_i)
             s_i = q . k_i / sqrt(score_divisor_squared) - 2^-alibi_h (p - i)  (alibi may be absent)
    r   = x_p + b_O + sum_h sum_i softmax(s)_i v_i W_O
    r'  = r + act(norm_2(r) W_in + b_in) W_out + b_out                         (the MLP may be absent)
    logits = norm_final(r') W_U + b_U

    norm(x) = weight (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) + bias  for LN; RMS does not subtract the mean

With `post_norm` the norms stand on the stream itself: r becomes norm_2(r) before the MLP reads it and is added to. A norm that is None is
the identity. Every bias may be None, which is zero; a norm's weight may be None, which is one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compactproofs.arrays.environment import require_ieee754
from compactproofs.errors import ModelError
from compactproofs.model.weights import float32_tensor, require_divisor


class NormKind(StrEnum):
    """Which statistic a norm divides by, and whether it subtracts the mean first."""

    LN = "LN"
    RMS = "RMS"


class Activation(StrEnum):
    """What neurons do to their input."""

    RELU = "relu"
    GELU = "gelu"
    """y Phi(y), with the error function."""
    GELU_TANH = "gelu_new"
    """y (1 + tanh(sqrt(2 / pi) (y + 0.044715 y^3))) / 2."""
    SILU = "silu"
    """y / (1 + exp(-y))."""


@dataclass(frozen=True, eq=False, repr=False)
class Norm:
    """A layer norm or a root-mean-square norm."""

    kind: NormKind
    eps: float
    """Added to the mean square; this float64 number exactly."""
    weight: np.ndarray | None = None
    """(d_model,)"""
    bias: np.ndarray | None = None
    """(d_model,)"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", NormKind(self.kind))
        object.__setattr__(self, "eps", float(self.eps))
        if not 0 <= self.eps < 2.0**100:
            raise ModelError(f"a norm has eps={self.eps!r}; expected a number that is not negative")
        _freeze(self, {"weight": "d_model", "bias": "d_model"})


@dataclass(frozen=True, eq=False, repr=False)
class Mlp:
    """One hidden layer."""

    W_in: np.ndarray
    """(d_model, d_mlp)"""
    W_out: np.ndarray
    """(d_mlp, d_model)"""
    act: Activation
    b_in: np.ndarray | None = None
    b_out: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "act", Activation(self.act))
        _freeze(self, {"W_in": "d_model d_mlp", "W_out": "d_mlp d_model", "b_in": "d_mlp", "b_out": "d_model"})


@dataclass(frozen=True)
class Rotary:
    """Queries and keys are turned by their position: coordinates j and j' of the first `dim` by the angle i / base^(2 j / dim)."""

    dim: int
    base: float = 10000.0
    adjacent: bool = False
    """Whether coordinates 2j and 2j + 1 belong together (GPT-J), or j and j + dim / 2 (NeoX, LLaMA)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", float(self.base))
        if type(self.dim) is not int or self.dim < 2 or self.dim % 2 or not 1 <= self.base < float("inf"):
            given = f"dim={self.dim!r:.40}, base={self.base!r:.40}"
            raise ModelError(f"rotary positions with {given}: expected an even dim, a base of at least 1")


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """The module's docstring says what it computes. Frozen, validated, hashed; equal if bit for bit the same network.

    Example:
        >>> import numpy as np
        >>> draw = lambda *shape: np.random.default_rng(0).normal(size=shape).astype("float32")
        >>> network = Network(W_E=draw(5, 4), W_pos=draw(3, 4), n_ctx=3, W_Q=draw(2, 4, 3), W_K=draw(2, 4, 3), W_V=draw(2, 4, 3),
        ...                   W_O=draw(2, 3, 4), W_U=draw(4, 5), norm_1=Norm(NormKind.LN, 1e-5))
        >>> network.n_heads, network.d_head, network.d_mlp, network.described
        (2, 3, 0, '2 heads, norm LN before attention')
    """

    W_E: np.ndarray
    """(d_vocab, d_model)"""
    W_pos: np.ndarray | None
    """(n_ctx, d_model)"""
    n_ctx: int
    """How many tokens the sequences have."""
    W_Q: np.ndarray
    """(n_heads, d_model, d_head); so are W_K and W_V"""
    W_K: np.ndarray
    W_V: np.ndarray
    W_O: np.ndarray
    """(n_heads, d_head, d_model)"""
    W_U: np.ndarray
    """(d_model, d_vocab_out)"""
    b_Q: np.ndarray | None = None
    """(n_heads, d_head); so are b_K and b_V"""
    b_K: np.ndarray | None = None
    b_V: np.ndarray | None = None
    b_O: np.ndarray | None = None
    """(d_model,)"""
    b_U: np.ndarray | None = None
    """(d_vocab_out,)"""
    norm_1: Norm | None = None
    norm_2: Norm | None = None
    norm_final: Norm | None = None
    mlp: Mlp | None = None
    rotary: Rotary | None = None
    alibi: tuple[int, ...] | None = None
    """One exponent per head: a position that lies n back loses n 2^-exponent of its score."""
    post_norm: bool = False
    score_divisor_squared: Fraction = field(default=Fraction(0))
    """Attention scores are divided by the square root of this rational; 0 (the default) stands for d_head."""
    assumptions: tuple[str, ...] = ()
    """What was assumed about the model for want of a configuration; copied into every result."""
    causal: bool | None = None
    """Whether a position sees the tokens up to it only (True) or all of them (False); None if nothing says so. At the last position it
    makes no difference, so it is part of neither the hash nor equality."""
    task: str | None = None
    """The name of the task that the model was made for, as its file says; None if nothing says so. It is what is asked where nobody says
    what, and is part of neither the hash nor equality."""

    def __post_init__(self) -> None:
        require_ieee754()
        _freeze(self, {name: axes for name, axes in AXES.items() if "." not in name})
        if self.norm_2 is not None and self.mlp is None and not self.post_norm:
            raise ModelError("norm_2 stands before an MLP, and there is none")
        sizes: dict[str, tuple[int, str]] = {"n_ctx": (self.n_ctx, "n_ctx")}
        for name, tensor in self.tensors.items():
            for axis, size in zip(AXES[name].split(), tensor.shape, strict=True):
                known, first = sizes.setdefault(axis, (size, name))
                if known != size:
                    raise ModelError(f"shapes do not fit together: {axis} is {known} in {first} but {size} in {name} {tensor.shape}")
        if self.rotary is not None and self.rotary.dim > self.d_head:
            raise ModelError(f"{self.rotary}: expected a dim of at most d_head={self.d_head}")
        if self.alibi is not None and (len(self.alibi) != self.n_heads or not all(type(e) is int and 0 <= e <= 64 for e in self.alibi)):
            raise ModelError(f"alibi={self.alibi}: expected {self.n_heads} integers between 0 and 64, exponents of two")
        if not 1 <= self.n_ctx <= 1 << 20:
            raise ModelError(f"n_ctx={self.n_ctx}: expected a positive number of tokens")
        object.__setattr__(self, "score_divisor_squared", require_divisor(self.score_divisor_squared, self.d_head))
        object.__setattr__(self, "assumptions", tuple(self.assumptions))

    @cached_property
    def tensors(self) -> dict[str, NDArray[np.float32]]:
        """All tensors that there are, by name, in canonical order: `W_Q`, `norm_1.weight`, `mlp.W_in`, ..."""
        found = {}
        for name in AXES:
            part, _, own = name.rpartition(".")
            module = getattr(self, part) if part else self
            value = None if module is None else getattr(module, own)
            if value is not None:
                found[name] = value
        return found

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
    def n_heads(self) -> int:
        return int(self.W_Q.shape[0])

    @property
    def d_head(self) -> int:
        return int(self.W_Q.shape[2])

    @property
    def d_mlp(self) -> int:
        """0 without an MLP."""
        return 0 if self.mlp is None else int(self.mlp.W_in.shape[1])

    @property
    def rewritten(self) -> bool:
        """Nothing is said about float32 arithmetic."""
        return True

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Everything but the tensors, as plain values: what the hash names and files store."""
        norms = {part: getattr(self, part) for part in ("norm_1", "norm_2", "norm_final")}
        return {
            "n_ctx": self.n_ctx,
            "score_divisor_squared": f"{self.score_divisor_squared.numerator}/{self.score_divisor_squared.denominator}",
            **{part: None if norm is None else [str(norm.kind), norm.eps.hex()] for part, norm in norms.items()},
            "act": None if self.mlp is None else str(self.mlp.act),
            "rotary": None if self.rotary is None else [self.rotary.dim, float(self.rotary.base).hex(), self.rotary.adjacent],
            "alibi": None if self.alibi is None else list(self.alibi),
            "post_norm": self.post_norm,
        }

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the canonical bytes: settings and shapes as text, then the tensors in order as little-endian float32."""
        settings = json.dumps(self.settings, sort_keys=True, separators=(",", ":"))
        shapes = [f"{name} {' '.join(map(str, tensor.shape))}" for name, tensor in self.tensors.items()]
        digest = hashlib.sha256("\n".join(["compactproofs-network-1", settings, *shapes, ""]).encode("ascii"))
        for tensor in self.tensors.values():
            digest.update(tensor.astype("<f4").tobytes(order="C"))
        return digest.hexdigest()

    @property
    def described(self) -> str:
        """What kind of network this is, in a few words."""
        norms = [(self.norm_1, "before attention"), (self.norm_2, "after attention" if self.post_norm else "before the MLP")]
        words = [f"{self.n_heads} heads" if self.n_heads > 1 else "one head"]
        words += ["no positions"] if self.W_pos is None and self.rotary is None and self.alibi is None else []
        words += ["rotary positions"] if self.rotary is not None else []
        words += ["ALiBi"] if self.alibi is not None else []
        words += [f"norm {norm.kind} {where}" for norm, where in norms if norm is not None]
        words += [f"{self.mlp.act} MLP of {self.d_mlp} neurons"] if self.mlp is not None else []
        words += [f"final norm {self.norm_final.kind}"] if self.norm_final is not None else []
        words += ["biases"] if any(name.startswith("b_") for name in self.tensors) else []
        return ", ".join(words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Network) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        dims = ", ".join(f"{n}={getattr(self, n)}" for n in ("d_vocab", "d_vocab_out", "d_model", "d_head", "n_ctx"))
        return f"Network({self.described}, {dims}, sha256={self.sha256[:12]}...)"


def _freeze(module: Any, axes: dict[str, str]) -> None:
    """Make the tensors that there are read-only float32 arrays with these axes."""
    for name, names in axes.items():
        if getattr(module, name) is not None:
            object.__setattr__(module, name, float32_tensor(name, getattr(module, name), tuple(names.split())))


AXES = {
    "W_E": "d_vocab d_model",
    "W_pos": "n_ctx d_model",
    "norm_1.weight": "d_model",
    "norm_1.bias": "d_model",
    **{f"W_{x}": "n_heads d_model d_head" for x in "QKV"},
    **{f"b_{x}": "n_heads d_head" for x in "QKV"},
    "W_O": "n_heads d_head d_model",
    "b_O": "d_model",
    "norm_2.weight": "d_model",
    "norm_2.bias": "d_model",
    "mlp.W_in": "d_model d_mlp",
    "mlp.b_in": "d_mlp",
    "mlp.W_out": "d_mlp d_model",
    "mlp.b_out": "d_model",
    "norm_final.weight": "d_model",
    "norm_final.bias": "d_model",
    "W_U": "d_model d_vocab_out",
    "b_U": "d_vocab_out",
}
"""Every tensor that a network can have, in canonical order, with its axes."""
