"""How verbs talk: tables and progress for people, JSON for programs, never mixed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from compactproofs.errors import CompactProofsError

JsonOption = Annotated[
    str | None,
    typer.Option("--json", metavar="PATH|-", help="Write machine-readable JSON to a file, or alone to standard output with '-'."),
]

ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="Name of a bundled model (such as max-of-4), a .safetensors file or a .pth file.")
]

TaskOption = Annotated[str, typer.Option("--task", metavar="SPEC", help="What the right output is. Known: max.")]


class Output:
    """Where results go. With `--json -` standard output carries JSON and nothing else."""

    def __init__(self, json_path: str | None) -> None:
        self._json_path = json_path
        if json_path not in (None, "-") and not Path(str(json_path)).parent.is_dir():
            raise CompactProofsError(f"--json {json_path}: the folder {Path(str(json_path)).parent} does not exist")

    @property
    def for_people(self) -> bool:
        return self._json_path != "-"

    def say(self, text: str = "") -> None:
        """A line for people."""
        if self.for_people:
            typer.echo(text)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table for people: drawn on a terminal, aligned plain text in a pipe."""
        if not self.for_people:
            return
        if sys.stdout.isatty():
            from rich import box
            from rich.console import Console
            from rich.table import Column, Table

            drawn = Table(*(Column(name, no_wrap=True, overflow="fold") for name in columns), box=box.SIMPLE_HEAD, pad_edge=False)
            for row in rows:
                drawn.add_row(*row)
            console = Console()
            wide = max(console.width, sum(max(len(row[i]) for row in [columns, *rows]) + 4 for i in range(len(columns))))
            Console(width=wide).print(drawn)
            return
        widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
        for row in [columns, *rows]:
            typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    def result(self, data: Any) -> None:
        """The machine-readable result, if asked for."""
        if self._json_path is None:
            return
        text = json.dumps(data, indent=2, allow_nan=False) + "\n"
        if self._json_path == "-":
            typer.echo(text, nl=False)
            return
        from compactproofs.model.files import write_atomically

        write_atomically(Path(self._json_path), text.encode())

    def assumptions(self, assumptions: Sequence[str]) -> None:
        """Say on standard error what was assumed about the model file."""
        for assumption in assumptions:
            typer.echo(f"note: {assumption}", err=True)


def brief_integer(value: int) -> str:
    """Three significant digits, for integers beyond every float too."""
    if value < 10**300:
        return f"{value:.3g}"
    digits = str(value)
    return f"{digits[0]}.{digits[1:3]}e+{len(digits) - 1}"


@contextmanager
def progress_bar(title: str, unit: str | None = None) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on standard error if that is a terminal; yields the callback that moves it, or None.

    With a `unit` such as models it shows how many are done and how fast.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    counted = [] if unit is None else [TextColumn("{task.completed:.0f}/{task.total:.0f}"), TextColumn("{task.fields[rate]}")]
    with Progress(
        *Progress.get_default_columns()[:-1],
        *counted,
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        speed_estimate_period=30.0 if unit is None else 3600.0,  # a model may take minutes
    ) as bar:
        task = bar.add_task(title, total=None if unit is None else 0, rate="")

        def move(done: int, total: int) -> None:
            bar.update(task, completed=float(done), total=float(total))
            if unit is not None:
                bar.update(task, rate=rate_in_words(bar.tasks[0].speed, unit))

        yield move


def rate_in_words(speed: float | None, unit: str) -> str:
    """Models per second, or per minute or hour if there are few."""
    if not speed:
        return ""
    for name, size in (("s", 1.0), ("min", 60.0)):
        if speed * size >= 1:
            return f"{speed * size:.3g} {unit}/{name}"
    return f"{speed * 3600:.3g} {unit}/h"
