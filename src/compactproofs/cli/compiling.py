"""The first run compiles for some seconds: say so, go on saying so, and let another process help."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from compactproofs.cli.output import LINE_EVERY, note
from compactproofs.cores import available_cores
from compactproofs.notices import told_of_compiling

_AHEAD = "from compactproofs.search.ahead import compile_ahead; compile_ahead()"


@contextmanager
def prepared_for_compiling() -> Iterator[None]:
    """When compiling begins, say so on standard error, a terminal or not, and start a helper if there is a core for it.

    Where there is no terminal, a line every few seconds says how long it has been going on. The helper ends with the command; what it has
    compiled by then is in the cache.
    """
    helpers: list[subprocess.Popen[bytes]] = []
    over = threading.Event()
    lines = threading.Thread(target=_say_how_long, args=(lambda: over.wait(LINE_EVERY),), daemon=True)

    def begin() -> None:
        note("compiling (in the first run only; 10 to 20 seconds, longer on a busy machine)")
        if not sys.stderr.isatty():
            lines.start()
        if available_cores() > 1 and sys.executable:
            quiet = subprocess.DEVNULL
            with suppress(OSError):  # it will take longer
                helpers.append(subprocess.Popen([sys.executable, "-P", "-c", _AHEAD], stdin=quiet, stdout=quiet, stderr=quiet))  # noqa: S603

    try:
        with told_of_compiling(begin):
            yield
    finally:
        over.set()
        if lines.ident is not None:
            lines.join()
        for helper in helpers:
            helper.terminate()
            helper.wait()


def _say_how_long(wait: Callable[[], bool]) -> None:
    """After every wait, until one says that it is over: a line, if more was compiled."""
    from compactproofs.arrays.compiling import compile_seconds

    said = 0.0
    while not wait():
        seconds = compile_seconds()
        if seconds > said:
            said = seconds
            note(f"compiling: {seconds:.0f} s")
