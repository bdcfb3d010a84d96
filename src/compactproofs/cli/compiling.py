"""The first run compiles for some seconds: say so, and let another process help."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from compactproofs.cli.output import note
from compactproofs.cores import available_cores
from compactproofs.notices import told_of_compiling

_AHEAD = "from compactproofs.search.ahead import compile_ahead; compile_ahead()"


@contextmanager
def prepared_for_compiling() -> Iterator[None]:
    """When compiling begins, say so on standard error, a terminal or not, and start a helper if there is a core for it.

    The helper ends with the command; what it has compiled by then is in the cache.
    """
    helpers: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        note("compiling (in the first run only; 10 to 30 seconds)")
        if available_cores() > 1 and sys.executable:
            quiet = subprocess.DEVNULL
            with suppress(OSError):  # it will take longer
                helpers.append(subprocess.Popen([sys.executable, "-P", "-c", _AHEAD], stdin=quiet, stdout=quiet, stderr=quiet))  # noqa: S603

    try:
        with told_of_compiling(begin):
            yield
    finally:
        for helper in helpers:
            helper.terminate()
            helper.wait()
