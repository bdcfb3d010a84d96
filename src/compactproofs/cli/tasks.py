"""`compactproofs tasks`: which questions can be asked by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compactproofs.cli.output import ForceOption, JsonOption, Output, note

if TYPE_CHECKING:
    from compactproofs.model.kinds import Model
    from compactproofs.tasks import AbstractTask


def tasks(json_path: JsonOption = None, force: ForceOption = False) -> None:
    """List the tasks that --task knows: how each is written, and what its right output is.

    Any other task with a finite memory is a few lines of Python, --task module:name: see docs/how-to/add-a-task.md.
    """
    output = Output(json_path, force=force)
    from compactproofs.tasks import library

    rows = [{"task": usage, "right_output": title} for usage, title in library().items()]
    output.table(["task", "the right output is"], [[row["task"], row["right_output"]] for row in rows])
    output.result(rows)


def asked_task(weights: Model, spec: str | None, prefix: Sequence[int], suffix: Sequence[int]) -> AbstractTask:
    """The task that was asked for; where none was, the one that the model's file names, or max. Only what was asked for is imported."""
    from compactproofs.tasks import task_for
    from compactproofs.tasks.imported import task_by_user

    problem = task_for(weights, spec, prefix=prefix, suffix=suffix, make=task_by_user)
    if spec is None and weights.task is not None:
        note(f"note: the task is {problem.spec}, as the model's file says")
    return problem
