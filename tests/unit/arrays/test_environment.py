import subprocess
import sys

import pytest

from compactproofs.arrays.environment import require_ieee754

MODEL = """
import numpy as np, torch, compactproofs as cp
f = np.float32
tensors = dict(W_E=np.array([[1, 0], [1, 0]], f), W_pos=np.zeros((2, 2), f), W_Q=np.zeros((2, 1), f), W_K=np.zeros((2, 1), f),
               W_V=np.array([[1e-20], [0]], f), W_O=np.array([[0, 1e-25]], f), W_U=np.array([[9e-39, 0], [0, 1]], f))
"""


def run(code):
    return subprocess.run([sys.executable, "-c", MODEL + code], capture_output=True, text=True)


def test_ordinary_processes_are_accepted():
    require_ieee754()


@pytest.mark.long
@pytest.mark.parametrize("when", ["before", "after"])
def test_flush_to_zero_is_refused_instead_of_proving_a_falsehood(when):
    """With subnormal numbers flushed, this network would be credited with 3 correct sequences; it has 1."""
    pytest.importorskip("torch")
    lines = ["torch.set_flush_denormal(True)", "w = cp.Weights(**tensors)"]
    code = "\n".join([*(lines if when == "before" else lines[::-1]), "print(cp.prove(w).correct_at_least)"])
    result = run(code)
    assert result.returncode != 0 and result.stdout == ""
    assert "does not follow IEEE-754" in result.stderr


@pytest.mark.long
def test_the_same_network_in_an_ordinary_process():
    pytest.importorskip("torch")
    assert run("print(cp.prove(cp.Weights(**tensors)).correct_at_least)").stdout == "1\n"
