import re
from pathlib import Path

import numpy as np

import compactproofs
from compactproofs.arrays import compiling
from compactproofs.counting.count_up import count_up, unit_exponents

PACKAGE = Path(compactproofs.__file__).parent


def test_every_file_with_compiled_functions_is_part_of_the_fingerprint():
    holders = {str(p.relative_to(PACKAGE)) for p in PACKAGE.rglob("*.py") if re.search(r"^@(kernel|njit|numba\.)", p.read_text(), re.M)}
    assert holders | {"arrays/compiling.py"} == set(compiling.FILES)


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
