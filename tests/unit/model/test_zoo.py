import pytest

from compactproofs import zoo
from compactproofs.errors import ModelError
from compactproofs.measuring import accuracy
from compactproofs.model.zoo import ZOO_NAMES, resolve, zoo_record

SIZES = {"max-of-4": (4, 64), "max-of-5": (5, 64), "max-of-10": (10, 64), "max-of-20": (20, 64), "max-of-10-v128": (10, 128)}


@pytest.mark.parametrize("name", ZOO_NAMES)
def test_bundled_models_are_what_their_names_say_and_good_at_it(name):
    weights = zoo(name)
    assert (weights.n_ctx, weights.d_vocab) == SIZES[name]
    assert weights.assumptions == ()
    record = zoo_record(name)
    assert (record["recipe"]["n_ctx"], record["recipe"]["d_vocab"]) == SIZES[name]
    assert {"seed", "loss", "torch", "compactproofs"} <= record.keys()
    assert accuracy(weights, samples=20_000).accuracy > 0.99


def test_resolve_takes_names_and_files(tmp_path):
    assert resolve("max-of-4") == zoo("max-of-4")
    with pytest.raises(ModelError, match="Bundled models: max-of-4, max-of-5"):
        resolve("max-of-7")
    with pytest.raises(ModelError, match="no such file"):
        resolve(str(tmp_path / "x.safetensors"))
    with pytest.raises(ModelError, match="no bundled model"):
        zoo("../evil")
