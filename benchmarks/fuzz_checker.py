"""Fuzz the stand-alone checker: mutate valid certificates and model files, and look for anything but a verdict, or for a false claim accepted.

    python benchmarks/fuzz_checker.py --inputs 1000000 --seed 0

Half of the inputs are mutated as bytes, half as JSON (numbers moved, subtrees exchanged, deleted, repeated). A mutated certificate may be
accepted only if what it claims is true of the model by brute force. Any verdict `internal error` is a failure too.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from copy import deepcopy
from pathlib import Path

import numpy as np

import compactproofs as cp
from compactproofs import checker
from compactproofs.model.files import save
from compactproofs.model.network import Activation, Mlp, Network, Norm, NormKind

STRATEGIES = (
    "cubic subcubic threshold-cubic threshold-cubic-pooled threshold-quadratic-pooled threshold-blocks "
    "threshold-quartic threshold-exact-output threshold-best"
).split()


def seeds(folder):
    """Valid certificates of tiny models: (certificate bytes, content, model bytes, number of correct sequences)."""
    found = []
    for seed, (v, k) in enumerate([(2, 1), (2, 2), (3, 2), (2, 3)]):
        rng = np.random.default_rng(seed)
        d, h, out = 2, 1, v + seed % 2
        shapes = {"W_E": (v, d), "W_pos": (k, d), "W_Q": (d, h), "W_K": (d, h), "W_V": (d, h), "W_O": (h, d), "W_U": (d, out)}
        weights = cp.Weights(**{name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()})
        path = f"{folder}/model{seed}.safetensors"
        save(weights, path)
        model = Path(path).read_bytes()
        correct = cp.accuracy(weights).correct
        for name in STRATEGIES:
            proof = cp.prove(weights, name, upper=True)
            found.append((proof.certificate.data, proof.certificate.content, model, correct))
            if name in ("cubic", "threshold-cubic-pooled"):
                certificate = cp.prove(weights, name).certify("float32-any-order")
                found.append((certificate.data, certificate.content, model, correct))
    return found + block_seeds(folder)


def block_seeds(folder):
    """The same of whole blocks: two heads, a ReLU MLP, a final norm with a bias."""
    found, (v, k, d, h) = [], (3, 2, 2, 1)
    for seed, (heads, neurons, norm) in enumerate([(2, 0, False), (1, 2, False), (2, 2, False), (1, 0, True), (2, 0, True)]):
        rng = np.random.default_rng(seed)
        shapes = {
            "W_E": (v, d),
            "W_pos": (k, d),
            **{f"W_{x}": (heads, d, h) for x in "QKV"},
            "W_O": (heads, h, d),
            "W_U": (d, v),
            "b_U": (v,),
        }
        tensors = {name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}
        W_in, W_out = rng.normal(size=(d, neurons)).astype("float32"), rng.normal(size=(neurons, d)).astype("float32")
        mlp, final = Mlp(W_in, W_out, Activation.RELU) if neurons else None, Norm(NormKind.LN, 1e-5) if norm else None
        network = Network(**tensors, n_ctx=k, mlp=mlp, norm_final=final)
        path = f"{folder}/block{seed}.safetensors"
        save(network, path)
        model = Path(path).read_bytes()
        for name in ("threshold-quartic", "threshold-best"):
            certificate = cp.prove(network, name, upper=True).certificate
            found.append((certificate.data, certificate.content, model, cp.accuracy(network).correct))
    return found


def paths(value, prefix=()):
    """All places in a JSON value."""
    yield prefix
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from paths(child, (*prefix, key))


def at(value, path):
    """The value at a place."""
    for key in path:
        value = value[key]
    return value


def mutated_value(rng, value, content, places):
    """Another value instead of one."""
    kind = rng.randrange(6)
    if isinstance(value, int) and not isinstance(value, bool) and kind < 4:
        return rng.choice([value + 1, value - 1, -value, value * 2, value // 2, 0, 1, 2**64, -(2**64), 10**200, value ^ 1])
    if isinstance(value, str) and value.isdigit() and kind < 4:
        return str(max(0, int(value) + rng.choice([1, -1, 2, 10, -10])))
    if isinstance(value, list) and value and kind < 3:
        copy = list(value)
        i, j = rng.randrange(len(copy)), rng.randrange(len(copy))
        if kind == 0:
            copy[i], copy[j] = copy[j], copy[i]
        elif kind == 1:
            del copy[i]
        else:
            copy.insert(i, copy[j])
        return copy
    if kind < 5:
        return at(content, rng.choice(places))
    return rng.choice([None, True, False, 0, -1, "", "1", [], {}, [[]], "real", "float32-any-order", "pools", 3])


def mutate_json(rng, content):
    """One to three values changed."""
    places = list(paths(content))
    result = json.loads(json.dumps(content))
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        place = rng.choice(places[1:])
        try:
            parent = at(result, place[:-1])
            if rng.random() < 0.03:
                del parent[place[-1]]
            else:
                parent[place[-1]] = deepcopy(mutated_value(rng, parent[place[-1]], content, places))
        except (KeyError, IndexError, TypeError):
            continue
    return json.dumps(result).encode()


def mutate_bytes(rng, data):
    """A few bytes changed, deleted, repeated or inserted."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        if not data:
            break
        i, kind = rng.randrange(len(data)), rng.randrange(5)
        if kind == 0:
            data[i] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[i] = rng.choice(b'0123456789-{}[]",:eE.\x00\xff')
        elif kind == 2:
            del data[i : i + rng.choice([1, 2, 8, 64, len(data)])]
        elif kind == 3:
            data[i:i] = data[i : i + rng.choice([1, 2, 8, 64])]
        else:
            data[i:i] = bytes(rng.choice(b'0123456789-[]{}",:') for _ in range(rng.choice([1, 3, 9])))
    return bytes(data)


