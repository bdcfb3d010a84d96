"""Write the corpus: certificates that must be accepted, rejected or found malformed, each of the latter named after its attack.

    python tests/corpus/make_corpus.py

Everything is derived from three tiny models, so the whole corpus can be read and made again at any time. `expected.json` says for each
certificate which model it is checked against, the verdict, and words that the reason must contain.
"""

from __future__ import annotations

import json
import shutil
import struct
from copy import deepcopy
from pathlib import Path

import compactproofs as cp
from compactproofs import checker
from compactproofs.certificates.checking import network
from compactproofs.model.files import save
from models import mostly_right

HERE = Path(__file__).parent
LOWER = "lower.witness"


def at(content, path):
    """The parent object and the key of a dotted path."""
    *parents, key = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parents:
        content = content[part]
    return content, key


def changed(content, *changes):
    """A copy with values replaced: (path, value) or (path, function of the old value)."""
    result = deepcopy(content)
    for path, value in changes:
        parent, key = at(result, path)
        parent[key] = value(parent[key]) if callable(value) else value
    return result


def more(text):
    return str(int(text) + 1)


class Corpus:
    """Files and what is expected of them."""

    def __init__(self):
        self.expected = {}
        for folder in ("accept", "reject", "malformed", "models"):
            shutil.rmtree(HERE / folder, ignore_errors=True)
            (HERE / folder).mkdir()

    def add(self, verdict, name, content, model, reason):
        data = content if isinstance(content, bytes) else cp.Certificate(content).data
        folder = {"accepted": "accept", "rejected": "reject", "malformed": "malformed"}[verdict]
        (HERE / folder / f"{name}.json").write_bytes(data)
        self.expected[f"{folder}/{name}.json"] = {"model": f"models/{model}.safetensors", "verdict": verdict, "reason": reason}

    def close(self):
        (HERE / "expected.json").write_text(json.dumps(self.expected, indent=1, sort_keys=True) + "\n")


def accepted(corpus, weights):
    """One certificate for each family, kept for the attacks below."""
    strategies = {
        "cubic": "cubic",
        "gaps": "subcubic",
        "pools": "threshold-cubic-pooled",
        "single-queries": "threshold-cubic",
        "blocks": "threshold-blocks",
        "quadratic": "threshold-quadratic-pooled",
        "quartic": "threshold-quartic",
        "outputs-apart": "threshold-exact-output",
        "exact-accuracy": "threshold-best",
    }
    found = {}
    for name, strategy in strategies.items():
        proof = cp.prove(weights, strategy, upper=name in ("cubic", "exact-accuracy"))
        found[name] = proof.certificate.content
        corpus.add("accepted", name, found[name], "a", "over the real numbers")
    found["float32"] = cp.prove(weights, "threshold-cubic-pooled").certify("float32-any-order").content
    corpus.add("accepted", "float32", found["float32"], "a", "ASSUMING the error model")
    corpus.add("accepted", "claims-less-than-it-proves", changed(found["cubic"], ("claim.correct_at_least", "1")), "a", "at least 1 ")
    return found


