"""The training recipe as data. Everything that determines the weights of a seed is in a `Recipe`."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeVar

from compactproofs.errors import TaskError
from compactproofs.model.network import AXES, Activation
from compactproofs.model.torch_files import SIZE_LIMIT
from compactproofs.tasks import AbstractTask, is_known, require_countable, task_of_size

_Kind = TypeVar("_Kind", bound=StrEnum)

UNSAID = -1
"""Stands for a size that follows from the others."""

_LATER = ("n_heads", "d_mlp", "act", "norm", "bias", "d_vocab_out", "sampling")
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


class Sampling(StrEnum):
    """Which sequences are trained on."""

    UNIFORM = "uniform"
    """All that have a label are equally likely."""
    BALANCED = "balanced"
    """Every second one is drawn among those of a label, and every label that occurs is equally likely: for labels that are rare."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train one seed; the defaults are the paper's (appendix on training, and the authors' code).

    Initial matrices are independent normal with standard deviation `init_scale / sqrt(d_model)`, biases are zero and weights of norms one.
    Every step draws `batch_size` fresh sequences, by default uniform; the loss is the mean cross-entropy at the last position; the
    optimiser is AdamW on all parameters.

    Example:
        >>> recipe = Recipe(n_ctx=4, d_vocab=64, n_heads=4, d_mlp=128, norm="LN", bias=True)
        >>> recipe.d_head, str(recipe.act), recipe.name
        (8, 'relu', 'max-of-4-v64-heads4-relu128-LN-bias')
    """

    n_ctx: int
    """Sequence length K."""
    d_vocab: int
    """Number of tokens."""
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
    """The name of a task of the library (`compactproofs tasks`), or of another, for which `d_vocab_out` must be said."""
    n_heads: int = 1
    d_mlp: int = 0
    """Neurons of the MLP; 0: no MLP."""
    act: Activation | None = None
    """What the neurons do; by default ReLU if there are any."""
    norm: Normalization = Normalization.NONE
    bias: bool = False
    """Whether there are biases: b_Q, b_K, b_V, b_O, b_U, and b_in and b_out of an MLP. Those of norms belong to the norms."""
    d_vocab_out: int = UNSAID
    """Number of outputs; by default as many as the task has labels, for `max` d_vocab."""
    sampling: Sampling = Sampling.UNIFORM

    def __post_init__(self) -> None:
        object.__setattr__(self, "sampling", _one_of(Sampling, "sampling", self.sampling))
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
        self._require_outputs()
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

    def _require_outputs(self) -> None:
        if self.sampling is Sampling.BALANCED and self.task == "max":
            raise TaskError("the task max is trained on uniform sequences; 'kth-largest:1' is the same task, and can be balanced")
        if self.d_vocab_out != UNSAID and self.d_vocab_out < (least := labels_of(self) if is_known(self.task) else 1):
            raise TaskError(f"d_vocab_out={self.d_vocab_out}: the task {self.task!r:.60} needs {least} outputs or more")
        if self.outputs < 2 and self.task != "max":
            raise TaskError(f"the task {self.task!r:.60} has the label 0 for every sequence, so there is nothing to learn")

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return labels_of(self) if self.d_vocab_out == UNSAID else self.d_vocab_out

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
        v, k, d, h, out = self.d_vocab, self.n_ctx, self.d_model, self.d_head, self.outputs
        if self.plain:
            return {"W_E": (v, d), "W_pos": (k, d), "W_Q": (d, h), "W_K": (d, h), "W_V": (d, h), "W_O": (h, d), "W_U": (d, out)}
        sizes = {"n_ctx": k, "d_vocab": v, "d_vocab_out": out, "d_model": d, "d_head": h, "n_heads": self.n_heads, "d_mlp": self.d_mlp}
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
        per_sequence = 8 * self.n_ctx + 4 * (3 * self.n_ctx * self.d_model + 2 * self.outputs)
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
        parts = [f"{_in_file_names(self.task)}-of-{self.n_ctx}-v{self.d_vocab}"]
        parts += [f"heads{self.n_heads}"] if self.n_heads > 1 else []
        parts += [f"{self.act}{self.d_mlp}"] if self.d_mlp else []
        parts += [str(self.norm)] if self.norms else []
        parts += ["bias"] if self.bias else []
        parts += [str(self.sampling)] if self.sampling is not Sampling.UNIFORM else []
        return "-".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """As plain values; what the paper's models do not have is left out where it is absent."""
        usual = {field.name: field.default for field in fields(self)}
        return {name: value for name, value in asdict(self).items() if name not in _LATER or value != usual[name]}


@lru_cache(maxsize=16)
def library_task(spec: str, n_ctx: int, d_vocab: int) -> AbstractTask:
    """A task of the library, whose automaton is made once."""
    return task_of_size(spec, n_ctx, d_vocab)


def labels_of(recipe: Recipe) -> int:
    """How many outputs the task needs."""
    if recipe.task == "max":
        return recipe.d_vocab
    return outputs_for(library_task(recipe.task, recipe.n_ctx, recipe.d_vocab))


def outputs_for(task: AbstractTask) -> int:
    """One more than the largest label."""
    if not task.labels:
        raise TaskError(f"the task {task.spec!r:.60} has no label for any sequence of {task.n_ctx} tokens, so there is nothing to learn")
    return task.labels[-1] + 1


def _in_file_names(spec: str) -> str:
    """The name of a task with letters, digits and dashes; where that says less than the name, with the beginning of its hash."""
    short = re.sub(r"[^A-Za-z0-9.]+", "-", spec).strip("-")[:40]
    plain = re.fullmatch(r"[a-z-]+(:[\d.]+(,\d+)*)?", spec) is not None
    return short if plain else f"{short}-{hashlib.sha256(spec.encode()).hexdigest()[:8]}"


def derived_seed(seed: int, purpose: str) -> int:
    """A generator seed for one purpose ("weights" or "data") of one training seed; independent of all others."""
    digest = hashlib.sha256(f"compactproofs-1 {seed} {purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def _one_of(kind: type[_Kind], name: str, value: str) -> _Kind:
    try:
        return kind(value)
    except ValueError:
        raise TaskError(f"{name}={value!r}: expected one of {', '.join(kind)}") from None
