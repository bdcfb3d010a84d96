"""Numbers derived from synthetic sweeps, without pages and figures."""

import pytest

from compactproofs.results.published import published_for
from compactproofs.strategies.subcubic import QueryHandling
from compactproofs_experiments.reproduction.agreement import agreement
from compactproofs_experiments.reproduction.comparison import compare
from compactproofs_experiments.reproduction.fits import clouds
from compactproofs_experiments.reproduction.groups import LEGEND, TABLE_1
from compactproofs_experiments.reproduction.soundness import excess
from compactproofs_experiments.reproduction.summaries import read_configurations
from compactproofs_experiments.reproduction.tables import lengths_table, table_1
from compactproofs_experiments.reproduction.timings import timing
from synthetic_sweeps import ALL, BEST, CORRECT, TOTAL, changed, configuration_of, rows_of, store_of

DROP = str(QueryHandling.DROP)
FEW = [s for s in ALL if s.family in ("brute-force", "cubic") or s.label == BEST]


@pytest.fixture(scope="module")
def k4(tmp_path_factory):
    return configuration_of(store_of(tmp_path_factory.mktemp("out"), *(rows_of(seed) for seed in range(4))))


def test_table_1_has_the_rows_of_the_paper(k4):
    lines = table_1(k4).replace("\N{NO-BREAK SPACE}", " ").splitlines()
    assert len(lines) == 2 + len(TABLE_1)
    row = next(line for line in lines if line.startswith("| Sub-cubic"))
    assert row == "| Sub-cubic | 0.6926 ± 0.0380 | 0.6936 ± 0.0009 | 0.6936 ± 0.0009 | 0.9013 ± 0.0012 |"
    assert "| Sub-cubic | $O(v^2 k^2 + v^2 d)$ | 2²¹ | 2²⁰ | 2¹² |" in lengths_table(k4)


def test_groups_are_of_published_strategies_and_leave_none_out():
    published = {row.label for row in published_for(4, 64)}
    assert {label for group in TABLE_1 for label in group.labels} <= published
    assert {label for legend in LEGEND for label in legend.group.labels} == published - {"brute-force"}


def test_comparisons_measure_distances(k4):
    found = {c.published.label: c for c in compare(k4)}
    assert len(found) == 102
    best = found[BEST]
    assert best.ours.mean == pytest.approx(0.692562 * 1.0015, abs=1e-6) and best.envelope.mean == pytest.approx(0.9 * 1.0015, abs=1e-6)
    assert best.distance == pytest.approx(0.692562 * 0.0015 / 0.0380426, rel=1e-3) and best.agrees
    assert best.standard_errors == pytest.approx(best.difference / (0.0380426**2 / 151 + best.ours.std**2 / 4) ** 0.5)


def test_brute_force_out_of_reach_is_compared_as_an_estimate(tmp_path):
    c = configuration_of(store_of(tmp_path, *(rows_of(seed, FEW, n_ctx=20, sampled=True) for seed in range(2)), name="k20"))
    found = {x.published.label: x for x in compare(c)}
    assert found["brute-force"].estimated and found["brute-force"].ours.mean == 0.998 and not found["cubic"].estimated


def test_disagreements_are_grouped_by_their_choices(tmp_path):
    models = [rows_of(seed) for seed in range(4)]
    for label in [p.label for p in published_for(4, 64) if p.label.endswith(DROP) and p.choices[0] == "max_diff_exact"]:
        models = [changed(rows, label, "published", lower=0.95 + 0.001 * n) for n, rows in enumerate(models)]
    found = agreement(configuration_of(store_of(tmp_path, *models)))
    (group,) = found.disagreements
    assert (len(group.members), group.described, group.higher) == (10, 10, True)
    assert group.description == f"query handling `{DROP}`, direct path `max_diff_exact`"
    assert group.models_alike and "another version of the authors' code" in group.cause
    expected = f"92 of 102 means within 3 standard errors; for 10 others we get more, all with query handling `{DROP}`"
    assert found.in_short.startswith(expected)


def test_where_the_models_differ_no_version_is_blamed(tmp_path):
    models = [changed(changed(rows_of(seed), BEST, "published", lower=0.2), "cubic", None, lower=0.5) for seed in range(4)]
    groups = {group.handling: group for group in agreement(configuration_of(store_of(tmp_path, *models))).disagreements}
    assert "on the same weights" in groups[None].cause and "it may be the models" in groups["mean_query+diff"].cause
    assert not groups[None].higher and not groups["mean_query+diff"].models_alike


