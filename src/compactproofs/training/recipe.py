"""The paper's training recipe as data. Everything that determines the weights of a seed is in a `Recipe`."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

from compactproofs.errors import TaskError
from compactproofs.model.torch_files import SIZE_LIMIT
from compactproofs.tasks import require_countable


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train one seed; the defaults are the paper's (appendix on training, and the authors' code).

    Initial weights are independent normal with standard deviation `init_scale / sqrt(d_model)`. Every step draws `batch_size` fresh
    uniform sequences; the loss is the mean cross-entropy at the last position; the optimiser is AdamW on all parameters.
    """

    n_ctx: int
    """Sequence length K."""
    d_vocab: int
    """Number of tokens and of outputs."""
    d_model: int = 32
    d_head: int = 32
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

    def __post_init__(self) -> None:
        if self.task != "max":
            raise TaskError(f"training knows only the task 'max', got {self.task!r}")
        for name in ("n_ctx", "d_vocab", "d_model", "d_head", "steps", "batch_size"):
            if getattr(self, name) < 1:
                raise TaskError(f"{name}={getattr(self, name)} must be at least 1")
        require_countable(self.n_ctx, self.d_vocab)
        if self.bytes > SIZE_LIMIT:
            sizes = ", ".join(f"{name}={getattr(self, name)}" for name in ("n_ctx", "d_vocab", "d_model", "d_head"))
            raise TaskError(f"{sizes}: the tensors would take {self.bytes} bytes; a model of the supported kind has at most {SIZE_LIMIT}")

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """Shapes of the seven tensors."""
        v, k, d, h = self.d_vocab, self.n_ctx, self.d_model, self.d_head
        return {"W_E": (v, d), "W_pos": (k, d), "W_Q": (d, h), "W_K": (d, h), "W_V": (d, h), "W_O": (h, d), "W_U": (d, v)}

    @property
    def bytes(self) -> int:
        """Of the seven tensors."""
        return 4 * sum(rows * columns for rows, columns in self.shapes.values())

    @property
    def training_bytes(self) -> int:
        """About the memory that training one seed takes: tensors, gradients and two averages; and what a batch passes through, twice."""
        per_sequence = 8 * self.n_ctx + 4 * (3 * self.n_ctx * self.d_model + 2 * self.d_vocab)
        return 4 * self.bytes + 2 * self.batch_size * per_sequence

    @property
    def name(self) -> str:
        """Start of the file names of models trained by this recipe."""
        return f"max-of-{self.n_ctx}-v{self.d_vocab}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def derived_seed(seed: int, purpose: str) -> int:
    """A generator seed for one purpose ("weights" or "data") of one training seed; independent of all others."""
    digest = hashlib.sha256(f"compactproofs-1 {seed} {purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1
