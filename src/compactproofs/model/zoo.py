"""Bundled models, trained with this package: something to prove theorems about within a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args, overload

from compactproofs.errors import ModelError
from compactproofs.model.files import load, training_record
from compactproofs.model.kinds import Model
from compactproofs.model.weights import Weights
from compactproofs.text import did_you_mean

_FOLDER = Path(__file__).parent / "zoo_data"

PlainName = Literal["max-of-4", "max-of-5", "max-of-10", "max-of-20", "max-of-10-v128"]

PLAIN_NAMES: tuple[PlainName, ...] = get_args(PlainName)
"""The paper's models, by its recipe: `Weights`, which every strategy understands. Vocabulary 64 unless the name says otherwise."""

NETWORK_NAMES = ("max-of-4-heads", "max-of-4-mlp", "max-of-4-block", "max-of-4-norm", "max-of-4-lnpre")
"""`Network`s of 64 tokens: four heads; one head and an MLP with biases; TransformerLens' default block, that is four heads, layer norms,
an MLP and biases; one head with layer norms and biases; one head with layer norms that have no parameters."""

ZOO_NAMES: tuple[str, ...] = (*PLAIN_NAMES, *NETWORK_NAMES)
"""All bundled models."""


@overload
def zoo(name: PlainName) -> Weights: ...


@overload
def zoo(name: str) -> Model: ...


def zoo(name: str) -> Model:
    """Load a bundled model by name.

    Example:
        >>> zoo("max-of-4")  # doctest: +ELLIPSIS
        Weights(d_vocab=64, d_vocab_out=64, d_model=32, d_head=32, n_ctx=4, sha256=...)
        >>> zoo("max-of-4-mlp").described
        'one head, relu MLP of 128 neurons, biases'
    """
    return load(zoo_path(name))


def zoo_record(name: str) -> dict[str, Any]:
    """How a bundled model was trained."""
    return training_record(zoo_path(name))


def resolve(model: str, *, n_heads: int | None = None, normalization: str | None = None, n_ctx: int | None = None) -> Model:
    """A model given on the command line: the name of a bundled model, or a file. The options are those of `load`."""
    if model in ZOO_NAMES:
        return load(zoo_path(model), n_heads=n_heads, normalization=normalization, n_ctx=n_ctx)
    if not Path(model).suffix and len(model) < 200 and not Path(model).exists():
        close = did_you_mean(model, ZOO_NAMES)
        raise ModelError(f"no bundled model and no file is called {model!r}{close or '.'} Bundled models: {', '.join(ZOO_NAMES)}")
    return load(model, n_heads=n_heads, normalization=normalization, n_ctx=n_ctx)


def zoo_path(name: str) -> Path:
    """The file of a bundled model."""
    if name not in ZOO_NAMES:
        raise ModelError(
            f"no bundled model is called {name!r}{did_you_mean(name, ZOO_NAMES) or '.'} Bundled models: {', '.join(ZOO_NAMES)}"
        )
    return _FOLDER / f"{name}.safetensors"
