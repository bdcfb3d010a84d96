"""One reading of model files: what the stand-alone checker accepts, the package reads as the same network, with the same assumptions."""

import json
import os
import struct
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save as safetensors_bytes

import compactproofs as cp
from compactproofs import checker
from compactproofs.certificates.checking import network
from compactproofs.errors import ModelError
from compactproofs.model.network_files import encoded
from models import random_weights
from networks import BLOCKS, random_network

NETWORK = random_network(0, **BLOCKS["MLP"])
WEIGHTS = random_weights(0, d_head=3)
PLAIN = {"n_layers": "1", "n_heads": "1", "attn_only": "true", "normalization_type": "none"}
TOLD = {"n_heads": 1, "normalization": "none"}
TENSORS = {name: np.array(tensor) for name, tensor in WEIGHTS.tensors.items()}


def by_checker(data, config=None, told=()):
    config = b"{}" if config is None else config
    words = {"n_heads": "n_heads", "normalization": "normalization_type"}
    try:
        return checker.read_safetensors(data, config, {words[name]: str(value) for name, value in dict(told).items()})
    except checker.MalformedError:
        return None


def by_package(folder, data, config=None, told=()):
    (folder / "m.safetensors").write_bytes(data)
    if config is not None:
        (folder / "config.json").write_bytes(config)
    try:
        return cp.load(folder / "m.safetensors", **dict(told))
    except ModelError:
        return None


def same(raw, weights):
    return (raw.sha256(), raw.assumptions) == (weights.sha256, weights.assumptions)


SCALES = [
    "-1",
    "-1.0",
    "1.7320508075688772",
    "1.7320508075688774",
    "1.732050807568877",
    "1.75",
    " 2 ",
    "2e0",
    "1_0",
    "0x10",
    "nan",
    "0",
    "x",
    "",
]


@pytest.mark.parametrize("scale", [None, *SCALES])
def test_attention_scales(tmp_path, scale):
    """The float64 nearest to sqrt(3) means sqrt(3), its neighbours mean themselves."""
    data = safetensors_bytes(TENSORS, PLAIN if scale is None else {**PLAIN, "attn_scale": scale})
    raw, weights = by_checker(data), by_package(tmp_path, data)
    assert (raw is None) == (weights is None)
    assert raw is None or same(raw, weights)
    if scale == "1.7320508075688772":
        assert raw.divisor == "3/1" and "read as the real number sqrt(3)" in raw.assumptions[0]


@pytest.mark.parametrize("d_head", [1, 2, 3, 4, 5, 7, 32, 48, 64, 100, 127])
def test_the_rounded_root_of_any_size_of_head(d_head):
    for scale in (d_head**0.5, float(np.nextafter(d_head**0.5, 9)), float(np.nextafter(d_head**0.5, 0))):
        divisor, _ = checker.divisor_of(repr(scale), d_head)
        assert (divisor == f"{d_head}/1") == (scale == d_head**0.5)


METADATA = [
    {},
    PLAIN,
    {**PLAIN, "task": "max", "training": "{}", "format": "pt", "seed": "3", "name": "x", "producer": "y"},
    {"n_heads": "1", "normalization_type": "none"},
    {"n_layers": "1"},
    {**PLAIN, "n_heads": "4"},
    {**PLAIN, "normalization_type": "LNPre"},
    {**PLAIN, "d_head": "3", "n_ctx": "3"},
    {**PLAIN, "d_head": "4"},
    {**PLAIN, "secret_gate": "1"},
    {**PLAIN, "rotary_dim": "2"},
    {**PLAIN, "attention_dir": "causal"},
]
CONFIGS = [
    None,
    b"{}",
    b'{"n_heads": 1, "normalization_type": null}',
    b'{"n_heads": 4}',
    b'{"attention_dir": "bidirectional"}',
    b'{"attention_dir": ["causal"]}',
    b'{"attn_scale": 1.7320508075688772}',
    b"[",
    b"[]",
]


@pytest.mark.parametrize("metadata", METADATA, ids=lambda said: " ".join(f"{name}={value}" for name, value in said.items()) or "nothing")
def test_what_the_checker_accepts_the_package_reads_the_same(tmp_path, metadata):
    data = safetensors_bytes(TENSORS, metadata)
    for config, told in product(CONFIGS, [{}, TOLD, {"n_heads": 1}]):
        (tmp_path / "config.json").unlink(missing_ok=True)
        raw, weights = by_checker(data, config, told), by_package(tmp_path, data, config, told)
        assert raw is None or (weights is not None and same(raw, weights)), (config, told)
        ours = set(metadata) <= {*PLAIN, "d_head", "n_ctx"} and config in (None, b"{}")
        assert raw is not None or weights is None or isinstance(weights, cp.Network) or not ours, (config, told)


@given(st.data())
def test_broken_files_are_refused_by_both(tmp_path_factory, data):
    """Offsets moved, tensors overlapping, bytes that belong to nobody: safetensors refuses them, and so does the checker."""
    whole = safetensors_bytes(TENSORS, PLAIN)
    length = struct.unpack("<Q", whole[:8])[0]
    header, body = json.loads(whole[8 : 8 + length]), whole[8 + length :]
    kind = data.draw(st.sampled_from(["trailing", "overlap", "moved", "short", "gap"]))
    name = data.draw(st.sampled_from(sorted(TENSORS)))
    first, end = header[name]["data_offsets"]
    if kind == "trailing":
        body += bytes(data.draw(st.integers(1, 9)))
    elif kind == "overlap":
        other = data.draw(st.sampled_from([n for n in sorted(TENSORS) if n != name and TENSORS[n].size == TENSORS[name].size] or [name]))
        header[name]["data_offsets"] = header[other]["data_offsets"]
    elif kind == "moved":
        by = data.draw(st.sampled_from([-4, 4, 1]))
        header[name]["data_offsets"] = [first + by, end + by]
    elif kind == "short":
        body = body[:-4]
    else:
        body = body[:first] + bytes(4) + body[first:]
        for entry in (entry for key, entry in header.items() if key != "__metadata__"):
            entry["data_offsets"] = [x + 4 if x >= first and entry["data_offsets"][0] >= first else x for x in entry["data_offsets"]]
    text = json.dumps(header).encode()
    changed = struct.pack("<Q", len(text)) + text + body
    folder = tmp_path_factory.mktemp("broken")
    if header != json.loads(whole[8 : 8 + length]) or kind in ("trailing", "short"):
        assert by_package(folder, changed) is None and by_checker(changed) is None


