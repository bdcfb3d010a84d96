import json
import struct
import zipfile
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from compactproofs import CompactProofsError, Weights, from_transformer_lens, load, save
from compactproofs.errors import ModelError
from compactproofs.model.files import training_record
from models import random_weights

WEIGHTS = random_weights(2, d_vocab_out=7)
TOLD = {"n_heads": 1, "normalization": "none"}


def test_save_and_load_round_trip_bit_for_bit(tmp_path):
    path = tmp_path / "model.safetensors"
    save(WEIGHTS, path, training={"seed": 3})
    loaded = load(path)
    assert loaded == WEIGHTS and loaded.assumptions == ()
    assert training_record(path) == {"seed": 3}
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]


def test_the_score_divisor_survives_a_round_trip(tmp_path):
    path = tmp_path / "model.safetensors"
    save(Weights(**WEIGHTS.tensors, score_divisor_squared=Fraction(9, 4)), path)
    assert load(path).score_divisor_squared == Fraction(9, 4)
    with pytest.raises(ModelError, match="cannot be stored"):
        save(Weights(**WEIGHTS.tensors, score_divisor_squared=Fraction(7)), path)


def test_a_failed_save_leaves_the_old_file_and_no_debris(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    save(WEIGHTS, path)
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save(random_weights(3), path)
    assert load(path) == WEIGHTS and len(list(tmp_path.iterdir())) == 1


def write(path, tensors, metadata=None):
    save_file({n: np.ascontiguousarray(t) for n, t in tensors.items()}, path, metadata)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {**t, "W_E": t["W_E"].astype(np.float16)}, "tensor W_E has dtype F16; expected F32"),
        (lambda t: {**t, "W_E": np.full_like(t["W_E"], np.nan)}, "is nan"),
        (lambda t: {**t, "W_E": t["W_E"].astype(np.int32)}, "dtype I32"),
        (lambda t: {n: x for n, x in t.items() if n != "W_O"}, "tensors not found: W_O"),
        (lambda t: {**t, "W_O": t["W_O"].T}, "shapes do not fit together"),
    ],
)
def test_bad_tensors_in_a_file_are_reported_with_the_path(tmp_path, change, message):
    path = write(tmp_path / "bad.safetensors", change(WEIGHTS.tensors))
    with pytest.raises(ModelError, match=message) as info:
        load(path)
    assert "bad.safetensors" in str(info.value)


def test_an_empty_position_table_with_an_empty_mask_is_refused(tmp_path):
    tensors = {**WEIGHTS.tensors, "W_pos": np.zeros((0, 4), np.float32), "mask": np.zeros((0, 0), bool)}
    with pytest.raises(ModelError, match="W_pos has shape"):
        load(write(tmp_path / "empty.safetensors", tensors))


def test_missing_folder_and_unknown_suffix(tmp_path):
    with pytest.raises(ModelError, match="no such file"):
        load(tmp_path / "absent.safetensors")
    with pytest.raises(ModelError, match="is not a file"):
        load(tmp_path)
    (tmp_path / "model.pkl").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(ModelError, match="unknown kind of file '.pkl'"):
        load(tmp_path / "model.pkl")
    with pytest.raises(ModelError, match="cannot look at"):
        load("x" * 5000 + ".safetensors")


@pytest.mark.parametrize("keep", [0, 4, 8, 100, -1])
def test_truncated_files_are_refused(tmp_path, keep):
    path = tmp_path / "model.safetensors"
    save(WEIGHTS, path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ModelError, match="truncated or of another format"):
        load(path)


@given(st.binary(max_size=300), st.booleans())
def test_hostile_bytes_never_escape_as_anything_but_a_model_error(tmp_path_factory, data, with_header):
    path = tmp_path_factory.mktemp("fuzz") / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(data)) + data if with_header else data)
    with pytest.raises(ModelError):
        load(path)


