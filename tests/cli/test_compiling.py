"""The first run says that it compiles; the helper compiles what proofs will call."""

import os
import subprocess
from unittest import mock

import pytest

import compactproofs as cp
from command import COMMAND
from compactproofs.search.ahead import compile_ahead
from compactproofs.search.listing import list_doubtful
from compactproofs.search.pools import look_at_tables


@pytest.mark.long
def test_the_first_run_says_that_it_compiles_and_the_second_does_not(tmp_path):
    verb = [COMMAND, "accuracy", "max-of-4", "--samples", "10"]
    fresh = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (subprocess.run(verb, capture_output=True, text=True, env=fresh) for _ in range(2))
    assert first.stderr.count("\n") == 1 and first.stderr.startswith("compiling (in the first run only")
    assert second.stderr == "" and first.returncode == second.returncode == 0


def test_what_is_compiled_ahead_is_what_proofs_call():
    for strategy in ("threshold-best", "threshold-cubic-pooled"):
        cp.prove(cp.zoo("max-of-4"), strategy)
    called = [set(kernel.signatures) for kernel in (list_doubtful, look_at_tables)]
    with mock.patch("os.nice"):
        compile_ahead()
    assert [set(kernel.signatures) for kernel in (list_doubtful, look_at_tables)] == called
