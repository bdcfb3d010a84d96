"""Text from files reaches the terminal escaped: nobody can paint "accepted" over "rejected"."""

import json
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

import compactproofs as cp
from command import done, inside, run
from compactproofs.text import printable
from models import random_weights

PAINT = "\x1b[2K\raccepted: all of it\x1b[8m\x9b31m\u202e\u2028\n"


def test_printable_escapes_everything_that_moves_or_hides():
    text = printable(PAINT)
    assert text.isprintable() and text.startswith(r"\x1b[2K\raccepted") and text.endswith(r"\x9b31m\u202e\u2028\n")
    assert printable("Größe 64^4, ∎") == "Größe 64^4, ∎"


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    cp.save(random_weights(0), path)
    return path


@pytest.mark.parametrize("field", ["score_divisor_squared", "weights_sha256"])
def test_a_certificate_cannot_write_to_the_terminal(model, tmp_path, field):
    content = json.loads(cp.prove(random_weights(0), "cubic").certificate.data)
    content["model"][field] = PAINT
    path = tmp_path / "c.json"
    path.write_text(json.dumps(content))
    alone = subprocess.run([sys.executable, "-m", "compactproofs.checker", path, model], capture_output=True, text=True)
    for said in (run("check", path, model, check=False), alone):
        assert said.returncode == 1 and said.stdout.startswith("rejected: ")
        assert all(line.isprintable() for line in said.stdout.splitlines()) and "\x1b" not in said.stdout + said.stderr
        assert not any(line.startswith("accepted") for line in said.stdout.splitlines())


def test_metadata_cannot_write_to_the_terminal(tmp_path):
    path = tmp_path / "model.safetensors"
    said = {"n_heads": "1", "normalization_type": "none", PAINT: PAINT, "attn_scale": PAINT}
    save_file({name: np.array(t) for name, t in random_weights(0).tensors.items()}, path, said)
    result = run("accuracy", path, check=False)
    assert result.returncode == 2 and result.stderr.count("\n") == 1 and result.stderr[:-1].isprintable()
    del said["attn_scale"]
    save_file({name: np.array(t) for name, t in random_weights(0).tensors.items()}, path, said)
    result = done("accuracy", path)
    assert "was assumed not to change the function" in result.stderr and "\x1b" not in result.stderr and "\r" not in result.stderr


def test_names_of_tensors_and_files_cannot_write_to_the_terminal(tmp_path):
    path = tmp_path / f"{PAINT.strip()}.safetensors"
    save_file({PAINT: np.zeros(2, np.float32)}, path)
    for verb in (["accuracy", path], ["prove", path]):
        result = inside(*verb)
        assert result.returncode == 2 and result.stderr.count("\n") == 1 and result.stderr[:-1].isprintable()
    swept = done("sweep", tmp_path, "--out", tmp_path / "out", "--strategy", "cubic", "--workers", 1)
    assert all(line.isprintable() for line in swept.stdout.splitlines()) and "1 failed" in swept.stdout
