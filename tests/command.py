"""The command as a user runs it: its own process, its own exit code, its own standard output and error."""

import signal
import subprocess
import sys
from pathlib import Path

COMMAND = Path(sys.executable).parent / "compactproofs"


def run(*arguments, check=True):
    """Run `compactproofs` with these arguments; unless told otherwise, it must succeed."""
    result = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)
    if check:
        assert result.returncode == 0, result.stderr
    return result


def interruptible():
    """To run in a child before it starts: Ctrl-C works, also if this process was started in the background, where shells ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
