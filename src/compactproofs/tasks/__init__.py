"""Tasks: what the right output is."""

import math
from collections.abc import Callable, Sequence
from functools import partial

from compactproofs.errors import ModelError, TaskError
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.model.weights import Weights
from compactproofs.tasks.automaton import NO_LABEL, AbstractTask, LabellingAutomaton
from compactproofs.tasks.chains import Chain
from compactproofs.tasks.described import Described
from compactproofs.tasks.distribution_files import product_of
from compactproofs.tasks.distributions import Product, Weighted
from compactproofs.tasks.framed import Framed
from compactproofs.tasks.max_of_k import DESCRIBED as MAX
from compactproofs.tasks.max_of_k import MaxOfK
from compactproofs.tasks.mixture import Mixture
from compactproofs.tasks.named import KINDS, NamedTask
from compactproofs.tasks.regex import DESCRIBED as REGEX
from compactproofs.tasks.regex import RegexTask
from compactproofs.tasks.regions import Region, Where
from compactproofs.tasks.rules import Rule, explored
from compactproofs.tasks.sign_of_sum import DESCRIBED as SIGN_OF_SUM
from compactproofs.tasks.sign_of_sum import SignOfSum
from compactproofs.text import did_you_mean

__all__ = [
    "DESCRIBED",
    "KNOWN",
    "NO_LABEL",
    "AbstractTask",
    "Chain",
    "Described",
    "Framed",
    "LabellingAutomaton",
    "MaxOfK",
    "Mixture",
    "NamedTask",
    "Product",
    "RegexTask",
    "Region",
    "Rule",
    "SignOfSum",
    "Weighted",
    "Where",
    "check_fits",
    "explored",
    "task_for",
    "task_of_size",
]


def _max(n_ctx: int, d_vocab: int, argument: str | None) -> AbstractTask:
    if argument is not None:
        raise TaskError(f"max:{argument:.40}: the task max takes no argument")
    return MaxOfK(n_ctx, d_vocab)


_TASKS: dict[str, Callable[[int, int, str | None], AbstractTask]] = {
    MAX.name: _max,
    SIGN_OF_SUM.name: SignOfSum.from_text,
    **{name: partial(NamedTask.from_text, name) for name in KINDS},
    REGEX.name: RegexTask.from_text,
}
"""By name: the task of so many tokens, of a vocabulary, with what stands behind a colon."""

DESCRIBED = (MAX, *(kind.described for kind in KINDS.values()), SIGN_OF_SUM, REGEX)
"""Every task that has a name, in words."""

KNOWN = tuple(each.usage for each in DESCRIBED)
"""What `--task` and `task_for` understand."""


def library() -> dict[str, str]:
    """Every task that has a name: how it is written, and what the right output is."""
    return {each.usage: each.title for each in DESCRIBED}


_MAX_DIGITS = 4000  # Python writes integers of up to 4300 digits


def task_of_size(spec: str, n_ctx: int, d_vocab: int) -> AbstractTask:
    """The task named `spec` (one of `KNOWN`) for sequences of n_ctx tokens below d_vocab."""
    name, colon, argument = spec.partition(":")
    if name not in _TASKS:
        raise TaskError(f"unknown task {spec!r:.60}{did_you_mean(name, _TASKS) or ';'} known tasks: {', '.join(KNOWN)}")
    try:
        return _TASKS[name](n_ctx, d_vocab, argument if colon else None)
    except TaskError as error:
        raise TaskError(f"{error}; known tasks: {', '.join(KNOWN)}") from None


def is_known(spec: str) -> bool:
    """Whether a task of the library has this name, whatever stands behind the colon."""
    return spec.partition(":")[0] in _TASKS


MakeTask = Callable[[str, int, int], AbstractTask]
"""From a name, n_ctx and d_vocab to a task."""


