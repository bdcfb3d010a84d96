"""The first run compiles for some seconds: say so, go on saying so, and let another process help."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from compactproofs.cli.output import LINE_EVERY, note
from compactproofs.cores import available_cores
from compactproofs.notices import told_of_compiling

_AHEAD = "import sys; from compactproofs.search.ahead import compile_ahead; compile_ahead(*sys.argv[1:])"
_LARGEST = "looking.look_at-*.nbi"
"""What numba calls the file that says that the largest kernel is there"""
_PROVING = ("prove", "demo")


@contextmanager
def prepared_for_compiling() -> Iterator[None]:
    """When compiling begins, say so on standard error, a terminal or not, and start a helper if there is a core for it. A verb that will
    surely have to compile starts it at once, since both begin with half a second of imports.

    Where there is no terminal, a line every few seconds says how long it has been going on. The helper ends with the command; what it has
    compiled by then is in the cache.
    """
    helpers: list[subprocess.Popen[bytes]] = []
    over = threading.Event()
    lines = threading.Thread(target=_say_how_long, args=(lambda: over.wait(LINE_EVERY),), daemon=True)

    def help_along() -> None:
        if not helpers and available_cores() > 1 and sys.executable:
            quiet = subprocess.DEVNULL
            command = [sys.executable, "-P", "-c", _AHEAD, *sys.argv[1:2]]
            with suppress(OSError):  # it will take longer
                helpers.append(subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet))  # noqa: S603

    def begin() -> None:
        note("compiling (in the first run only; 5 to 20 seconds, longer on a busy machine)")
        if not sys.stderr.isatty():
            lines.start()
        help_along()

    try:
        if will_compile(sys.argv[1:]):
            help_along()
        with told_of_compiling(begin):
            yield
    finally:
        over.set()
        if lines.ident is not None:
            lines.join()
        for helper in helpers:
            helper.terminate()
            helper.wait()


def will_compile(arguments: list[str]) -> bool:
    """Whether a command will surely compile what proofs need: it proves, and numba's cache, where it will be, has nothing of the kind.

    A guess for the sake of half a second, made without numba: what is in the cache may be old, and then compiling is told of later.
    """
    if not arguments or arguments[0] not in _PROVING or {"-h", "--help"} & set(arguments):
        return False
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return not any(Path(chosen).glob(f"*/{_LARGEST}"))
    beside = Path(__file__).parent.parent / "search"
    if not os.access(beside, os.W_OK):  # numba takes another place
        return False
    return not any((beside / "__pycache__").glob(_LARGEST))


def _say_how_long(wait: Callable[[], bool]) -> None:
    """After every wait, until one says that it is over: a line, if more was compiled."""
    from compactproofs.arrays.compiling import compile_seconds

    said = 0.0
    while not wait():
        seconds = compile_seconds()
        if seconds > said:
            said = seconds
            note(f"compiling: {seconds:.0f} s")
