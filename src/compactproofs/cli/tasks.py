"""`compactproofs tasks`: which questions can be asked by name."""

from __future__ import annotations

from compactproofs.cli.output import ForceOption, JsonOption, Output


def tasks(json_path: JsonOption = None, force: ForceOption = False) -> None:
    """List the tasks that --task knows: how each is written, and what its right output is.

    Any other task with a finite memory is a few lines of Python, --task module:name: see docs/how-to/add-a-task.md.
    """
    output = Output(json_path, force=force)
    from compactproofs.tasks import library

    rows = [{"task": usage, "right_output": title} for usage, title in library().items()]
    output.table(["task", "the right output is"], [[row["task"], row["right_output"]] for row in rows])
    output.result(rows)