def test_a_header_that_claims_gigabytes_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    header = json.dumps({"W_E": {"dtype": "F32", "shape": [10**9, 10**9], "data_offsets": [0, 4 * 10**18]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(ModelError, match="not a readable safetensors file"):
        load(path)


def test_config_beside_the_file_is_read_and_may_not_contradict_the_metadata(tmp_path):
    path = write(tmp_path / "model.safetensors", WEIGHTS.tensors, {"format": "pt"})
    assert any("does not mention n_layers" in a for a in load(path, n_heads=1, normalization="none").assumptions)
    config = {"n_layers": 1, "n_heads": 1, "attn_only": True, "normalization_type": None, "attn_scale": 1.5}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert load(path).score_divisor_squared == Fraction(9, 4) and load(path).assumptions == ()
    (tmp_path / "config.json").write_text(json.dumps({**config, "normalization_type": "LN"}))
    with pytest.raises(ModelError, match="layer normalisation"):
        load(path)
    (tmp_path / "config.json").write_text(json.dumps({**config, "use_attn_scale": False}))
    write(path, WEIGHTS.tensors, {"use_attn_scale": "0"})
    with pytest.raises(ModelError, match="metadata says use_attn_scale='0'"):
        load(path)
    write(path, WEIGHTS.tensors, {"attn_scale": "2"})
    with pytest.raises(ModelError, match="metadata says attn_scale='2', config.json beside it says 1.5"):
        load(path)


@pytest.mark.parametrize("text", ["{", '{"n_layers": 2, "n_layers": 1}', "[1, 2]", "[" * 100_000, '"x"'])
def test_a_broken_config_is_an_error_not_an_assumption(tmp_path, text):
    path = write(tmp_path / "model.safetensors", WEIGHTS.tensors)
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelError, match=r"config\.json"):
        load(path)


def test_torch_files_are_read_without_executing_them(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "model.pth"
    torch.save({n: torch.from_numpy(np.array(t)) for n, t in WEIGHTS.tensors.items()}, path)
    with pytest.raises(ModelError, match=r"model\.pth: neither the tensors nor a configuration say how many heads"):
        load(path)
    assert load(path, **TOLD) == WEIGHTS

    marker = tmp_path / "executed"

    class Evil:
        def __reduce__(self):
            return (open, (str(marker), "w"))

    torch.save({"W_E": Evil()}, path)
    with pytest.raises(ModelError, match="Nothing in it was executed"):
        load(path)
    assert not marker.exists()
    torch.save(torch.nn.Linear(2, 2), path)
    with pytest.raises(ModelError, match=r"plain tensors \(it holds an object of the class torch\.nn\.modules\.linear\.Linear\)") as caught:
        load(path)
    assert "trust" not in str(caught.value) and "weights_only" not in str(caught.value)
    path.write_bytes(b"garbage")
    with pytest.raises(ModelError, match="cannot be read as plain tensors"):
        load(path)
    torch.save([1, 2], path)
    with pytest.raises(ModelError, match="holds a list; expected a state dict"):
        load(path)
    exotic = [
        torch.zeros(5, 4).to_sparse(),
        torch.zeros(5, 4, device="meta"),
        torch.zeros(1).expand(2**20, 2**24),
        torch.complex(torch.zeros(5, 4), torch.ones(5, 4)).conj().imag,
    ]
    for tensor in exotic:
        torch.save({**{n: torch.from_numpy(np.array(t)) for n, t in WEIGHTS.tensors.items()}, "W_E": tensor}, path)
        with pytest.raises(ModelError):
            load(path)
    torch.save({n: torch.from_numpy(np.array(t)).half() for n, t in WEIGHTS.tensors.items()}, path)
    with pytest.raises(ModelError, match=r"dtype torch\.float16"):
        load(path)


def test_from_transformer_lens_reads_the_models_own_config():
    torch = pytest.importorskip("torch")
    state = {n: torch.from_numpy(np.array(t)) for n, t in WEIGHTS.tensors.items()}
    cfg = {"n_layers": 1, "n_heads": 1, "attn_only": True, "normalization_type": None, "attn_scale": 1.0, "dtype": torch.float32}
    model = SimpleNamespace(state_dict=lambda: state, cfg=SimpleNamespace(**cfg))
    loaded = from_transformer_lens(model)
    assert loaded.score_divisor_squared == 1 and loaded.assumptions == ()
    assert from_transformer_lens(state, **TOLD) == WEIGHTS
    with pytest.raises(ModelError, match="how many heads"):
        from_transformer_lens(state)
    model.cfg.n_layers = 3
    with pytest.raises(CompactProofsError, match="one-layer"):
        from_transformer_lens(model)
    with pytest.raises(CompactProofsError, match="W_E is a str"):
        from_transformer_lens({"W_E": "x"})


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (None, "not None"),
        ("model.safetensors", "for the file 'model.safetensors' use load"),
        (SimpleNamespace(state_dict=dict), "with state_dict and cfg"),
        (7, "not a int"),
        ({1: np.zeros(2)}, "names that are not strings"),
    ],
)
def test_what_is_no_transformer_lens_model_is_refused_in_words(what, words):
    with pytest.raises(ModelError, match=words):
        from_transformer_lens(what)


def test_a_linear_layer_is_no_transformer():
    torch = pytest.importorskip("torch")
    with pytest.raises(ModelError, match="not a Linear"):
        from_transformer_lens(torch.nn.Linear(2, 2))


@pytest.mark.long
def test_a_small_file_cannot_fill_the_memory(tmp_path):
    """Entries that share memory, each tensor below every limit; and parts that are compressed."""
    torch = pytest.importorskip("torch")
    path = tmp_path / "model.pth"
    shared = {f"t{i}": torch.zeros(1).expand(2**14, 2**14) for i in range(12)}
    torch.save(shared, path)
    assert path.stat().st_size < 10_000
    with pytest.raises(ModelError, match=r"t0 has 268435456 entries that share 4 bytes; save it as an ordinary tensor"):
        load(path)
    torch.save({n: torch.from_numpy(np.array(t)) for n, t in WEIGHTS.tensors.items()}, path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"archive/data/{number + 100}", bytes(2**29))
    assert path.stat().st_size < 3 * 2**20
    with pytest.raises(ModelError, match="unpacks to .* bytes"):
        load(path)


def test_a_config_of_thousands_of_digits_is_an_error_in_words(tmp_path):
    path = write(tmp_path / "model.safetensors", WEIGHTS.tensors, {"n_heads": "1", "normalization_type": "none"})
    (tmp_path / "config.json").write_text('{"attn_scale": 1' + 4000 * "0" + "}")
    with pytest.raises(ModelError, match="expected a positive number") as info:
        load(path)
    assert len(str(info.value)) < 1000
