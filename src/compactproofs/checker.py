"""Check a certificate: is what it says about a small transformer a theorem?

This file stands alone. It needs Python 3.11 and nothing else, it imports nothing of the package it comes with, and it computes with
integers only: the float32 weights are integers times a power of two, so are all their products, and exponentials lie between two
integers (`exp_minus`). Everything in a certificate is untrusted: a witness can make a check fail, it cannot make a wrong claim pass.

    python -m compactproofs.checker CERTIFICATE MODEL.safetensors [--n-heads 1] [--normalization none] [--work N]

Exit code 0 accepted, 1 rejected, 2 malformed, 3 internal error, 130 interrupted.

The network reads tokens x_0 .. x_{k-1}; the last one is the query q. With h_i = W_E[x_i] + W_pos[i],

    attention_i proportional to exp(h_q W_Q . h_i W_K / sqrt(score_divisor_squared)),
    logits = (sum_i attention_i h_i W_V W_O + h_q) W_U,

the claim is: for at least (at most) so many of the d_vocab^k sequences, the output `max(x)` has a strictly larger logit than any other.
Write m for that label, A[t] b[i] for the attention of token t at position i, up to a factor that depends on q only, and

    B_o = EVOU[t][o] + PVOU[i][o] + EU[q][o],        G_o(i, t) = A[t] b[i] (B_o - B_m).

Attention is positive, so logit[o] - logit[m] has the sign of sum_i G_o(i, x_i): the sequence is right exactly if all these sums, o != m,
are negative. Each rule below bounds them. Names ending in `_low` and `_high` are lower and upper bounds.

The certificate format and the proofs in full are in docs/certificate-format.md.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import partial
from itertools import accumulate, combinations, product, repeat
from math import comb, isqrt, log10
from operator import add, mul, sub
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

Row = list[int]
Rows = list[Row]
Harms = list[dict[int, int]]
"""[i][t]: a number for token t at position i; at the last position only for queries"""
Json = Any

FORMAT, VERSION, THEOREM = "compactproofs-certificate", 1, "correct-sequences-1"
REAL, FLOAT32 = "real", "float32-any-order"
ERROR_MODEL = "float32-1"
MOST_BYTES = 1 << 26
"""Of a certificate or a model file."""
MOST_WORK = 60 * 10**9
"""Units of work that a check may take unless more is allowed. A unit is about a nanosecond: a minute in all."""
WORK_PER_BYTE = 64
"""For so many units of work that are allowed, tables and histograms may take a byte of memory: a gigabyte in all."""
LARGE = 1 << 4096
"""Witness integers stay below this."""


class Verdict(Enum):
    """What became of a check. The value is the exit code."""

    ACCEPTED = 0
    REJECTED = 1
    MALFORMED = 2
    INTERNAL_ERROR = 3


class Checked(NamedTuple):
    """A verdict and why."""

    verdict: Verdict
    reason: str
    correct_at_least: int | None = None
    correct_at_most: int | None = None
    total: int | None = None
    semantics: str | None = None
    assumptions: tuple[str, ...] = ()
    """What was assumed in reading the model for this check."""

    @property
    def accepted(self) -> bool:
        return self.verdict is Verdict.ACCEPTED


class MalformedError(Exception):
    """The file is not a certificate, or not a model."""


class RejectedError(Exception):
    """The certificate does not prove what it claims."""


# ---------------------------------------------------------------- reading: sizes and types are checked before anything is computed


def well_formed(condition: bool, message: str) -> None:
    """Unless the condition holds, the file is malformed."""
    if not condition:
        raise MalformedError(message)


def holds(condition: bool, message: str) -> None:
    """Unless the condition holds, the certificate is rejected."""
    if not condition:
        raise RejectedError(message)


def fields(value: Json, names: str, where: str) -> list[Json]:
    """The values of exactly these fields, in this order."""
    well_formed(isinstance(value, dict), f"{where} is not an object")
    expected = names.split()
    well_formed(sorted(value) == sorted(expected), f"{where} has the fields {sorted(value)!r:.200}; expected {sorted(expected)}")
    return [value[name] for name in expected]


def items(value: Json, where: str, length: int | None = None) -> list[Json]:
    """The entries of a list, of the given length if there is one."""
    well_formed(isinstance(value, list), f"{where} is not a list")
    well_formed(length is None or len(value) == length, f"{where} has {len(value)} entries; expected {length}")
    return list(value)


def integer(value: Json, low: int, high: int, where: str) -> int:
    """An integer between low and high, both included."""
    return integers([value], low, high, where)[0]


def integers(value: Json, low: int, high: int, where: str, length: int | None = None) -> Row:
    """A list of integers between low and high, both included."""
    found = items(value, where, length)
    well_formed(set(map(type, found)) <= {int}, f"{where}: an entry is not an integer")
    holds(not found or (low <= min(found) and max(found) <= high), f"{where}: an integer is out of range")
    return found


def increasing(value: Json, low: int, high: int, where: str) -> Row:
    """Different integers in ascending order."""
    found = integers(value, low, high, where)
    holds(all(map(int.__lt__, found, found[1:])), f"{where} is not strictly increasing")
    return found


def natural(text: Json, where: str) -> int:
    """An integer written as a decimal string."""
    good = isinstance(text, str) and 0 < len(text) <= 4200 and text.isascii() and text.isdigit() and (text == "0" or text[0] != "0")
    well_formed(good, f"{where} is not a natural number in decimal")
    return int(text)


def parse(data: bytes, what: str, floats: bool = False) -> Json:
    """JSON without duplicate names, NaN, or anything after its end; floating-point numbers are refused, or kept as they are written."""

    def unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        well_formed(len({name for name, _ in pairs}) == len(pairs), f"{what}: a field occurs twice in one object")
        return dict(pairs)

    def refuse(text: str) -> Json:
        raise MalformedError(f"{what}: the number {text:.40} is not an integer")

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=unique, parse_float=str if floats else refuse, parse_constant=refuse)
    except RecursionError:
        raise MalformedError(f"{what} is nested too deeply") from None
    except ValueError as error:
        raise MalformedError(f"{what} is not valid JSON: {error!s:.200}") from None


def read_bytes(path: str, what: str) -> bytes:
    """A file's content, if it is not too large."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise MalformedError(f"cannot read the {what} {path}: {error.strerror}") from None
    well_formed(len(data) <= MOST_BYTES, f"the {what} {path} has more than {MOST_BYTES} bytes")
    return data


# ---------------------------------------------------------------- the network: seven tensors of float32 numbers

NAMES = ("W_E", "W_pos", "W_Q", "W_K", "W_V", "W_O", "W_U")
AXES = ("d_vocab d_model", "n_ctx d_model", "d_model d_head", "d_model d_head", "d_model d_head", "d_head d_model", "d_model d_vocab_out")
METADATA = {"n_layers": "1", "n_heads": "1", "attn_only": "true", "normalization_type": "none"}
"""What the configuration may say of the architecture: the only one that this checker knows."""
FREE_METADATA = ("training", "format", "task", "producer", "seed", "name")


class Network(NamedTuple):
    """Raw tensors: name -> (rows, columns, little-endian float32 bytes in row-major order); and the divisor of scores if it is known."""

    tensors: dict[str, tuple[int, int, bytes]]
    divisor: str
    """`n/d` in lowest terms: scores are divided by sqrt(n/d)"""
    assumptions: tuple[str, ...] = ()
    """What was assumed in reading the file"""

    def sizes(self) -> dict[str, int]:
        """The size of every axis, on which all tensors must agree."""
        sizes: dict[str, int] = {}
        for name, axes in zip(NAMES, AXES, strict=True):
            for axis, size in zip(axes.split(), self.tensors[name][:2], strict=True):
                well_formed(sizes.setdefault(axis, size) == size, f"the model's tensors disagree about {axis}")
        return sizes

    def sha256(self) -> str:
        """Of the canonical bytes: the shapes and the divisor as text, then the tensors."""
        lines = ["compactproofs-weights-1", *(f"{name} {r} {c}" for name, (r, c, _) in self.tensors.items())]
        digest = hashlib.sha256("\n".join([*lines, f"score_divisor_squared {self.divisor}", ""]).encode())
        for _, _, data in self.tensors.values():
            digest.update(data)
        return digest.hexdigest()


