"""Results of sweeps that never took place: bounds near the published means, for tests of what is written about them."""

from compactproofs.results.published import published_for
from compactproofs.results.schema import row
from compactproofs.results.store import write_part
from compactproofs.strategies.registry import all_strategies
from compactproofs_experiments.reproduction.summaries import read_configurations

TOTAL = 64**4
CORRECT = TOTAL - 1000
DROP = "drop_average_query_per_output_logit_reasoning"
BEST = "subcubic/max_diff_exact/exact_EQKE+max_diff_exact/mean_query+diff"
ALL = [s for s in all_strategies(None, "both") if s.family != "threshold" or s.label == s.name]


def share(strategy, seed):
    """A bound of a strategy: the published mean, and a little more for every seed."""
    published = {p.label: p.bound for p in published_for(4, 64)}
    return min(published.get(strategy.label, 0.9) * (1 + 0.001 * seed), 0.9999)


def rows_of(seed, strategies=ALL, *, n_ctx=4, sampled=False, **columns):
    total = 64**n_ctx
    correct = total - 1000
    common = {
        "plan": "p",
        "version": "0.1.0",
        "written": 1000,
        "seconds_allowed": 60.0,
        "model": f"max-of-{n_ctx}-v64-seed{seed}.safetensors",
        "weights_sha256": f"{n_ctx:04}{seed:060}",
        "d_vocab": 64,
        "d_vocab_out": 64,
        "d_model": 32,
        "d_head": 32,
        "n_ctx": n_ctx,
        "singular_ratio": 400.0 + 50 * seed,
        "accuracy_confidence": 0.99 if sampled else 1.0,
        "sound": True,
        "total": str(total),
        "accuracy_method": "sampling" if sampled else "brute-force",
        "accuracy_correct": "998" if sampled else str(correct),
        "accuracy_total": "1000" if sampled else str(total),
        "accuracy": 0.998 if sampled else correct / total,
        "accuracy_low": 0.99 if sampled else correct / total,
        "accuracy_high": 0.9995 if sampled else correct / total,
    }
    rows = []
    for number, strategy in enumerate(strategies):
        infeasible = sampled and strategy.name == "brute-force"
        count = 0 if infeasible else correct if strategy.name == "brute-force" else int(share(strategy, seed) * total)
        about = {
            "strategy": strategy.name,
            "label": strategy.label,
            "family": strategy.family,
            "variant": strategy.variant,
            "sound": strategy.sound,
        }
        status = {"status": "infeasible" if infeasible else "proven" if strategy.sound else "computed", "lower": count / total}
        counts = {
            "correct_at_least": str(count),
            "correct_at_most": str(total - 900),
            "flops": str(10**6 + number),
            "unexplained_dimensions": "5000",
        }
        rows.append(row(common, about, status, counts, {"seconds": 0.5}, columns))
    return rows


def store_of(tmp_path, *models, name="k4"):
    """A store with these models in the folder `name`."""
    store = tmp_path / "results"
    store.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(models):
        write_part(store / f"{name}-{number}.parquet", [{**each, "folder": f"/somewhere/{name}"} for each in rows])
    return store


def configuration_of(store):
    """Of a store that has one configuration."""
    (found,) = read_configurations(store)
    return found


def changed(rows, label, variant=None, **columns):
    return [{**r, **columns} if (r["label"], r["variant"]) == (label, variant) else r for r in rows]
