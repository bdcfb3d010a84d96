"""By how much the label wins on every input sequence: exact curves of margins, and the mean cross-entropy, by brute force."""

from __future__ import annotations

import decimal
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from threading import Event

import numpy as np

from compactproofs.arrays.environment import require_ieee754
from compactproofs.arrays.rounding import round_down, round_up
from compactproofs.budget import Budget, in_threads
from compactproofs.cores import available_cores
from compactproofs.counting import gap_kernels
from compactproofs.counting.choices import Choices
from compactproofs.counting.exact_sign import ExactNetwork
from compactproofs.counting.outcome import PATIENCE, ExactCount, Progress, duration
from compactproofs.counting.plain_truth import PlainTruth
from compactproofs.counting.truth import Call
from compactproofs.counting.weighing import brute_force_by_mass, is_plain
from compactproofs.errors import InfeasibleError
from compactproofs.form.evaluation import Evaluation, prepare
from compactproofs.model.weights import Weights
from compactproofs.tasks import AbstractTask, check_fits

_LOGITS_PER_CALL = 2**25
_ROOM = 4096
_DIGITS = 60


@dataclass(frozen=True)
class Gaps:
    """What evaluating every sequence says about gaps. The gap of a sequence is the label's logit minus the largest other one."""

    margins: tuple[float, ...]
    at_least: tuple[int, ...]
    """For each margin: how many sequences certainly have a larger gap."""
    at_most: tuple[int, ...]
    """For each margin: how many sequences possibly do."""
    total: int
    decided_exactly: int
    """Comparisons of a gap with a margin that needed exact arithmetic."""
    smallest_lower: float
    """No gap is smaller."""
    greatest_upper: float
    """No gap is larger."""
    loss: tuple[float, float] | None
    """Bounds of the mean cross-entropy, in nats; None if it was not asked for."""


def right_by_margin(
    weights: Weights,
    task: AbstractTask,
    margin: float,
    *,
    seconds: float | None = None,
    progress: Progress | None = None,
    stop: Event | None = None,
) -> ExactCount:
    """Count the sequences on which the label's logit is larger than every other by more than the margin.

    Guarantee: correct <= (true number of them, or mass) <= correct + undecided.
    Cost: as `evaluate_gaps`; with masses, or sequences without a label, as `brute_force_by_mass`.
    """
    if not is_plain(task):
        check_fits(task, weights)
        budget = Budget(None if seconds is None else PATIENCE * seconds, stop)
        truth, threads = MarginTruth(weights, margin), available_cores()
        return brute_force_by_mass(truth, task, seconds=seconds, threads=threads, progress=progress, budget=budget)
    found = evaluate_gaps(weights, task, (margin,), seconds=seconds, progress=progress, stop=stop)
    return ExactCount(found.at_least[0], found.total, found.at_most[0] - found.at_least[0], found.decided_exactly)


