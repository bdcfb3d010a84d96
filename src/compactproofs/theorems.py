"""What has been proven, as a sentence."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.strategies.base import Bound
from compactproofs.tasks.margin import in_words


@runtime_checkable
class Stated(Protocol):
    """What a sentence needs to know of a question."""

    @property
    def title(self) -> str: ...

    @property
    def total_in_words(self) -> str: ...

    @property
    def inputs_in_words(self) -> str: ...


def theorem(weights: Model, task: Stated, bound: Bound, position: int | None, assumptions: tuple[str, ...], margin: float = 0.0) -> str:
    """The claim about the whole model and all its inputs, read at a position if one is given."""
    most = "" if bound.correct_at_most is None else f" and at most {bound.correct_at_most}"
    kind = f" of a network with {weights.described}," if isinstance(weights, Network) else ""
    assumed = f" Assumed about the model: {'; '.join(assumptions)}." if assumptions else ""
    read, first = _read_at(position)
    return (
        f"With the float32 weights of SHA-256 {weights.sha256[:16]}...{kind} read as real numbers, {read}at least {bound.correct_at_least}"
        f"{most} of the {task.total_in_words} {task.inputs_in_words} give the right output{first}, {task.title}, "
        f"a {_larger(margin)} every other output.{assumed}"
    )


def _larger(margin: float) -> str:
    """By how much the right output has to win."""
    if margin == 0.0:
        return "strictly larger logit than"
    if margin > 0.0:
        return f"logit that is larger by more than {in_words(margin)} than that of"
    return f"logit that is larger, or smaller by less than {in_words(-margin)}, than that of"


def no_theorem(task: Stated, bound: Bound, position: int | None) -> str:
    """What the authors' code computes without proving it."""
    where = "" if position is None else f" at position {position}"
    return f"No theorem: the authors' code counts {bound.correct_at_least} of the {task.total_in_words} input sequences{where}."


def _read_at(position: int | None) -> tuple[str, str]:
    """Where the answer is read, and which tokens it is about."""
    if position is None:
        return "", ""
    tokens = "token" if position == 0 else f"{position + 1} tokens"
    read = f"and the answer read at position {position} (the first is 0), which depends on the tokens up to it, "
    return read, f" for the first {tokens}"
