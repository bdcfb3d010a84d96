"""Our own layout: what is damaged is refused, never read as another network."""

import json
from dataclasses import replace

import pytest

import compactproofs as cp
import networks
from compactproofs import checker
from compactproofs.certificates.checking import network as raw
from compactproofs.errors import ModelError
from compactproofs.model.kinds import of_length
from compactproofs.model.network import Rotary
from compactproofs.model.network_files import SETTINGS, decoded, encoded

NETWORK = networks.random_network(0, **networks.AFFINE["rotary and LN"], alibi=(3,))


def changed(**settings):
    return {SETTINGS: json.dumps({**NETWORK.settings, **settings})}


def test_a_network_is_read_as_it_was_written():
    network = replace(NETWORK, assumptions=("one thing", "another"))
    found = decoded(network.tensors, encoded(network))
    assert found == network and found.assumptions == network.assumptions and found.settings == network.settings


@pytest.mark.parametrize(
    "settings",
    [
        {"post_norm": "false"},
        {"post_norm": 0},
        {"rotary": [2.9, "0x1p4", False]},
        {"rotary": [2, "0x1p4", "false"]},
        {"rotary": [2, "0x1p4"]},
        {"rotary": [2, "inf", False]},
        {"n_ctx": 3.9},
        {"n_ctx": True},
        {"alibi": [1.9]},
        {"alibi": "3"},
        {"alibi": [True]},
        {"score_divisor_squared": "0"},
        {"score_divisor_squared": 6},
        {"norm_1": ["LN", "0x1p-10", 1]},
        {"norm_1": ["LN", 0.001]},
        {"norm_1": ["other", "0x1p-10"]},
        {"act": "relu"},
        {"more": 1},
    ],
)
def test_settings_of_another_kind_are_refused(settings):
    with pytest.raises(ModelError):
        decoded(NETWORK.tensors, changed(**settings))


def test_a_field_that_occurs_twice_is_refused():
    text = json.dumps(NETWORK.settings)[:-1] + ', "post_norm": true}'
    with pytest.raises(ModelError, match="occurs twice"):
        decoded(NETWORK.tensors, {SETTINGS: text})


def test_other_metadata_is_refused():
    with pytest.raises(ModelError, match="besides it says n_heads"):
        decoded(NETWORK.tensors, {**encoded(NETWORK), "n_heads": "1"})


@pytest.mark.parametrize("alibi", [(0.5,), (True,), (65,), (-1,), (1, 2)])
def test_alibi_exponents_are_integers_one_for_each_head(alibi):
    with pytest.raises(ModelError, match="alibi"):
        replace(NETWORK, alibi=alibi)


@pytest.mark.parametrize(("dim", "base"), [(3, 10.0), (0, 10.0), (2.0, 10.0), (2, 0.5), (2, float("inf")), (2, float("nan"))])
def test_rotary_settings_that_cannot_be(dim, base):
    with pytest.raises(ModelError, match="rotary positions"):
        Rotary(dim, base)


def test_a_base_is_a_float64_number():
    assert Rotary(4, 2**53 + 1) == Rotary(4, 2.0**53)


def test_assumptions_about_weights_are_kept_in_files(tmp_path):
    weights = replace(cp.zoo("max-of-4"), assumptions=("no normalisation, because the user said so",))
    cp.save(weights, tmp_path / "model.safetensors")
    assert cp.load(tmp_path / "model.safetensors").assumptions == weights.assumptions
    checked = checker.read_safetensors((tmp_path / "model.safetensors").read_bytes())
    assert checked.assumptions == weights.assumptions


def test_the_checker_reads_shorter_sequences(tmp_path):
    for model in (NETWORK, cp.zoo("max-of-4")):
        cp.save(model, tmp_path / "model.safetensors")
        found = checker.read_safetensors((tmp_path / "model.safetensors").read_bytes()).of_length(2)
        assert found.sha256() == raw(of_length(model, 2)).sha256() == of_length(model, 2).sha256
        with pytest.raises(checker.MalformedError, match="the model reads"):
            found.of_length(3)


def test_hashes_agree_with_the_checkers():
    for name, network in networks.affine_networks():
        assert raw(network).sha256() == network.sha256, name
