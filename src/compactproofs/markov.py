"""Questions about Markov chains: proven about a network that has copies of tokens (`tasks.chains`), stated about the model itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from compactproofs.budget import Budget
from compactproofs.cores import available_cores
from compactproofs.counting.brute_force import truth_of
from compactproofs.counting.gaps import MarginTruth
from compactproofs.counting.outcome import PATIENCE, Progress
from compactproofs.counting.sampling import Source, sample
from compactproofs.counting.weighing import Scale, brute_force_by_mass
from compactproofs.errors import TaskError
from compactproofs.measuring import DEFAULT_SECONDS, Accuracy, of_count
from compactproofs.model.kinds import Model
from compactproofs.positions import Position, Reading, readings
from compactproofs.proof import Proof
from compactproofs.proving import Seconds, prove_many
from compactproofs.strategies.base import AbstractStrategy, Bound, require_plain
from compactproofs.tasks import AbstractTask, Chain, Framed, MakeTask, check_fits, task_for, task_of_size
from compactproofs.tasks.automaton import brief
from compactproofs.tasks.chains import Chained
from compactproofs.tasks.margin import require_margin
from compactproofs.theorems import no_theorem, theorem


@dataclass(frozen=True, eq=False)
class MarkovQuestion:
    """One task, asked of sequences from a Markov chain; fixed tokens stand around them, if the task has some."""

    plain: AbstractTask
    """The task without a distribution, on the tokens of the model."""
    chain: Chain

    @classmethod
    def of(
        cls,
        weights: Model,
        chain: Chain,
        spec: str | None = None,
        *,
        prefix: Sequence[int] = (),
        suffix: Sequence[int] = (),
        where: str | None = None,
        make: MakeTask = task_of_size,
    ) -> MarkovQuestion:
        """The question about a model; see `task_for`."""
        found = cls(task_for(weights, spec, prefix=prefix, suffix=suffix, where=where, make=make), chain)
        check_fits(found.on_copies, found.network(weights))
        return found

    @cached_property
    def on_copies(self) -> AbstractTask:
        """The task on copies of tokens, between fixed ones if the task has some."""
        inner = self._chained
        return Framed(inner, self.plain.prefix, self.plain.suffix) if isinstance(self.plain, Framed) else inner

    @cached_property
    def _chained(self) -> Chained:
        return Chained(self.plain.inner if isinstance(self.plain, Framed) else self.plain, self.chain)

    def network(self, weights: Model) -> Model:
        """The network that reads copies.

        Law: it answers a sequence of copies as the model answers the sequence of their tokens: it has the same embeddings.
        """
        return replace(weights, W_E=weights.W_E[self._chained.copies.tokens])

    @property
    def total(self) -> int:
        """The mass of the sequences that have a label."""
        return self.on_copies.total

    @property
    def mass_everywhere(self) -> int:
        """The mass of all sequences."""
        return self.chain.mass_everywhere(self._chained.n_ctx)

    def weigh(self, sequences: np.ndarray) -> np.ndarray:
        """The mass of each sequence of the model's tokens, one per row."""
        return self.chain.weigh(sequences[:, self._free])

    def drawn(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """So many sequences of the model's tokens, whether they have a label or not."""
        rows = np.empty((size, self.plain.n_ctx), dtype=np.int64)
        rows[:, self._free] = self.chain.drawn(generator, self._chained.n_ctx, size)
        if isinstance(self.plain, Framed):
            rows[:, : self._free.start], rows[:, self._free.stop :] = self.plain.prefix, self.plain.suffix
        return rows

    @property
    def _free(self) -> slice:
        """The positions that the chain is about."""
        before = len(self.plain.prefix) if isinstance(self.plain, Framed) else 0
        return slice(before, before + self._chained.n_ctx)

    @property
    def title(self) -> str:
        return self.plain.title

    @property
    def total_in_words(self) -> str:
        return f"mass {brief(self.total)} of the"

    @property
    def inputs_in_words(self) -> str:
        masses = "a sequence has the product of the weights of its first token and of its steps, rows scaled to one sum"
        return f"{self.plain.inputs_in_words.rstrip(',')}, weighted by the Markov chain {self.chain.title} ({masses}),"


def prove_markov(
    weights: Model,
    strategies: Sequence[AbstractStrategy],
    question: MarkovQuestion,
    *,
    position: Position = "last",
    upper: bool = False,
    seconds: Seconds = "usual",
    progress: Callable[[int, int], None] | None = None,
    margin: float = 0.0,
) -> Iterator[Proof]:
    """Like `prove_many`, about a Markov chain. It has no certificate, as that would be about the network that reads copies; FLOPs are
    those of that network. A time limit is shared evenly by the positions.

    Guarantee: correct_at_least and correct_at_most bound the mass answered right, for sound strategies.
    Assumes: nothing.
    Cost: that of a network with as many tokens as there are copies, and an automaton that remembers the last token.
    Source: the copies of a sequence have its mass, its label and its answer (`Chained`, `MarkovQuestion.network`).
    """
    places = [_Place.of(question, each) for each in readings(weights, question.plain, position)]
    each = seconds if seconds is None or seconds == "usual" else seconds / len(places)

    def proofs(place: _Place) -> Iterator[Proof]:
        about, network = place.question.on_copies, place.question.network(place.reading.network)
        for proof in prove_many(network, strategies, about, upper=upper, seconds=each, progress=progress, margin=margin):
            yield _stated(weights, question, place, proof)

    if len(places) == 1:
        yield from proofs(places[0])
        return
    for own in zip(*[list(proofs(place)) for place in places], strict=True):
        yield from own


@dataclass(frozen=True)
class _Place:
    """The question as it is at one position."""

    reading: Reading
    question: MarkovQuestion
    ways: int
    """How much each unit of its mass counts: what the later steps weigh."""

    @classmethod
    def of(cls, whole: MarkovQuestion, reading: Reading) -> _Place:
        later = whole.plain.n_ctx - reading.task.n_ctx
        if later == 0:
            return cls(reading, whole, 1)
        found = cls(reading, MarkovQuestion(reading.task, whole.chain), whole.chain.step**later)
        if found.ways * found.question.total != whole.total:
            raise TaskError(f"position {reading.position} was asked for, but which sequences have a label there depends on the position")
        return found


def _stated(weights: Model, question: MarkovQuestion, place: _Place, proof: Proof) -> Proof:
    """The proof about copies as one about the model."""
    most = None if proof.correct_at_most is None else place.ways * proof.correct_at_most
    bound = Bound(place.ways * proof.correct_at_least, most, proof.arithmetic)
    at, assumptions = place.reading.position, (*weights.assumptions, *place.reading.assumptions)
    claim = theorem(weights, question, bound, at, assumptions, proof.margin) if proof.sound else no_theorem(question, bound, at)
    return replace(
        proof,
        correct_at_least=bound.correct_at_least,
        correct_at_most=most,
        total=question.total,
        theorem=claim,
        assumptions=assumptions,
        weights_sha256=weights.sha256,
        position=at,
        origin=None,
    )


def markov_accuracy(
    weights: Model,
    question: MarkovQuestion,
    *,
    samples: int | None = None,
    seconds: float | None = DEFAULT_SECONDS,
    confidence: float = 0.99,
    seed: int = 0,
    progress: Progress | None = None,
    margin: float = 0.0,
) -> Accuracy:
    """The exact accuracy over the sequences of a chain, by brute force over those of the model itself; or over `samples` drawn from it."""
    started, task = time.perf_counter(), question.plain
    truth = truth_of(weights) if require_margin(margin) == 0.0 else MarginTruth(require_plain(weights, "accuracy by a margin"), margin)
    if samples is not None:
        source = Source(question.drawn, question.total, question.mass_everywhere)
        count = sample(weights, task, samples, seed=seed, seconds=seconds, progress=progress, truth=truth, source=source)
        return replace(of_count(weights, count, confidence, margin), seconds=time.perf_counter() - started)
    budget = Budget(None if seconds is None else PATIENCE * seconds)
    scale, threads = Scale(question.weigh, question.total), available_cores()
    count = brute_force_by_mass(truth, task, seconds=seconds, threads=threads, progress=progress, budget=budget, scale=scale)
    return replace(of_count(weights, count, None, margin), seconds=time.perf_counter() - started)
