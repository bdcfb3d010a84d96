"""The training recipe as data. Everything that determines the weights of a seed is in a `Recipe`."""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, TypeVar

from compactproofs.errors import TaskError
from compactproofs.model.network import AXES, Activation
from compactproofs.model.torch_files import SIZE_LIMIT
from compactproofs.tasks import require_countable

_Kind = TypeVar("_Kind", bound=StrEnum)

UNSAID = -1
"""Stands for a size that follows from the others."""

_LATER = ("n_heads", "d_mlp", "act", "norm", "bias")
"""Fields that records of plain models do not have; they are left out where they say nothing, so those records stay valid."""

_LINE = 32
"""Numbers: no vector unit takes more at a time, and so many are a whole number of cache lines."""


class Normalization(StrEnum):
    """TransformerLens' names of normalisations; before attention, before the MLP if there is one, and before the unembedding."""

    NONE = "none"
    LN = "LN"
    """Layer norm with weights and biases."""
    LN_PRE = "LNPre"
    """Layer norm without them."""
    RMS = "RMS"
    """Root-mean-square norm with weights."""
    RMS_PRE = "RMSPre"
    """Root-mean-square norm without them."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train one seed; the defaults are the paper's (appendix on training, and the authors' code).

    Initial matrices are independent normal with standard deviation `init_scale / sqrt(d_model)`, biases are zero and weights of norms one.
    Every step draws `batch_size` fresh uniform sequences; the loss is the mean cross-entropy at the last position; the optimiser is AdamW
    on all parameters.

    Example:
        >>> recipe = Recipe(n_ctx=4, d_vocab=64, n_heads=4, d_mlp=128, norm="LN", bias=True)
        >>> recipe.d_head, str(recipe.act), recipe.name
        (8, 'relu', 'max-of-4-v64-heads4-relu128-LN-bias')
    """

    n_ctx: int
    """Sequence length K."""
    d_vocab: int
    """Number of tokens and of outputs."""
    d_model: int = 32
    d_head: int = UNSAID
    """By default 32 if there is one head, else d_model / n_heads."""
    steps: int = 3000
    batch_size: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    init_scale: float = 0.8
    task: str = "max"
    """Only `max` can be trained so far."""
    n_heads: int = 1
    d_mlp: int = 0
    """Neurons of the MLP; 0: no MLP."""
    act: Activation | None = None
    """What the neurons do; by default ReLU if there are any."""
    norm: Normalization = Normalization.NONE
    bias: bool = False
    """Whether there are biases: b_Q, b_K, b_V, b_O, b_U, and b_in and b_out of an MLP. Those of norms belong to the norms."""

    def __post_init__(self) -> None:
        if self.task != "max":
            raise TaskError(f"training knows only the task 'max', got {self.task!r}")
        object.__setattr__(self, "norm", _one_of(Normalization, "norm", self.norm))
        if self.d_mlp == 0 and self.act is not None:
            raise TaskError(f"act={self.act!s} says what neurons do, and there are none; say how many, for example d_mlp=128")
        if self.d_mlp != 0:
            object.__setattr__(self, "act", _one_of(Activation, "act", self.act or Activation.RELU))
        for name in ("n_ctx", "d_vocab", "d_model", "n_heads", "steps", "batch_size"):
            if getattr(self, name) < 1:
                raise TaskError(f"{name}={getattr(self, name)} must be at least 1")
        if self.d_mlp < 0:
            raise TaskError(f"d_mlp={self.d_mlp} must not be negative; 0 is no MLP")
        self._choose_d_head()
        require_countable(self.n_ctx, self.d_vocab)
        if self.bytes > SIZE_LIMIT:
            names = ("n_ctx", "d_vocab", "d_model", "d_head", *(name for name in ("n_heads", "d_mlp") if not self.plain))
            sizes = ", ".join(f"{name}={getattr(self, name)}" for name in names)
            raise TaskError(f"{sizes}: the tensors would take {self.bytes} bytes; a model of the supported kind has at most {SIZE_LIMIT}")

    def _choose_d_head(self) -> None:
        if self.d_head == UNSAID:
            if self.n_heads > 1 and self.d_model % self.n_heads:
                raise TaskError(f"d_model={self.d_model} is not a multiple of n_heads={self.n_heads}; say how large a head is (d_head)")
            object.__setattr__(self, "d_head", 32 if self.n_heads == 1 else self.d_model // self.n_heads)
        if self.d_head < 1:
            raise TaskError(f"d_head={self.d_head} must be at least 1")

    @property
    def plain(self) -> bool:
        """Whether the model is the paper's: one head, no MLP, no normalisation, no biases."""
        return self.n_heads == 1 and self.d_mlp == 0 and self.norm is Normalization.NONE and not self.bias

    @property
    def norms(self) -> tuple[str, ...]:
        """The norms that there are, by the names that `Network` gives them."""
        if self.norm is Normalization.NONE:
            return ()
        return ("norm_1", "norm_2", "norm_final") if self.d_mlp else ("norm_1", "norm_final")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all tensors: the paper's seven, or those of a `Network` under the names it gives them."""
        v, k, d, h = self.d_vocab, self.n_ctx, self.d_model, self.d_head
        if self.plain:
            return {"W_E": (v, d), "W_pos": (k, d), "W_Q": (d, h), "W_K": (d, h), "W_V": (d, h), "W_O": (h, d), "W_U": (d, v)}
        sizes = {"n_ctx": k, "d_vocab": v, "d_vocab_out": v, "d_model": d, "d_head": h, "n_heads": self.n_heads, "d_mlp": self.d_mlp}
        return {name: tuple(sizes[axis] for axis in axes.split()) for name, axes in AXES.items() if self._has(name)}

    def _has(self, tensor: str) -> bool:
        part, _, own = tensor.rpartition(".")
        if part in ("norm_1", "norm_2", "norm_final"):
            with_own = {"weight": (Normalization.LN, Normalization.RMS), "bias": (Normalization.LN,)}
            return part in self.norms and self.norm in with_own[own]
        return (part == "" or self.d_mlp > 0) and (self.bias or own.startswith("W_"))

    @property
    def bytes(self) -> int:
        """Of all tensors."""
        return 4 * sum(map(math.prod, self.shapes.values()))

    @property
    def training_bytes(self) -> int:
        """About the memory that training one seed takes: tensors, gradients and two averages; and what a batch passes through, twice."""
        per_sequence = 8 * self.n_ctx + 4 * (3 * self.n_ctx * self.d_model + 2 * self.d_vocab)
        if not self.plain:
            per_sequence += 4 * (2 * self.n_ctx * (2 * self.n_heads * self.d_head + len(self.norms) * self.d_model) + 3 * self.d_mlp)
        return 4 * self.bytes + 2 * self.batch_size * per_sequence

    @property
    def separable(self) -> bool:
        """Whether seeds can be trained together without a bit of one depending on the others.

        The numbers of a seed are one after the other in every tensor. Vector units and matrix products treat the first and the last few of
        an array, and those at odd addresses, in another order than the rest. So a seed's numbers must begin and end with whole vectors.
        """
        return self.batch_size % _LINE == 0 and all(math.prod(shape) % _LINE == 0 for shape in self.shapes.values())

    @property
    def name(self) -> str:
        """Start of the file names of models trained by this recipe."""
        parts = [f"max-of-{self.n_ctx}-v{self.d_vocab}"]
        parts += [f"heads{self.n_heads}"] if self.n_heads > 1 else []
        parts += [f"{self.act}{self.d_mlp}"] if self.d_mlp else []
        parts += [str(self.norm)] if self.norms else []
        parts += ["bias"] if self.bias else []
        return "-".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """As plain values; what the paper's models do not have is left out where it is absent."""
        usual = {field.name: field.default for field in fields(self)}
        return {name: value for name, value in asdict(self).items() if name not in _LATER or value != usual[name]}


def derived_seed(seed: int, purpose: str) -> int:
    """A generator seed for one purpose ("weights" or "data") of one training seed; independent of all others."""
    digest = hashlib.sha256(f"compactproofs-1 {seed} {purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def _one_of(kind: type[_Kind], name: str, value: str) -> _Kind:
    try:
        return kind(value)
    except ValueError:
        raise TaskError(f"{name}={value!r}: expected one of {', '.join(kind)}") from None