def read_safetensors(data: bytes, config: bytes | None = None, told: Mapping[str, str] = MappingProxyType({})) -> Network:
    """Read a model file: eight bytes that give the length of a JSON header, the header, then the tensors' bytes, without gaps.

    `config` is the content of config.json beside the file, and `told` what the user says of fields of the configuration. The rules are
    those of docs/reference/model-files.md, restricted to plain names.
    """
    well_formed(len(data) >= 8, "the model file is shorter than a safetensors header")
    length = int.from_bytes(data[:8], "little")
    well_formed(length <= min(len(data) - 8, 1 << 24), "the model's safetensors header is longer than the file, or than 16 MiB")
    header = parse(data[8 : 8 + length], "the model's safetensors header")
    well_formed(isinstance(header, dict), "the model's safetensors header is not an object")
    metadata = header.pop("__metadata__", {})
    well_formed(isinstance(metadata, dict), "the model's metadata is not an object")
    well_formed(all(isinstance(value, str) for value in metadata.values()), "the model's metadata has a value that is not a string")
    body, tensors, ranges = data[8 + length :], {}, []
    well_formed(
        set(header) == set(NAMES),
        f"the model has the tensors {sorted(header)!r:.200}; expected {sorted(NAMES)}. "
        "`compactproofs check` reads other layouts too, and `compactproofs.save` writes this one.",
    )
    for name in NAMES:
        dtype, shape, ends = fields(header[name], "dtype shape data_offsets", f"tensor {name}")
        well_formed(dtype == "F32", f"tensor {name} has type {dtype!r:.20}; expected F32")
        shape, (first, end) = integers(shape, -LARGE, LARGE, f"shape of {name}"), integers(ends, -LARGE, LARGE, f"offsets of {name}", 2)
        shape = shape[1:] if len(shape) == 3 and shape[0] == 1 else shape
        well_formed(len(shape) == 2 and min(shape) > 0, f"tensor {name} has the shape {shape!r:.60}; expected two positive sizes")
        well_formed(0 <= first <= end <= len(body), f"tensor {name}: its bytes lie outside the file, which may be truncated")
        well_formed(end - first == 4 * shape[0] * shape[1], f"tensor {name}: its bytes do not fit its shape")
        tensors[name] = (shape[0], shape[1], body[first:end])
        ranges.append((first, end))
    ranges.sort()
    whole = [0, *(end for _, end in ranges)] == [*(first for first, _ in ranges), len(body)]
    well_formed(whole, "the model's tensors overlap, or bytes of the file belong to no tensor")
    return configured(tensors, metadata, config, told)


def configured(tensors: dict[str, tuple[int, int, bytes]], metadata: Json, config: bytes | None, told: Mapping[str, str]) -> Network:
    """The network, with what its configuration says: metadata, config.json and the user may not contradict each other."""
    beside = {} if config is None else parse(config, "config.json", floats=True)
    well_formed(isinstance(beside, dict), "config.json is not an object")
    words = {True: "true", False: "false", None: "none"}
    said: dict[str, str] = dict(metadata)
    for source in (beside, told):
        for name, value in source.items():
            text = value if isinstance(value, str) else words[value] if value is None or isinstance(value, bool) else str(value)
            same = name not in said or said[name].lower() == text.lower()
            well_formed(same, f"two sources say {name:.40}={said.get(name, '')!r:.40} and {text!r:.40}")
            said.setdefault(name, text)
    missing = [name for name in ("n_heads", "normalization_type") if name not in said]
    well_formed(
        not missing,
        f"neither the tensors nor a configuration say {' and '.join(missing)}; if there is one head and no normalisation, say so: "
        "--n-heads 1 --normalization none",
    )
    d_head = tensors["W_Q"][1]
    divisor, about_scale = divisor_of(said.get("attn_scale"), d_head)
    network = Network(tensors, divisor)
    expected = {**METADATA, **{size: str(number) for size, number in network.sizes().items()}}
    for name, value in said.items():
        known = name in (*FREE_METADATA, "attn_scale") or (name in expected and value.lower() == expected[name])
        well_formed(known, f"the configuration says {name:.40}={value!r:.40}, which is not supported here; `compactproofs check` may")
    heard = {"n_heads": "one attention head", "normalization_type": "no normalisation"}
    assumptions = [
        f"{words}, because the user said so" for name, words in heard.items() if name in told and name not in {**metadata, **beside}
    ]
    if not metadata and not beside:
        assumptions.append(
            "no config found: one layer, attention only, no soft caps, the last position sees every position, learned positions"
        )
    else:
        unsaid = {name: words for name, words in (("n_layers", "one layer"), ("attn_only", "attention only")) if name not in said}
        assumptions += [f"config does not mention {', '.join(unsaid)}: assumed {', '.join(unsaid.values())}"] if unsaid else []
    return network._replace(assumptions=(*assumptions, *about_scale))


def divisor_of(attn_scale: str | None, d_head: int) -> tuple[str, list[str]]:
    """The squared divisor of scores, in lowest terms, and what was assumed about it.

    -1 stands for sqrt(d_head), and so does the float64 nearest to it; any other number stands for itself.
    """
    if attn_scale is None:
        return f"{d_head}/1", [f"config does not mention attn_scale: assumed attention scale 1/sqrt(d_head) = 1/sqrt({d_head})"]
    try:
        number = float(attn_scale)
        n, d = number.as_integer_ratio()
    except (ValueError, OverflowError):
        n, d = 0, 1
    well_formed(n > 0 or (n, d) == (-1, 1), f"the configuration says attn_scale={attn_scale!r:.40}; expected a positive number or -1")
    if n < 0 or n * n == d_head * d * d:
        return f"{d_head}/1", []
    # n / d = whole 2^exponent with 2^52 <= whole < 2^53 is the float64 nearest to sqrt(d_head) if that is within half a unit of it
    exponent = n.bit_length() - d.bit_length() - 53
    exponent += (n << max(-exponent, 0)) // (d << max(exponent, 0)) >= 1 << 53
    whole = (n << max(-exponent, 0)) // (d << max(exponent, 0))
    low, high, up = (2 * whole - 1) ** 2, (2 * whole + 1) ** 2, 2 * (1 - exponent)
    if up >= 0 and low < d_head << up < high:
        return f"{d_head}/1", [f"attn_scale={number!r} was read as the real number sqrt({d_head})"]
    return f"{n * n}/{d * d}", []


class Exact(NamedTuple):
    """A matrix of numbers rows[i][j] / 2^scale."""

    rows: Rows
    scale: int

    def at(self, scale: int) -> Rows:
        """The same numbers on a finer grid."""
        return [[x << (scale - self.scale) for x in row] for row in self.rows]

    @property
    def bits(self) -> int:
        """Of the largest number."""
        return max((abs(x).bit_length() for row in self.rows for x in row), default=0)

    def times(self, other: Exact, meter: Meter) -> Exact:
        """The product, if that is not too much work."""
        bits = max(self.bits, other.bits)
        meter.multiply(len(self.rows) * len(other.rows) * len(other.rows[0]), bits)
        meter.hold(len(self.rows) * len(other.rows[0]), 2 * bits)
        return self @ other

    def __matmul__(self, other: Exact) -> Exact:
        columns = list(zip(*other.rows, strict=True))
        return Exact([[sum(map(mul, row, column)) for column in columns] for row in self.rows], self.scale + other.scale)

    def transposed(self) -> Exact:
        """Rows for columns."""
        return Exact([list(column) for column in zip(*self.rows, strict=True)], self.scale)


def exact(name: str, rows: int, columns: int, data: bytes) -> Exact:
    """Float32 numbers as integers: sign, 8 bits of exponent, 23 bits of mantissa; every one is a multiple of 2^-149."""
    numbers = []
    for bits in struct.unpack(f"<{rows * columns}I", data):
        exponent, mantissa = bits >> 23 & 255, bits & 0x7FFFFF
        well_formed(exponent < 255, f"tensor {name} has an entry that is infinite or not a number")
        number = (mantissa | 0x800000) << (exponent - 1) if exponent else mantissa
        numbers.append(-number if bits >> 31 else number)
    common = 0
    for number in numbers:
        common |= number
    spare = min((common & -common).bit_length() - 1, 149) if common else 149
    return Exact([[x >> spare for x in numbers[r * columns : (r + 1) * columns]] for r in range(rows)], 149 - spare)


def exp_minus(y: int, scale: int, bits: int) -> tuple[int, int]:
    """Integers low <= 2^bits exp(-y / 2^scale) <= high, for y >= 0.

    Proof. If y / 2^scale >= bits, then 0 < exp(-y / 2^scale) < 2^-bits, as e > 2. Otherwise let z = y / 2^(scale + halvings), which is
    at most 2^-12, so exp(-y / 2^scale) = exp(-z)^(2^halvings).
    exp(-z) = sum_n (-1)^n z^n / n! alternates and its terms decrease, so it is at most every partial sum that ends with an even n, and at
    least that sum minus the n-th term (which is not less than the next). `term_low` and `term_high` enclose 2^work z^n / n!: each comes
    from the one before by multiplying with y, dividing by 2^(scale + halvings) and by n, rounded down or up. So `low` and `high`, which
    add low even terms and subtract high odd ones, or the other way round, enclose 2^work exp(-z) after the last line of the loop.
    Squaring keeps the enclosure: low^2 / 2^work rounded down, high^2 / 2^work rounded up, low being made non-negative first. QED
    """
    if y >= bits << scale:
        return 0, 1
    halvings = max(0, y.bit_length() - scale + 12)
    work, down = bits + halvings + 16, scale + halvings
    low = high = term_low = term_high = 1 << work
    n = 0
    while term_high > 1:
        for _ in range(2):
            n += 1
            term_low, term_high = (term_low * y >> down) // n, -((-term_high * y >> down) // n)
            low, high = (low - term_high, high - term_low) if n % 2 else (low + term_low, high + term_high)
    low = max(low - term_high, 0)
    for _ in range(halvings):
        low, high = low * low >> work, -(-high * high >> work)
    return low >> work - bits, -(-high >> work - bits)


