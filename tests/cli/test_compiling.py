"""The first run says that it compiles; the helper compiles what proofs will call, and that is little."""

import os
import subprocess
import sys
from unittest import mock

import pytest

import compactproofs as cp
from command import COMMAND
from compactproofs.arrays import compiling
from compactproofs.cli.compiling import _say_how_long, prepared_for_compiling, will_compile
from compactproofs.search.ahead import compile_ahead, needed
from compactproofs.search.looking import look_at

CALLED = """
import compactproofs as cp
from compactproofs.arrays import compiling
known, kernel = [], compiling.kernel
compiling.kernel = lambda function: (known.append(kernel(function)), known[-1])[1]
cp.prove(cp.zoo("max-of-4"), upper=True)
print(*(f"{each.__name__}:{len(each.signatures)}" for each in known if each.signatures))
"""


@pytest.mark.long
def test_the_first_run_says_that_it_compiles_and_the_second_does_not(tmp_path):
    verb = [COMMAND, "accuracy", "max-of-4", "--samples", "10"]
    fresh = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (subprocess.run(verb, capture_output=True, text=True, env=fresh) for _ in range(2))
    assert first.stderr.startswith("compiling (in the first run only")
    assert all(line.startswith("compiling: ") for line in first.stderr.splitlines()[1:])
    assert second.stderr == "" and first.returncode == second.returncode == 0


def test_lines_say_how_long_and_only_while_it_goes_on(monkeypatch, capsys):
    seconds, waits = iter([5.0, 10.0, 10.0]), iter([False, False, False, True])
    monkeypatch.setattr(compiling, "compile_seconds", lambda: next(seconds))
    _say_how_long(lambda: next(waits))
    assert capsys.readouterr().err == "compiling: 5 s\ncompiling: 10 s\n"


def test_what_is_compiled_ahead_is_what_proofs_call():
    for strategy in ("threshold-best", "threshold-cubic-pooled", "threshold-near/2000000"):
        cp.prove(cp.zoo("max-of-4"), strategy)
    kernels = [kernel for kernel, _ in needed()[1]]
    called = [set(kernel.signatures) for kernel in kernels]
    with mock.patch("os.nice"):
        compile_ahead()
        compile_ahead("demo")
    assert all(called) and [set(kernel.signatures) for kernel in kernels] == called


def test_who_proves_where_nothing_is_compiled_is_helped_from_the_beginning(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert will_compile(["prove", "max-of-4"]) and will_compile(["demo"])
    assert not any(map(will_compile, ([], ["check", "a", "b"], ["prove", "--help"])))
    monkeypatch.setattr("sys.argv", ["compactproofs", "demo"])
    monkeypatch.setattr("compactproofs.cli.compiling.available_cores", lambda: 2)
    with mock.patch("subprocess.Popen") as started:
        with prepared_for_compiling():
            assert started.call_args.args[0][-1] == "demo"
        assert started.call_count == 1 and started.return_value.terminate.called


def test_who_proves_where_everything_is_compiled_is_not(tmp_path, monkeypatch):
    """numba's name of the file that says so; if it changes, the helper would start at every proof."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    index = look_at._cache._cache_file._index_name
    (tmp_path / "search_0").mkdir()
    (tmp_path / "search_0" / index).touch()
    assert not will_compile(["prove", "max-of-4"])


def test_a_first_proof_needs_five_kernels_for_one_type_of_arguments_each():
    """A ceiling: each takes seconds to compile in a fresh environment."""
    found = subprocess.run([sys.executable, "-c", CALLED], capture_output=True, text=True, check=True).stdout.split()
    names = {"list_doubtful", "look_at", "mass_up", "unit_exponents", "walk_operations"}
    assert "look_at:1" in found and set(found) <= {f"{name}:1" for name in names}
