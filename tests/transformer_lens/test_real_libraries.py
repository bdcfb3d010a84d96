"""Models of the real TransformerLens 2, 3 and 4: read as the library computes them, or refused. `make transformer-lens` installs them."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import compactproofs as cp
from compactproofs.errors import ModelError
from compactproofs.model.forward import forward

ROOT = Path(__file__).parents[2]
SEQUENCES = np.array(np.meshgrid(*[np.arange(5)] * 3, indexing="ij")).reshape(3, -1).T

SUPPORTED = ("plain", "one wide head", "another scale", "biases")
REFUSED = {
    "four heads": "head",
    "LNPre": "normalisation",
    "LN": "normalisation",
    "MLP": "MLP",
    "two layers": "layer",
    "rotary": "rotary|position|not found: pos_embed",
    "soft cap": "soft-capped",
}


@pytest.fixture(scope="module", params=[2, 3, 4])
def made(request, tmp_path_factory):
    """The folder of models that one version of the library has made."""
    major = request.param
    python = ROOT / ".tl" / ("2" if major == 2 else "4") / "bin" / "python"
    if not (ROOT / ".tl" / ".done").exists():
        pytest.skip("TransformerLens is not installed; run 'make transformer-lens'")
    folder = tmp_path_factory.mktemp(f"transformer-lens-{major}")
    path = [str(ROOT / "src"), *([str(ROOT / ".tl" / "3")] if major == 3 else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "HF_HUB_OFFLINE": "1"}
    script = ROOT / "tests" / "transformer_lens" / "make_models.py"
    done = subprocess.run([python, "-W", "ignore", script, str(major), folder], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def found(made, name):
    return json.loads((made / name / "read.json").read_text())


@pytest.mark.parametrize("name", SUPPORTED)
def test_the_network_is_the_librarys(made, name):
    """Logits to float32 rounding, and the number of right answers by the library's own logits."""
    weights = cp.load(made / name / "model.pth")
    assert found(made, name)["object"]["sha256"] == weights.sha256
    logits = np.load(made / name / "logits.npy")
    ours = forward(weights, SEQUENCES)
    assert np.abs(ours - logits).max() <= 2e-6 * np.abs(ours).max()
    labels = SEQUENCES.max(axis=1)
    assert cp.accuracy(weights).correct == int((logits.argmax(axis=1) == labels).sum())


@pytest.mark.parametrize("name", SUPPORTED)
def test_without_a_configuration_the_reader_must_be_told(made, name):
    path = made / name / "alone" / "model.safetensors"
    with pytest.raises(ModelError, match="--normalization none"):
        cp.load(path)
    assert "--normalization none" in found(made, name)["state dict"]["error"]
    told = cp.load(path, n_heads=1, normalization="none")
    assert found(made, name)["told"]["sha256"] == told.sha256 and "because the user said so" in " ".join(told.assumptions)
    if name != "another scale":
        assert told == cp.load(made / name / "model.pth")


@pytest.mark.parametrize("name", REFUSED)
def test_other_networks_are_refused_however_they_come(made, name):
    with pytest.raises(ModelError, match=REFUSED[name]):
        cp.load(made / name / "model.pth")
    for way in ("object", "state dict"):
        assert "error" in found(made, name)[way], way
    told = found(made, name)["told"]
    if name == "soft cap":  # a state dict cannot tell; what is assumed is said
        assert "no soft caps" in " ".join(told["assumptions"])
    else:
        assert "error" in told