def test_tensors_that_overlap_in_pairs_are_refused(tmp_path):
    """Each range begins where some other ends, and yet bytes are read twice."""
    shapes = dict.fromkeys(TENSORS, (2, 2))
    header = {
        name: {"dtype": "F32", "shape": list(shape), "data_offsets": [16 * (n // 2), 16 * (n // 2) + 16]}
        for n, (name, shape) in enumerate(shapes.items())
    }
    text = json.dumps({**header, "__metadata__": PLAIN}).encode()
    data = struct.pack("<Q", len(text)) + text + bytes(16 * 4)
    assert by_checker(data) is None and by_package(tmp_path, data) is None


def test_the_stand_alone_file_takes_the_same_options(tmp_path):
    path, certificate = tmp_path / "bare.safetensors", tmp_path / "c.json"
    path.write_bytes(safetensors_bytes(TENSORS))
    cp.prove(WEIGHTS, "cubic").certificate.save(certificate)

    def alone(*options):
        command = [sys.executable, "-m", "compactproofs.checker", certificate, path, *options]
        return subprocess.run(command, capture_output=True, text=True)

    refused = alone()
    assert refused.returncode == 2 and "--n-heads 1 --normalization none" in refused.stdout
    accepted = alone("--n-heads", "1", "--normalization=none")
    assert accepted.returncode == 0 and "assumed: one attention head, because the user said so" in accepted.stdout
    assert accepted.stdout.count("assumed: ") == 4
    (tmp_path / "config.json").write_text('{"n_heads": 4}')
    assert alone("--n-heads", "1", "--normalization", "none").returncode == 2
    assert alone("--work", "no").returncode == 2


def test_what_was_assumed_is_what_this_check_assumed(tmp_path):
    """Not what the certificate says, which anybody may have edited."""
    path = tmp_path / "bare.safetensors"
    path.write_bytes(safetensors_bytes(TENSORS))
    content = dict(cp.prove(cp.load(path, **TOLD), "cubic").certificate.content)
    assert len(content["model"]["assumptions"]) == 4
    content["model"] = {**content["model"], "assumptions": ["nothing whatever"]}
    (tmp_path / "c.json").write_text(json.dumps(content))
    assert cp.check(tmp_path / "c.json", path, **TOLD).assumptions == cp.load(path, **TOLD).assumptions
    assert cp.check(tmp_path / "c.json", WEIGHTS).assumptions == ()


@pytest.mark.parametrize("model", ["/", ".", "", "FOLDER", "PIPE", "FOLDER/none.safetensors"])
def test_what_is_no_file_is_malformed(tmp_path, model, capsys):
    """A pipe that nobody writes to is not waited for."""
    certificate = tmp_path / "c.json"
    certificate.write_bytes(cp.prove(random_weights(0), "cubic").certificate.data)
    os.mkfifo(tmp_path / "PIPE")
    place = model.replace("FOLDER", str(tmp_path)).replace("PIPE", str(tmp_path / "PIPE"))
    assert checker.main([str(certificate), place]) == 2
    said = capsys.readouterr().out
    assert said.startswith("malformed: ") and ("is not a regular file" in said or "cannot read the model" in said)


def test_an_interrupt_of_the_stand_alone_checker_has_a_code_of_its_own(tmp_path, capsys, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    cp.save(random_weights(0), tmp_path / "m.safetensors")
    (tmp_path / "c.json").write_bytes(cp.prove(random_weights(0), "cubic").certificate.data)
    monkeypatch.setattr(checker, "tables", interrupt)
    assert checker.main([str(tmp_path / "c.json"), str(tmp_path / "m.safetensors")]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


def test_at_most_more_than_all_is_malformed():
    weights = random_weights(0)
    content = json.loads(cp.prove(weights, "cubic", upper=True).certificate.data)
    total = int(content["claim"]["total"])
    for at_most, verdict in ((total, checker.Verdict.ACCEPTED), (total + 1, checker.Verdict.MALFORMED)):
        content["claim"]["correct_at_most"] = str(at_most)
        checked = checker.check(json.dumps(content).encode(), network(weights))
        assert checked.verdict is verdict
    assert checked.reason == "claim.correct_at_most is larger than claim.total"


@pytest.mark.parametrize("direction", ["causal", "bidirectional", "sideways"])
@pytest.mark.parametrize("said", [PLAIN, encoded(NETWORK)], ids=["weights", "network"])
def test_both_readers_know_the_directions_of_attention(said, direction, tmp_path):
    tensors = TENSORS if said is PLAIN else {name: np.array(tensor) for name, tensor in NETWORK.tensors.items()}
    data = safetensors_bytes(tensors, {**said, "attention_dir": direction})
    raw, found = by_checker(data), by_package(tmp_path, data)
    if direction == "sideways":
        assert raw is None and found is None
    else:
        assert same(raw, found) and found.causal is (direction == "causal")
