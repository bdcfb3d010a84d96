"""Models of the real TransformerLens 2, 3 and 4: read as the library computes them, or refused. `make transformer-lens` installs them."""

import fcntl
import json
import os
import re
import runpy
import shutil
import subprocess
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import compactproofs as cp
from compactproofs.errors import ModelError
from compactproofs.model.forward import forward
from compactproofs.model.network import Network
from compactproofs.model.weights import Weights

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]

FIRST_EDITION = ("plain", "one wide head", "another scale", "biases", "soft-capped logits", "bidirectional", "no positions")
"""One head, at most biases: `Weights`."""
NETWORKS = {
    "four heads": "4 heads",
    "three heads with biases": "3 heads, biases",
    "groups": "4 heads, biases",
    "LNPre": "one head, norm LN before attention, final norm LN",
    "LN": "one head, norm LN before attention, final norm LN, biases",
    "RMS": "one head, norm RMS before attention, final norm RMS",
    "RMSPre": "4 heads, norm RMS before attention, final norm RMS",
    "final RMS": "one head, norm LN before attention, norm LN before the MLP, relu MLP of 7 neurons, final norm RMS, biases",
    **{f"MLP {act}": f"one head, {act} MLP of 7 neurons, biases" for act in ("relu", "gelu", "gelu_new", "silu")},
    "MLP gelu_pytorch_tanh": "one head, gelu_new MLP of 7 neurons, biases",
    "default block": "4 heads, norm LN before attention, norm LN before the MLP, relu MLP of 7 neurons, final norm LN, biases",
    "folded block": "4 heads, norm LN before attention, norm LN before the MLP, relu MLP of 7 neurons, final norm LN, biases",
    "folded heads": "4 heads, norm LN before attention, final norm LN, biases",
    "folded RMS": "4 heads, norm RMS before attention, norm RMS before the MLP, relu MLP of 7 neurons, final norm RMS, biases",
    "rotary": "2 heads, rotary positions",
    "rotary of the whole head": "one head, rotary positions",
    "rotary in adjacent pairs": "one head, rotary positions",
    "rotary block": "4 heads, rotary positions, norm LN before attention, norm LN before the MLP, relu MLP of 7 neurons, "
    "final norm LN, biases",
    "ALiBi": "4 heads, ALiBi",
    "ALiBi one head": "one head, ALiBi, biases",
}
SUPPORTED = (*FIRST_EDITION, *NETWORKS)
REFUSED = {
    "two layers": "more than one layer",
    "soft-capped scores": "soft-capped attention scores",
    "gated MLP": "gated MLP",
    "SoLU": "act_fn='solu'",
    "SoLU with a norm": "norm inside its MLP",
    "gelu_fast": "act_fn='gelu_fast'",
    "parallel": "MLP beside attention",
    "shortformer": "positional_embedding_type='shortformer'",
    "embedding norm": r"tensor embed\.ln\.b: the model has a layer normalisation",
    "normalised queries": "normalises queries and keys",
    "local attention": "local attention",
    "experts": "mixture of experts",
    "ALiBi three heads": "not all powers of two",
}


versions_of = runpy.run_path(str(Path(__file__).with_name("model_table.py")))["versions_of"]


def every(names):
    """Each version of the library with each of these models that it has."""
    return pytest.mark.parametrize(
        ("major", "name"), [(major, name) for major in (2, 3, 4) for name in names if major in versions_of(name)]
    )