def rejected(corpus, valid):
    def reject(name, base, *changes, reason, model="a"):
        corpus.add("rejected", name, changed(valid[base], *changes), model, reason)

    for base in ("cubic", "gaps", "pools", "quartic", "exact-accuracy", "float32"):
        content = valid[base]
        proven = deepcopy(content)
        reject(f"count-plus-one-{base}", base, ("claim.correct_at_least", _just_too_much(proven)), reason="fewer than the")
    reject("upper-bound-too-low", "exact-accuracy", ("claim.correct_at_most", lambda x: str(int(x) - 1)), reason="so at most")
    reject("another-total", "cubic", ("claim.total", more), reason="another total")
    reject("another-models-hash", "cubic", ("model.weights_sha256", "0" * 64), reason="SHA-256 differs")
    reject("certificate-for-another-model", "pools", reason="SHA-256 differs", model="b")
    reject("certificate-for-another-size", "pools", reason="d_vocab", model="small")
    reject("another-score-divisor", "pools", ("model.score_divisor_squared", "2/1"), reason="divides scores by")
    reject("divisor-not-in-lowest-terms", "pools", ("model.score_divisor_squared", "2/2"), reason="divides scores by")
    reject("zero-divisor", "pools", ("model.score_divisor_squared", "0/1"), reason="divides scores by")
    reject("wrong-size", "cubic", ("model.n_ctx", 4), reason="n_ctx=4")

    r = f"{LOWER}.labels.3.token_harms"
    reject("token-harm-lowered-by-one-grid-step", "pools", (f"{r}.1", lambda x: x - 1), reason="token_harms[1] is too small")
    reject(
        "position-harm-lowered", "pools", (f"{LOWER}.labels.3.position_harms.0", lambda x: x - 1), reason="position_harms[0] is too small"
    )
    reject("query-harm-lowered", "pools", (f"{LOWER}.labels.3.pools.0.query_harms.0", lambda x: x - 1), reason="harm of query")
    reject("float32-harm-of-the-reals", "float32", ("lower", valid["pools"]["lower"]), reason="harm of query")
    reject("swapped-tokens", "pools", (r, lambda x: x[::-1]), reason="is too small")
    reject("swapped-positions", "pools", (f"{LOWER}.labels.3.position_harms", lambda x: x[::-1]), reason="is too small")
    reject(
        "swapped-labels",
        "pools",
        (f"{LOWER}.labels", lambda x: [*x[:3], {**x[3], "weights": x[4]["weights"]}, x[4]]),
        reason="is too small",
    )
    reject("weight-zero", "pools", (f"{LOWER}.labels.3.weights.0", 0), reason="out of range")
    reject("negative-scale", "pools", (f"{LOWER}.labels.3.pools.0.token_scales.0", -1), reason="out of range")
    reject("query-in-two-pools", "pools", (f"{LOWER}.labels.3.pools", lambda x: [*x, x[0]]), reason="in two pools")
    reject("query-above-the-label", "pools", (f"{LOWER}.labels.3.pools.0.queries.0", 4), reason="out of range")
    steps = f"{LOWER}.labels.3.pools.0.counting.by_class.classes.0"
    reject("step-zero", "pools", (f"{steps}.step", 0), reason="out of range")
    reject("depth-that-needs-all-memory", "pools", (f"{steps}.depth", 10**9), reason="out of range")
    reject("offset-beyond-a-step", "pools", (f"{steps}.offsets.0", 256), reason="out of range")
    order = f"{LOWER}.labels.3.pools.0.counting.by_class"
    twice = {
        "order": [1, 1],
        "classes": [valid["pools"]["lower"]["witness"]["labels"][3]["pools"][0]["counting"]["by_class"]["classes"][0]] * 3,
    }
    reject("class-counted-twice", "pools", (order, twice), reason="occurs twice in the order")
    reject("huge-step-hides-nothing", "pools", (f"{steps}.step", 1 << 3000), reason="fewer than the")

    gaps = f"{LOWER}.gaps"
    reject("gap-outside-its-range", "gaps", (f"{gaps}.3.1.1", 3), reason="outside its range")
    reject("negative-gap", "gaps", (f"{gaps}.3.1.1", -1), reason="out of range")
    reject("gap-without-other-tokens", "gaps", (f"{gaps}.3.1.0", 1), reason="outside its range")
    reject("gap-beyond-the-vocabulary", "gaps", (f"{gaps}.3.3.1", 4), reason="outside its range")

    reject("forged-strategy-name", "cubic", ("strategy.name", "oracle"), reason="cannot be certified")
    reject("strategy-of-another-rule", "cubic", ("strategy.name", "subcubic"), reason="checked by rule gaps")
    reject("published-strategy", "gaps", ("strategy.parameters.repaired", False), reason="not a sound strategy")
    reject("published-strategy-as-a-number", "gaps", ("strategy.parameters.repaired", 1), reason="not a sound strategy")
    reject("forged-strategy-parameter", "gaps", ("strategy.parameters.direct_path", "trust_me"), reason="not a sound strategy")

    pair = next(i for i, p in enumerate(valid["exact-accuracy"]["lower"]["witness"]["pairs"]) if p["right"])
    right = f"{LOWER}.pairs.{pair}.right"
    exact = valid["exact-accuracy"]
    reject("right-sequence-listed-twice", "exact-accuracy", (right, lambda x: [x[0], *x]), reason="not in ascending order")
    reject(
        "wrong-sequence-listed-as-right",
        "exact-accuracy",
        (right, _all_sequences(exact["lower"]["witness"]["pairs"][pair])),
        reason="right:",
    )
    reject("sequence-of-another-label", "exact-accuracy", (f"{right}.0", [0, 0]), reason="does not have the label")
    covered = next(i for i, p in enumerate(exact["lower"]["witness"]["pairs"]) if p["by_class"]["classes"][0])
    classes = f"{LOWER}.pairs.{covered}.by_class.classes.0"
    reject(
        "harmful-output-not-covered", "exact-accuracy", (classes, []), (f"{LOWER}.pairs.{covered}.right", []), reason="no term covers it"
    )
    reject("pair-counted-twice", "exact-accuracy", (f"{LOWER}.pairs", lambda x: [x[0], *x]), reason="not in ascending order")
    steps = exact["lower"]["witness"]["pairs"][covered]["by_class"]["classes"][0][0]["steps"]
    apart = {"apart": 0, "less": 1, "factors": [1, 1], "steps": steps}
    reject("output-less-one-not-covered", "exact-accuracy", (classes, [apart]), reason="no earlier term covers")
    failing = next(i for i, p in enumerate(exact["upper"]["witness"]["pairs"]) if p["by_class"]["classes"][0] or p["wrong"])
    upper = f"upper.witness.pairs.{failing}"
    reject(
        "right-sequence-listed-as-wrong",
        "exact-accuracy",
        (f"{upper}.wrong", _all_sequences(exact["upper"]["witness"]["pairs"][failing])),
        reason=".wrong:",
    )
    reject(
        "failure-of-the-label-itself",
        "exact-accuracy",
        (f"{upper}.by_class.classes.0", _by_the_label(exact, failing)),
        reason="cannot spoil",
    )
    reject(
        "upper-bound-about-float32",
        "float32",
        ("claim.correct_at_most", "125"),
        ("upper", {"rule": "failures", "witness": {"pairs": []}}),
        reason="real-number network only",
    )
    reject("metadata-says-another-scale", "cubic", reason="divides scores by", model="other-scale")


