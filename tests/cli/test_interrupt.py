"""Ctrl-C: what has been proven is shown, and nobody waits for compiled code."""

import os
import signal
import subprocess
import sys

import pytest

from command import COMMAND, interruptible

INTERRUPTS_ITSELF = """
import os, signal, sys, threading
from compactproofs.strategies.threshold import {module} as module
from compactproofs.cli.main import main

original = module.{name}
def patched(*args, **kwargs):
    result = original(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGINT)
    {then}
    return result
module.{name} = patched
sys.argv = ["compactproofs", *{arguments!r}]
main()
"""


def interrupted(arguments, module, name, then="pass"):
    script = INTERRUPTS_ITSELF.format(arguments=arguments, module=module, name=name, then=then)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, preexec_fn=interruptible)


def test_the_portfolio_hands_over_what_it_has():
    """Interrupted after its first pass, in a thread that would go on for ten minutes."""
    said = interrupted(["prove", "max-of-10", "--seconds", "600", "--upper"], "best", "_grow")
    assert said.returncode == 130, said.stderr
    assert said.stderr.endswith("interrupted; what has been proven so far:\n")
    assert "threshold-best: With the float32 weights" in said.stdout and "at least" in said.stdout


def test_a_proof_that_has_nothing_yet_says_so():
    """Compiled code that does not come back for a while: the process ends without it."""
    said = interrupted(["prove", "max-of-4"], "best", "seconds_for_pairs", then="threading.Event().wait()")
    assert said.returncode == 130, said.stderr
    assert said.stdout == "" and said.stderr.endswith("interrupted before anything was proven\n")


@pytest.mark.parametrize("verb", ["accuracy", "interpret"])
def test_other_verbs_end_too(verb):
    process = subprocess.Popen(
        [COMMAND, verb, "max-of-20", "--samples", "50000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=interruptible,
    )
    with process:
        os.kill(process.pid, signal.SIGINT)
        process.communicate()
    assert process.returncode in (130, -signal.SIGINT)  # the latter if Python was still starting