class MarginTruth(PlainTruth):
    """Decides whether the label wins by more than a margin. (`count`, a kernel about winning, is not for it: see `right_by_margin`.)"""

    def __init__(self, weights: Weights, margin: float) -> None:
        super().__init__(weights)
        self._margin = margin

    def gaps(self, sequences: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """(sequence, 2): bounds of each gap, from below and from above."""
        require_ieee754()
        found = np.empty((len(sequences), 2))
        gap_kernels.gaps_of_sequences(self._evaluation, np.ascontiguousarray(sequences, dtype=np.int64), labels, found)
        return found

    def count(self, task: AbstractTask, choices: Choices, call: Call, buffer: np.ndarray) -> tuple[int, int]:
        raise NotImplementedError("right_by_margin counts by margins")

    def verdicts(self, sequences: np.ndarray, labels: np.ndarray) -> np.ndarray:
        found = [gap_kernels.verdict_of_gap(least, most, self._margin) for least, most in self.gaps(sequences, labels).tolist()]
        return np.array(found, dtype=np.int64)

    def is_correct(self, tokens: Sequence[int], label: int) -> bool | None:
        return self._exact.is_correct(tokens, label, Fraction(self._margin))


def evaluate_gaps(
    weights: Weights,
    task: AbstractTask,
    margins: Sequence[float],
    *,
    losses: bool = False,
    seconds: float | None = None,
    progress: Progress | None = None,
    stop: Event | None = None,
) -> Gaps:
    """Evaluate every sequence of a task without masses, all of whose sequences have a label. Margins must ascend.

    Guarantee: at_least <= (true number with a gap above the margin) <= at_most for each margin; the mean cross-entropy lies in `loss`.
    Assumes: nothing.
    Cost: O(d_vocab^n_ctx d_vocab_out), with an exponential each if losses are wanted.
    Source: the proofs in `gap_kernels`. What float64 cannot compare is decided exactly, up to some thousand sequences for each call.
    """
    check_fits(task, weights)
    if not is_plain(task):
        raise InfeasibleError("gaps are evaluated where every sequence counts once; prove each margin by itself")
    work = _Work(task, prepare(weights), np.array(margins, dtype=np.float64), Choices.of(task), losses)
    estimate = work.estimated_seconds()
    if seconds is not None and estimate > seconds:
        raise InfeasibleError(
            f"evaluating {task.total_in_words} sequences would take about {duration(estimate)}, more than the {duration(seconds)} allowed. "
            "Allow more (--seconds), or prove a bound instead."
        )
    budget = Budget(None if seconds is None else PATIENCE * seconds, stop)
    counts, numbers = np.zeros((2, len(margins) + 1), dtype=np.int64), work.no_numbers()
    doubtful: list[tuple[int, np.ndarray]] = []
    logs, done = (Fraction(0), Fraction(0)), 0
    for call, (some, own, rows) in in_threads(work.run, work.calls(), budget):
        counts += some
        doubtful.append((call.query, rows))
        if losses:
            least, most = _logarithm(own[gap_kernels.MANTISSA], own[gap_kernels.POWER])
            logs = logs[0] + least, logs[1] + most
        numbers = _merged(numbers, own)
        done += (call.stop - call.start) * work.choices.n_last
        if progress is not None:
            progress(done, task.total)
    if done < task.total:
        raise InfeasibleError(f"evaluation was stopped: {done} of {task.total_in_words} sequences are done. Allow more (--seconds).")
    below, above = ((counts.sum(axis=1)[:, None] - counts.cumsum(axis=1))[:, :-1]).tolist()
    exactly = _decide(weights, work, doubtful, (below, above), budget)
    loss = _mean(logs, numbers, task.total, weights.d_vocab_out) if losses else None
    ends = float(numbers[gap_kernels.SMALLEST]), float(numbers[gap_kernels.GREATEST])
    return Gaps(tuple(margins), tuple(below), tuple(above), task.total, exactly, *ends, loss)


@dataclass(frozen=True)
class _Work:
    """What the kernel needs, and portions of it."""

    task: AbstractTask
    evaluation: Evaluation
    margins: np.ndarray
    choices: Choices
    losses: bool

    def calls(self) -> list[Call]:
        step = max(1, _LOGITS_PER_CALL // (self.choices.n_last * self.evaluation.EU.shape[1]))
        prefixes = self.choices.prefixes
        return [Call(q, a, min(a + step, prefixes)) for q in self.choices.queries for a in range(0, prefixes, step)]

    def no_numbers(self) -> np.ndarray:
        numbers = np.zeros(gap_kernels.NUMBERS)
        numbers[gap_kernels.MANTISSA], numbers[gap_kernels.SMALLEST], numbers[gap_kernels.GREATEST] = 1.0, np.inf, -np.inf
        return numbers

    def run(self, call: Call) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        require_ieee754()  # per thread
        counts, numbers = np.zeros((2, len(self.margins) + 1), dtype=np.int64), self.no_numbers()
        machine, choices, room = self.task.automaton, self.choices, np.empty((_ROOM, 3), dtype=np.int64)
        walk = ((machine.transitions, machine.labels, machine.start), (choices.tokens, choices.sizes, choices.last))
        portion = (call.query, call.start, call.stop, self.losses)
        found = gap_kernels.gaps_of_query(self.evaluation, walk, portion, self.margins, (counts, numbers), room)
        return counts, numbers, room[: min(found, _ROOM)].copy()

    def estimated_seconds(self) -> float:
        """Extrapolated from a short timed run."""
        query, prefixes = self.choices.queries[0], self.choices.prefixes
        trial = max(1, min(prefixes, 2**18 // (self.choices.n_last * self.evaluation.EU.shape[1])))
        self.run(Call(query, 0, 0))
        started = time.perf_counter()
        self.run(Call(query, 0, trial))
        try:
            return float((time.perf_counter() - started) / trial / available_cores() * float(prefixes * len(self.choices.queries)))
        except OverflowError:
            return math.inf


def _merged(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    k = gap_kernels
    found = a.copy()
    found[k.WORST_ERROR] = max(a[k.WORST_ERROR], b[k.WORST_ERROR])
    found[k.SMALLEST], found[k.GREATEST] = min(a[k.SMALLEST], b[k.SMALLEST]), max(a[k.GREATEST], b[k.GREATEST])
    found[k.BEYOND] = a[k.BEYOND] + b[k.BEYOND]
    return found


def _decide(
    weights: Weights, work: _Work, doubtful: list[tuple[int, np.ndarray]], counts: tuple[list[int], list[int]], budget: Budget
) -> int:
    """Decide comparisons exactly and put the counts right; returns how many there were."""
    below, above = counts
    exact, done = ExactNetwork(weights) if any(len(rows) for _, rows in doubtful) else None, 0
    for query, rows in doubtful:
        for code, first, end in rows.tolist():
            sequence = work.choices.sequence(code, query)
            (label,) = work.task.automaton.label(np.array([sequence])).tolist()
            for j in range(first, end):
                verdict = None if exact is None or budget.over else exact.is_correct(sequence, label, Fraction(float(work.margins[j])))
                if verdict is not None:
                    done += 1
                    below[j] += verdict
                    above[j] -= not verdict
    return done


def _logarithm(mantissa: float, power: float) -> tuple[Fraction, Fraction]:
    """Bounds of log(mantissa 2^power), for a mantissa of at least 1."""
    context = decimal.Context(prec=_DIGITS, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    value = Fraction(context.ln(decimal.Decimal(float(mantissa)))) + int(power) * Fraction(context.ln(decimal.Decimal(2)))
    slack = (1 + abs(value)) * Fraction(1, 10 ** (_DIGITS - 5))  # `ln` is correctly rounded
    return value - slack, value + slack


def _mean(logs: tuple[Fraction, Fraction], numbers: np.ndarray, total: int, outputs: int) -> tuple[float, float]:
    """Bounds of the mean loss: the logarithm of the product, the error of each factor, and the error of the logits."""
    worst = float(numbers[gap_kernels.WORST_ERROR])
    if not worst < math.inf:
        return 0.0, math.inf
    error = Fraction(worst) + Fraction(1, 2**43) + Fraction(outputs, 2**45)
    least, most = max(Fraction(0), logs[0] / total - error), logs[1] / total + error
    return round_down(least), math.inf if numbers[gap_kernels.BEYOND] else round_up(most)
