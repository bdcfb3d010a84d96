"""How verbs talk: tables and progress for people, JSON for programs, never mixed. Whatever comes from a file is escaped."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compactproofs.cli.destination import PRODUCER, Destination, Recognise, is_json_of_ours
from compactproofs.errors import CompactProofsError
from compactproofs.text import printable
from compactproofs.version import __version__

if TYPE_CHECKING:
    from compactproofs.strategies.base import AbstractStrategy

JsonOption = Annotated[
    str | None,
    typer.Option("--json", metavar="PATH|-", help="Write machine-readable JSON to a file, or alone to standard output with '-'."),
]

ForceOption = Annotated[bool, typer.Option("--force", help="Replace files that compactproofs did not write.")]

ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="Name of a bundled model (such as max-of-4), a .safetensors file or a .pth file.")
]

HeadsOption = Annotated[
    int | None, typer.Option("--n-heads", metavar="N", help="Number of attention heads, where the model file cannot tell.")
]

NormalizationOption = Annotated[
    str | None,
    typer.Option("--normalization", metavar="none|LN|LNPre|RMS|RMSPre", help="Normalisation, where the model file cannot tell."),
]

LengthOption = Annotated[
    int | None,
    typer.Option("--n-ctx", metavar="N", help="Tokens per sequence: fewer than the model reads, or where its file cannot tell."),
]

PrefixOption = Annotated[
    str | None,
    typer.Option("--prefix", metavar="T,...", help="Fixed tokens before the input, such as a BOS; they do not occur elsewhere."),
]

SuffixOption = Annotated[
    str | None,
    typer.Option("--suffix", metavar="T,...", help="Fixed tokens after the input, such as '='; the answer is read at the last of them."),
]

TASK_HELP = (
    "What the right output is: max, min, sum-mod:7, ... ('compactproofs tasks' lists them), or a task of your own, module:name, "
    "which is imported."
)

TaskOption = Annotated[
    str | None, typer.Option("--task", metavar="SPEC", help=f"{TASK_HELP} By default the one that the model's file names, or max.")
]


def tokens_of(option: str, text: str | None) -> tuple[int, ...]:
    """Tokens given as numbers with commas between them."""
    if text is None:
        return ()
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        raise CompactProofsError(f"{option} {text[:40]}: expected tokens, which are numbers, with commas between them, such as 64 or 64,65")
    return tuple(int(word) for word in words)


def require_seconds(seconds: float) -> None:
    """Raise unless this is a time."""
    if not seconds > 0:
        raise CompactProofsError(f"--seconds {seconds:g}: expected a positive number")


def require_variant_of_use(variant: str | None, chosen: Sequence[AbstractStrategy]) -> None:
    """Raise if `--variant` was given and none of the strategies has that variant: it would change nothing."""
    wanted = ("published",) if variant == "published" else ("published", "repaired")
    if variant is not None and not any(strategy.variant in wanted for strategy in chosen):
        raise CompactProofsError(
            f"--variant {variant}: none of the strategies chosen comes in that variant, only the paper's subcubic ones do"
        )


def inputs_of(*paths: str | Path) -> list[Path]:
    """Files that a command reads, as far as they exist: the given ones, models in given folders, and what stands beside a model."""
    named = [file for path in paths if len(str(path)) < 4000 for file in _files_at(Path(path))]
    beside = dict.fromkeys(file.parent / "config.json" for file in named)
    return [file for file in (*named, *beside) if file.is_file()]


def _files_at(path: Path) -> list[Path]:
    from compactproofs.model.files import model_files

    return model_files(path) if path.is_dir() else [path]


_NARROWEST = 24
"""No column is made narrower than this."""


def fitted(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """The rows, with the middle of long cells left out where the table would be wider than the terminal.

    Example:
        >>> fitted(["name", "n"], [["subcubic/mean_query+max_diff/svd/envelope", "1"]], 35)
        [['subcubic/mean…svd/envelope', '1']]
    """
    cells = [list(row) for row in rows]
    widths = [max(len(row[i]) for row in [columns, *cells]) for i in range(len(columns))]
    while sum(widths) + 4 * len(widths) > width and max(widths) > _NARROWEST:
        widest = widths.index(max(widths))
        others = max([w for i, w in enumerate(widths) if i != widest], default=0)
        spare = width - 4 * len(widths) - sum(widths) + widths[widest]
        widths[widest] = max(_NARROWEST, min(spare, widths[widest] - 1) if spare >= others else min(others, widths[widest] - 1))
    return [[_shortened(cell, widths[i]) for i, cell in enumerate(row)] for row in cells]


def _shortened(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    half = width // 2
    return f"{text[:half]}…{text[len(text) - (width - half - 1) :]}"


class Output:
    """Where results go. With `--json -` standard output carries JSON and nothing else."""

    def __init__(self, json_path: str | None, *, force: bool = False, inputs: Sequence[Path] = ()) -> None:
        self._force, self._taken = force, list(inputs)
        self._to_stdout = json_path == "-"
        if self._to_stdout and getattr(sys.stdout, "name", None) == os.devnull:
            raise CompactProofsError("--json -: standard output is closed")
        self._json = None if json_path in (None, "-") else self.destination("--json", str(json_path), is_json_of_ours)

    def destination(self, option: str, path: str | Path, ours: Recognise) -> Destination:
        """A place for a file, checked now: no input, no other output, nobody else's file."""
        place = Destination(option, path, ours, force=self._force, inputs=self._taken)
        self._taken.append(place.path)
        return place

    @property
    def for_people(self) -> bool:
        return not self._to_stdout

    def say(self, text: str = "") -> None:
        """A line for people."""
        if self.for_people:
            typer.echo(printable(text))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table for people: drawn on a terminal, aligned plain text in a pipe."""
        if not self.for_people:
            return
        rows = [[printable(cell) for cell in row] for row in rows]
        if sys.stdout.isatty():
            from rich import box
            from rich.console import Console
            from rich.table import Column, Table
            from rich.text import Text

            console = Console()
            cells = fitted(columns, rows, console.width)
            drawn = Table(*(Column(name, no_wrap=True, overflow="fold") for name in columns), box=box.SIMPLE_HEAD, pad_edge=False)
            for cut in cells:
                drawn.add_row(*map(Text, cut))
            wide = max(console.width, sum(max(len(row[i]) for row in [columns, *cells]) + 4 for i in range(len(columns))))
            Console(width=wide).print(drawn)
            return
        widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
        for row in [columns, *rows]:
            typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    def result(self, data: dict[str, Any] | list[dict[str, Any]]) -> None:
        """The machine-readable result, if asked for. Every object says who produced it, so that we know our own files again.

        An empty list, which could be anybody's, is not written to a file: what an earlier run wrote there stays.
        """
        if not self._to_stdout and (self._json is None or not data):
            return
        producer = {"producer": f"{PRODUCER} {__version__}"}
        signed = [each | producer for each in data] if isinstance(data, list) else data | producer
        text = json.dumps(signed, indent=2, allow_nan=False) + "\n"
        if self._json is None:
            typer.echo(text, nl=False)
        else:
            self._json.write(text.encode())

    def assumptions(self, assumptions: Sequence[str]) -> None:
        """Say on standard error what was assumed about the model file."""
        for assumption in assumptions:
            note(f"note: {assumption}")


def note(text: str) -> None:
    """A line on standard error."""
    typer.echo(printable(text), err=True)


def brief_integer(value: int) -> str:
    """Three significant digits, for integers beyond every float too."""
    if value < 10**300:
        return f"{value:.3g}"
    digits = str(value)
    return f"{digits[0]}.{digits[1:3]}e+{len(digits) - 1}"


@contextmanager
def progress_bar(title: str, unit: str | None = None) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error if that is a terminal, else a line every few seconds; yields the callback that moves it.

    With a `unit` such as models it shows how many are done and how fast.
    """
    if not sys.stderr.isatty():
        yield _lines(title)
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


LINE_EVERY = 5.0
"""Seconds between lines that say how far something is, where there is no terminal."""


def _lines(title: str) -> Callable[[int, int], None]:
    """Progress where there is no terminal: a line every few seconds, none for what is quick. The clock starts with the first news."""
    said: list[float] = []

    def move(done: int, total: int) -> None:
        now = time.monotonic()
        if not said:
            said.extend((now, now))
        elif now >= said[1] + LINE_EVERY:
            said[1] = now
            note(f"{title}: {100 * done // max(total, 1)} %, {now - said[0]:.0f} s")

    return move


def rate_in_words(speed: float | None, unit: str) -> str:
    """Models per second, or per minute or hour if there are few."""
    if not speed:
        return ""
    for name, size in (("s", 1.0), ("min", 60.0)):
        if speed * size >= 1:
            return f"{speed * size:.3g} {unit}/{name}"
    return f"{speed * 3600:.3g} {unit}/h"
