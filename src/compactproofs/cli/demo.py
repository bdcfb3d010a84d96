"""`compactproofs demo`: what the package does, on bundled models, in a few seconds."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from compactproofs.cli.destination import is_page, make_folder
from compactproofs.cli.output import ForceOption, JsonOption, Output, brief_integer, progress_bar
from compactproofs.errors import MissingExtraError

if TYPE_CHECKING:
    from compactproofs.cli.destination import Destination
    from compactproofs.model.weights import Weights


def demo(json_path: JsonOption = None, force: ForceOption = False) -> None:
    """A tour on bundled models: an exact theorem, shorter ones, a certificate, and what to do where brute force cannot go. No training."""
    output = Output(json_path, force=force)
    place = output.destination("the demo's", make_folder("the demo's", Path("demo")) / "report.html", is_page)
    from compactproofs.certificates.checking import check
    from compactproofs.measuring import accuracy
    from compactproofs.model.zoo import zoo, zoo_record
    from compactproofs.proving import prove, prove_many
    from compactproofs.reports.collect import require_results_folder
    from compactproofs.strategies.cubic import Cubic
    from compactproofs.strategies.subcubic import Subcubic
    from compactproofs.strategies.threshold import ThresholdCubic, ThresholdCubicPooled

    with suppress(MissingExtraError):  # then there will be no report
        require_results_folder(place.path.with_suffix(".results"), force)
    small, large = zoo("max-of-4"), zoo("max-of-20")
    record = zoo_record("max-of-4")
    recipe = f"seed {record['seed']}, {record['recipe']['steps']} steps"
    output.say("1. A transformer that was trained to say the largest of 4 tokens")
    output.say(f"   {small.d_vocab} tokens, d_model {small.d_model}, one head of {small.d_head}; {recipe}")
    output.say()
    output.say("2. How often is it right, over ALL inputs? A theorem by brute force:")
    with progress_bar("brute force") as progress:
        proof = prove(small, "brute-force", upper=True, progress=progress)
    output.say(f"   accuracy exactly {proof.correct_at_least} / {proof.total} = {proof.lower:.8f} ({proof.seconds:.2f} s)")
    output.say(f"   {proof.theorem}")
    output.say()
    output.say("3. Shorter proofs: what understanding the model buys")
    with progress_bar("proving") as progress:
        chosen = [Subcubic("mean_query+max_diff", "max_diff"), Subcubic(), Cubic(), ThresholdCubicPooled(), ThresholdCubic()]
        shorter = sorted(prove_many(small, chosen, progress=progress), key=lambda p: p.lower)
    output.table(
        ["proof", "accuracy at least", "FLOPs"],
        [[p.label, f"{p.lower:.6f}", brief_integer(p.flops)] for p in [*shorter, proof]],
    )
    output.say()
    output.say("4. Written down: a certificate, checked by one file of plain Python that trusts nothing but integers")
    certificate = next(p for p in shorter if p.strategy == "threshold-cubic-pooled").certificate
    started = time.perf_counter()
    checked = check(certificate, small)
    output.say(
        f"   {len(certificate.data) // 1000} kB, {time.perf_counter() - started:.2f} s: {checked.verdict.name.lower()}, {checked.reason}"
    )
    output.say()
    output.say("5. The same question for 20 tokens: 64^20 = 2^120 inputs")
    refused = prove(large, "brute-force")
    output.say(f"   {refused.reason}")
    long = prove(large, "cubic")
    output.say(f"   The paper's cubic proof: accuracy at least {long.lower:.6f} ({long.seconds:.2f} s). A theorem.")
    pooled = prove(large, "threshold-cubic-pooled")
    output.say(f"   A threshold proof: at least {pooled.lower:.6f} ({pooled.seconds:.2f} s). A theorem too.")
    best = prove(large, "threshold-best", upper=True, seconds=3.0)
    output.say(f"   The best with a budget of 3 s: between {best.lower:.6f} and {best.upper:.6f} ({best.seconds:.2f} s). Still a theorem.")
    with progress_bar("sampling") as progress:
        sampled = accuracy(large, samples=200_000, progress=progress)
    interval = f"[{sampled.interval[0]:.6f}, {sampled.interval[1]:.6f}]"
    output.say(f"   A sample of {sampled.total}: {100 * sampled.confidence:g} % interval {interval}. Not a theorem.")
    output.say()
    output.say("6. A report to open in a browser: all proofs of the small model, a proof explorer, and its mechanism")
    report = _report(output, small, place)
    output.say()
    output.say("Try next:")
    output.say("   compactproofs prove max-of-10 --upper")
    output.say("   compactproofs prove YOUR_MODEL.safetensors --upper --certificate proof.json")
    output.say("   compactproofs check proof.json YOUR_MODEL.safetensors")
    output.say("   compactproofs report YOUR_MODEL.safetensors --out report.html")
    output.say("   compactproofs strategies")
    output.result(
        {
            "proof": proof.as_json(),
            "shorter": [p.as_json() for p in shorter],
            "long": long.as_json(),
            "pooled": pooled.as_json(),
            "best": best.as_json(),
            "checked": {"verdict": checked.verdict.name.lower(), "reason": checked.reason},
            "refused": refused.as_json(),
            "report": report,
            "sampled": sampled.as_json(),
        }
    )


def _report(output: Output, weights: Weights, place: Destination) -> str | None:
    """Write demo/report.html, if the [report] extra is there."""
    from compactproofs.model.zoo import zoo_path
    from compactproofs.reports.collect import collect, report_work
    from compactproofs.reports.page import page

    try:
        with progress_bar("proving with every strategy") as progress:
            results = collect(weights, zoo_path("max-of-4"), place.path.with_suffix(".results"), report_work(), progress=progress)
        place.write(page([results]).encode())
    except MissingExtraError as error:
        output.say(f"   {error}")
        return None
    output.say(f"   {place.path} ({place.path.stat().st_size / 1e6:.1f} MB)")
    return str(place.path)
