import gc
import re
import uuid
from pathlib import Path

import numpy as np
import pytest
from llvmlite.binding import ffi
from numba import njit
from numba.core import event

import compactproofs
from compactproofs.arrays import compiling, linking, undisturbed
from compactproofs.counting.count_up import count_up, unit_exponents

PACKAGE = Path(compactproofs.__file__).parent


def test_every_file_with_compiled_functions_is_part_of_the_fingerprint():
    holders = {str(p.relative_to(PACKAGE)) for p in PACKAGE.rglob("*.py") if re.search(r"^@(kernel|njit|numba\.)", p.read_text(), re.M)}
    assert holders | {"arrays/compiling.py", "arrays/linking.py"} == set(compiling.FILES)


def test_a_change_of_any_kernel_makes_cached_machine_code_stale(monkeypatch):
    stamp = count_up._cache._cache_file._source_stamp
    assert stamp == compiling.fingerprint() and len(stamp) == 64
    monkeypatch.setattr(compiling, "fingerprint", lambda: "another")
    again = compiling.kernel(count_up.py_func)
    assert again._cache._cache_file._source_stamp == "another"


def test_kernels_still_run():
    assert unit_exponents(np.ones((20, 64), dtype=np.int64)).sum() == 59


def test_what_kernels_call_is_compiled_once_for_all_constants_and_not_for_python():
    @compiling.kernel
    def callee(x, strict):
        return x + 1 if strict else x

    @compiling.kernel
    def caller(x):
        return callee(x, True) + callee(x, False) + callee(3, False)

    assert caller(5) == 14
    assert len(callee.signatures) == 0
    assert callee(5, True) == 6 and len(callee.signatures) == 1


def _kernels():
    """A function that Python calls and one that it calls."""

    @compiling.kernel
    def scaled(x, factor):
        if factor < 0:
            raise ValueError(f"{factor} is negative")
        total = 0.0
        for i in range(x.shape[0]):
            total += x[i] * factor + 1.0 / x[i]
        return total

    @compiling.kernel
    def both(x, factor):
        return scaled(x, factor) - scaled(x[1:], 3)

    return both


def test_parts_are_linked_and_give_the_same_bits_as_without(monkeypatch):
    assert linking.AVAILABLE
    x = np.random.default_rng(0).normal(size=101) * 10.0 ** np.arange(-50, 51)
    found = _kernels()(x, 7)
    monkeypatch.setattr(linking, "AVAILABLE", False)
    assert found == _kernels()(x, 7)


def test_only_what_python_calls_becomes_machine_code(monkeypatch):
    monkeypatch.setattr(compiling, "fingerprint", lambda: uuid.uuid4().hex)  # nothing comes from the cache
    optimised = []
    whole = linking.JITCodeLibrary._optimize_final_module
    monkeypatch.setattr(linking.JITCodeLibrary, "_optimize_final_module", lambda self: (optimised.append(self.name), whole(self)))
    _kernels()(np.ones(3), 1)
    assert optimised == ["whole"]


def test_functions_of_numba_are_parts_of_ours_and_go_on_working_for_others(monkeypatch):
    monkeypatch.setattr(compiling, "fingerprint", lambda: uuid.uuid4().hex)
    optimised = []
    whole = linking.JITCodeLibrary._optimize_final_module
    monkeypatch.setattr(linking.JITCodeLibrary, "_optimize_final_module", lambda self: (optimised.append(self.name), whole(self)))

    @compiling.kernel
    def ours(n):
        return np.full((n, n, n, n), True).sum(), str(n)

    assert ours(2) == (16, "2")
    assert optimised == ["whole"]

    @njit
    def others(n):
        return np.full((n, n, n, n), True).sum(), str(n)

    assert others(3) == (81, "3")


def test_compiling_is_undisturbed_and_leaves_things_as_they_were():
    lock = ffi.lib._lock
    before, callbacks, seen = gc.get_threshold(), list(lock._cblist), []

    class Listener(event.Listener):
        def on_start(self, event):
            seen.append((gc.get_threshold()[0], len(lock._cblist)))

        def on_end(self, event):
            pass

    with event.install_listener("numba:compile", Listener()):
        njit(lambda x: x + 1)(1)
    assert seen == [(undisturbed.THRESHOLD, 0)]
    assert gc.get_threshold() == before and lock._cblist == callbacks and callbacks


def test_a_part_may_raise():
    with pytest.raises(ValueError, match="-2 is negative"):
        _kernels()(np.ones(3), -2)
