"""Annotations are true: the tests of the array code, and a proof of every family, once with every annotation checked at run time.

In processes of their own: the checks make interval arithmetic six times slower.
"""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TYPED = "--jaxtyping-packages=compactproofs,beartype.beartype"

EVERYTHING = """
from jaxtyping import install_import_hook
with install_import_hook("compactproofs", "beartype.beartype"):
    import compactproofs as cp
    import compactproofs.certificates, compactproofs.interpretation, compactproofs.measuring, compactproofs.proving
from models import mostly_right
weights = mostly_right(1, v=4)
names = [s.label for s in cp.strategies() if s.sound and (s.family != "subcubic" or "svd" in s.label) and s.label.count("recursive") == 0]
for name in names:
    assert cp.prove(weights, name, upper=True).status == "proven"
for name in ("cubic", "subcubic", "threshold-cubic-pooled", "threshold-best"):
    assert cp.check(cp.prove(weights, name, upper=True).certificate, weights).accepted
cp.interpret(weights, samples=100)
cp.accuracy(weights, samples=100)
cp.forward(weights, __import__("numpy").zeros((1, 3), dtype=int))
"""


def run(*arguments):
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, cwd=TESTS)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.long
def test_every_family_of_proofs():
    run("-c", EVERYTHING)


@pytest.mark.long
def test_the_array_code():
    files = [TESTS / "unit" / name for name in ("arrays/test_phantom.py", "arrays/test_rounding.py", "form", "model/test_weights.py")]
    run("-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", TYPED, *files)