def test_a_difference_next_to_nothing_is_agreement_however_small_the_spread(tmp_path):
    models = [rows_of(seed) for seed in range(2)]
    tiny = [p for p in published_for(4, 64) if p.choices[:1] == ("svd_query+max_diff",)]
    for label in [p.label for p in tiny]:
        models = [changed(rows, label, "published", lower=0.0005) for rows in models]
    found = agreement(configuration_of(store_of(tmp_path, *models)))
    assert found.disagreements == [] and found.agreeing == len(found.compared)
    assert sum(not c.near for c in found.compared) == len(tiny) == 20


def test_a_false_bound_is_found_in_exact_integers(tmp_path):
    models = [changed(rows_of(seed, FEW), "cubic", correct_at_least=str(CORRECT + seed)) for seed in (0, 1)]
    models[1] = changed(models[1], BEST, "published", correct_at_least=str(TOTAL - 899))
    c = configuration_of(store_of(tmp_path, *models))
    sound, published = excess(c, sound=True), excess(c, sound=False)
    assert (sound.bounds, sound.against_exact, sound.exceeding, sound.models, sound.labels) == (6, 6, 1, 1, ("cubic",))
    assert (published.bounds, published.exceeding, published.labels) == (2, 1, (BEST,))


def test_sampled_accuracies_and_trivial_certificates_refute_nothing(tmp_path):
    sampled = {"n_ctx": 20, "sampled": True}
    store_of(tmp_path, rows_of(0, FEW, **sampled), rows_of(1, FEW, **sampled, correct_at_most=str(64**20)), name="k20")
    found = excess(configuration_of(tmp_path / "results"), sound=True)
    assert (found.bounds, found.against_exact, found.against_certificate, found.exceeding) == (4, 0, 2, 0)


def test_an_upper_bound_below_the_exact_count_is_found(tmp_path):
    c = configuration_of(
        store_of(tmp_path, rows_of(0, FEW, correct_at_most=str(CORRECT - 1)), rows_of(1, FEW, correct_at_most=str(CORRECT)))
    )
    assert agreement(c).upper_bounds_too_small == 1


def test_unknown_accuracies_are_left_out_of_normalised_bounds(tmp_path):
    c = configuration_of(store_of(tmp_path, rows_of(0, FEW, accuracy=None), rows_of(1, FEW)))
    assert len(c.normalised(c.find("cubic", None))) == 1 and len(c.find("cubic", None).bounds) == 2


def test_fits_are_least_squares_through_the_best_of_each_model(k4):
    found = {(cloud.attention_error, cloud.variant): cloud for cloud in clouds(k4)}
    assert len(found) == 18 and not any("exact_EQKE" in error for error, _ in found)
    fit, scale = found["svd", "published"].fit, 0.569865 / (CORRECT / TOTAL)
    assert fit.slope == pytest.approx(scale * 0.001 / 50, rel=1e-2) and fit.explained == pytest.approx(1.0, abs=1e-6) and fit.models == 4


def test_time_is_taken_apart_where_it_was_recorded(k4):
    found = timing(k4, {"sweep_seconds": 400.0, "workers": 2})
    assert (found.published, found.brute_force, found.proof) == (200.0, 2.0, 4 * 161 * 0.5) and found.search is None
    assert found.rest == 800 - 200 - 2 - 322 and found.training is None


def test_search_and_counting_are_parts_of_a_proof(tmp_path):
    folder = store_of(tmp_path, rows_of(0, FEW), rows_of(1, FEW, search_seconds=0.1, counting_seconds=0.3))
    found = timing(configuration_of(folder), {})
    assert (found.search, found.counting, found.proof) == pytest.approx((0.2, 0.6, 4 * 0.5 - 0.8))


def test_configurations_come_by_length_and_nothing_from_nowhere(tmp_path):
    store_of(tmp_path, rows_of(0, FEW, n_ctx=20, sampled=True), name="k20")
    store_of(tmp_path, rows_of(0, FEW))
    assert [c.name for c in read_configurations(tmp_path / "results")] == ["k4", "k20"] and read_configurations(tmp_path / "none") == []
