"""The `compactproofs` command. One file per verb; heavy imports happen inside the verbs, so that --help is quick."""

from __future__ import annotations

import gc
import io
import os
import sys
import threading
from typing import Annotated

import typer

from compactproofs.cli import (
    accuracy,
    check,
    counterexamples,
    demo,
    interpret,
    plugins,
    prove,
    report,
    show,
    strategies,
    sweep,
    tasks,
    train,
)
from compactproofs.cli.compiling import prepared_for_compiling
from compactproofs.cli.output import note
from compactproofs.errors import CompactProofsError, DisagreementError
from compactproofs.version import __version__

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

SELDOM = 200_000
"""So many new objects before Python looks for garbage: a command makes many that stay, and few that do not."""
COMPLAINING = {"duckdb"}
"""Libraries that complain where objects of theirs are left at the end"""

app = typer.Typer(
    name="compactproofs",
    help="Prove how often a small transformer is right. Weights in, theorem out, checkable by anyone.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"compactproofs {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    """Prove how often a small transformer is right. Weights in, theorem out, checkable by anyone."""


app.command("demo")(demo.demo)
app.command("prove")(prove.prove)
app.command("accuracy")(accuracy.accuracy)
app.command("check")(check.check)
app.command("show")(show.show)
app.command("counterexamples")(counterexamples.counterexamples)
app.command("interpret")(interpret.interpret)
app.command("strategies")(strategies.strategies)
app.command("tasks")(tasks.tasks)
app.command("report")(report.report)
app.command("train")(train.train)
app.command("sweep")(sweep.sweep)
plugins.add_to(app)


def _open_closed_streams() -> None:
    """A stream that was closed (`>&-`) takes text and loses it, as /dev/null does."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115


def main() -> None:
    """Run the command; expected errors are one line on standard error and exit code 2, an interrupt ends it at once with 130."""
    _open_closed_streams()
    gc.set_threshold(SELDOM, *gc.get_threshold()[1:])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with prepared_for_compiling():
            app()
    except CompactProofsError as error:
        note(f"error: {error}")
        sys.exit(3 if isinstance(error, DisagreementError) else 2)
    except OSError as error:
        where = "" if error.filename is None else f" ({error.filename})"
        note(f"error: {error.strerror or error}{where}; is there room, and may this user read and write there?")
        sys.exit(2)
    except SystemExit as error:
        if error.code == INTERRUPTED and threading.active_count() > 1:  # compiled code would keep the process for as long as it likes
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        raise
    finally:
        if not COMPLAINING & sys.modules.keys():
            gc.freeze()  # the process ends: to take everything apart first would take a third of a second