def _just_too_much(content):
    """One more than the witness proves."""
    raw = network(WEIGHTS)
    tables = checker.tables(raw, content["semantics"])
    rule = content["lower"]["rule"]
    return str(checker.LOWER_RULES[rule](tables, content["lower"]["witness"]) + 1)


def _all_sequences(pair):
    """All sequences of a pair, in ascending order, without the query."""
    m, q = pair["label"], pair["query"]
    return [[a, b] for a in range(m + 1) for b in range(m + 1) if max(a, b, q) == m]


def _by_the_label(content, number):
    pair = content["upper"]["witness"]["pairs"][number]
    steps = {"step": 1, "offsets": [0, 0, 0], "depth": 1}
    return {"output": pair["label"], "steps": steps}


def malformed(corpus, valid):
    def malform(name, content, reason, model="a"):
        corpus.add("malformed", name, content, model, reason)

    def with_changes(name, base, *changes, reason):
        malform(name, changed(valid[base], *changes), reason)

    data = cp.Certificate(valid["cubic"]).data
    malform("empty", b"", "not valid JSON")
    malform("truncated-file", data[: len(data) // 2], "not valid JSON")
    malform("without-its-last-byte", data.rstrip()[:-1], "not valid JSON")
    malform("trailing-data", data + b"{}", "Extra data")
    malform("duplicate-keys", data.replace(b'"version": 1,', b'"version": 1,\n"version": 1,'), "occurs twice")
    malform("duplicate-claim", data.replace(b'"total":', b'"total":"1","total":'), "occurs twice")
    malform("deep-nesting", b"[" * 5_000 + b"]" * 5_000, "nested too deeply")
    malform("deep-nesting-inside", data.replace(b'"witness":{}', b'"witness":' + b"[" * 5_000 + b"]" * 5_000), "nested too deeply")
    malform("huge-integer", data.replace(b'"version": 1', b'"version": 1' + b"0" * 5000), "not valid JSON")
    malform("huge-claim", changed(valid["cubic"], ("claim.correct_at_least", "9" * 5000)), "not a natural number")
    malform("not-a-number", data.replace(b'"version": 1', b'"version": NaN'), "not an integer")
    malform("floating-point", data.replace(b'"version": 1', b'"version": 1.0'), "not an integer")
    malform("not-utf-8", b"\xff\xfe" + data, "not valid JSON")
    malform("another-format", changed(valid["cubic"], ("format", "zip")), "not a certificate")
    malform("a-list", b"[]", "not a certificate")
    malform("another-version", changed(valid["cubic"], ("version", 2)), "this checker knows version 1")
    malform("version-true", changed(valid["cubic"], ("version", True)), "this checker knows version 1")
    malform("another-theorem", changed(valid["cubic"], ("theorem", "p-equals-np")), "is not known")
    malform("unknown-rule", changed(valid["cubic"], ("lower.rule", "trust")), "is not known")
    malform("unknown-semantics", changed(valid["cubic"], ("semantics", "bfloat16")), "semantics")
    malform("float32-without-error-model", changed(valid["float32"], ("error_model", None)), "error model")
    malform("another-task", changed(valid["cubic"], ("task", "min")), "only max")
    malform("another-distribution", changed(valid["cubic"], ("distribution", "zipf")), "only max, uniform")
    malform("claim-as-a-number", changed(valid["cubic"], ("claim.correct_at_least", 5)), "not a natural number")
    malform("negative-claim", changed(valid["cubic"], ("claim.correct_at_least", "-5")), "not a natural number")
    malform("claim-with-leading-zero", changed(valid["cubic"], ("claim.correct_at_least", "05")), "not a natural number")
    malform("claim-in-other-digits", changed(valid["cubic"], ("claim.correct_at_least", "\u0661")), "not a natural number")
    malform("no-end-marker", {k: v for k, v in valid["cubic"].items() if k != "end"}, "fields")
    end = {"end": valid["cubic"]["end"], **{k: v for k, v in valid["cubic"].items() if k != "end"}}
    malform("end-marker-first", end, "end marker")
    malform("unknown-field", {"comment": "hello", **valid["cubic"]}, "fields")
    malform("upper-claim-without-proof", changed(valid["cubic"], ("upper", None)), "needs a proof")
    with_changes("witness-for-nothing", "cubic", ("lower.witness", {"hint": 1}), reason="fields")
    with_changes("weights-as-strings", "pools", (f"{LOWER}.labels.3.weights.0", "7"), reason="not an integer")
    with_changes("weights-as-booleans", "pools", (f"{LOWER}.labels.3.weights.0", True), reason="not an integer")
    with_changes("too-few-harms", "pools", (f"{LOWER}.labels.3.token_harms", lambda x: x[:-1]), reason="expected 4")
    with_changes("too-many-labels", "pools", (f"{LOWER}.labels", lambda x: [*x, x[-1]]), reason="expected 5")
    with_changes("too-few-classes", "pools", (f"{LOWER}.labels.3.pools.0.counting.by_class.order", [1]), reason="expected 2")
    with_changes("gaps-of-another-shape", "gaps", (f"{LOWER}.gaps.3", []), reason="expected 4")
    for name in ("nan-weights", "infinite-weights"):  # with the hash of just these weights
        sha256 = checker.read_safetensors((HERE / "models" / f"{name}.safetensors").read_bytes()).sha256()
        malform(name, changed(valid["cubic"], ("model.weights_sha256", sha256)), "infinite or not a number", model=name)
    for name, words in {
        "truncated-model": "may be truncated",
        "empty-model": "shorter than a safetensors header",
        "header-longer-than-file": "longer than the file",
        "model-without-a-tensor": "expected",
        "model-with-a-bias": "expected",
        "half-precision-model": "expected F32",
        "two-layers": "n_layers",
        "scores-not-scaled": "use_attn_scale",
        "negative-scale": "expected a positive number or -1",
        "unknown-metadata": "attn_scores_soft_cap",
        "metadata-of-another-size": "d_vocab",
        "overlapping-tensors": "overlap",
    }.items():
        malform(name, valid["cubic"], words, model=name)


def models():
    """The models, good and bad."""
    folder = HERE / "models"
    save(WEIGHTS, folder / "a.safetensors")
    save(mostly_right(5), folder / "b.safetensors")
    save(mostly_right(2, v=4, k=2), folder / "small.safetensors")
    data = (folder / "a.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]

    def write(name, header, body):
        text = json.dumps(header).encode()
        (folder / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)

    def without(name):
        return {key: value for key, value in header.items() if key != name}

    write("nan-weights", header, struct.pack("<f", float("nan")) + body[4:])
    write("infinite-weights", header, struct.pack("<f", float("inf")) + body[4:])
    write("truncated-model", header, body[:-5])
    write("model-without-a-tensor", without("W_U"), body)
    write("model-with-a-bias", {**header, "b_U": header["W_U"]}, body)
    write("half-precision-model", {**header, "W_E": {**header["W_E"], "dtype": "F16"}}, body)
    write("two-layers", {**header, "__metadata__": {**header["__metadata__"], "n_layers": "2"}}, body)
    metadata = header["__metadata__"]
    for name, change in {
        "scores-not-scaled": {"use_attn_scale": "false"},
        "negative-scale": {"attn_scale": "-2"},
        "unknown-metadata": {"attn_scores_soft_cap": "1"},
        "metadata-of-another-size": {"d_vocab": "999"},
    }.items():
        write(name, {**header, "__metadata__": {**metadata, **change}}, body)
    last = max((name for name in header if name != "__metadata__"), key=lambda name: header[name]["data_offsets"][1])
    first, end = header[last]["data_offsets"]
    write("overlapping-tensors", {**header, last: {**header[last], "data_offsets": [0, end - first]}}, body[:first])
    write("other-scale", {**header, "__metadata__": {**header["__metadata__"], "attn_scale": "2.0"}}, body)
    (folder / "empty-model.safetensors").write_bytes(b"")
    (folder / "header-longer-than-file.safetensors").write_bytes(struct.pack("<Q", 2**62) + data[8:])


WEIGHTS = mostly_right(4)


def main():
    corpus = Corpus()
    models()
    valid = accepted(corpus, WEIGHTS)
    rejected(corpus, valid)
    malformed(corpus, valid)
    corpus.close()


if __name__ == "__main__":
    main()