def task_for(
    weights: Model,
    spec: str | None = None,
    *,
    prefix: Sequence[int] = (),
    suffix: Sequence[int] = (),
    where: str | None = None,
    distribution: str | Product | None = None,
    make: MakeTask = task_of_size,
) -> AbstractTask:
    """The task named `spec` (one of `KNOWN`), sized for the model; `prefix` and `suffix` are tokens that stand at the first and the last
    positions. Without a name it is the task that the model's file names, or `max`.

    Args:
        weights: the model.
        spec: the name.
        prefix: fixed tokens before the input.
        suffix: fixed tokens after it.
        where: a region such as "max>=40,lacks:3", about the tokens between prefix and suffix.
        distribution: the weights of tokens, such as "product:2,1,1", at the same positions.
        make: how a name that somebody gave, not a file, becomes a task.
    """
    require_weights(weights)
    free = weights.n_ctx - len(prefix) - len(suffix)
    if free < 1:
        raise TaskError(f"{len(prefix) + len(suffix)} fixed tokens leave no place among the model's n_ctx={weights.n_ctx} positions")
    task = _named_by_file(weights, free) if spec is None else make(spec, free, weights.d_vocab)
    if where is not None:
        task = Where(task, Region(where))
    chosen = product_of(distribution) if isinstance(distribution, str) else distribution
    task = task if chosen is None else Weighted(task, chosen)
    task = Framed(task, tuple(prefix), tuple(suffix)) if prefix or suffix else task
    check_fits(task, weights)
    return task


def _named_by_file(weights: Model, n_ctx: int) -> AbstractTask:
    """What a file names must be in the library: nothing is imported because a file says so."""
    spec = weights.task or "max"
    if not is_known(spec):
        raise TaskError(
            f"the model's file says that its task is {spec!r:.60}, which is none of the library, and a file's word is not enough to import "
            f"one: say what to ask (--task SPEC, in Python task=...); known tasks: {', '.join(KNOWN)}"
        )
    return task_of_size(spec, n_ctx, weights.d_vocab)


def require_weights(weights: object) -> None:
    """Raise unless this is a model."""
    if not isinstance(weights, Weights | Network):
        what = f"a {type(weights).__name__} was given for a model"
        raise ModelError(f"{what}; expected Weights or a Network, such as zoo('max-of-4') or load(path)")


def require_countable(n_ctx: int, d_vocab: int) -> None:
    """Raise if there are more sequences than can be counted and written down."""
    if n_ctx * math.log10(max(2, d_vocab)) > _MAX_DIGITS:
        raise TaskError(f"{d_vocab}^{n_ctx} input sequences: more than 10^{_MAX_DIGITS} are not supported")


def check_fits(task: AbstractTask, weights: Model) -> None:
    """Raise unless the model reads the task's sequences and has an output for every label."""
    require_weights(weights)
    if not isinstance(task, AbstractTask):
        raise TaskError(
            f"a {type(task).__name__} was given for a task; expected one such as MaxOfK(n_ctx={weights.n_ctx}, d_vocab={weights.d_vocab})"
        )
    if (task.n_ctx, task.d_vocab) != (weights.n_ctx, weights.d_vocab):
        sizes = f"n_ctx={task.n_ctx}, d_vocab={task.d_vocab}; the model has n_ctx={weights.n_ctx}, d_vocab={weights.d_vocab}"
        raise TaskError(f"the task has {sizes}. {_what_to_do(task, weights)}")
    if task.automaton.transitions.shape[1] != task.d_vocab:
        raise TaskError(f"the task's automaton reads {task.automaton.transitions.shape[1]} tokens, the task has d_vocab={task.d_vocab}")
    require_countable(task.n_ctx, task.d_vocab)
    if task.mass_everywhere > 10**_MAX_DIGITS:
        raise TaskError(f"the masses of all sequences add up to more than 10^{_MAX_DIGITS}; expected smaller weights")
    if not task.labels:
        raise TaskError(f"no sequence has a label: the question, {task.title}, of {task.inputs_in_words.rstrip(',')}, is empty")
    largest = max(task.labels)
    if largest >= weights.d_vocab_out:
        raise TaskError(
            f"the task has a label {largest}, but the model has only d_vocab_out={weights.d_vocab_out} outputs for its {weights.d_vocab} "
            "tokens. Tokens without an output (a BOS, a separator, '=') that stand at fixed places are given with --prefix and --suffix "
            "(in Python task_for(weights, prefix=..., suffix=...)); if they never occur, save the model without their rows of W_E"
        )


def _what_to_do(task: AbstractTask, weights: Model) -> str:
    """How to make a model of another size fit a task."""
    if task.n_ctx < weights.n_ctx:
        return (
            f"For sequences of {task.n_ctx} tokens, read at their last, load the model with n_ctx={task.n_ctx} (--n-ctx {task.n_ctx}); "
            "tokens at fixed places are given as a prefix and a suffix"
        )
    if task.n_ctx > weights.n_ctx:
        return f"The model reads {weights.n_ctx} tokens at most"
    if task.d_vocab < weights.d_vocab:
        return f"If tokens from {task.d_vocab} on are never among the inputs, save the model with the first {task.d_vocab} rows of W_E only"
    return f"The model knows {weights.d_vocab} tokens only"
