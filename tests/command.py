"""The command as a user runs it: in a process of its own, or, where only the message matters, inside this one."""

import io
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

COMMAND = Path(sys.executable).parent / "compactproofs"


def run(*arguments, check=True):
    """Run `compactproofs` with these arguments; unless told otherwise, it must succeed."""
    result = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)
    if check:
        assert result.returncode == 0, result.stderr
    return result


def inside(*arguments):
    """The same without a new process: two seconds for each call are saved. Every verb also has tests with `run`."""
    from compactproofs.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    code = 0
    with redirect_stdout(out), redirect_stderr(err), mock.patch.object(sys, "argv", ["compactproofs", *map(str, arguments)]):
        try:
            main()
        except SystemExit as error:
            code = error.code or 0
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


def done(*arguments):
    """`inside`, and it must succeed."""
    result = inside(*arguments)
    assert result.returncode == 0, result.stderr
    return result


def refused(*arguments):
    """The one line that says why a command does not work; nothing on standard output, no traceback, exit code 2."""
    result = inside(*arguments)
    assert (result.returncode, result.stdout) == (2, ""), result
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    return result.stderr


def interruptible():
    """To run in a child before it starts: Ctrl-C works, also if this process was started in the background, where shells ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def started(*command, **options):
    """A process with a group of its own, in which Ctrl-C works; the whole group is gone at the end, whatever happens."""
    process = subprocess.Popen([*map(str, command)], start_new_session=True, preexec_fn=interruptible, text=True, **options)
    try:
        with process:
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    finally:
        process.wait()
