"""Mixtures of distributions: the bound of a mixture is the sum of the bounds of its parts, by their shares. Exact integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from compactproofs.arrays.rounding import round_down, round_up
from compactproofs.counting.outcome import Progress
from compactproofs.errors import TaskError
from compactproofs.markov import MarkovQuestion, markov_accuracy, prove_markov
from compactproofs.measuring import DEFAULT_SECONDS, Accuracy, accuracy
from compactproofs.model.kinds import Model
from compactproofs.positions import Position
from compactproofs.proof import Proof
from compactproofs.proving import Seconds, prove_many
from compactproofs.strategies.base import AbstractStrategy, Bound, ProofLength
from compactproofs.tasks import AbstractTask, Chain, MakeTask, Mixture, Product, task_for, task_of_size
from compactproofs.tasks.automaton import brief
from compactproofs.theorems import no_theorem, theorem

_MAX_DIGITS = 4000


@dataclass(frozen=True)
class MixedQuestion:
    """One task, asked of a mixture of distributions.

    Law: a sequence has the mass `sum_j factors[j] * (its mass in tasks[j])`, and its share of the mass of all sequences is what the mixture
    says; of a region, it is what the mixture says given the region.
    """

    plain: AbstractTask
    """The task without a distribution."""
    tasks: tuple[AbstractTask | MarkovQuestion, ...]
    """The same task with the distribution of each part."""
    mixture: Mixture

    @classmethod
    def of(
        cls,
        weights: Model,
        mixture: Mixture,
        spec: str | None = None,
        *,
        prefix: Sequence[int] = (),
        suffix: Sequence[int] = (),
        where: str | None = None,
        make: MakeTask = task_of_size,
    ) -> MixedQuestion:
        """The question about a model; see `task_for`."""

        def asked(distribution: Product | Chain) -> AbstractTask | MarkovQuestion:
            if isinstance(distribution, Chain):
                return MarkovQuestion.of(weights, distribution, spec, prefix=prefix, suffix=suffix, where=where, make=make)
            return task_for(weights, spec, prefix=prefix, suffix=suffix, where=where, distribution=distribution, make=make)

        plain = task_for(weights, spec, prefix=prefix, suffix=suffix, where=where, make=make)
        found = cls(plain, tuple(asked(each) for _, each in mixture.parts), mixture)
        if found.total > 10**_MAX_DIGITS:
            raise TaskError(f"the masses of the mixture add up to more than 10^{_MAX_DIGITS}; expected smaller weights")
        return found

    @cached_property
    def factors(self) -> tuple[int, ...]:
        """How much a unit of mass of each part counts: in proportion to its share divided by the mass of all its sequences."""
        exact = [share / task.mass_everywhere for (share, _), task in zip(self.mixture.parts, self.tasks, strict=True)]
        scale = math.lcm(*(each.denominator for each in exact))
        return tuple(int(each * scale) for each in exact)

    @property
    def total(self) -> int:
        return self.added([task.total for task in self.tasks])

    def added(self, masses: Sequence[int]) -> int:
        """Masses of the parts as a mass of the mixture."""
        return sum(factor * mass for factor, mass in zip(self.factors, masses, strict=True))

    @property
    def title(self) -> str:
        return self.plain.title

    @property
    def total_in_words(self) -> str:
        return f"mass {brief(self.total)} of the"

    @property
    def inputs_in_words(self) -> str:
        shares = ", ".join(str(share / sum(share for share, _ in self.mixture.parts)) for share, _ in self.mixture.parts)
        name = self.mixture.name or "of distributions"
        return f"{self.plain.inputs_in_words.rstrip(',')}, weighted by the mixture {name} with shares {shares},"


Asked = AbstractTask | MarkovQuestion | MixedQuestion
"""What can be asked about a model."""


def prove_mixture(
    weights: Model,
    strategies: Sequence[AbstractStrategy],
    question: MixedQuestion,
    *,
    position: Position = "last",
    upper: bool = False,
    seconds: Seconds = "usual",
    progress: Callable[[int, int], None] | None = None,
    margin: float = 0.0,
) -> Iterator[Proof]:
    """Like `prove_many`, about a mixture: a proof about each part, and from these the proof about the mixture. It has no certificate; the
    proofs of the parts have. A time limit is shared by the parts.

    Guarantee: correct_at_least and correct_at_most bound the mass answered right, for sound strategies.
    Assumes: nothing.
    Cost: that of all parts.
    Source: the mass of the mixture is the sum of the masses of its parts (`MixedQuestion`).
    """
    each = seconds if seconds is None or seconds == "usual" else seconds / len(question.tasks)
    found = [
        list(prove_asked(weights, strategies, task, position=position, upper=upper, seconds=each, progress=progress, margin=margin))
        for task in question.tasks
    ]
    for proofs in zip(*found, strict=True):
        yield _mixed(weights, question, proofs, margin)


def prove_asked(
    weights: Model,
    strategies: Sequence[AbstractStrategy],
    question: Asked,
    *,
    position: Position = "last",
    upper: bool = False,
    seconds: Seconds = "usual",
    progress: Callable[[int, int], None] | None = None,
    margin: float = 0.0,
) -> Iterator[Proof]:
    """`prove_many`, `prove_markov` or `prove_mixture`, whichever the question needs."""
    if isinstance(question, MixedQuestion):
        return prove_mixture(
            weights, strategies, question, position=position, upper=upper, seconds=seconds, progress=progress, margin=margin
        )
    if isinstance(question, MarkovQuestion):
        return prove_markov(
            weights, strategies, question, position=position, upper=upper, seconds=seconds, progress=progress, margin=margin
        )
    return prove_many(weights, strategies, question, position=position, upper=upper, seconds=seconds, progress=progress, margin=margin)


def _mixed(weights: Model, question: MixedQuestion, proofs: Sequence[Proof], margin: float) -> Proof:
    """The proof about a mixture, from those about its parts by one strategy at one position."""
    first = proofs[0]
    reason = next((proof.reason for proof in proofs if proof.reason is not None), None)
    most = [proof.correct_at_most for proof in proofs]
    upper = None if any(bound is None for bound in most) else question.added([bound for bound in most if bound is not None])
    bound = Bound(question.added([proof.correct_at_least for proof in proofs]), upper, first.arithmetic)
    if reason is not None:
        bound = Bound(0, None if upper is None else question.total, "none")
    steps = [proof.length.flops_breakdown for proof in proofs]
    length = ProofLength(
        {step: sum(each.get(step, 0) for each in steps) for step in dict.fromkeys(step for each in steps for step in each)},
        sum(proof.integer_ops for proof in proofs),
        max(proof.unexplained_dimensions for proof in proofs),
    )
    claim = theorem(weights, question, bound, first.position, first.assumptions, margin)
    return replace(
        first,
        status="infeasible" if reason is not None else first.status,
        reason=reason,
        correct_at_least=bound.correct_at_least,
        correct_at_most=bound.correct_at_most,
        total=question.total,
        length=length,
        seconds=sum(proof.seconds for proof in proofs),
        search_seconds=sum(proof.search_seconds for proof in proofs),
        counting_seconds=sum(proof.counting_seconds for proof in proofs),
        compile_seconds=sum(proof.compile_seconds for proof in proofs),
        arithmetic=bound.arithmetic,
        theorem=claim if first.sound else no_theorem(question, bound, first.position),
        origin=None,
    )


def accuracy_asked(
    weights: Model,
    question: Asked,
    *,
    samples: int | None = None,
    seconds: float | None = DEFAULT_SECONDS,
    confidence: float = 0.99,
    seed: int = 0,
    progress: Progress | None = None,
    margin: float = 0.0,
) -> Accuracy:
    """`accuracy`, `markov_accuracy` or `mixture_accuracy`, whichever the question needs."""
    if isinstance(question, MixedQuestion):
        if samples is not None:
            raise TaskError("--samples: a mixture is measured by brute force only; sample its parts one by one")
        return mixture_accuracy(weights, question, seconds=seconds, margin=margin)
    if isinstance(question, MarkovQuestion):
        return markov_accuracy(
            weights, question, samples=samples, seconds=seconds, confidence=confidence, seed=seed, progress=progress, margin=margin
        )
    return accuracy(weights, question, samples=samples, seconds=seconds, confidence=confidence, seed=seed, progress=progress, margin=margin)


def mixture_accuracy(weights: Model, question: MixedQuestion, *, seconds: float | None = DEFAULT_SECONDS, margin: float = 0.0) -> Accuracy:
    """The exact accuracy over a mixture, by brute force over the sequences of each part."""
    each = None if seconds is None else seconds / len(question.tasks)
    found = [accuracy_asked(weights, task, seconds=each, margin=margin) for task in question.tasks]
    correct, undecided = (question.added([getattr(part, name) for part in found]) for name in ("correct", "undecided"))
    return replace(
        found[0],
        correct=correct,
        undecided=undecided,
        total=question.total,
        decided_exactly=sum(part.decided_exactly for part in found),
        interval=(round_down(Fraction(correct, question.total)), round_up(Fraction(correct + undecided, question.total))),
        seconds=sum(part.seconds for part in found),
    )