def interpreter(major):
    """The Python that has this version of the library, and its environment."""
    path = [str(ROOT / "src"), *([str(ROOT / ".tl" / "3")] if major == 3 else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "HF_HUB_OFFLINE": "1"}
    return ROOT / ".tl" / ("2" if major == 2 else "4") / "bin" / "python", environment


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The folder of models that one version of the library has made."""
    if not (ROOT / ".tl" / ".done").exists():
        pytest.skip("TransformerLens is not installed; run 'make transformer-lens'")

    @cache
    def made(major):
        own = tmp_path_factory.mktemp(f"transformer-lens-{major}") / "models"
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
        if run is None:
            make(major, own)
            return own
        shared = tmp_path_factory.getbasetemp().parent / f"transformer-lens-{run}-{major}"  # of all workers: libraries are slow to load
        with shared.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not shared.exists():
                make(major, own)
                own.rename(shared)
        shutil.copytree(shared, own)
        return own

    return made


def make(major, folder):
    """Let one version of the library make its models."""
    folder.mkdir()
    python, environment = interpreter(major)
    script = ROOT / "tests" / "transformer_lens" / "make_models.py"
    done = subprocess.run([python, "-W", "ignore", script, str(major), folder], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def folder(library, major, name):
    """The folder of one model."""
    return library(major) / name


def found(folder):
    return json.loads((folder / "read.json").read_text())


def sequences(length):
    return np.array(list(product(range(5), repeat=length)))


def logits_of(model, tokens, name):
    logits = forward(model, tokens)
    return 30 * np.tanh(logits / 30) if name == "soft-capped logits" else logits


@every(SUPPORTED)
def test_the_network_is_the_librarys(folder, name):
    """Logits to float32 rounding, and the number of right answers by the library's own logits; of shorter sequences too."""
    for file, length in (("logits.npy", 3), ("short.npy", 2)):
        model = cp.load(folder / "model.pth", n_ctx=length)
        tokens, logits = sequences(length), np.load(folder / file)
        ours = logits_of(model, tokens, name)
        assert np.abs(ours - logits).max() <= 1e-5 * np.abs(ours).max()
        labels = tokens.max(axis=1)
        assert cp.accuracy(model).correct == (logits.argmax(axis=1) == labels).sum()
        assert found(folder)["object" if length == 3 else "short"]["sha256"] == model.sha256
    assert "sequences of 2 tokens; the model reads up to 3" in model.assumptions


@every(FIRST_EDITION)
def test_one_head_is_weights_and_proven(folder, name):
    weights = cp.load(folder / "model.pth")
    assert isinstance(weights, Weights)
    logits, labels = np.load(folder / "logits.npy"), sequences(3).max(axis=1)
    assert cp.accuracy(weights).correct == int((logits.argmax(axis=1) == labels).sum())
    assert weights.rewritten is (name in ("biases", "soft-capped logits"))


@every(NETWORKS)
def test_everything_else_is_a_network_with_all_its_parts(folder, name):
    network = cp.load(folder / "model.pth")
    assert isinstance(network, Network) and network.described == NETWORKS[name]
    folded = [text.partition(", not folded")[1] or "not known" for text in network.assumptions if "folded" in text]
    has_norm = network.norm_1 is not None
    assert folded == (["not known" if "folded" in name or "Pre" in name else ", not folded"] if has_norm else [])
    cp.save(network, folder / "ours.safetensors")
    (folder / "config.json").rename(folder / "kept.json")
    try:
        assert cp.load(folder / "ours.safetensors") == network
    finally:
        (folder / "kept.json").rename(folder / "config.json")


ALONE = ("plain", "one wide head", "another scale", "biases", "four heads", "three heads with biases", "LNPre", "RMSPre")
"""What the tensors and the two options say completely."""


@every(ALONE)
def test_without_a_configuration_the_reader_must_be_told(folder, name):
    path, whole = folder / "alone" / "model.safetensors", cp.load(folder / "model.pth")
    with pytest.raises(ModelError, match="--normalization none"):
        cp.load(path)
    assert "--normalization none" in found(folder)["state dict"]["error"]
    n_heads = whole.n_heads if isinstance(whole, Network) else 1
    told = cp.load(path, n_heads=n_heads, normalization=name if name.endswith("Pre") else "none")
    assert found(folder)["told"]["sha256"] == told.sha256 and "because the user said so" in " ".join(told.assumptions)
    if name != "another scale":
        assert told == whole


@every(REFUSED)
def test_other_networks_are_refused_however_they_come(folder, name):
    with pytest.raises(ModelError, match=REFUSED[name]):
        cp.load(folder / "model.pth")
    for way in ("object", "state dict"):
        assert "error" in found(folder)[way], way
    told = found(folder)["told"]
    if name in ("soft-capped scores", "shortformer", "ALiBi three heads", "local attention"):  # a state dict cannot tell; it is assumed
        assert "error" in told or "no soft caps, the last position sees every position, learned positions" in " ".join(told["assumptions"])
    else:
        assert "error" in told


@pytest.mark.parametrize(("major", "block"), [(2, 0), (3, 0), (4, 1)])
def test_the_tutorials_first_step_with_the_library(library, major, block, tmp_path):
    """What the page says to do in TransformerLens gives a file that loads without a word about it."""
    page = (ROOT / "docs" / "tutorial" / "from-transformer-lens.md").read_text()
    code = re.findall(r"^``` {.python .notest}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[block]
    python, environment = interpreter(major)
    done = subprocess.run([python, "-W", "ignore", "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    weights = cp.load(tmp_path / "model.pth")
    assert isinstance(weights, Weights) and (weights.d_vocab, weights.n_ctx) == (64, 4)
    assert [text for text in weights.assumptions if "was read as the real number sqrt(32)" not in text] == []
