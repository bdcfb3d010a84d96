"""Certificates for Coq: a certificate and its model as a file whose theorem the kernel of Coq checks.

The theorem is `CompactProofs.Checker.check_sound` (formal/): about the transformer over the reals, from the weights themselves. This
translation is no step of the proof; but the theorem is about the numbers that it writes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from compactproofs import checker
from compactproofs.errors import CompactProofsError

PACKAGES = ("coq", "libcoq-interval", "libcoq-flocq", "libcoq-coquelicot", "libcoq-mathcomp-ssreflect")
TENSORS = ("W_E", "W_pos", "W_Q", "W_K", "W_V", "W_O", "W_U", "b_Q", "b_K", "b_V", "b_O", "b_U")
NORMS = ("norm_1", "norm_final")
Json = Any


class CoqError(CompactProofsError):
    """Coq is not here, or the certificate is of a kind that formal/ does not know."""


class Proved(NamedTuple):
    """What the kernel said."""

    accepted: bool
    theorem: str  # the statement that was checked
    assumptions: tuple[str, ...]  # the axioms that it rests on
    seconds: float
    message: str  # of Coq, if it was rejected


def _list(items: Iterable[object], scope: str = "") -> str:
    return f"[{'; '.join(map(str, items))}]{scope}"


def _number(x: int) -> str:
    return str(x) if x >= 0 else f"({x})"


def _weight(x: int) -> str:
    return hex(x) if x >= 0 else f"({hex(x)})"  # Coq reads these twice as fast as decimal ones


def _tensor(exact: checker.Exact) -> str:
    rows = ";\n  ".join(_list(map(_weight, row)) for row in exact.rows)
    return f"{{| entries := [{rows}]%Z; bits := {exact.scale} |}}"


def _grid(term: Json) -> str:
    mantissa, exponent = term["step"]
    return f"Build_grid {mantissa} {_number(exponent)} {term['depth']} {_list(term['offsets'], '%Z')}"


def _kind(term: Json) -> str:
    found = [kind for kind in ("factored", "joint", "apart", "both", "spoiler", "spoilers") if kind in term]
    if len(found) != 1:
        raise CoqError("a term is none that formal/ knows: factored, joint, apart, both, spoiler or spoilers")
    return found[0]


def _weighted(term: Json) -> str:
    return _list(f"({o}, {w}%Z)" for o, w in zip(term["joint"], term["weights"], strict=True))


def _sum(term: Json) -> str:
    """A sum and its grid."""
    if _kind(term) == "joint":
        return f"(Joint {_weighted(term)}) ({_grid(term)})"
    if _kind(term) == "apart":
        n1, n2 = term["factors"]
        return f"(Apart {term['apart']} {term['less']} {n1} {n2}) ({_grid(term)})"
    raise CoqError(
        f"a {_kind(term)} term stands beside others in a part; formal/ expects joint and apart terms there, or two of them at once"
    )


def _pair_term(term: Json) -> str:
    if _kind(term) == "both":
        one, other = term["both"]
        return f"Both {_sum(one)} {_sum(other)} {term['reach']}"
    return f"Alone {_sum(term)}"


def _pool_leaf(leaf: Json) -> str:
    if any(_kind(term) != "factored" for term in leaf["terms"]) or leaf["listed"]:
        raise CoqError("a part with factored terms has others too, or listed sequences; formal/ expects factored terms alone")
    return f"(Leaf {_list(_grid(term) for term in leaf['terms'])})" if leaf["terms"] else "GivenUp"


def _listing(leaf: Json, q: int) -> str:
    return _list((_list(x, "%uint63") for x in sorted(leaf["listed"]) if x[-1] == q), "%list")


def _lower_leaf(leaf: Json, q: int) -> str:
    return f"(Leaf ({_list(map(_pair_term, leaf['terms']))}, {_listing(leaf, q)}))"


def _spoiling(term: Json) -> str:
    if _kind(term) == "spoilers":
        (o, p), (n1, n2) = term["spoilers"], term["factors"]
        return f"(Two {o} {p} {n1} {n2}, {_grid(term)})"
    return f"(One {term['spoiler']}, {_grid(term)})"


def _overlap(term: Json) -> str:
    """What a spoiler and one of some others both spoil."""
    one, other = term["both"]
    if _kind(one) != "joint" or len(one["joint"]) != 1 or _kind(other) != "joint":
        raise CoqError("formal/ expects overlaps of one spoiler and of some others, two joint terms, beside several spoilers")
    return f"Build_overlap {one['weights'][0]} ({_grid(one)}) {_weighted(other)} ({_grid(other)}) {term['reach']}"


def _several(leaf: Json) -> str:
    """Several spoilers, each with its overlaps."""
    spoilers = [term for term in leaf["terms"] if _kind(term) == "spoiler"]
    overlaps = [term for term in leaf["terms"] if _kind(term) == "both"]
    if leaf["listed"] or leaf["terms"] != [*spoilers, *overlaps] or not spoilers:
        raise CoqError("formal/ expects one term of spoilers in a leaf of the upper bound, or several single ones and then their overlaps")
    of_each: dict[int, list[str]] = {term["spoiler"]: [] for term in spoilers}
    for term in overlaps:
        text, o = _overlap(term), term["both"][0]["joint"][0]
        if o not in of_each:
            raise CoqError(f"an overlap is about output {o}, which is none of the spoilers")
        of_each[o].append(text)
    return f"(Leaf (Several {_list(f'({o}, {_grid(term)}, {_list(of_each[o])})' for term in spoilers for o in [term['spoiler']])}))"


def _upper_leaf(leaf: Json, q: int) -> str:
    if len(leaf["terms"]) > 1:
        return _several(leaf)
    if any(_kind(term) not in ("spoiler", "spoilers") for term in leaf["terms"]):
        raise CoqError("formal/ expects terms of spoilers in the leaves of the upper bound")
    spoilers = [f"(Some {_spoiling(term)})" for term in leaf["terms"]]
    return f"(Leaf (Upto {(spoilers or ['None'])[0]} {_listing(leaf, q)}))"


def _tree(tree: Json, leaf: Callable[[Json], str]) -> str:
    if tree is None:
        return "GivenUp"
    if "token" in tree:
        return f"(Split {tree['token']} {tree['at_least']} {_tree(tree['more'], leaf)} {_tree(tree['fewer'], leaf)})"
    return leaf(tree)


def _terms(tree: Json) -> Iterator[Json]:
    if tree is not None:
        yield from (*_terms(tree["more"]), *_terms(tree["fewer"])) if "token" in tree else tree["terms"]


def _parts(part: Json, side: str, alone: bool) -> Iterator[str]:
    """The parts of formal/: a pool of queries with factored terms, or a single query."""
    tree, queries = part["tree"], part["queries"]
    if side == "lower" and any(_kind(term) == "factored" for term in _terms(tree)):
        for pool in [[q] for q in queries] if alone else [queries]:
            yield f"Build_part {_list(pool)} (Pool {_tree(tree, _pool_leaf)})"
        return
    name, leaf = ("Lower", _lower_leaf) if side == "lower" else ("Upper", _upper_leaf)
    for q in queries:
        yield f"Build_part [{q}] ({name} {_tree(tree, partial(leaf, q=q))})"


def _automaton(following: list[list[int]], start: int, automaton: checker.Automaton) -> tuple[str, str]:
    """The states of a task as states of the automaton of a label, and that automaton with its first state 0."""
    order = [automaton.first, *(s for s in range(len(automaton.moves)) if s != automaton.first)]
    number = {s: i for i, s in enumerate(order)}
    image: dict[int, int | None] = {start: automaton.first}
    waiting = [start]
    while waiting:
        s = waiting.pop()
        for t, z in enumerate(following[s]):
            if z not in image:
                at = image[s]
                image[z] = None if at is None else automaton.moves[at].get(t)
                waiting.append(z)

    def named(s: int) -> str:
        at = image.get(s)
        return "Unreached" if s not in image else "Dead" if at is None else f"At {number[at]}"

    tokens = range(len(following[0]))
    moves = (_list(f"Some {number[row[t]]}" if t in row else "None" for t in tokens) for row in (automaton.moves[s] for s in order))
    accepting = _list(str(automaton.accepting[s]).lower() for s in order)
    return _list(map(named, [start, *(s for s in range(len(following)) if s != start)])), f"Build_dfa {_list(moves)} {accepting}"


def _task(task: Json, v: int, out: int) -> str:
    """A sequence without a label has one that is no output, so that nothing of it is right."""
    if task == "max":
        return f"max_task {v}"
    order = [task["start"], *(s for s in range(len(task["labels"])) if s != task["start"])]
    number = {s: i for i, s in enumerate(order)}
    following = (_list(number[z] for z in task["following"][s]) for s in order)
    return f"Build_task {_list(following)} {_list(out if task['labels'][s] < 0 else task['labels'][s] for s in order)}"


def _groups(certificate: Json, side: str, v: int, read: checker.Question) -> list[str]:
    """The definitions of the groups of a side, one for each label, and of the list of them."""
    task, factors = certificate["question"]["task"], certificate["factors"]
    known = {each["label"]: each for each in (factors or {"labels": []})["labels"]}
    groups: dict[int, list[str]] = {}
    for part in certificate[side] or ():
        m = part["label"]
        alone = known.get(m, {}).get("relative_to") is None
        groups.setdefault(m, []).extend(_parts(part, side, alone))
    texts = []
    for m, parts in groups.items():
        hints = known.get(m, {"relative_to": None, "weights": None})
        relative = "None" if hints["relative_to"] is None else f"(Some {hints['relative_to']})"
        if task == "max":
            states, dfa = f"max_map {v} {m}", f"max_dfa {v} {m}"
        elif m in read.automata:
            states, dfa = _automaton(task["following"], task["start"], read.automata[m])
        else:
            raise checker.RejectedError(f"no sequence has the label {m}")
        texts.append(
            f"Definition {side}_{m} : group := Build_group {m} ({states}) ({dfa}) {relative} {_list(hints['weights'] or (), '%Z')}\n"
            f"  [{(';' + chr(10) + '   ').join(parts)}]."
        )
    names = [f"{side}_{m}" for m in groups]
    if side == "upper" and certificate["claim"]["correct_at_most"] is not None and task != "max" and min(task["labels"]) < 0:
        names.append("upper_unlabelled")
        texts.append(_unlabelled(len(task["labels"]), v))
    return [*texts, f"Definition {side} : list group := {_list(names)}."]


def _unlabelled(states: int, v: int) -> str:
    """The group of the sequences without a label: the total of Coq has them too, and none of them is right."""
    label = "n_out the_network"
    return (
        f"Definition upper_unlabelled : group := Build_group ({label}) (map At (seq 0 {states})) (task_dfa the_task ({label})) None []\n"
        f"  [Build_part (seq 0 {v}) (Upper GivenUp)]."
    )


def _moved(factors: Json, name: str, size: int) -> str:
    """A vector of the factors. Any is sound; of a model that was read as a wider one, the coordinates of its stream are the first."""
    if factors is None:
        return f"zeros {size}"
    return _tensor(checker.Exact([factors[name]["entries"][:size]], factors[name]["scale"]))


def _dyadic(number: tuple[int, int]) -> str:
    return f"(Number {_number(number[0])} {number[1]})"


def _require_known(network: checker.Network) -> None:
    """Raise unless formal/ knows networks of this kind."""
    said = network.settings or dict.fromkeys(("norm_1", "norm_2", "norm_final", "act", "rotary", "alibi", "post_norm"))
    sizes = network.sizes()
    unknown = {
        "several heads": sizes.get("n_heads", 1) > 1,
        "an MLP": said["act"] is not None,
        "norms before an MLP, or on the stream": said["norm_2"] is not None or bool(said["post_norm"]),
        "rotary positions or ALiBi": said["rotary"] is not None or said["alibi"] is not None,
    }
    reasons = [what for what, found in unknown.items() if found]
    if not reasons and network.settings is not None and not checker.is_affine(network):
        reasons = ["a norm at the end that adds different numbers to the outputs"]
    if reasons:
        raise CoqError(f"formal/ knows one head, biases and norms, learned positions; it does not know {' and '.join(reasons)}")


def _network(network: checker.Network) -> Iterator[str]:
    """The definitions of a network: its tensors as they are, zeros for those that it does not have."""
    sizes, raw = network.sizes(), network.tensors
    k, d, h, out = (sizes[axis] for axis in ("n_ctx", "d_model", "d_head", "d_vocab_out"))
    absent = {name: f"zeros {size}" for name, size in zip(TENSORS[-5:], (h, h, h, d, out), strict=True)}
    absent["W_pos"] = f"{{| entries := repeat (repeat 0%Z {d}) {k}; bits := 0 |}}"
    for name in TENSORS:
        text = _tensor(checker.exact(name, *raw[name])) if name in raw else absent[name]
        yield f"Definition the_{name} : tensor := {text}."
    for name in NORMS:
        norm = None if network.settings is None else network.settings[name]
        if norm is None:
            yield f"Definition the_{name} : norm := Unchanged."
            continue
        gain, bias = (
            _tensor(checker.exact(each, *raw[each])) if each in raw else f"({otherwise} {d})"
            for each, otherwise in ((f"{name}.weight", "ones"), (f"{name}.bias", "zeros"))
        )
        kind = {"LN": "LayerNorm", "RMS": "RMSNorm"}[norm[0]]
        yield f"Definition the_{name} : norm := {kind} {_dyadic(checker.dyadic(norm[1]))} {gain} {bias}."
    over, under = network.divisor.split("/")
    yield f"Definition the_network : network := Build_network {d} {h} {k} {out} {over} {under} the_norm_1 the_norm_final"
    yield f"  {' '.join('the_' + name for name in TENSORS)}."


def _require_numbers(found: Json, where: str) -> None:
    """Raise unless there are only whole numbers, yes and no in it: nobody else writes text into a file for Coq."""
    if isinstance(found, dict | list):
        for each in found.values() if isinstance(found, dict) else found:
            _require_numbers(each, where)
    elif found is not None and not isinstance(found, int):
        raise checker.MalformedError(f"{where}: {found!r:.40} where a whole number was expected")


def translate(certificate: Json, network: checker.Network) -> str:
    """A Coq file whose theorem `accuracy` is what the certificate claims. The network is read from its tensors."""
    for name in ("lower", "upper", "factors"):
        _require_numbers(certificate[name], name)
    asked = certificate["question"]
    _require_numbers([None if asked["task"] == "max" else asked["task"], asked["masses"]], "question")
    _require_known(network)
    question, factors = certificate["question"], certificate["factors"]
    if question["semantics"] != checker.REAL:
        raise CoqError("the certificate is about float32 arithmetic; formal/ is about the real numbers")
    sizes = network.sizes()
    v, k, out = sizes["d_vocab"], sizes["n_ctx"], sizes["d_vocab_out"]
    centre = _moved(factors if "W_pos" in network.tensors else None, "centre", sizes["d_model"])
    moved = {"centre": centre, "mu": _moved(factors, "mu", out)}
    read = checker.read_question(question, v, k, checker.Meter(checker.NO_LIMIT))
    if read.margin[0] and network.settings is not None and network.settings["norm_final"] is not None:
        raise CoqError("the certificate asks by how much the right output wins, behind a norm at the end; formal/ does not know that")
    masses = f"uniform {v} {k}" if question["masses"] is None else _list(map(_list, question["masses"]), "%Z")
    claims = (certificate["claim"][name] for name in ("correct_at_least", "correct_at_most"))
    least, most = (None if claim is None else int(claim) for claim in claims)
    upper = "None" if most is None else f"(Some {most}%Z)"
    margin = _dyadic(read.margin) if read.margin[0] else "no_margin"
    mass = f"right_mass the_network {v} the_task the_masses {margin}"
    lines = [
        "From Coq Require Import ZArith List.",
        "From Coq Require Uint63.",
        "From CompactProofs Require Import Words Automaton Count Model Statement Enclosure Harms Leaves Pools Pairs Checker.",
        "Import ListNotations.",
        "Local Open Scope nat_scope.",
        *_network(network),
        *(f"Definition the_{name} : tensor := {text}." for name, text in moved.items()),
        f"Definition the_task : task := {_task(question['task'], v, out)}.",
        f"Definition the_masses : list (list Z) := {masses}.",
        "Module Parts.",  # what is imported here is not imported outside, where axioms are to have their long names
        "Import Uint63.",
        *_groups(certificate, "lower", v, read),
        *_groups(certificate, "upper", v, read),
        "End Parts.",
        "Import Parts.",
        f"Theorem accuracy : ({least} <= {mass}{'' if most is None else f' <= {most}'})%Z.",
        "Proof.",
        f"  assert (H : check the_network {v} the_task the_masses {margin} the_centre the_mu {least} {upper} lower upper = true).",
        "  { vm_cast_no_check (@eq_refl bool true). }",
        f"  apply check_sound in H. {'apply H' if most is None else 'exact H'}.",
        "Qed.",
    ]
    return "\n".join(lines) + "\n"


def library() -> Path:
    """Where formal/ is, compiled. The environment variable COMPACTPROOFS_FORMAL names another place."""
    if shutil.which("coqc") is None:
        raise CoqError(f"coqc was not found. On Debian: apt-get install {' '.join(PACKAGES)}")
    place = Path(os.environ.get("COMPACTPROOFS_FORMAL", Path(__file__).parents[3] / "formal"))
    if not (place / "Checker.v").is_file():
        raise CoqError("formal/ was not found; it is in the repository. Set COMPACTPROOFS_FORMAL to its path")
    if not (place / "Checker.vo").is_file():
        raise CoqError(f"{place} is not compiled: run 'make formal' first")
    return place


def printed_axioms(printed: str) -> tuple[str, ...]:
    """The names of the axioms that Coq has printed for one theorem."""
    _, _, axioms = printed.partition("Axioms:\n")
    lines = (line for line in axioms.splitlines() if line and not line[0].isspace() and line[0] != ":")
    return tuple(sorted({line.split(" ")[0].rstrip(":") for line in lines}))


def run(text: str, seconds: float | None = None, axioms: bool = True) -> Proved:
    """Has the kernel check a translated certificate, and print the axioms unless they are not wanted, which saves some seconds."""
    place = library()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "Certificate.v"
        path.write_text(text + "Print Assumptions accuracy.\n" * axioms)
        started = time.perf_counter()
        command = ["coqc", "-q", "-Q", str(place), "CompactProofs", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds, cwd=folder)  # noqa: S603
        elapsed = time.perf_counter() - started
    found = re.search(r"^Theorem accuracy : (.*)\.$", text, re.MULTILINE)
    theorem = found.group(1) if found else ""
    return Proved(done.returncode == 0, theorem, printed_axioms(done.stdout), elapsed, done.stderr.strip())


def check_coq(certificate: bytes, network: checker.Network, written: checker.Network | None = None) -> Proved:
    """The kernel's verdict on what a certificate claims. The certificate must be about this network, by its SHA-256; the theorem is about
    the network as its file has it, with biases, where that is another."""
    read = checker.parse(certificate, "the certificate")
    if not isinstance(read, dict) or read.get("version") != checker.VERSION or "positions" in read:
        raise CoqError(f"not a certificate of version {checker.VERSION} about one position")
    try:
        checker.check_model(read["model"], network)
        return run(translate(read, written or network))
    except checker.RejectedError as error:
        return Proved(False, "", (), 0.0, str(error))
    except (checker.MalformedError, KeyError, TypeError, ValueError) as error:
        raise CoqError(f"the certificate is malformed: {error!s:.200}") from None
