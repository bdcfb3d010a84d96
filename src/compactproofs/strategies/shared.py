"""Work that several strategies need of one model, done once. The caller decides how long it lives."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

from compactproofs.errors import DisagreementError, StrategyError
from compactproofs.model.kinds import Model
from compactproofs.tasks import AbstractTask
from compactproofs.version import __version__

Value = TypeVar("Value")


class Shared:
    """A memory for intermediate results about one network and one task, to pass to several proofs of the same theorem.

    It belongs to the network and the task that it was made for and refuses every other: what is a count of one network would be a false
    theorem about another.

    Example:
        >>> import compactproofs as cp
        >>> weights = cp.zoo("max-of-4")
        >>> memory = Shared(weights, cp.MaxOfK(n_ctx=4, d_vocab=64))
        >>> cp.prove(weights, "brute-force", shared=memory).correct_at_least == cp.accuracy(weights, shared=memory).correct
        True
    """

    def __init__(self, weights: Model, task: AbstractTask) -> None:
        self._subject = weights.sha256, task.sha256
        self._least, self._most = (0, "nothing"), (task.total, "nothing")
        self._values: dict[Hashable, Any] = {}
        self._lock = Lock()

    def require(self, weights: Model, task: AbstractTask) -> None:
        """Raise unless this memory is about just this network and task."""
        if self._subject != (weights.sha256, task.sha256):
            raise StrategyError(
                f"this memory (shared=...) holds results about the network {self._subject[0][:12]}... and its task, and was used for the "
                f"network {weights.sha256[:12]}... and the task {task.title!r}; make one for each: Shared(weights, task)"
            )

    def record(self, label: str, correct_at_least: int, correct_at_most: int | None) -> None:
        """Compare what has been proven with everything that was proven before: bounds that contradict each other are an alarm."""
        with self._lock:
            self._least = max(self._least, (correct_at_least, label))
            if correct_at_most is not None:
                self._most = min(self._most, (correct_at_most, label))
            (least, one), (most, other) = self._least, self._most
        if least > most:
            raise DisagreementError(
                f"{one} proves that at least {least} sequences are right, and {other} that at most {most} are",
                f"weights {self._subject[0]}, task {self._subject[1]}, compactproofs {__version__}",
            )

    def known(self, key: Hashable) -> Any:
        """The value under this key if it has been computed, else None."""
        with self._lock:
            return self._values.get(key)

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """The value under this key, computed on first use. (Two threads may compute it twice; the results are equal.)"""
        with self._lock:
            if key in self._values:
                found: Value = self._values[key]
                return found
        value = compute()
        with self._lock:
            self._values[key] = value
        return value