def holds(checked, correct, total):
    """Whether an accepted claim is true."""
    at_most = total if checked.correct_at_most is None else checked.correct_at_most
    return checked.correct_at_least <= correct <= at_most and checked.total == total


def main():
    """Mutate, check, compare."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--inputs", type=int, default=10_000)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--folder", default="/tmp")
    options = arguments.parse_args()
    rng, corpus, verdicts = random.Random(options.seed), seeds(options.folder), Counter()
    networks = {model: checker.read_safetensors(model) for _, _, model, _ in corpus}
    started, slowest = time.perf_counter(), 0.0
    for number in range(options.inputs):
        data, content, model, correct = rng.choice(corpus)
        choice = rng.random()
        network = networks[model]
        if choice < 0.5:
            data = mutate_json(rng, content)
        elif choice < 0.9:
            data = mutate_bytes(rng, data)
        else:
            network = mutate_bytes(rng, model)
        before = time.perf_counter()
        checked = checker.check(data, network)
        slowest = max(slowest, time.perf_counter() - before)
        verdicts[checked.verdict.name] += 1
        sizes = networks[model].sizes()
        same_network = network is networks[model] or checker.read_safetensors(network) if checked.accepted else None
        total = sizes["d_vocab"] ** sizes["n_ctx"]
        wrong = checked.accepted and not (holds(checked, correct, total) and same_network)
        if wrong or checked.verdict is checker.Verdict.INTERNAL_ERROR:
            Path(f"{options.folder}/fuzz-failure-{options.seed}-{number}.json").write_bytes(data)
            print(f"input {number}: {checked}", flush=True)
            if wrong:
                sys.exit(1)
        if (number + 1) % 100_000 == 0:
            print(f"{number + 1} inputs, {dict(verdicts)}, slowest {slowest:.2f} s, {time.perf_counter() - started:.0f} s", flush=True)
    print(f"{options.inputs} inputs, {dict(verdicts)}, slowest {slowest:.2f} s, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
