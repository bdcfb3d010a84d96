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
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from compactproofs import checker
from compactproofs.errors import CompactProofsError

PACKAGES = ("coq", "libcoq-interval", "libcoq-flocq", "libcoq-coquelicot", "libcoq-mathcomp-ssreflect")
TENSORS = ("W_E", "W_pos", "W_Q", "W_K", "W_V", "W_O", "W_U")
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


def _tensor(exact: checker.Exact) -> str:
    rows = ";\n  ".join(_list(map(_number, row)) for row in exact.rows)
    return f"{{| entries := [{rows}]%Z; bits := {exact.scale} |}}"


def _grid(term: Json) -> str:
    if term.get("factored") is not True:
        raise CoqError("the certificate has terms that are not factored; formal/ checks factored ones only, as of threshold-cubic-pooled")
    mantissa, exponent = term["step"]
    return f"Build_grid {mantissa} {_number(exponent)} {term['depth']} {_list(term['offsets'], '%Z')}"


def _tree(tree: Json) -> str:
    if tree is None:
        return "GivenUp"
    if "token" in tree:
        return f"(Split {tree['token']} {tree['at_least']} {_tree(tree['more'])} {_tree(tree['fewer'])})"
    return f"(Leaf {_list(_grid(term) for term in tree['terms'])})" if tree["terms"] else "GivenUp"


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


def translate(certificate: Json, network: checker.Network) -> str:
    """A Coq file whose theorem `accuracy` is the lower bound that the certificate claims. The network is read from its tensors."""
    if network.settings is not None or set(network.tensors) != set(TENSORS):
        raise CoqError("formal/ knows networks of the seven tensors only: one head, no biases, no norms")
    question, factors = certificate["question"], certificate["factors"]
    if question["semantics"] != checker.REAL:
        raise CoqError("the certificate is about float32 arithmetic; formal/ is about the real numbers")
    if factors is None:
        raise CoqError("the certificate has no factored terms; formal/ checks factored ones only, as of threshold-cubic-pooled")
    if question["task"] != "max" and min(question["task"]["labels"]) < 0:
        raise CoqError("the certificate is about a region: there are sequences without a label, which formal/ does not know")
    sizes = network.sizes()
    v, k = sizes["d_vocab"], sizes["n_ctx"]
    over, under = network.divisor.split("/")
    exact = {name: checker.exact(name, *network.tensors[name]) for name in TENSORS}
    known = {each["label"]: each for each in factors["labels"]}
    read = checker.read_question(question, v, k, checker.Meter(checker.NO_LIMIT))
    is_max = question["task"] == "max"
    groups: dict[int, list[str]] = {}
    for part in certificate["lower"]:
        alone = known.get(part["label"], {}).get("relative_to") is None
        pools = [[q] for q in part["queries"]] if alone else [part["queries"]]
        groups.setdefault(part["label"], []).extend(f"Build_part {_list(pool)} {_tree(part['tree'])}" for pool in pools)
    texts = []
    for m, parts in groups.items():
        hints = known.get(m, {"relative_to": None, "weights": None})
        relative = "None" if hints["relative_to"] is None else f"(Some {hints['relative_to']})"
        if is_max:
            states, dfa = f"max_map {v} {m}", f"max_dfa {v} {m}"
        else:
            states, dfa = _automaton(question["task"]["following"], question["task"]["start"], read.automata[m])
        texts.append(
            f"Definition group_{m} : group := Build_group {m} ({states}) ({dfa}) {relative} {_list(hints['weights'] or (), '%Z')}\n"
            f"  [{(';' + chr(10) + '   ').join(parts)}]."
        )
    if is_max:
        task = f"max_task {v}"
    else:
        first = question["task"]["start"]
        order = [first, *(s for s in range(len(question["task"]["labels"])) if s != first)]
        number = {s: i for i, s in enumerate(order)}
        following = (_list(number[z] for z in question["task"]["following"][s]) for s in order)
        task = f"Build_task {_list(following)} {_list(question['task']['labels'][s] for s in order)}"
    masses = f"uniform {v} {k}" if question["masses"] is None else _list(map(_list, question["masses"]), "%Z")
    moved = {name: checker.Exact([factors[name]["entries"]], factors[name]["scale"]) for name in ("centre", "mu")}
    claim = certificate["claim"]["correct_at_least"]
    lines = [
        "From Coq Require Import ZArith List.",
        "From CompactProofs Require Import Words Automaton Count Model Enclosure Harms Checker.",
        "Import ListNotations.",
        *(f"Definition the_{name} : tensor := {_tensor(exact[name])}." for name in TENSORS),
        f"Definition the_network : network := Build_network {sizes['d_model']} {sizes['d_head']} {k} {sizes['d_vocab_out']} {over} {under}",
        f"  {' '.join('the_' + name for name in TENSORS)}.",
        *(f"Definition the_{name} : tensor := {_tensor(moved[name])}." for name in moved),
        f"Definition the_task : task := {task}.",
        f"Definition the_masses : list (list Z) := {masses}.",
        *texts,
        f"Definition groups : list group := {_list(f'group_{m}' for m in groups)}.",
        f"Theorem accuracy : ({claim} <= right_mass the_network {v} the_task the_masses)%Z.",
        "Proof.",
        f"  apply (check_sound the_network {v} the_task the_masses the_centre the_mu {claim} groups).",
        "  vm_cast_no_check (@eq_refl bool true).",
        "Qed.",
        "Check accuracy.",
        "Print Assumptions accuracy.",
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


def run(text: str, seconds: float | None = None) -> Proved:
    """Has the kernel check a translated certificate."""
    place = library()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "Certificate.v"
        path.write_text(text)
        started = time.perf_counter()
        command = ["coqc", "-q", "-Q", str(place), "CompactProofs", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds, cwd=folder)  # noqa: S603
        elapsed = time.perf_counter() - started
    found = re.search(r"^Theorem accuracy : (.*)\.$", text, re.MULTILINE)
    theorem = found.group(1) if found else ""
    _, _, axioms = done.stdout.partition("Axioms:\n")
    names = tuple(
        sorted({line.split(" ")[0].rstrip(":") for line in axioms.splitlines() if line and not line[0].isspace() and line[0] != ":"})
    )
    return Proved(done.returncode == 0, theorem, names, elapsed, done.stderr.strip())


def check_coq(certificate: bytes, network: checker.Network) -> Proved:
    """The kernel's verdict on the lower bound of a certificate. The certificate must be about this network, by its SHA-256."""
    read = checker.parse(certificate, "the certificate")
    if not isinstance(read, dict) or read.get("version") != checker.VERSION or "positions" in read:
        raise CoqError(f"not a certificate of version {checker.VERSION} about one position")
    try:
        checker.check_model(read["model"], network)
        return run(translate(read, network))
    except checker.RejectedError as error:
        return Proved(False, "", (), 0.0, str(error))
    except (checker.MalformedError, KeyError, TypeError, ValueError) as error:
        raise CoqError(f"the certificate is malformed: {error!s:.200}") from None
