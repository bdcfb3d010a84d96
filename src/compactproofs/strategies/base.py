"""What a strategy is and what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event
from typing import Any, ClassVar

from compactproofs.budget import Budget
from compactproofs.counting.outcome import Progress
from compactproofs.errors import StrategyError, UnsupportedError
from compactproofs.ledger.inspect import proven_by_query, unproven_by_query
from compactproofs.ledger.ledger import Ledger
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.model.weights import Weights
from compactproofs.strategies.shared import Shared
from compactproofs.tasks import AbstractTask, MaxOfK
from compactproofs.tasks.question import Question


@dataclass(frozen=True)
class Request:
    """Everything a strategy may know besides its own parameters."""

    weights: Model
    task: AbstractTask
    seconds: float | None = None
    """Time budget; None means none. It runs from the moment the request is made."""
    upper: bool = False
    """Whether an upper bound on accuracy is wanted too."""
    progress: Progress | None = None
    memory: Shared | None = None
    """Intermediate results that other strategies of the same model may use again; by default an empty memory of its own."""

    stop: Event | None = None
    """Set by whoever wants the proof to end at once with what it has."""
    asked: Question | None = None
    """The question, if it is another one than "how many sequences are answered right"."""
    usual: bool = False
    """Nobody said how long it may take: `seconds` are a limit, and a search that could go on ends when there is little left to win."""
    budget: Budget = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.memory is not None:
            self.memory.require(self.weights, self.task)
            if self.asked is not None:
                raise StrategyError("a memory belongs to a network and a task; a question of its own cannot share it")
        object.__setattr__(self, "budget", Budget(self.seconds, self.stop))

    @cached_property
    def question(self) -> Question:
        return Question(self.task) if self.asked is None else self.asked

    @cached_property
    def shared(self) -> Shared:
        return Shared(self.weights, self.task) if self.memory is None else self.memory


@dataclass(frozen=True)
class ProofLength:
    """What checking the proof costs, by the paper's conventions."""

    flops_breakdown: dict[str, int]
    """Floating-point operations by step."""
    integer_ops: int
    """Integer operations, which the paper does not charge."""
    unexplained_dimensions: int
    """The paper's measure of how much of the model the proof treats as a black box."""

    @property
    def flops(self) -> int:
        return sum(self.flops_breakdown.values())

    def with_measured(self, bound: Bound) -> ProofLength:
        """The whole length of a proof that has been carried out."""
        return ProofLength({**self.flops_breakdown, **bound.measured}, self.integer_ops + bound.integer_ops, self.unexplained_dimensions)


@dataclass(frozen=True)
class Bound:
    """What a strategy establishes."""

    correct_at_least: int
    correct_at_most: int | None
    """None if the strategy has no upper bound of its own; `prove` then takes the one of `threshold.upper` if one is asked for."""
    arithmetic: str
    """In which arithmetic it was established, and hence what it rests on."""
    measured: dict[str, int] = field(default_factory=dict)
    """Operations of steps whose cost depends on the weights, as executed; they add to the strategy's `length`."""
    integer_ops: int = 0
    """How many of the measured operations are on integers."""
    length: ProofLength | None = None
    """The length by sizes, if another proof was carried out than the strategy's `length` is about."""
    make_ledger: Callable[[], Ledger] | None = None
    """Writes the ledger that proves this; None for the paper's strategies, which have none."""
    search_seconds: float = 0.0
    """Time spent on looking for hints, which no checker needs."""
    advice: str = ""
    """How to get more than this; empty if there is nothing to say."""
    counting_seconds: float = 0.0
    """Time spent on counting sequences, summed over threads. Kernels that bound and count in one pass are counting as a whole."""


class AbstractStrategy(ABC):
    """A way to turn weights into a bound on accuracy.

    Laws: `strategy(name, **parameters)` of the registry recreates an equal strategy. If `sound`, then for all weights
    `bound(request).correct_at_least` is at most the true number of correct sequences, and `correct_at_most`, if given, at least that.
    """

    name: ClassVar[str]
    family: ClassVar[str]

    @property
    def label(self) -> str:
        """Name and parameters in one word: what `--strategy` takes and tables show."""
        return self.name

    @property
    def variant(self) -> str | None:
        """`repaired` or `published` for the paper's subcubic strategies, else None."""
        return None

    @property
    def sound(self) -> bool:
        """Whether the bound is a theorem. False only for what the authors' code computes without proving it."""
        return True

    @property
    @abstractmethod
    def complexity(self) -> str:
        """Asymptotic cost of checking, in the sizes of the model."""

    @property
    @abstractmethod
    def source(self) -> str:
        """Where the idea comes from."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Arguments that, with the name, recreate the strategy."""

    @abstractmethod
    def bound(self, request: Request) -> Bound:
        """Prove. Raises `InfeasibleError`, with a reason, instead of running for longer than allowed."""

    def within(self, flops: int) -> AbstractStrategy:
        """The same strategy, if it can choose how much to look at, keeping to so many FLOPs; else the strategy itself."""
        del flops
        return self

    def by_pair(self, request: Request) -> dict[int, list[int]] | None:
        """Sequences proven right, for each label by query (numbered among the label's tokens); None if the strategy cannot tell.

        Law: if the strategy is sound, every number is at most the true one.
        """
        make_ledger = self.bound(request).make_ledger
        return None if make_ledger is None else proven_by_query(make_ledger(), request.weights)

    def unproven(self, request: Request) -> dict[int, list[list[int] | None]] | None:
        """For each label by query, a sequence that the strategy does not prove right; None where it proves all, or cannot tell."""
        make_ledger = self.bound(request).make_ledger
        return None if make_ledger is None else unproven_by_query(make_ledger(), request.weights)

    @abstractmethod
    def length(self, weights: Model, task: AbstractTask) -> ProofLength:
        """The cost of checking the proof, as far as it depends on the sizes only; `Bound.measured` has the rest."""


def require_plain(model: Model, strategy: str) -> Weights:
    """The weights, if the network is of the paper's kind: one head, no norms, no MLP, learned positions (biases are written as such)."""
    if isinstance(model, Network):
        raise UnsupportedError(
            f"{strategy} is the paper's argument about one head without norms and MLP; this network has {model.described}. "
            "Try the threshold strategies"
        )
    return model


def require_max_of_k(task: AbstractTask, strategy: str) -> None:
    """Raise unless the task is max-of-K, which the paper's arguments are about."""
    if task.sha256 != MaxOfK(task.n_ctx, task.d_vocab).sha256:
        restricted = task.allowed is not None or task.partial or not task.uniform
        about = f" of {task.inputs_in_words.rstrip(',')}" if restricted else ""
        everything = " of all sequences, equally likely" if restricted else ""
        raise UnsupportedError(
            f"{strategy} proves bounds for max-of-K{everything} only, not for {task.title}{about}. Try the threshold strategies"
        )


def require_no_margin(request: Request, strategy: str) -> None:
    """Raise if the right output has to win by a margin: the paper's arguments only show that it wins."""
    if request.question.margin is not None:
        raise UnsupportedError(f"{strategy} proves that the right output wins, not by how much. For margins try the threshold strategies")


@dataclass(frozen=True)
class Origin:
    """What a proof is about, and how its ledger is made."""

    strategy: AbstractStrategy
    weights: Model
    question: Question
    make_ledger: Callable[[], Ledger] | None
    whole: Model | None = None
    """The model, where the answer is read at a position: `weights` is then the network on the tokens up to it."""
