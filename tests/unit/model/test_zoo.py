import pytest

from compactproofs import Weights, zoo
from compactproofs.errors import ModelError
from compactproofs.measuring import accuracy
from compactproofs.model.network import Network
from compactproofs.model.zoo import NETWORK_NAMES, PLAIN_NAMES, ZOO_NAMES, resolve, zoo_path, zoo_record
from compactproofs.training.recipe import Recipe

SIZES = {"max-of-4": (4, 64), "max-of-5": (5, 64), "max-of-10": (10, 64), "max-of-20": (20, 64), "max-of-10-v128": (10, 128)}

KINDS = {
    "max-of-4-heads": "4 heads",
    "max-of-4-mlp": "one head, relu MLP of 128 neurons, biases",
    "max-of-4-block": "4 heads, norm LN before attention, norm LN before the MLP, relu MLP of 128 neurons, final norm LN, biases",
    "max-of-4-norm": "one head, norm LN before attention, final norm LN, biases",
    "max-of-4-lnpre": "one head, norm LN before attention, final norm LN",
}


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_bundled_models_are_what_their_names_say_and_good_at_it(name):
    weights = zoo(name)
    assert isinstance(weights, Weights) and (weights.n_ctx, weights.d_vocab) == SIZES[name]
    assert weights.assumptions == ()
    record = zoo_record(name)
    assert (record["recipe"]["n_ctx"], record["recipe"]["d_vocab"]) == SIZES[name]
    assert {"seed", "loss", "torch", "compactproofs"} <= record.keys()
    assert accuracy(weights, samples=20_000).accuracy > 0.99


@pytest.mark.parametrize("name", NETWORK_NAMES)
def test_bundled_networks_are_what_their_names_say_and_good_at_it(name):
    network = zoo(name)
    assert isinstance(network, Network) and network.described == KINDS[name] and network.assumptions == ()
    assert (network.n_ctx, network.d_vocab, network.d_model, network.n_heads * network.d_head) == (4, 64, 32, 32)
    assert all(norm is None or norm.eps == 1e-5 for norm in (network.norm_1, network.norm_2, network.norm_final))
    assert accuracy(network, samples=20_000).accuracy > 0.999
    assert {"seed", "loss", "torch", "compactproofs"} <= zoo_record(name).keys()


@pytest.mark.parametrize("name", ZOO_NAMES)
def test_the_record_of_a_bundled_model_is_that_of_todays_recipe(name):
    """Also of those trained before recipes had heads, norms, an MLP and biases: such models count as finished in a folder."""
    said = zoo_record(name)["recipe"]
    assert Recipe(**said).as_dict() == said


def test_no_bundled_file_is_without_a_name():
    assert sorted(path.name for path in zoo_path("max-of-4").parent.glob("*")) == sorted(f"{name}.safetensors" for name in ZOO_NAMES)


def test_resolve_takes_names_and_files(tmp_path):
    assert resolve("max-of-4") == zoo("max-of-4")
    with pytest.raises(ModelError, match="Bundled models: max-of-4, max-of-5"):
        resolve("max-of-7")
    with pytest.raises(ModelError, match="no such file"):
        resolve(str(tmp_path / "x.safetensors"))
    with pytest.raises(ModelError, match="no bundled model"):
        zoo("../evil")
