"""Theorems about models that other people trained. The weights are not part of this project; without them these tests skip."""

from pathlib import Path

import pytest

import compactproofs as cp
from compactproofs.model.kinds import as_network
from compactproofs_experiments.sorted_list.lists import Lists
from compactproofs_experiments.sorted_list.prove import EFFORT, prove_output
from compactproofs_experiments.sorted_list.truth import sampled

FOLDER = Path(__file__).parents[2].parent / "shared" / "models" / "external"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="models of others (shared/models/external beside the project) are not here")


@pytest.fixture(scope="module")
def cumsum():
    model = cp.load(FOLDER / "cumsum-sign.safetensors")
    return model, cp.prove(model, task=cp.task_for(model, "sign-of-sum"), position="every", seconds=600)


def test_the_sign_of_the_sum_is_right_at_all_twenty_positions(cumsum):
    model, proofs = cumsum
    assert len(proofs) == model.n_ctx == 20 and model.causal
    assert all(proof.status == "proven" and proof.correct_at_least == proof.total == 11**20 for proof in proofs)


@pytest.mark.long
@pytest.mark.parametrize("position", [0, 8])
def test_the_checker_confirms_it(cumsum, position):
    model, proofs = cumsum
    certificate = proofs[position].certificate
    found = cp.check(certificate, model)
    assert found.accepted and found.correct_at_least == found.total == 11 ** (position + 1)
    assert len(certificate.data) < 50_000


@pytest.mark.slow
def test_lists_are_sorted():
    """Compiling takes most of the time."""
    network = as_network(cp.load(FOLDER / "sorted-list.safetensors"))
    found = prove_output(network, Lists(51, 10), 9, EFFORT._replace(portion=0.04, few=20_000, bins=250))
    assert 0.999 < found.accuracy <= sampled(network, Lists(51, 10), 9, 20_000)