class Places(NamedTuple):
    """Attention to the positions but the last: sums of the 0, 1, 2, ... smallest lower, and of the smallest upper bounds.

    The j-th smallest of numbers lies between the j-th smallest lower and the j-th smallest upper bound.
    """

    low: Row
    high: Row

    def smallest(self, n: int) -> tuple[int, int]:
        """Bounds of the sum of the n smallest."""
        return self.low[n], self.high[n]

    def largest(self, n: int) -> tuple[int, int]:
        """Bounds of the sum of the n largest."""
        return self.low[-1] - self.low[-1 - n], self.high[-1] - self.high[-1 - n]


class Meter:
    """How much work has been done, in units of about a nanosecond; there is a limit. The constants were measured."""

    def __init__(self, limit: int = MOST_WORK) -> None:
        self.limit, self.work, self.bytes = limit, 0, 0

    def spend(self, work: int) -> None:
        """So many units of work."""
        self.work += work
        holds(
            self.work <= self.limit,
            f"checking would take more than {self.limit} units of work (about a nanosecond each); allow more: --work N",
        )

    def hold(self, entries: int, bits: int) -> None:
        """A table of integers of so many bits each."""
        self.bytes += entries * (40 + bits // 8)
        self.momentarily(0)

    def momentarily(self, size: int) -> None:
        """So many bytes, besides the tables."""
        most = self.limit // WORK_PER_BYTE
        holds(
            self.bytes + size <= most, f"checking would take more than {most} bytes of memory; allow more: --work N, of which it has a 64th"
        )

    def add(self, operations: int, bits: int) -> None:
        """So many additions, shifts or comparisons of integers of so many bits."""
        self.spend(operations * (4096 + bits) // 28)

    def multiply(self, operations: int, bits: int) -> None:
        """So many products of two integers of so many bits, with what is done to them besides."""
        self.spend(operations * (150 + bits // 3 + bits * bits // 1000))


class Tables(NamedTuple):
    """What the rules compute with: values are exact integers over 2^scale, attention lies between integers over 2^bits."""

    v: int
    """tokens"""
    out: int
    """outputs"""
    k: int
    """positions"""
    scale: int
    bits: int
    EVOU: Rows
    PVOU: Rows
    EU: Rows
    own: Rows
    """[q][m]: EU[q][m], less the error of float32 arithmetic if the claim is about that"""
    A_low: Rows
    """[q][t]: attention to tokens, the largest of each query being about 1"""
    A_high: Rows
    b_low: Rows
    """[q][i]: the same for positions"""
    b_high: Rows
    places: list[Places]
    """[q]"""
    meter: Meter

    def sequences(self, m: int, q: int) -> int:
        """How many sequences have the label m and the query q <= m."""
        return int((m + 1) ** (self.k - 1) - (m ** (self.k - 1) if q < m else 0))

    def worst_position(self, m: int) -> Row:
        """[o]: the largest PVOU[i][o] - PVOU[i][m]"""
        return [max(column) for column in zip(*([x - row[m] for x in row] for row in self.PVOU), strict=True)]


def tables(network: Network, semantics: str, meter: Meter | None = None) -> Tables:
    """The exact tables of the network and enclosures of its attention."""
    meter = meter or Meter()
    W = {name: exact(name, *network.tensors[name]) for name in NAMES}
    k, scale = network.tensors["W_pos"][0], max(W["W_E"].scale, W["W_pos"].scale)
    E, position = Exact(W["W_E"].at(scale), scale), Exact(W["W_pos"].at(scale), scale)
    query = Exact([list(map(add, row, position.rows[-1])) for row in E.rows], scale)
    VOU = W["W_V"].times(W["W_O"].times(W["W_U"], meter), meter)
    EVOU, PVOU, EU = E.times(VOU, meter), position.times(VOU, meter), query.times(W["W_U"], meter)
    QK = query.times(W["W_Q"], meter).times(W["W_K"].transposed(), meter)
    EQKE, EQKP = QK.times(E.transposed(), meter), QK.times(position.transposed(), meter)
    n, d = map(int, network.divisor.split("/"))
    spread = max(max(row) - min(row) for row in [*EQKE.rows, *EQKP.rows])
    largest = isqrt((spread * spread * d >> 2 * EQKE.scale) // n) + 1
    bits = 64 + min(3 * largest // 2, 2000)
    A_low, A_high = attention(EQKE, n, d, bits, meter)
    b_low, b_high = attention(EQKP, n, d, bits, meter)
    common = max(EVOU.scale, EU.scale, 256)
    meter.hold(len(E.rows) * (len(EVOU.rows[0]) + len(EU.rows[0])), EVOU.bits + common)
    values = EVOU.at(common), PVOU.at(common), EU.at(common)
    own = values[2]
    if semantics == FLOAT32:
        error = float32_error(W, E, position, query, values, n, d, common)
        own = [list(map(sub, row, errors)) for row, errors in zip(own, error, strict=True)]
    ends = ([list(accumulate(sorted(row[:-1]), initial=0)) for row in rows] for rows in (b_low, b_high))
    places = [Places(low, high) for low, high in zip(*ends, strict=True)]
    return Tables(len(E.rows), len(EU.rows[0]), k, common, bits, *values, own, A_low, A_high, b_low, b_high, places, meter)


def attention(scores: Exact, n: int, d: int, bits: int, meter: Meter) -> tuple[Rows, Rows]:
    """Enclosures of 2^bits exp((scores - largest of the row) / sqrt(n / d))."""
    root_scale = bits + 256
    root = isqrt((d << 2 * root_scale) // n)  # sqrt(d / n) lies between root and root + 1, over 2^root_scale
    y_scale = bits + 16
    down = scores.scale + root_scale - y_scale
    meter.hold(2 * len(scores.rows) * len(scores.rows[0]), bits)
    low, high = [], []
    for row in scores.rows:
        top = max(row)
        ends = [((top - x) * root >> down, -(-(top - x) * (root + 1) >> down)) for x in row]
        visible = sum(least < bits << y_scale for least, _ in ends)
        meter.spend(2000 * len(row) + visible * (7000 + bits * bits // 4))
        enclosures = [exp_minus(least, y_scale, bits) for least, _ in ends]
        # exp(-y) >= exp(-least) (1 - (most - least)) for y between least and most
        low.append([max(a - (a * (y[1] - y[0]) >> y_scale) - 1, 0) for (a, _), y in zip(enclosures, ends, strict=True)])
        high.append([b for _, b in enclosures])
    return low, high


def float32_error(
    W: dict[str, Exact], E: Exact, position: Exact, query: Exact, values: tuple[Rows, Rows, Rows], n: int, d: int, scale: int
) -> Rows:
    """[q][m]: how far a float32 forward pass may move any difference logit[o] - logit[m], over sequences with query q and label m.

    The error model `float32-1`; u = 2^-24. The pass computes h_i = W_E[x_i] + W_pos[i]; h_q W_Q, h_i W_K, h_i W_V; the scores, divided by
    sqrt(n / d); the scores minus the largest of them (or not, if all are between -64 and 64); exp; the sum of these; their quotients, or
    products with its inverse; the average of values (or of h_i, and then W_V); W_O; the sum with h_q; W_U. Sums are taken in any order,
    in blocks or not, fused with products or not. Queries, keys or scores are divided by a constant, or both queries and keys by the root of
    it (or multiplied by the inverse); constants have a relative error of at most 4 u. An operation with the exact result r returns r + e,
    |e| <= u |r| + 2^-126, and may take operands below 2^-126 for 0: subnormal numbers may be kept or flushed. exp has a relative error of
    at most 8 u, or returns something between 0 and 2^-120 where less than 2^-120 is right.

    Proof. The majorant X of x is the same expression in absolute values, with 2^-30 added to each weight, h, query, key, value, probability
    and output of W_O. All are below 2^100, or 2^120 after scaling, so nothing overflows. Majorants of factors are at least 2^-50, those of
    products and sums at least 2^-80 (scaling by 2^-20 at worst). So underflow, 2^-126 in the result and in each operand, adds at most
    2 * 2^-76 + 3 * 2^-46 <= 2^-44 times the result's majorant, and an operation's error at most v = u + 2^-44 times it.
    Let g(a) = (1 + v)^a - 1; g(a) <= gamma(a + 1) if a < 2^20, where gamma(a) = a u / (1 - a u).
    Lemma. If |x' - x| <= g(a) X and |y' - y| <= g(b) Y, then fl(x' y') is within g(a + b + 1) X Y of x y, and fl(x' + y') within
    g(a + 1) X + g(b + 1) Y of x + y. For |x' y' - x y| <= g(a + b) X Y, and rounding adds at most v (1 + v)^(a + b) X Y; likewise for sums.
    So errors count roundings: a sum of N products adds N at most, in any order; an inexact factor adds its own.
    1. Scores s_i: 2 for h_q and h_i, 2 d_model for W_Q and W_K, d_head for the product, 2 * 6 for scaling (1 / (1 - 4 u) <= (1 + v)^5).
    With S = sqrt(d / n) max_t Q . K, scores are off by g(a) S, a = 2 d_model + d_head + 14; subtracting the maximum M, at most (1 + v)^a S
    itself, adds 2 v (1 + v)^a S, as much as two roundings. exp adds 9 u. So exponentials are exp(s_i - M + e_i) with |e_i| <= D =
    gamma(2 d_model + d_head + 17) S + 9 u: the odds of a set of positions change by a factor of at most exp(2 D), its probability
    by tanh(D / 2) <= D / 2 at most, and an average by D / 2 times the range of what is averaged. Where exp returns 0 to 2^-120 instead,
    exponentials move by 2^-120, and probabilities of sets by k 2^-119 <= 2^-110, as the largest is at least 1 - 8 u (without M, all
    exceed 2^-93). Raising 9 u to 16 u pays for that. Let p_i be the exact quotients of the computed exponentials.
    2. Their sum has k roundings (one for underflow), its inverse k + 1, since g(k)^2 <= v / (1 + v) for k <= 512, and the quotients at
    most k + 3: |p_i' - p_i| <= g(k + 3) (p_i + 2^-30).
    3. Logits, with p_i as factors: 1 for h_i, d_model for W_V, k + 3 for p_i, k for the average, d_head for W_O, 1 for adding h_q, d_model
    for W_U: gamma(2 d_model + d_head + 2 k + 6) sum_i (p_i + 2^-30) value[x_i][o], where the sum is at most (1 + 2^-21) max_t value[t][o],
    for which gamma takes one more. On the direct path 1 + 1 + d_model: gamma(d_model + 3) direct[q][o].
    The difference moves by (1.) for exact values and exact p_i, plus (3.) for both of its logits. QED
    """
    k, d_model, d_head = len(position.rows), len(W["W_Q"].rows), len(W["W_Q"].rows[0])
    sizes = 2 * d_model + d_head
    holds(k <= 512 and sizes < 1 << 19 and n <= d << 40 and d <= n << 40, "the model is outside the float32 error model")

    def padded(x: Exact) -> Exact:
        grid = max(x.scale, 30)
        return Exact([[abs(entry) + (1 << grid - 30) for entry in row] for row in x.at(grid)], grid)

    def gamma(times: int, x: int) -> int:
        return -(-times * x // ((1 << 24) - times))

    W_Q, W_K, W_V, W_O, W_U = (padded(W[name]) for name in NAMES[2:])
    ends = [(min(column), max(column)) for column in zip(*position.rows, strict=True)]
    h = padded(Exact([[max(x + high, -x - low) for x, (low, high) in zip(row, ends, strict=True)] for row in E.rows], E.scale))
    last = padded(query)
    Q, K, V = padded(last @ W_Q), padded(h @ W_K), padded(h @ W_V)
    O = padded(V @ W_O)  # noqa: E741
    majorants = h, last, Q, K, V, O, Q @ K.transposed(), O @ W_U, last @ W_U
    holds(all(max(map(max, X.rows)) < 1 << X.scale + 100 for X in majorants), "float32 might overflow on this model")
    score, value, direct = ([[-(-x << scale >> X.scale) for x in row] for row in X.rows] for X in majorants[-3:])

    root = isqrt((d << 512) // n) + 1  # at least 2^256 sqrt(d / n)
    v, out = len(E.rows), len(direct[0])
    largest = list(accumulate(value, lambda a, b: list(map(max, a, b))))  # [m][o]: over tokens up to m
    sums = [gamma(sizes + 2 * k + 7, max(largest[m]) + largest[m][m]) for m in range(min(v, out))]
    ranges = [value_range(values[0], values[1], m) for m in range(min(v, out))]
    result = [[0] * v for _ in range(v)]
    for q in range(v):
        S = list(accumulate(score[q], max))
        for m in range(q, min(v, out)):
            D = gamma(sizes + 17, -(-S[m] * root >> 256)) + (16 << scale - 24)
            result[q][m] = -(-ranges[m] * D >> scale + 1) + sums[m] + gamma(d_model + 3, max(direct[q]) + direct[q][m])
    return result


def value_range(EVOU: Rows, PVOU: Rows, m: int) -> int:
    """The range, over tokens up to m and positions, of what attention adds to logit[o] - logit[m]; the largest over o."""
    differences = [[[x - row[m] for x in row] for row in rows] for rows in (EVOU[: m + 1], PVOU)]
    tokens, positions = ([max(column) - min(column) for column in zip(*rows, strict=True)] for rows in differences)
    return max(map(int.__add__, tokens, positions))


# ---------------------------------------------------------------- counting


def count_at_least_zero(start: int, positions: list[Counter[int]], meter: Meter) -> int:
    """How many ways there are to choose one entry at each position so that start plus their sum is at least zero.

    A position is a multiset of integers. Partial sums are held in one large integer: the number of ways to reach `base + j` is its j-th
    digit, in a base 2^width that no count can exceed. Adding an entry d to all sums shifts the integer by d digits. Sums that stay
    at least zero whatever follows are taken out and counted for good, by adding up their digits; sums that cannot reach zero are
    dropped.
    """
    sizes = [sum(entries.values()) for entries in positions]
    if 0 in sizes:
        return 0
    width = sum(size.bit_length() for size in sizes) + 2
    least = list(accumulate((min(entries) for entries in reversed(positions)), initial=0))[::-1]
    most = list(accumulate((max(entries) for entries in reversed(positions)), initial=0))[::-1]
    sums, base, certain = 1, start, 0
    for i, entries in enumerate(positions):
        if base + most[i] < 0 or not sums:
            sums = 0
        certain *= sizes[i]
        if sums:
            low = min(entries)
            size = sums.bit_length() + width * (max(entries) - low)
            meter.add(len(entries), size)
            meter.momentarily(4 * size // 8)
            new = 0
            for entry, times in entries.items():
                new += (sums if times == 1 else sums * times) << width * (entry - low)
            sums, base = new, base + low
            safe = max(0, -base - least[i + 1])  # sums from this digit on stay at least zero
            above = sums >> width * safe
            if above:
                certain += sum_of_digits(above, width)
                sums -= above << width * safe
            lost = max(0, -base - most[i + 1])  # sums below this digit stay below zero
            sums, base = sums >> width * lost, base + lost
    return certain


def sum_of_digits(x: int, width: int) -> int:
    """In base 2^width, if the sum is less than the base: the upper half of the digits is added to the lower half, again and again."""
    while x >> width:
        half = -(-x.bit_length() // width) // 2 * width
        x = (x >> half) + (x & (1 << half) - 1)
    return x


class Steps(NamedTuple):
    """How harms become small integers: a certificate's choice, any is sound."""

    step: int
    offsets: Row
    """in 256ths of a step"""
    depth: int

    @classmethod
    def of(cls, value: Json, k: int, where: str) -> Steps:
        step, offsets, depth = fields(value, "step offsets depth", where)
        return cls(integer(step, 1, LARGE, where), integers(offsets, 0, 255, where, k), integer(depth, 1, 1 << 24, where))

    def rounded(self, harms: Harms, up: bool) -> Rounded:
        """`start + sum_i D[i][x_i] >= 0` whenever (up), or only if (not up), `sum_i harms[i][x_i] >= 0`.

        With a_i = offsets[i] step / 256, D is (harm - a_i) / step and start is (sum_i a_i) / step, all rounded up (or all down), so step
        times (start + sum D) is at least (at most) the sum of harms. Upwards, D is also raised to a floor; and a D above the
        ceiling decides alone, since start + ceiling + the floors of all others is zero, so the ceiling will do. Downwards, entries
        below the floor are left out and large ones lowered to the ceiling: fewer sequences are counted.
        """
        a = [offset * self.step >> 8 for offset in self.offsets]
        start = -(-sum(a) // self.step) if up else sum(a) // self.step
        floors = [-self.depth] * (len(harms) - 1) + [-4 * self.depth]
        D: Harms = []
        for row, shift, floor in zip(harms, a, floors, strict=True):
            ceiling = -start - sum(floors) + floor
            steps = {t: -((shift - h) // self.step) if up else (h - shift) // self.step for t, h in row.items()}
            if min(steps.values()) < floor or max(steps.values()) > ceiling:
                steps = {t: max(min(x, ceiling), floor) for t, x in steps.items() if up or x >= floor}
            D.append(steps)
        return Rounded(start, D)


class Rounded(NamedTuple):
    """Small integers; the sequences x with start + sum_i D[i][x_i] >= 0 are counted."""

    start: int
    D: Harms

    def counts(self, sequence: Row) -> bool:
        """Whether a sequence is among those that are counted."""
        places = list(zip(self.D, sequence, strict=True))
        return all(t in row for row, t in places) and self.start + sum(row[t] for row, t in places) >= 0

    def count_class(self, gone: Iterable[int], wanted: Iterable[int], meter: Meter) -> int:
        """How many of them contain every wanted token and none that is gone, by inclusion and exclusion."""
        banned, wanted = set(gone), set(wanted)
        meter.add(2 ** len(wanted) * sum(map(len, self.D)), 0)
        if banned & wanted:
            return 0
        others = [Counter(x for t, x in row.items() if t not in banned and t not in wanted) for row in self.D]
        total = 0
        for absent in range(len(wanted) + 1):
            for present in combinations(sorted(wanted), len(wanted) - absent):
                positions = [Counter(entries) for entries in others]
                for entries, row in zip(positions, self.D, strict=True):
                    entries.update(row[t] for t in present if t in row)
                total += (-1) ** absent * count_at_least_zero(self.start, positions, meter)
        return total


def classes_of(value: Json, m: int, where: str) -> tuple[Row, list[Json]]:
    """A list of tokens, and a specification for each class "token c of the list occurs and none before it", and one for "none occurs".

    Every sequence is in exactly one of these classes.
    """
    order, specifications = fields(value, "order classes", where)
    order = integers(order, 0, m, where)
    holds(len(set(order)) == len(order), f"{where}: a token occurs twice in the order of classes")
    return order, items(specifications, where, len(order) + 1)


def upper(x: int, low: int, high: int) -> int:
    """At least x times anything between low and high, which are not negative."""
    return x * high if x > 0 else x * low


# ---------------------------------------------------------------- rule `cubic`


def check_cubic(T: Tables, witness: Json) -> int:
    """Sequences with query q, label m and c other tokens besides, each of which, alone in all c places, leaves the answer right.

    With D[o] = max_i (PVOU[i][o] - PVOU[i][m]), the harm of token t is at most b[i] G(t), G(t) = A[t] (max_o (EVOU[t][o] - EVOU[t][m] +
    D[o]) + max_o (EU[q][o] - EU[q][m])). If X and Y are the weights b of the places of the label and of the others, then all G(x_i) <= g
    of the others give a sum of at most G(q) b[k-1] + X G(m) + Y g. X + Y is fixed, so this is linear in Y: it is negative for every
    arrangement if it is for the two extreme ones. Without others (c = 0) outputs are looked at one by one.
    """
    fields(witness, "", "the witness of rule cubic")
    correct = 0
    direct = [[max(others(T.EU[q], m), default=0) - T.own[q][m] for m in range(T.v)] for q in range(T.v)]
    for m in range(T.v):
        T.meter.multiply((m + 1) * (T.out + 3 * (m + 1) + T.k * T.k), (T.bits + T.scale) // 2)
        T.meter.add(2 * T.k * T.out, T.scale)
        D = T.worst_position(m)
        harm = [max(others(list(map(add, row, D)), m), default=0) - row[m] for row in T.EVOU[: m + 1]]
        for q in range(m + 1):
            A_low, A_high, places = T.A_low[q], T.A_high[q], T.places[q]
            G = [upper(x + direct[q][m], lo, hi) for x, lo, hi in zip(harm, A_low, A_high, strict=False)]
            G_query = upper(harm[q] + direct[q][m], A_low[q] * T.b_low[q][-1], A_high[q] * T.b_high[q][-1])
            if (T.k > 1 or q == m) and label_alone(T, m, q, D):
                correct += 1
            below = sorted(G[:m])
            for c in range(1, T.k - (q < m)):
                n, tokens = T.k - 1 - c, m
                for X, Y in ((places.smallest(n), places.largest(c)), (places.largest(n), places.smallest(c))):
                    room = -G_query - upper(G[m], *X)  # need Y g < room
                    most = Y[room > 0]
                    tokens = min(tokens, bisect_left(below, -(-room // most)) if most else 0)
                correct += comb(T.k - 1, c) * tokens**c
    return correct


def others(row: Row, m: int) -> Row:
    """All entries but the m-th."""
    return row[:m] + row[m + 1 :]


def label_alone(T: Tables, m: int, q: int, D: Row) -> bool:
    """Whether the sequence m, ..., m, q is right, every position taken for the worst one."""
    X_low, X_high = map(mul, T.places[q].smallest(T.k - 1), (T.A_low[q][m], T.A_high[q][m]))
    own_low, own_high = T.A_low[q][q] * T.b_low[q][-1], T.A_high[q][q] * T.b_high[q][-1]
    label, query = T.EVOU[m], T.EVOU[q]
    for o in range(T.out):
        rest = D[o] + T.EU[q][o] - T.own[q][m]
        at_label, at_query = label[o] - label[m] + rest, query[o] - query[m] + rest
        if o != m and upper(at_label, X_low, X_high) + upper(at_query, own_low, own_high) >= 0:
            return False
    return True


# ---------------------------------------------------------------- rule `gaps`


def check_gaps(T: Tables, witness: Json) -> int:
    """Sequences with query q, label m and exactly c tokens that are not m (the query among them if it is not), all at most m - gap.

    Let x[o] = D[o] + EU[q][o] - EU[q][m]; let L and O be the attention on label tokens and on others, and W the largest EVOU[t][o] -
    EVOU[t][m] of tokens t <= m - gap. Then (L + O) (logit[o] - logit[m]) <= L (x[o] + EVOU[m][o] - EVOU[m][m]) + O (x[o] + W). The sign of
    this depends on O / L only and, being linear in it, is negative in between if it is at the least and at the greatest ratio.
    Gap 0 claims nothing.
    """
    (gaps,) = fields(witness, "gaps", "the witness of rule gaps")
    correct = 0
    for m, by_query in enumerate(items(gaps, "gaps", T.v)):
        T.meter.add(2 * (T.k + m + 1) * T.out + 2 * (m + 1) * (T.out + m + 1), T.scale)
        D = T.worst_position(m)
        W = list(accumulate((max(others(row, m), default=row[m]) - row[m] for row in T.EVOU[: m + 1]), max))
        label = others([x - T.EVOU[m][m] for x in T.EVOU[m]], m)
        for q, by_count in enumerate(items(by_query, f"gaps[{m}]", m + 1)):
            x = others([d + e - T.own[q][m] for d, e in zip(D, T.EU[q], strict=True)], m)
            at_label = list(map(add, x, label))
            least, most = list(accumulate(T.A_low[q][: m + 1], min)), list(accumulate(T.A_high[q][: m + 1], max))  # of tokens up to t
            for c, gap in enumerate(integers(by_count, 0, T.v, f"gaps[{m}][{q}]", T.k)):
                if gap == 0:
                    continue
                if c == 0:
                    holds(q == m and gap == 1, f"gaps[{m}][{q}][0] = {gap} is outside its range: 1 or 0 if the query is the label, else 0")
                    correct += all(y < 0 for y in at_label)
                    continue
                holds(
                    gap <= m and (q == m or q <= m - gap),
                    f"gaps[{m}][{q}][{c}] = {gap} is outside its range: a token is nearer to the label",
                )
                T.meter.multiply(4 * T.out, (T.bits + T.scale) // 2)
                if all(gap_holds(at_label, x, W[m - gap], *ends) for ends in ratios(T, q, m, c, least[m - gap], most[m - gap])):
                    free = c - (q != m)
                    correct += comb(T.k - 1, free) * (m - gap + 1) ** free
    return correct


def gap_holds(at_label: Row, x: Row, W: int, label: int, other: int) -> bool:
    """Whether label at_label[o] + other (x[o] + W) is negative for every output."""
    return max(map(add, map(mul, at_label, repeat(label)), map(mul, map(add, x, repeat(W)), repeat(other))), default=-1) < 0


def ratios(T: Tables, q: int, m: int, c: int, least: int, most: int) -> list[tuple[int, int]]:
    """L and O with at most the least, and with at least the greatest ratio O / L, if attention to others is between `least` and `most`."""
    free = c - (q != m)
    n = T.k - 1 - free
    other_low, other_high = T.places[q].smallest(free)[0], T.places[q].largest(free)[1]
    label_low, label_high = T.places[q].smallest(n)[0], T.places[q].largest(n)[1]
    if q == m:
        label_low, label_high = label_low + T.b_low[q][-1], label_high + T.b_high[q][-1]
    else:
        other_low, other_high = other_low + T.b_low[q][-1], other_high + T.b_high[q][-1]
    return [(label_high * T.A_high[q][m], other_low * least), (label_low * T.A_low[q][m], other_high * most)]


# ---------------------------------------------------------------- rule `pools`


def check_pools(T: Tables, witness: Json) -> int:
    """Harm tables for pools of queries.

    For a label m let w[o] >= 1 be any weights. If for all outputs o != m, tokens t <= m, positions i and queries q of a pool

        w[o] (EVOU[t][o] - EVOU[t][m]) <= r[t],    w[o] (PVOU[i][o] - PVOU[i][m]) <= p[i],    w[o] (EU[q][o] - EU[q][m]) <= s[q],

    then w[o] G_o(i, t) <= A[t] b[i] (r[t] + p[i] + s[q]); so if these add up to less than zero, the sequence is right. A and b of each
    query may be scaled by any positive numbers; one table then serves the pool, with its largest s and its largest attention where
    r + p + s is positive, and its least where it is not. At the last position the token is the query itself. The certificate gives r,
    p and s; the sequences whose harms, rounded up, add up to at least zero are counted as failures, and so are queries in no pool.
    `direct_centre` and `position_centre`, any numbers, are moved from EU and from PVOU to EVOU, which changes no logit.
    """
    grid, direct_centre, position_centre, labels = fields(witness, "grid direct_centre position_centre labels", "the witness of rule pools")
    up = T.scale - integer(grid, 0, 256, "grid")
    mu = [x << up for x in integers(direct_centre, -LARGE, LARGE, "direct_centre", T.out)]
    nu = [x << up for x in integers(position_centre, -LARGE, LARGE, "position_centre", T.out)]
    V = [[x + a + b for x, a, b in zip(row, mu, nu, strict=True)] for row in T.EVOU]
    P = [list(map(sub, row, nu)) for row in T.PVOU]
    EU = [list(map(sub, row, mu)) for row in T.EU]
    correct = 0
    for m, of_label in enumerate(items(labels, "labels", T.v)):
        weights, token_harms, position_harms, pools = fields(of_label, "weights token_harms position_harms pools", f"labels[{m}]")
        w = integers(weights, 1, LARGE, f"labels[{m}].weights", T.out)
        r = integers(token_harms, -LARGE, LARGE, f"labels[{m}].token_harms", m + 1)
        p = integers(position_harms, -LARGE, LARGE, f"labels[{m}].position_harms", T.k)
        T.meter.multiply((2 * (m + 1) + T.k) * T.out, max(T.scale, max(w).bit_length()))
        bounds = partial(bounds_all, w, m)
        for t in range(m + 1):
            holds(bounds(V[t], V[t][m], r[t] << up), f"labels[{m}].token_harms[{t}] is too small")
        for i in range(T.k):
            holds(bounds(P[i], P[i][m], p[i] << up), f"labels[{m}].position_harms[{i}] is too small")
        seen: set[int] = set()
        for number, pool in enumerate(items(pools, f"labels[{m}].pools")):
            where = f"labels[{m}].pools[{number}]"
            queries, token_scales, position_scales, query_harms, counting = fields(
                pool, "queries token_scales position_scales query_harms counting", where
            )
            queries = increasing(queries, 0, m, where + ".queries")
            holds(seen.isdisjoint(queries), f"{where}: a query is in two pools")
            seen.update(queries)
            token_scales = integers(token_scales, 1, LARGE, where + ".token_scales", len(queries))
            position_scales = integers(position_scales, 1, LARGE, where + ".position_scales", len(queries))
            s = integers(query_harms, -LARGE, LARGE, where + ".query_harms", len(queries))
            for q, harm in zip(queries, s, strict=True):
                holds(bounds(EU[q], T.own[q][m] - mu[m], harm << up), f"{where}: the harm of query {q} is too small")
            if queries:
                harms = pool_harms(T, m, queries, token_scales, position_scales, r, p, s)
                failures = count_failures(T, m, harms, counting, where)
                correct += sum(T.sequences(m, q) for q in queries) - failures
    return correct


def bounds_all(weights: Row, m: int, row: Row, own: int, limit: int) -> bool:
    """Whether weights[o] (row[o] - own) <= limit for every o != m."""
    terms = list(map(mul, weights, map(sub, row, repeat(own))))
    return max(others(terms, m), default=limit) <= limit


def pool_harms(T: Tables, m: int, queries: Row, token_scales: Row, position_scales: Row, r: Row, p: Row, s: Row) -> Harms:
    """harms[i][t]: upper bounds for every query of the pool; at the last position the query's own."""
    T.meter.multiply(2 * len(queries) * (m + 1 + T.k) + 3 * T.k * (m + 1), max(T.bits, max(token_scales + position_scales).bit_length()))
    A_low, A_high = scaled(T.A_low, queries, token_scales, m + 1), scaled(T.A_high, queries, token_scales, m + 1)
    b_low, b_high = scaled(T.b_low, queries, position_scales, T.k), scaled(T.b_high, queries, position_scales, T.k)
    least, most = list(map(min, zip(*A_low, strict=True))), list(map(max, zip(*A_high, strict=True)))
    harms = []
    for i in range(T.k - 1):
        place_low, place_high, rest = min(b[i] for b in b_low), max(b[i] for b in b_high), max(s) + p[i]
        harms.append(
            {t: upper(x + rest, place_low * lo, place_high * hi) for t, (x, lo, hi) in enumerate(zip(r, least, most, strict=True))}
        )
    last = {}
    for j, q in enumerate(queries):
        last[q] = upper(r[q] + p[-1] + s[j], A_low[j][q] * b_low[j][-1], A_high[j][q] * b_high[j][-1])
    return [*harms, last]


def scaled(rows: Rows, queries: Row, scales: Row, length: int) -> Rows:
    """The first entries of the rows of some queries, each row times its scale."""
    return [[x * scale for x in rows[q][:length]] for q, scale in zip(queries, scales, strict=True)]


def count_failures(T: Tables, m: int, harms: Harms, counting: Json, where: str) -> int:
    """Sequences of label m whose harms, rounded up, add up to at least zero, class by class."""
    shift, by_class = fields(counting, "shift by_class", where + ".counting")
    order, specifications = classes_of(by_class, m, where + ".counting.by_class")
    harms = coarser(harms, integer(shift, 0, 1 << 16, where + ".counting.shift"), up=True)
    failures = 0
    for c, specification in enumerate(specifications):
        rounded = Steps.of(specification, T.k, where + ".counting.by_class.classes").rounded(harms, up=True)
        failures += rounded.count_class(order[:c], {m, *order[c : c + 1]}, T.meter)
    return failures


def coarser(harms: Harms, shift: int, up: bool) -> Harms:
    """harms / 2^shift, rounded up or down."""
    return [{t: -(-h >> shift) if up else h >> shift for t, h in row.items()} for row in harms]


# ---------------------------------------------------------------- rules `pairs` and `failures`: every output of one query and label


class Pair:
    """One query and one label: bounds of G_o(i, t), computed when they are needed."""

    def __init__(self, T: Tables, m: int, q: int, worst: Row) -> None:
        self.T, self.m, self.q, self.worst = T, m, q, worst
        self._terms: dict[tuple[int, bool], Harms] = {}

    def terms(self, o: int, up: bool) -> Harms:
        """[i][t]: at least (up) or at most G_o(i, t)."""
        if (o, up) not in self._terms:
            self.T.meter.multiply(4 * self.T.k * (self.m + 1), self.T.bits + self.T.scale // 2)
            if len(self._terms) * self.T.k * (self.m + 1) > 1 << 22:
                self._terms.clear()
            tokens = [range(self.m + 1)] * (self.T.k - 1) + [(self.q,)]
            self._terms[o, up] = [{t: self.term(o, i, t, up) for t in places} for i, places in enumerate(tokens)]
        return self._terms[o, up]

    def term(self, o: int, i: int, t: int, up: bool) -> int:
        """At least (up) or at most G_o(i, t)."""
        T, q, m = self.T, self.q, self.m
        d = T.EVOU[t][o] - T.EVOU[t][m] + T.PVOU[i][o] - T.PVOU[i][m] + T.EU[q][o] - T.own[q][m]
        return d * (T.A_high[q][t] * T.b_high[q][i] if (d > 0) == up else T.A_low[q][t] * T.b_low[q][i])

    def is_harmless(self, o: int) -> bool:
        """Whether output o certainly stays below the label, by a quick bound: every position taken for the worst one.

        Let M be the largest A[t] (B_o - B_m) of a token, and g that of the label. One place at least is the label's, or the query is; the
        sum is then at most own + (sum of b - least b) M + (least b) g, as g <= M.
        """
        T, m, q = self.T, self.m, self.q
        T.meter.multiply(m + 1, (T.bits + T.scale) // 2)
        rest = self.worst[o] + T.EU[q][o] - T.own[q][m]
        values = [row[o] - row[m] + rest for row in T.EVOU[: m + 1]]
        scaled = [d * hi if d > 0 else d * lo for d, lo, hi in zip(values, T.A_low[q], T.A_high[q], strict=False)]
        own = upper(values[q], T.A_low[q][q] * T.b_low[q][-1], T.A_high[q][q] * T.b_high[q][-1])
        if q == m:
            return own + upper(max(scaled), *T.places[q].smallest(T.k - 1)) < 0
        if T.k == 1:
            return True  # no such sequence
        return own + upper(max(scaled), *T.places[q].largest(T.k - 2)) + upper(scaled[m], *T.places[q].smallest(1)) < 0

    def is_harmless_in(self, o: int, gone: set[int], wanted: set[int]) -> bool:
        """Whether output o stays below the label on all sequences that contain the (one or two) wanted tokens and none that is gone.

        The largest sum: the best token everywhere, less the least loss from putting each wanted token, but the query, somewhere. For two
        tokens in different places it is enough to try the two best places of each.
        """
        rows = [{t: x for t, x in row.items() if t not in gone} for row in self.terms(o, up=True)]
        self.T.meter.add(2 * sum(map(len, rows)), 0)
        missing = [t for t in wanted if t != self.q]
        if not all(rows) or len(missing) > self.T.k - 1 or wanted & gone:
            return True  # no such sequence
        best = [max(row.values()) for row in rows]
        losses = [sorted((best[i] - rows[i][t], i) for i in range(self.T.k - 1))[:2] for t in missing]
        apart = (chosen for chosen in product(*losses) if len({i for _, i in chosen}) == len(missing))
        return sum(best) - min(sum(loss for loss, _ in chosen) for chosen in apart) < 0

    def is_right(self, sequence: Row, harmful: Row) -> bool:
        """Whether all outputs that might win certainly stay below the label."""
        self.T.meter.multiply(6 * len(sequence) * len(harmful), (self.T.bits + self.T.scale) // 2)
        return all(sum(self.term(o, i, t, up=True) for i, t in enumerate(sequence)) < 0 for o in harmful)

    def is_wrong(self, sequence: Row) -> bool:
        """Whether some output is certainly not below the label."""
        self.T.meter.multiply(6 * len(sequence) * self.T.out, (self.T.bits + self.T.scale) // 2)
        outputs = others(list(range(self.T.out)), self.m)
        return any(sum(self.term(o, i, t, up=False) for i, t in enumerate(sequence)) >= 0 for o in outputs)


def pairs_of(T: Tables, witness: Json, names: str) -> Iterable[tuple[Pair, list[Json], str]]:
    """The pairs of a witness, in strictly ascending order of (label, query)."""
    (pairs,) = fields(witness, "pairs", "the witness")
    before = (-1, -1)
    worst: Row = []
    for number, pair in enumerate(items(pairs, "pairs")):
        where = f"pairs[{number}]"
        label, query, *rest = fields(pair, f"label query {names}", where)
        m = integer(label, 0, min(T.v, T.out) - 1, where + ".label")
        q = integer(query, 0, m, where + ".query")
        holds((m, q) > before, f"{where}: pairs are not in ascending order, or one occurs twice")
        if m != before[0]:
            T.meter.add(2 * T.k * T.out, T.scale)
            worst = T.worst_position(m)
        before = (m, q)
        yield Pair(T, m, q, worst), rest, where


def sequences_of(pair: Pair, value: Json, order: Row, where: str) -> list[Rows]:
    """Different sequences of the pair's label and query, listed in ascending order without the query; given by class, with the query."""
    before: Row | None = None
    by_class: list[Rows] = [[] for _ in range(len(order) + 1)]
    for number, listed in enumerate(items(value, where)):
        pair.T.meter.add(3 * (pair.T.k + len(order)), 0)
        tokens = integers(listed, 0, pair.m, f"{where}[{number}]", pair.T.k - 1)
        holds(before is None or before < tokens, f"{where}: sequences are not in ascending order, or one occurs twice")
        holds(max([*tokens, pair.q]) == pair.m, f"{where}[{number}] does not have the label {pair.m}")
        before, sequence = tokens, [*tokens, pair.q]
        by_class[next((c for c, t in enumerate(order) if t in sequence), len(order))].append(sequence)
    return by_class


def check_pairs(T: Tables, witness: Json) -> int:
    """For one query and label, and each class of sequences: terms that together cover every output that might win.

    A term `joint` covers several outputs: it counts the sequences on which sum_i max_o w[o] G_o(i, x_i) is at least zero. A term
    `apart` covers one output o, less those sequences that an output p, covered by an earlier term, spoils already: it counts where the
    sum of n1 G_o - n2 G_p is at least zero (n1 >= 1, n2 >= 0). If a sequence fails, take the first term that covers an output o with
    sum G_o >= 0: it counts the sequence, since then sum G_p < 0. So failures are at most the sum of all counts; every output that no
    term covers must be harmless. Sequences listed as `right` are checked one by one and taken off if they have been counted.
    """
    correct = 0
    for pair, (shift, by_class, right), where in pairs_of(T, witness, "shift by_class right"):
        m, q = pair.m, pair.q
        harmful = [o for o in range(T.out) if o != m and not pair.is_harmless(o)]
        shift = integer(shift, 0, 1 << 16, where + ".shift")
        order, specifications = classes_of(by_class, m, where + ".by_class")
        listed = sequences_of(pair, right, order, where + ".right")
        failures = 0
        for c, specification in enumerate(specifications):
            gone, wanted = set(order[:c]), {m, *order[c : c + 1]}
            covered: set[int] = set()
            counted: set[int] = set()
            for term in items(specification, where + ".by_class.classes"):
                harms = coarser(term_harms(pair, term, covered, where), shift, up=True)
                rounded = Steps.of(term["steps"], T.k, where + " steps").rounded(harms, up=True)
                failures += rounded.count_class(gone, wanted, T.meter)
                counted.update(number for number, sequence in enumerate(listed[c]) if rounded.counts(sequence))
            for o in harmful:
                holds(o in covered or pair.is_harmless_in(o, gone, wanted), f"{where}: output {o} might win, and no term covers it")
            for number, sequence in enumerate(listed[c]):
                holds(number in counted, f"{where}.right: the sequence {sequence} is listed, but was not counted")
                holds(pair.is_right(sequence, harmful), f"{where}.right: the sequence {sequence} is not certainly right")
            failures -= len(listed[c])
        correct += max(0, T.sequences(m, q) - failures)
    return correct


def term_harms(pair: Pair, term: Json, covered: set[int], where: str) -> Harms:
    """Upper bounds of what a term adds up; its outputs are added to the covered ones."""
    T = pair.T
    if isinstance(term, dict) and "joint" in term:
        joint, weights, _ = fields(term, "joint weights steps", where + " term")
        outputs = increasing(joint, 0, T.out - 1, where + ".joint")
        w = integers(weights, 1, LARGE, where + ".weights", len(outputs))
        holds(bool(outputs) and pair.m not in outputs, f"{where}: a joint term needs outputs other than the label")
        covered.update(outputs)
        harms = pair.terms(outputs[0], up=True)
        if len(outputs) > 1:
            harms = [{t: w[0] * x for t, x in row.items()} for row in harms]
        for o, weight in zip(outputs[1:], w[1:], strict=True):
            harms = [{t: max(x, weight * more[t]) for t, x in row.items()} for row, more in zip(harms, pair.terms(o, up=True), strict=True)]
        return harms
    output, less, factors, _ = fields(term, "apart less factors steps", where + " term")
    o, p = integer(output, 0, T.out - 1, where + ".apart"), integer(less, 0, T.out - 1, where + ".less")
    n1, n2 = integers(factors, 0, LARGE, where + ".factors", 2)
    holds(p in covered and n1 >= 1, f"{where}: a term takes off what output {p} spoils, but no earlier term covers that")
    holds(o != pair.m, f"{where}: the label cannot spoil a sequence")
    covered.add(o)
    above, below = pair.terms(o, up=True), pair.terms(p, up=False)
    return [{t: n1 * x - n2 * lows[t] for t, x in highs.items()} for highs, lows in zip(above, below, strict=True)]


def check_failures(T: Tables, witness: Json) -> int:
    """How many sequences certainly fail: for one query and label, and each class, those on which one output is not below the label.

    Sequences listed as `wrong` are checked one by one and added if they have not been counted.
    """
    wrong = 0
    for pair, (shift, by_class, listed), where in pairs_of(T, witness, "shift by_class wrong"):
        shift = integer(shift, 0, 1 << 16, where + ".shift")
        order, specifications = classes_of(by_class, pair.m, where + ".by_class")
        by_class = sequences_of(pair, listed, order, where + ".wrong")
        for c, specification in enumerate(specifications):
            rounded = Rounded(-1, [{}] * T.k)  # counts nothing
            if specification is not None:
                output, steps = fields(specification, "output steps", where + ".by_class.classes")
                o = integer(output, 0, T.out - 1, where + ".output")
                holds(o != pair.m, f"{where}: the label cannot spoil a sequence")
                harms = coarser(pair.terms(o, up=False), shift, up=False)
                rounded = Steps.of(steps, T.k, where + " steps").rounded(harms, up=False)
                wrong += rounded.count_class(order[:c], {pair.m, *order[c : c + 1]}, T.meter)
            for sequence in by_class[c]:
                holds(not rounded.counts(sequence), f"{where}.wrong: the sequence {sequence} is listed, but was counted already")
                holds(pair.is_wrong(sequence), f"{where}.wrong: the sequence {sequence} is not certainly wrong")
                wrong += 1
    return wrong


# ---------------------------------------------------------------- the certificate

LOWER_RULES = {"cubic": check_cubic, "gaps": check_gaps, "pools": check_pools, "pairs": check_pairs}
UPPER_RULES = {"failures": check_failures}

DIRECT = ("max_diff_exact", "global_max_diff_exact", "mean_query+max_diff", "svd_query+max_diff", "max_diff")
ATTENTION = (
    *("exact_EQKE+max_diff_exact", "max_diff_exact", "svd", "max_diff", "mean+max_diff"),
    *("max_diff_subproduct", "mean+max_diff_subproduct"),
    *("max_diff_subproduct_recursive", "mean+max_diff_subproduct_recursive", "mean_recursive+max_diff_subproduct_recursive"),
)
QUERY = ("mean_query+diff", "drop_average_query_per_output_logit_reasoning", "envelope")
TABLED = {"direct_path": ("exact", *DIRECT), "attention_error": ATTENTION}
GAPS = {"direct_path": DIRECT, "attention_error": ATTENTION, "query_handling": QUERY, "repaired": (True,)}
STRATEGIES: dict[str, tuple[str, Mapping[str, tuple[object, ...]]]] = {
    "cubic": ("cubic", {}),
    "subcubic": ("gaps", GAPS),
    **{f"threshold-{name}": ("pools", TABLED) for name in ("cubic", "cubic-pooled", "quadratic-pooled", "blocks")},
    **{f"threshold-{name}": ("pairs", {}) for name in ("quartic", "exact-output", "best")},
}
"""For every strategy that can be certified: the rule that checks it, and the values that its parameters may have."""


def check_strategy(strategy: Json, rule: str) -> None:
    """Whether the strategy is one that can be certified, with parameters that it can have, and checked by this rule."""
    name, parameters = fields(strategy, "name parameters", "strategy")
    holds(isinstance(name, str) and name in STRATEGIES, f"the strategy {name!r:.60} cannot be certified")
    expected_rule, allowed = STRATEGIES[name]
    holds(rule == expected_rule, f"the strategy {name} is checked by rule {expected_rule}, not {rule!r:.40}")
    values = fields(parameters, " ".join(allowed), "strategy.parameters")
    for parameter, value in zip(allowed, values, strict=True):
        same = any(value == known and type(value) is type(known) for known in allowed[parameter])
        holds(same, f"{name} with {parameter}={value!r:.60} is not a sound strategy")


def checked_claims(data: bytes, network: Network, work: int) -> Checked:
    """The claims of a certificate about this network, if it proves them; raises with the reason otherwise."""
    certificate = parse(data, "the certificate")
    well_formed(isinstance(certificate, dict) and certificate.get("format") == FORMAT, f"not a certificate: its format is not {FORMAT}")
    version = certificate.get("version")
    well_formed(
        version == VERSION and type(version) is int, f"certificate of version {version!r:.40}; this checker knows version {VERSION}"
    )
    names = "format version theorem semantics error_model producer strategy task distribution model claim lower upper end"
    values = fields(certificate, names, "the certificate")
    _, _, theorem, semantics, error_model, producer, strategy, task, distribution, model, claim, lower, above, end = values
    well_formed(list(certificate)[-1] == "end" and end == FORMAT, "the certificate does not end with its end marker")
    well_formed(theorem == THEOREM, f"theorem {theorem!r:.60} is not known; expected {THEOREM}")
    well_formed(isinstance(producer, str), "producer is not a string")
    well_formed(
        (semantics, error_model) in ((REAL, None), (FLOAT32, ERROR_MODEL)), f"semantics {semantics!r:.60}, error model {error_model!r:.60}"
    )
    well_formed(
        task == "max" and distribution == "uniform", f"task {task!r:.60}, distribution {distribution!r:.60}: only max, uniform are known"
    )

    v, k, out = check_model(model, network)
    total = v**k
    at_least, at_most, claimed_total = fields(claim, "correct_at_least correct_at_most total", "claim")
    at_least = natural(at_least, "claim.correct_at_least")
    at_most = None if at_most is None else natural(at_most, "claim.correct_at_most")
    holds(natural(claimed_total, "claim.total") == total, f"there are {v}^{k} sequences, and the claim gives another total")
    well_formed(at_most is None or at_most <= total, "claim.correct_at_most is larger than claim.total")
    holds(out >= v, f"the label may be up to {v - 1}, but the model has {out} outputs only")
    well_formed((at_most is None) == (above is None), "correct_at_most needs a proof `upper`, and such a proof a claim")
    holds(at_most is None or semantics == REAL, "upper bounds are proven about the real-number network only")

    rule, witness = fields(lower, "rule witness", "lower")
    well_formed(isinstance(rule, str) and rule in LOWER_RULES, f"rule {rule!r:.40} is not known; known: {', '.join(LOWER_RULES)}")
    check_strategy(strategy, rule)
    T = tables(network, semantics, Meter(work))
    proven = LOWER_RULES[rule](T, witness)
    holds(at_least <= proven, f"the witness proves {proven} sequences right, fewer than the {at_least} claimed")
    if at_most is not None:
        rule, witness = fields(above, "rule witness", "upper")
        well_formed(isinstance(rule, str) and rule in UPPER_RULES, f"rule {rule!r:.40} is not known; known: {', '.join(UPPER_RULES)}")
        wrong = UPPER_RULES[rule](T, witness)
        holds(
            at_most >= total - wrong, f"the witness proves {wrong} sequences wrong, so at most {total - wrong} right; {at_most} is claimed"
        )
    most = "" if at_most is None else f" and at most {at_most}"
    about = "over the real numbers" if semantics == REAL else f"in every float32 evaluation, ASSUMING the error model {ERROR_MODEL}"
    reason = f"at least {at_least}{most} of {total} sequences are answered right, {about}; scores are divided by sqrt({network.divisor})"
    return Checked(Verdict.ACCEPTED, reason, at_least, at_most, total, semantics, network.assumptions)


def check_model(model: Json, network: Network) -> tuple[int, int, int]:
    """Whether the certificate is about this network: sizes, divisor and hash; and whether it is small enough to check."""
    names = "d_vocab d_vocab_out d_model d_head n_ctx"
    *sizes, divisor, sha256, assumptions = fields(model, f"{names} score_divisor_squared weights_sha256 assumptions", "model")
    well_formed(all(isinstance(text, str) for text in items(assumptions, "model.assumptions")), "an assumption is not a string")
    well_formed(isinstance(divisor, str), "model.score_divisor_squared is not a string")
    found = network.sizes()
    for name, size in zip(names.split(), sizes, strict=True):
        well_formed(type(size) is int, f"model.{name} is not an integer")
        holds(size == found[name], f"the certificate is about {name}={size}, the model has {found[name]}")
    holds(divisor == network.divisor, f"the certificate divides scores by sqrt({divisor:.60}), the model by sqrt({network.divisor:.60})")
    holds(sha256 == network.sha256(), "the certificate is about other weights: their SHA-256 differs")
    v, out, k = found["d_vocab"], found["d_vocab_out"], found["n_ctx"]
    n, d = map(int, divisor.split("/"))
    holds(k <= 512 and d <= n << 200 and n <= d << 200 and k * log10(max(v, 2)) < 4000, "the model is too large for this checker")
    return v, k, out


def check(certificate: bytes, network: Network | bytes, work: int = MOST_WORK) -> Checked:
    """The verdict on a certificate, for a network or the bytes of a safetensors file. Raises nothing but interrupts."""
    try:
        return checked_claims(certificate, read_safetensors(network) if isinstance(network, bytes) else network, work)
    except MalformedError as error:
        return Checked(Verdict.MALFORMED, str(error))
    except RejectedError as error:
        return Checked(Verdict.REJECTED, str(error))
    except Exception as error:  # an error of this program: never "accepted"
        return Checked(Verdict.INTERNAL_ERROR, f"{type(error).__name__}: {error}")


USAGE = "usage: python -m compactproofs.checker CERTIFICATE MODEL.safetensors [--n-heads 1] [--normalization none] [--work N]"
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""
OPTIONS = {"--n-heads": "n_heads", "--normalization": "normalization_type", "--work": "work"}


def arguments_of(words: list[str]) -> tuple[str, str, dict[str, str]]:
    """Certificate, model, and what the options say."""
    files, said = [], {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in OPTIONS:
            said[OPTIONS[name]] = value if equals else next(rest, "")
        else:
            files.append(word)
    work = said.get("work", "1")
    well_formed(len(files) == 2 and work.isascii() and work.isdigit() and 0 < len(work) <= 30, USAGE)
    return files[0], files[1], said


def main(words: list[str]) -> int:
    """`python -m compactproofs.checker CERTIFICATE MODEL`"""
    try:
        certificate, model, told = arguments_of(words)
        work = int(told.pop("work", MOST_WORK))
        well_formed(Path(model).is_file() or not Path(model).exists(), f"the model {model} is not a regular file")
        beside = Path(model).parent.joinpath("config.json")
        config = read_bytes(str(beside), "configuration") if beside.is_file() else None
        network = read_safetensors(read_bytes(model, "model"), config, told)
        checked = check(read_bytes(certificate, "certificate"), network, work)
    except MalformedError as error:
        checked = Checked(Verdict.MALFORMED, str(error))
    except OSError as error:
        checked = Checked(Verdict.MALFORMED, f"cannot read the model: {error.strerror}")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    lines = [f"{checked.verdict.name.lower()}: {checked.reason}", *(f"assumed: {text}" for text in checked.assumptions)]
    for line in lines:
        sys.stdout.write("".join(c if c.isascii() and c.isprintable() else c.encode("unicode_escape").decode() for c in line) + "\n")
    return checked.verdict.value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
