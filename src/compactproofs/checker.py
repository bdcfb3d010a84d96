"""Check a certificate: is what it says about a small transformer a theorem?

This file stands alone. It needs Python 3.11 and nothing else, it imports nothing of the package it comes with, and it computes with
integers only: the float32 weights are integers times a power of two, so are all their products, and exponentials lie between two
integers (`exp_minus`). Everything in a certificate is untrusted: a witness can make a check fail, it cannot make a wrong claim pass.

    python -m compactproofs.checker CERTIFICATE MODEL.safetensors [--n-heads 1] [--normalization none] [--n-ctx N] [--work N]

Exit code 0 accepted, 1 rejected, 2 malformed, 3 internal error, 130 interrupted.

The network reads tokens x_0 .. x_{k-1}; the last one is the query q. With h_i = W_E[x_i] + W_pos[i],

    attention_i proportional to exp(h_q W_Q . h_i W_K / sqrt(score_divisor_squared)),
    logits = (sum_i attention_i h_i W_V W_O + h_q) W_U.

A question is an automaton that gives every sequence its label m (or -1, none: it is left out), and masses: a sequence has the product of
the masses of its tokens, which is 1 if nothing else is said. The claim is: sequences of mass at least (at most) so much have a strictly
larger logit[m] than any other.
Write A[t] b[i] for the attention of token t at position i, up to a factor that depends on q only, and

    B_o = EVOU[t][o] + PVOU[i][o] + EU[q][o],        G_o(i, t) = A[t] b[i] (B_o - B_m).

Attention is positive, so logit[o] - logit[m] has the sign of sum_i G_o(i, x_i): the sequence is right exactly if all these sums, o != m,
are negative. There is one rule, `failing`, for lower bounds and its mirror image, `right`, for upper bounds; both rest on two programmes,
`count_up` and `stays_negative`. Names ending in `_low` and `_high` are lower and upper bounds. The format is docs/certificate-format.md,
and the proofs in full are in docs/explanation/threshold-proofs.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from fractions import Fraction
from functools import cached_property, lru_cache, partial, reduce
from math import gcd, isqrt, log10, prod
from operator import add, mul, or_, sub
from pathlib import Path
from typing import Any, NamedTuple

Row = list[int]
Rows = list[Row]
Harms = list[dict[int, int]]  # [i][t]: a number for token t at position i; at the last position only for queries
Json = Any

FORMAT, VERSION = "compactproofs-certificate", 3
REAL, FLOAT32, ERROR_MODEL = "real", "float32-any-order", "float32-1"
MOST_BYTES = 1 << 26  # Of a certificate or a model file.
NO_LIMIT = 1 << 200
MOST_WORK = 60 * 10**9  # Units of work that a check may take unless more is allowed. A unit is about a nanosecond: a minute in all.
WORK_PER_BYTE = 64  # For so many units of work that are allowed, tables and histograms may take a byte of memory: a gigabyte in all.
LARGE = 1 << 4096  # Witness integers stay below this.
NORM_BITS, TURN_BITS = 200, 256  # Norms, cosines and sines are rounded to so many bits; any number is sound.


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
    assumptions: tuple[str, ...] = ()  # What was assumed in reading the model for this check.
    question_sha256: str | None = None
    positions: tuple[Checked, ...] = ()  # Of a certificate about positions, what it says of each; the numbers above are of the weakest.
    position: int | None = None
    margin: Fraction = Fraction(0)  # By more than this the right output's logit must be larger than every other.

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
    except (ValueError, RecursionError) as error:
        deep = "nested too deeply" if isinstance(error, RecursionError) else f"not valid JSON: {error!s:.200}"
        raise MalformedError(f"{what} is {deep}") from None


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
NORMS = ("norm_1", "norm_2", "norm_final")
AXES = {
    "W_E": "d_vocab d_model",
    "W_pos": "n_ctx d_model",
    **dict.fromkeys(("norm_1.weight", "norm_1.bias"), "d_model"),
    **dict.fromkeys(("W_Q", "W_K", "W_V"), "n_heads d_model d_head"),
    **dict.fromkeys(("b_Q", "b_K", "b_V"), "n_heads d_head"),
    "W_O": "n_heads d_head d_model",
    **dict.fromkeys(("b_O", "norm_2.weight", "norm_2.bias"), "d_model"),
    "mlp.W_in": "d_model d_mlp",
    "mlp.b_in": "d_mlp",
    "mlp.W_out": "d_mlp d_model",
    **dict.fromkeys(("mlp.b_out", "norm_final.weight", "norm_final.bias"), "d_model"),
    "W_U": "d_model d_vocab_out",
    "b_U": "d_vocab_out",
}  # of a network with settings, in canonical order
SETTINGS = "n_ctx score_divisor_squared norm_1 norm_2 norm_final act rotary alibi post_norm"
ARCHITECTURE = {"n_layers": "1", "n_heads": "1", "attn_only": "true", "normalization_type": "none"}  # the only one that is known here
PER_HEAD = ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V")
IN_WORDS = dict(zip(ARCHITECTURE, ("one layer", "one attention head", "attention only", "no normalisation"), strict=True))
FREE_METADATA = ("training", "format", "task", "producer", "seed", "name", "assumptions", "attention_dir")
DIRECTIONS = ("causal", "bidirectional")  # of attention: the last position sees every position, which is all that matters here


class Network(NamedTuple):
    """Raw tensors, and what they mean: seven tensors of one head; or, with settings, one layer of a transformer (see `embedded`)."""

    tensors: dict[str, tuple[tuple[int, ...], bytes]]  # name -> (shape, little-endian float32 bytes in row-major order)
    divisor: str  # `n/d` in lowest terms: scores are divided by sqrt(n/d)
    assumptions: tuple[str, ...] = ()  # What was assumed in reading the file
    settings: dict[str, Json] | None = None
    causal: bool | None = None  # Whether a position sees the tokens up to it only, where something says so

    def sizes(self) -> dict[str, int]:
        """The size of every axis, on which all tensors must agree."""
        sizes: dict[str, int] = {} if self.settings is None else {"n_ctx": self.settings["n_ctx"]}
        for name, (shape, _) in self.tensors.items():
            axes = AXES[name] if self.settings is not None else AXES[name].removeprefix("n_heads ")
            well_formed(len(shape) == len(axes.split()), f"tensor {name} has the shape {shape!r:.60}; expected {axes}")
            for axis, size in zip(axes.split(), shape, strict=True):
                well_formed(sizes.setdefault(axis, size) == size, f"the model's tensors disagree about {axis}")
        return sizes

    def of_length(self, n_ctx: int) -> Network:
        """The network on sequences of so many tokens: position embeddings beyond them are never read."""
        most, tensors = self.sizes()["n_ctx"], dict(self.tensors)
        well_formed(1 <= n_ctx <= most, f"--n-ctx {n_ctx}: the model reads 1 to {most} tokens")
        if "W_pos" in tensors:
            (_, columns), data = tensors["W_pos"]
            tensors["W_pos"] = ((n_ctx, columns), data[: 4 * n_ctx * columns])
        about = f"sequences of {n_ctx} tokens; the model reads up to {most}"
        settings = None if self.settings is None else {**self.settings, "n_ctx": n_ctx}
        return Network(tensors, self.divisor, (*self.assumptions, *([about] if n_ctx < most else [])), settings)

    def sha256(self) -> str:
        """Of the canonical bytes: the shapes and what else there is to know as text, then the tensors."""
        shapes = "".join(f"{name} {' '.join(map(str, shape))}\n" for name, (shape, _) in self.tensors.items())
        text = f"compactproofs-weights-1\n{shapes}score_divisor_squared {self.divisor}\n"
        if self.settings is not None:
            text = f"compactproofs-network-1\n{json.dumps(self.settings, sort_keys=True, separators=(',', ':'))}\n{shapes}"
        return hashlib.sha256(b"".join([text.encode(), *(data for _, data in self.tensors.values())])).hexdigest()


def read_safetensors(data: bytes, config: bytes = b"{}", told: Mapping[str, str] | None = None) -> Network:
    """Read a model file: eight bytes that give the length of a JSON header, the header, then the tensors' bytes, without gaps. `config` is
    config.json, `told` what the user says of its fields. The rules are those of docs/reference/model-files.md, for plain names."""
    well_formed(len(data) >= 8, "the model file is shorter than a safetensors header")
    length = int.from_bytes(data[:8], "little")
    well_formed(length <= min(len(data) - 8, 1 << 24), "the model's safetensors header is longer than the file, or than 16 MiB")
    header, body = parse(data[8 : 8 + length], "the model's safetensors header"), data[8 + length :]
    well_formed(isinstance(header, dict), "the model's safetensors header is not an object")
    metadata = header.pop("__metadata__", {})
    strings = isinstance(metadata, dict) and set(map(type, metadata.values())) <= {str}
    well_formed(strings, "the model's metadata is not an object, or has a value that is not a string")
    others = "`compactproofs check` reads other layouts too, and `compactproofs.save` writes this one"
    sources = [source for source in (metadata, parse(config, "config.json", floats=True)) if isinstance(source, dict)]
    said = {source["attention_dir"] for source in sources if isinstance(source.get("attention_dir"), str)}
    causal = None if not said else said == {"causal"}
    directed = all(source.get("attention_dir", "causal") in DIRECTIONS for source in sources)
    well_formed(directed, f"the configuration has another attention_dir than {' or '.join(DIRECTIONS)}")
    general, known = "network" in metadata, f"the model has the tensors {sorted(header)!r:.200}; expected"
    well_formed(general or set(header) == set(NAMES), f"{known} {sorted(NAMES)}. {others}.")
    well_formed(set(NAMES) - {"W_pos"} <= set(header) <= set(AXES), f"{known} some of {sorted(AXES)}. {others}.")
    tensors, ranges = {}, []
    for name in (name for name in AXES if name in header):
        dtype, shape, ends = fields(header[name], "dtype shape data_offsets", f"tensor {name}")
        well_formed(dtype == "F32", f"tensor {name} has type {dtype!r:.20}; expected F32")
        shape, (first, end) = integers(shape, -LARGE, LARGE, f"shape of {name}"), integers(ends, -LARGE, LARGE, f"offsets of {name}", 2)
        shape = shape[1:] if len(shape) == 3 and shape[0] == 1 and not general else shape
        well_formed(min(shape, default=0) > 0, f"tensor {name} has the shape {shape!r:.60}; expected positive sizes")
        well_formed(end - first == 4 * prod(shape), f"tensor {name}: its bytes do not fit its shape")
        tensors[name] = (tuple(shape), body[first:end])
        ranges.append((first, end))
    edges = [0, *(edge for pair in sorted(ranges) for edge in pair), len(body)]
    well_formed(edges[::2] == edges[1::2], "the model's tensors overlap, or do not fill the file, which may be truncated")
    if not general:
        return configured({name: tensors[name] for name in NAMES}, metadata, config, told or {})._replace(causal=causal)
    stray = sorted({*metadata, *(told or {}), *parse(config, "config.json", floats=True)} - {"network", *FREE_METADATA})
    well_formed(not stray, f"the metadata field `network` says everything; besides, something is said about {stray!r:.200}")
    network = with_settings(tensors, parse(metadata["network"].encode(), "the metadata field `network`"))
    return network._replace(assumptions=kept_assumptions(metadata), causal=causal)


def kept_assumptions(metadata: dict[str, str]) -> tuple[str, ...]:
    """What was assumed when the file was written."""
    found = items(parse(metadata.get("assumptions", "[]").encode(), "the metadata field `assumptions`"), "assumptions")
    well_formed(set(map(type, found)) <= {str}, "an assumption is not a string")
    return tuple(found)


def with_settings(tensors: dict[str, tuple[tuple[int, ...], bytes]], settings: Json) -> Network:
    """A network with settings, if they are of the right kinds and fit the tensors."""
    n_ctx, divisor, *norms, act, rotary, alibi, post_norm = fields(settings, SETTINGS, "the metadata field `network`")
    integer(n_ctx, 1, 1 << 20, "n_ctx")
    n, _, d = divisor.partition("/") if isinstance(divisor, str) else ("", "", "")
    lowest = natural(n, "score_divisor_squared") > 0 < natural(d, "score_divisor_squared") and gcd(int(n), int(d)) == 1
    well_formed(lowest and type(post_norm) is bool, "score_divisor_squared is not positive and in lowest terms, or post_norm is no boolean")
    present = {name.partition(".")[0] for name in tensors if "." in name} - {"mlp" if act is not None else ""}
    for name, norm in zip(NORMS, norms, strict=True):
        well_formed(norm is None or dyadic(items(norm, name, 2)[1])[0] >= 0, f"{name}: eps is negative")
        well_formed(norm is None or norm[0] in ("LN", "RMS"), f"{name} is not LN or RMS")
        present -= set() if norm is None else {name}
    well_formed(not present, f"tensors of parts that the settings say are absent: {sorted(present)}")
    well_formed(act is None or {"mlp.W_in", "mlp.W_out"} <= set(tensors), "the settings say that there is an MLP; its tensors are absent")
    network = Network(tensors, divisor, (), settings)
    sizes = network.sizes()
    if rotary is not None:
        dim, base, adjacent = items(rotary, "rotary", 3)
        good = type(adjacent) is bool and 0 < integer(dim, 1, 1 << 20, "rotary") <= sizes["d_head"] and dim % 2 == 0
        well_formed(good and dyadic(base)[0] >= 1 << dyadic(base)[1], "rotary: expected an even number of coordinates, a base, a boolean")
    well_formed(alibi is None or len(integers(alibi, 0, 64, "alibi")) == sizes["n_heads"], "alibi: expected an exponent for each head")
    return network


def dyadic(text: Json) -> tuple[int, int]:
    """A float64 number written in hexadecimal, as an integer and a power of two: x / 2^e."""
    try:
        n, d = float.fromhex(text).as_integer_ratio()
    except (TypeError, ValueError, OverflowError):
        raise MalformedError(f"{text!r:.40} is not a number in hexadecimal") from None
    return n, d.bit_length() - 1


def configured(tensors: dict[str, tuple[tuple[int, ...], bytes]], metadata: Json, config: bytes, told: Mapping[str, str]) -> Network:
    """The network, with what its configuration says: metadata, config.json and the user may not contradict each other."""
    beside = parse(config, "config.json", floats=True)
    well_formed(isinstance(beside, dict), "config.json is not an object")
    said: dict[str, str] = {}
    for name, value in (*metadata.items(), *beside.items(), *told.items()):
        text = str(value).lower()
        well_formed(said.setdefault(name, text) == text, f"two sources say {name:.40}={said[name]!r:.40} and {text!r:.40}")
    missing = " and ".join(name for name in ("n_heads", "normalization_type") if name not in said)
    advice = "if there is one head and no normalisation, say so: --n-heads 1 --normalization none"
    well_formed(not missing, f"neither the tensors nor a configuration say {missing}; {advice}")
    divisor, about_scale = divisor_of(said.get("attn_scale"), tensors["W_Q"][0][-1])
    network = Network(tensors, divisor)
    expected = {**ARCHITECTURE, **{axis: str(size) for axis, size in network.sizes().items()}}
    for name, value in said.items():
        known = name in (*FREE_METADATA, "attn_scale") or value == expected.get(name)
        well_formed(known, f"the configuration says {name:.40}={value!r:.40}, which is not supported here; `compactproofs check` may")
    heard = [words for name, words in IN_WORDS.items() if name in told and name not in {**metadata, **beside}]
    unsaid = {name: words for name, words in IN_WORDS.items() if name not in said}
    assumptions = [f"{words}, because the user said so" for words in heard]
    if not metadata and not beside:
        unstated = "one layer, attention only, no soft caps, the last position sees every position, learned positions"
        assumptions.append(f"no config found: {unstated}")
    elif unsaid:
        assumptions.append(f"config does not mention {', '.join(unsaid)}: assumed {', '.join(unsaid.values())}")
    return network._replace(assumptions=(*kept_assumptions(metadata), *assumptions, *about_scale))


def divisor_of(attn_scale: str | None, d_head: int) -> tuple[str, list[str]]:
    """The squared divisor of scores, in lowest terms, and what was assumed about it. -1 stands for sqrt(d_head), and so does the float64
    nearest to it; any other number stands for itself."""
    if attn_scale is None:
        return f"{d_head}/1", [f"config does not mention attn_scale: assumed attention scale 1/sqrt(d_head) = 1/sqrt({d_head})"]
    try:
        number = float(attn_scale)
        n, d = number.as_integer_ratio()
    except (ValueError, OverflowError):
        n, d = 0, 1
    well_formed(n > 0 or (n, d) == (-1, 1), f"the configuration says attn_scale={attn_scale!r:.40}; expected a positive number or -1")
    places = 54 - (d_head.bit_length() + 1) // 2  # 2^places sqrt(d_head) has 54 bits, one more than the float64 nearest to it
    if n > 0 and n << places - 1 != d * (isqrt(d_head << 2 * places) + 1 >> 1):
        return f"{n * n}/{d * d}", []
    exactly = n < 0 or n * n == d * d * d_head
    return f"{d_head}/1", [] if exactly else [f"attn_scale={number!r} was read as the real number sqrt({d_head})"]


class Exact(NamedTuple):
    """A matrix of numbers rows[i][j] / 2^scale; if not exact, each is off by at most error / 2^scale."""

    rows: Rows
    scale: int
    error: int = 0

    @property
    def bits(self) -> int:
        """Of the largest number."""
        return max((abs(x).bit_length() for row in self.rows for x in row), default=0)

    @property
    def largest(self) -> int:
        """The largest number, whatever its sign."""
        return max((abs(x) for row in self.rows for x in row), default=0)

    def at(self, scale: int) -> Exact:
        """The same numbers on a finer grid."""
        return Exact([[x << (scale - self.scale) for x in row] for row in self.rows], scale, self.error << (scale - self.scale))

    def plus(self, vector: Row) -> Exact:
        """A vector on the same grid added to every row."""
        return Exact([list(map(add, row, vector)) for row in self.rows], self.scale, self.error)

    def transposed(self) -> Exact:
        """Rows for columns."""
        return Exact([list(column) for column in zip(*self.rows, strict=True)], self.scale, self.error)

    def times(self, other: Exact, meter: Meter) -> Exact:
        """The product, if that is not too much work."""
        bits, columns = max(self.bits, other.bits), list(zip(*other.rows, strict=True))
        holds(len(self.rows[0]) == len(other.rows), "two matrices cannot be multiplied")
        meter.multiply(len(self.rows) * len(other.rows) * len(columns), bits)
        meter.hold(len(self.rows) * len(columns), 2 * bits)
        # |a b - a' b'| <= |a'| |b - b'| + |a - a'| |b'| + |a - a'| |b - b'|, for each of the summands
        error = 0
        if self.error or other.error:
            error = len(columns[0]) * (self.error * other.largest + other.error * self.largest + self.error * other.error)
        return Exact([[sum(map(mul, row, column)) for column in columns] for row in self.rows], self.scale + other.scale, error)

    def with_row(self, row: Exact | None) -> Exact:
        """With one row more, zero if none is given."""
        if row is None:
            return Exact([*self.rows, [0] * len(self.rows[0])], self.scale, self.error)
        finest = max(self.scale, row.scale)
        one, other = self.at(finest), row.at(finest)
        return Exact([*one.rows, *other.rows], finest, max(one.error, other.error))

    def of_head(self, head: int, heads: int) -> Exact:
        """The rows of one of several heads."""
        n = len(self.rows) // heads
        return self._replace(rows=self.rows[head * n : (head + 1) * n])

    def beside(self, other: Exact) -> Exact:
        """The columns of both."""
        finest = max(self.scale, other.scale)
        one, two = self.at(finest), other.at(finest)
        return Exact([x + y for x, y in zip(one.rows, two.rows, strict=True)], finest, max(one.error, two.error))

    def rounded(self, bits: int) -> Exact:
        """The same with so many bits for the largest number."""
        spare = max(min(self.bits - bits, self.scale), 0)
        return self if not spare else Exact([[x >> spare for x in row] for row in self.rows], self.scale - spare, (self.error >> spare) + 2)

    def with_column(self, number: int) -> Exact:
        """With one column more, all of it this number."""
        return Exact([[*row, number << self.scale] for row in self.rows], self.scale, self.error)


def exact(name: str, shape: tuple[int, ...], data: bytes) -> Exact:
    """Float32 numbers as integers: sign, 8 bits of exponent, 23 bits of mantissa; every one is a multiple of 2^-149. All axes but the
    last are one."""
    numbers, columns, rows = [], shape[-1], prod(shape[:-1])
    for bits in struct.unpack(f"<{rows * columns}I", data):
        exponent, mantissa = bits >> 23 & 255, bits & 0x7FFFFF
        well_formed(exponent < 255, f"tensor {name} has an entry that is infinite or not a number")
        number = (mantissa | 0x800000) << (exponent - 1) if exponent else mantissa
        numbers.append(-number if bits >> 31 else number)
    common = reduce(or_, numbers)
    spare = min((common & -common).bit_length() - 1, 149) if common else 149
    return Exact([[x >> spare for x in numbers[r * columns : (r + 1) * columns]] for r in range(rows)], 149 - spare)


def exp_minus(y: int, scale: int, bits: int) -> tuple[int, int]:
    """Integers low <= 2^bits exp(-y / 2^scale) <= high, for y >= 0.

    Proof. If y / 2^scale >= bits, then 0 < exp(-y / 2^scale) < 2^-bits, as e > 2. Otherwise let z = y / 2^(scale + halvings) <= 2^-12, so
    exp(-y / 2^scale) = exp(-z)^(2^halvings). exp(-z) = sum_n (-1)^n z^n / n! alternates and its terms decrease, so it is at most every
    partial sum that ends with an even n, and at least that sum minus the n-th term (which is not less than the next). `term_low` and
    `term_high` enclose 2^work z^n / n!: each comes from the one before by multiplying with y, dividing by 2^(scale + halvings) and by n,
    rounded down or up. So `low` and `high`, which add low even terms and subtract high odd ones, or the other way round, enclose
    2^work exp(-z) after the last line of the loop. Squaring keeps the enclosure, rounded down or up, `low` not being negative. QED
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


class Meter:
    """How much work has been done, in units of about a nanosecond; there is a limit. The constants were measured."""

    def __init__(self, limit: int = MOST_WORK) -> None:
        self.limit, self.work, self.bytes = limit, 0, 0

    def spend(self, work: int) -> None:
        """So many units of work."""
        self.work += work
        holds(self.work <= self.limit, f"checking would take more than {self.limit} units of work (nanoseconds); allow more: --work N")

    def hold(self, entries: int, bits: int, others: int = 0) -> None:
        """A table of integers of so many bits each; and other bytes, only for the moment."""
        self.bytes += entries * (40 + bits // 8)
        most = self.limit // WORK_PER_BYTE
        holds(self.bytes + others <= most, f"checking would take more than {most} bytes of memory; allow more: --work N, a 64th of it")

    def add(self, operations: int, bits: int) -> None:
        """So many additions, shifts or comparisons of integers of so many bits."""
        self.spend(operations * (4096 + bits) // 28)

    def multiply(self, operations: int, bits: int) -> None:
        """So many products of two integers of so many bits, with what is done to them besides."""
        self.spend(operations * (150 + bits // 3 + bits * bits // 1000))


class Tables(NamedTuple):
    """What the rule computes with: values are integers over 2^scale, attention lies between integers over 2^bits.

    A row of EVOU, or a column of A, belongs to a token; where position and token mix, to a token at a position: row i v + t. There are
    then k sheets of v rows, else one for all positions; position i has sheet i modulo their number."""

    out: int  # outputs
    k: int  # positions
    v: int  # tokens
    scale: int
    bits: int
    EVOU: Rows
    PVOU: Rows
    EU: Rows
    own: Rows  # [q][m]: EU[q][m], less the slack and the margin, and less the error of float32 arithmetic if the claim is about that
    slack: int  # at most so far is any B_o - B_m off; 0 unless norms or rotary positions are rounded
    A_low: Rows  # [q][t]: attention to tokens, the largest of each query being about 1
    A_high: Rows
    b_low: Rows  # [q][i]: the same for positions
    b_high: Rows
    tops: Row  # [q]: about 2^bits times the largest attention to a position, scores not shifted; any positive number is sound
    masses: Rows  # [i][t]
    factors: Factors
    meter: Meter

    @property
    def harm_scale(self) -> int:
        """Harms are over two to this."""
        return self.scale + 2 * self.bits


def tables(network: Network, question: Question, factors: Factors, meter: Meter) -> Tables:
    """The exact tables of the network and enclosures of its attention. Two vectors are moved, which changes no sum: `centre` from the
    positions to the tokens, `mu` from the direct path to EVOU."""
    W = {name: exact(name, *raw) for name, raw in network.tensors.items()}
    parts = embedded(network, W, 0, factors, meter)
    W_U, stream = affine_readout(network, W, parts.stream)
    VOU = parts.W_V.times(parts.W_O.times(Exact(W_U.rows[: len(parts.W_O.rows[0])], W_U.scale, W_U.error), meter), meter)
    EVOU, PVOU, EU = parts.carrier.times(VOU, meter), parts.place.times(VOU, meter), stream.times(W_U, meter)
    EQKE, EQKP = parts.scores(meter)
    n, d = map(int, network.divisor.split("/"))
    bits = bits_for([*EQKE.rows, *EQKP.rows], EQKE.scale, (n, d))
    A_low, A_high, _ = attention(EQKE, (n, d), Exact([[0]], 0), bits, meter)
    b_low, b_high, tops = attention(EQKP, (n, d), parts.recency, bits, meter)
    v, k, out, scale = len(EU.rows), len(parts.place.rows), len(EU.rows[0]), max(EVOU.scale, EU.scale, PVOU.scale, 256, question.margin[1])
    meter.hold((len(EVOU.rows) + v) * out, EVOU.bits + scale)
    (mu,) = factors.mu.at(scale).rows
    values = EVOU.at(scale).plus(mu), PVOU.at(scale), EU.at(scale).plus([-x for x in mu])
    slack = 2 * sum(table.error for table in values)
    by, exponent = question.margin
    less = slack + (by << scale - exponent)
    own = [[x - less for x in row] for row in values[2].rows] if less else values[2].rows
    EVOU, PVOU, EU = values
    if question.semantics == FLOAT32:
        holds(network.settings is None, "float32 claims are about networks without biases and norms")
        error = float32_error(W, EVOU.rows, PVOU.rows, question, (n, d, scale), meter)
        own = [list(map(sub, row, errors)) for row, errors in zip(own, error, strict=True)]
    exponentials = A_low, A_high, b_low, b_high, tops
    return Tables(out, k, v, scale, bits, EVOU.rows, PVOU.rows, EU.rows, own, slack, *exponentials, question.masses, factors, meter)


def bits_for(scores: Rows, scale: int, divisor: tuple[int, int]) -> int:
    """Enough for attention that is as far apart as the scores say; any number is sound."""
    spread = max(max(row) - min(row) for row in scores)
    return 64 + min(3 * (isqrt((spread * spread * divisor[1] >> 2 * scale) // divisor[0]) + 1) // 2, 2000)


class Embedded(NamedTuple):
    """What tables are products of: scores = query W_Q . (key + spot) W_K, values = (carrier + place) W_V W_O W_U, EU = stream W_U."""

    query: Exact  # [q]
    key: Exact  # [t], or [i v + t] where position and token mix
    carrier: Exact  # likewise
    place: Exact  # [i]; zero where they mix
    spot: Exact  # [i]: what is added to keys, where that is not the same
    stream: Exact  # [q]
    W_Q: Exact
    W_K: Exact
    W_V: Exact
    W_O: Exact
    recency: Exact  # one row over positions (or 0), added to scores

    def scores(self, meter: Meter) -> tuple[Exact, Exact]:
        """Of keys and of spots, for each query."""
        QK = self.query.times(self.W_Q, meter).times(self.W_K.transposed(), meter)
        return QK.times(self.key.transposed(), meter), QK.times(self.spot.transposed(), meter)


def embedded(network: Network, W: dict[str, Exact], head: int, factors: Factors, meter: Meter) -> Embedded:
    """The vectors that tokens become before attention, and the matrices that read them, of one head.

    A network with settings has x = W_E[t] + W_pos[i], n = norm_1(x), and queries, keys and values n W + b, which is [n, 1] times [W; b];
    rotary positions turn queries and keys; ALiBi takes 2^-alibi (k - 1 - i) off the scores. The stream is x + b_O.
    """
    if network.settings is not None:  # tensors of heads stand one below the other
        W = {name: x.of_head(head, network.sizes()["n_heads"]) if name in PER_HEAD else x for name, x in W.items()}
    k, zero = network.sizes()["n_ctx"], Exact([[0] * len(W["W_E"].rows[0])], 0)
    finest = max(W[name].scale for name in ("W_E", "W_pos") if name in W)
    finest = max(finest, factors.centre.scale, W["b_O"].scale if "b_O" in W else 0)
    E, position, centre, b_O = (x.at(finest) for x in (W["W_E"], W.get("W_pos", zero), factors.centre, W.get("b_O", zero)))
    query, key, place = E.plus(position.rows[-1]), E.plus(centre.rows[0]), position.plus([-x for x in centre.rows[0]])
    said, one, recency = network.settings, {x: W[f"W_{x}"] for x in "QKV"}, Exact([[0]], 0)
    if said is None:
        return Embedded(query, key, key, place, place, query, one["Q"], one["K"], one["V"], W["W_O"], recency)
    v, stream = len(E.rows), query.plus(b_O.rows[0])
    if said["norm_1"] is not None or said["rotary"] is not None or "W_pos" not in W:
        everywhere = Exact([list(map(add, row, vector)) for vector in position.rows for row in E.rows], finest)
        key = normed(everywhere, said["norm_1"], W.get("norm_1.weight"), W.get("norm_1.bias"), meter)
        query, place = Exact(key.rows[-v:], key.scale, key.error), Exact([[0] * len(E.rows[0])] * k, 0)
    if any(f"b_{x}" in W for x in "QKV"):
        one = {x: one[x].with_row(W.get(f"b_{x}")) for x in "QKV"}
        query, key, place = query.with_column(1), key.with_column(1), place.with_column(0)
    carrier, spot = key, place
    if said["rotary"] is not None:
        query = turned(query.times(one["Q"], meter), said["rotary"], [k - 1] * v, meter)
        key = key.times(one["K"], meter)
        everywhere = key._replace(rows=key.rows * (k * v // len(key.rows)))
        key = turned(everywhere, said["rotary"], [i for i in range(k) for _ in range(v)], meter)
        h = len(key.rows[0])
        one["Q"], spot = Exact([[int(i == j) for j in range(h)] for i in range(h)], 0), Exact([[0] * h] * k, 0)
        one["K"] = one["Q"]
    if said["alibi"] is not None:
        recency = Exact([[i - (k - 1) for i in range(k)]], said["alibi"][head])
    return Embedded(query, key, carrier, place, spot, stream, one["Q"], one["K"], one["V"], W["W_O"], recency)


def is_affine(network: Network) -> bool:
    """Whether logits are affine in what one head averages, up to a positive factor: no MLP, and no norm at the end but one that adds
    nothing, or the same to all outputs."""
    said = network.settings
    if said is None:
        return True
    T = network.tensors
    beta, b_U = (set(exact(name, *T[name]).rows[0]) if name in T else {0} for name in ("norm_final.bias", "b_U"))
    plain = said["act"] is said["norm_2"] is None and network.sizes()["n_heads"] == 1 and not said["post_norm"]
    return plain and (said["norm_final"] is None or (beta == {0} and len(b_U) == 1))


def affine_readout(network: Network, W: dict[str, Exact], stream: Exact) -> tuple[Exact, Exact]:
    """What reads the stream, and the stream that it reads: r W_U + b_U, or, behind a final norm, C r W_U: the norm's divisor is positive
    and common to all outputs, and so may be what it adds."""
    said, W_U = network.settings, W["W_U"]
    if said is not None and said["norm_final"] is not None:
        return read_behind_norm(W_U, said["norm_final"][0], W.get("norm_final.weight")), stream
    return (W_U.with_row(W["b_U"]), stream.with_column(1)) if "b_U" in W else (W_U, stream)


def normed(x: Exact, norm: Json, weight: Exact | None, bias: Exact | None, meter: Meter) -> Exact:
    """Every row normed: (x - mean) / sqrt(mean square + eps), for RMS without the mean; then times the weight, plus the bias.

    With c = d x - sum(x) (RMS: c = x), in integers over 2^s, and eps = e / 2^t: the j-th entry is c_j sqrt(d 2^t / M) where
    M = 2^t sum(c^2) + e d^3 2^2s (RMS: e d 2^2s). root is 2^p times that root rounded down, so c_j root is off by at most |c_j|.
    """
    if norm is None:
        return x
    (e, t), d, rows, error = dyadic(norm[1]), len(x.rows[0]), [], 0
    size = x.bits + d.bit_length()
    p = size + NORM_BITS
    meter.multiply(3 * len(x.rows) * d + 10 * len(x.rows), p + t + x.scale)
    meter.hold(len(x.rows) * d, p)
    for row in x.rows:
        w, total = (d, sum(row)) if norm[0] == "LN" else (1, 0)
        c = [w * y - total for y in row]
        M = (sum(map(mul, c, c)) << t) + (e * d * w * w << 2 * x.scale)
        holds(M > 0, "a norm divides by zero")
        root = isqrt((d << t + 2 * p) // M)
        rows.append([y * root for y in c])
        error = max(error, max(map(abs, c)))
    scale = p
    if weight is not None:
        (gamma,) = weight.rows
        rows, scale, error = [list(map(mul, row, gamma)) for row in rows], scale + weight.scale, error * max(map(abs, gamma))
    found = Exact(rows, scale, error)
    return found if bias is None else found.at(max(scale, bias.scale)).plus(bias.at(max(scale, bias.scale)).rows[0])


def read_behind_norm(W_U: Exact, kind: str, weight: Exact | None) -> Exact:
    """d C diag(weight) W_U, or diag(weight) W_U for RMS: what is read of the stream behind a final norm, up to a positive factor."""
    rows, scale = W_U.rows, W_U.scale
    if weight is not None:
        rows, scale = [[g * x for x in row] for g, row in zip(weight.rows[0], rows, strict=True)], scale + weight.scale
    if kind == "LN":
        sums = list(map(sum, zip(*rows, strict=True)))
        rows = [[len(rows) * x - total for x, total in zip(row, sums, strict=True)] for row in rows]
    return Exact(rows, scale)


def turned(x: Exact, rotary: Json, positions: Row, meter: Meter) -> Exact:
    """Rows turned by their positions: coordinates j and j' of a pair by the angle i / base^(2 j / dim)."""
    dim, base, adjacent = rotary
    half, p = dim // 2, TURN_BITS
    meter.multiply(200 * half * len(set(positions)) + 4 * len(x.rows) * half, max(p + 64, x.bits))
    meter.hold(len(x.rows) * len(x.rows[0]), x.bits + p)
    turns = {i: [cos_sin(i, dyadic(base), j, half, p) for j in range(half)] for i in set(positions)}
    pairs = [(2 * j, 2 * j + 1) if adjacent else (j, j + half) for j in range(half)]
    rows = []
    for row, i in zip(x.rows, positions, strict=True):
        new = [y << p for y in row]
        for (one, other), (cos, sin) in zip(pairs, turns[i], strict=True):
            new[one], new[other] = row[one] * cos - row[other] * sin, row[other] * cos + row[one] * sin
        rows.append(new)
    # cosines and sines are off by at most 1 / 2^p, entries by x.error, and |cos| + |sin| < 2
    return Exact(rows, x.scale + p, (x.error << p + 1) + (2 << x.bits) + 2 * x.error)


def cos_sin(i: int, base: tuple[int, int], j: int, half: int, p: int) -> tuple[int, int]:
    """2^p times cosine and sine of i / base^(j / half), off by at most 1. base is b / 2^e, at least 1.

    Proof. Work with w = p + 128 bits. base^-(j / half) = (2^(e j) / b^j)^(1 / half), rounded down by less than 1 / 2^w, so the angle is off
    by less than i / 2^w, i < 2^20. It is halved 24 times: z < 2^-4, off by less than 2 / 2^w. The series alternate, their terms decrease,
    and each is rounded by less than 2 / 2^w; there are fewer than 120: cosine and sine of z are off by less than 2^9 / 2^w. Doubling,
    c -> 2 c^2 - 1, s -> 2 s c, makes an error at most five times larger, plus rounding; 24 times: less than 2^70 / 2^w. Rounding to p bits
    adds 1/2. QED
    """
    w, halvings = p + 128, 24
    angle = i * integer_root((1 << base[1] * j + w * half) // base[0] ** j, half)
    z = angle >> halvings
    cos = sin = 0
    term, n = 1 << w, 0
    while term:
        cos, sin = (cos + (term if n % 4 == 0 else -term), sin) if n % 2 == 0 else (cos, sin + (term if n % 4 == 1 else -term))
        n += 1
        term = (term * z >> w) // n
    for _ in range(halvings):
        cos, sin = (2 * cos * cos >> w) - (1 << w), 2 * sin * cos >> w
    return cos + (1 << 127) >> 128, sin + (1 << 127) >> 128


def integer_root(x: int, n: int) -> int:
    """The largest y with y^n <= x, by Newton's method from above."""
    y = 1 << -(-x.bit_length() // n)
    while y**n > x:
        y = ((n - 1) * y + x // y ** (n - 1)) // n
    return y


def attention(scores: Exact, divisor: tuple[int, int], recency: Exact, bits: int, meter: Meter) -> tuple[Rows, Rows, Row]:
    """Enclosures of 2^bits exp((scores - top) / sqrt(n / d) + recency), times a constant for each row that makes the largest about 1; and
    about 2^bits exp(top / sqrt(n / d)), at least 1, top being the largest score: the scale of a query is free, so this needs no proof."""
    n, d = divisor
    root_scale, y_scale = bits + 256, bits + 16
    root = isqrt((d << 2 * root_scale) // n)  # sqrt(d / n) lies between root and root + 1, over 2^root_scale
    down = scores.scale + root_scale - y_scale
    meter.hold(2 * len(scores.rows) * len(scores.rows[0]), bits)
    low, high, tops = [], [], []
    (added,) = recency.rows
    added = [x << y_scale - recency.scale for x in added] if len(added) > 1 else [0] * len(scores.rows[0])
    off = -(-2 * scores.error * (root + 1) >> down)  # two scores are off
    for row in scores.rows:
        top = max(row)
        ends = [((top - x) * root >> down, -(-(top - x) * (root + 1) >> down)) for x in row]
        nearest = 0
        if off or any(added):
            ends = [(least - a - off, most - a + off) for (least, most), a in zip(ends, added, strict=True)]
            nearest = min(least for least, _ in ends)
            ends = [(least - nearest, most - nearest) for least, most in ends]
        visible = sum(least < bits << y_scale for least, _ in ends)
        meter.spend(2000 * len(row) + visible * (7000 + bits * bits // 4))
        enclosures = [exp_minus(least, y_scale, bits) for least, _ in ends]
        # exp(-y) >= exp(-least) (1 - (most - least)) for y between least and most
        low.append([max(a - (a * (y[1] - y[0]) >> y_scale) - 1, 0) for (a, _), y in zip(enclosures, ends, strict=True)])
        high.append([b for _, b in enclosures])
        height = (top * (root >> 256) >> scores.scale) - (nearest >> 16)
        inverse = exp_minus(abs(height), bits, bits)[1]
        tops.append((1 << 2 * bits) // inverse if height > 0 else inverse)
    return low, high, tops


def float32_error(W: dict[str, Exact], EVOU: Rows, PVOU: Rows, question: Question, constants: tuple[int, int, int], meter: Meter) -> Rows:
    """[q][m]: how far a float32 forward pass may move any difference logit[o] - logit[m], over sequences with query q and label m.

    u = 2^-24. Every quantity is bounded by its majorant, the same expression in absolute values with 2^-30 added at each stage; errors
    count roundings, gamma(n) = n u / (1 - n u) times the majorant for n of them. The error model `float32-1` is defined in
    docs/certificate-format.md, and the proof is in docs/explanation/float32.md.
    """
    finest = max(W["W_E"].scale, W["W_pos"].scale)
    (n, d, scale), E, position, d_model = constants, W["W_E"].at(finest), W["W_pos"].at(finest), len(W["W_Q"].rows)
    k = len(position.rows)
    sizes = 2 * d_model + len(W["W_Q"].rows[0])
    holds(k <= 512 and sizes < 1 << 19 and n <= d << 40 and d <= n << 40, "the model is outside the float32 error model")

    def padded(x: Exact) -> Exact:
        grid = max(x.scale, 30)
        return Exact([[abs(entry) + (1 << grid - 30) for entry in row] for row in x.at(grid).rows], grid)

    def gamma(times: int, x: int) -> int:
        return -(-times * x // ((1 << 24) - times))

    W_Q, W_K, W_V, W_O, W_U = (padded(W[name]) for name in NAMES[2:])
    ends = [(min(column), max(column)) for column in zip(*position.rows, strict=True)]
    h = padded(Exact([[max(x + high, -x - low) for x, (low, high) in zip(row, ends, strict=True)] for row in E.rows], E.scale))
    last = padded(E.plus(position.rows[-1]))
    Q, K, V = (padded(x.times(W, meter)) for x, W in ((last, W_Q), (h, W_K), (h, W_V)))
    O = padded(V.times(W_O, meter))  # noqa: E741
    majorants = h, last, Q, K, V, O, Q.times(K.transposed(), meter), O.times(W_U, meter), last.times(W_U, meter)
    holds(all(max(map(max, X.rows)) < 1 << X.scale + 100 for X in majorants), "float32 might overflow on this model")
    score, value, direct = ([[-(-x << scale >> X.scale) for x in row] for row in X.rows] for X in majorants[-3:])
    root = isqrt((d << 512) // n) + 1  # at least 2^256 sqrt(d / n)
    result = [[0] * len(direct[0]) for _ in E.rows]
    for m, automaton in question.automata.items():
        tokens = automaton.tokens
        largest = list(map(max, zip(*(value[t] for t in tokens), strict=True)))
        sums = gamma(sizes + 2 * k + 7, max(largest) + largest[m])
        # the range, over tokens and positions, of what attention adds to logit[o] - logit[m]; the largest over o
        differences = ([[x - row[m] for x in row] for row in rows] for rows in ([EVOU[t] for t in tokens], PVOU))
        spread = max(map(add, *([max(column) - min(column) for column in zip(*rows, strict=True)] for rows in differences)))
        for q in tokens:
            D = gamma(sizes + 17, -(-max(score[q][t] for t in tokens) * root >> 256)) + (16 << scale - 24)
            result[q][m] = -(-spread * D >> scale + 1) + sums + gamma(d_model + 3, max(direct[q]) + direct[q][m])
    return result


# ---------------------------------------------------------------- the question: labels and masses


class Automaton:
    """Accepts some sequences: moves[s] is {token: next state}, and no accepted sequence takes a move that is missing."""

    def __init__(self, moves: list[dict[int, int]], accepting: list[bool], first: int) -> None:
        self.moves, self.accepting, self.first = moves, accepting, first
        self.tokens = sorted({t for row in moves for t in row})
        self.known: Walks | None = None
        self.groups: list[dict[int, Row]] = [{} for _ in moves]  # [s]: {next state: tokens that lead there}
        for row, group in zip(moves, self.groups, strict=True):
            for t, z in row.items():
                group.setdefault(z, []).append(t)

    def split(self, token: int, n: int, more: bool) -> Automaton:
        """Those with fewer than n copies of the token, or those with n or more. A state is one of this automaton and the number of copies
        so far, n standing for n or more."""
        number, moves = {(self.first, 0): 0}, []
        for s, copies in (waiting := [(self.first, 0)]):
            row = {}
            for t, z in self.moves[s].items():
                after = z, min(copies + (t == token), n)
                if more or after[1] < n:
                    if after not in number:
                        number[after] = len(number)
                        waiting.append(after)
                    row[t] = number[after]
            moves.append(row)
        return Automaton(moves, [self.accepting[s] and (copies == n) == more for s, copies in number], 0)

    def moves_at(self, _: int, s: int) -> Iterable[tuple[int, Row]]:
        """The next states, and the tokens that lead there."""
        return self.groups[s].items()

    def ends(self, s: int) -> bool:
        """Whether a sequence may end in a state."""
        return self.accepting[s]

    def walks(self, masses: Rows, meter: Meter) -> Walks:
        """Walks over its sequences; all callers have the same masses."""
        if self.known is None:
            self.known = Walks(self, masses, meter)
        return self.known

    def accepts(self, sequence: Row) -> bool:
        """Whether it accepts a sequence."""
        state = self.first
        for t in sequence:
            if t not in self.moves[state]:
                return False
            state = self.moves[state][t]
        return self.accepting[state]


class Remembering:
    """An automaton that remembers a second sum too, which has to be at least zero at the end: a state is one of the automaton and the sum.
    Below -within it is raised to that, and once it is `within` it stays there: both only accept more."""

    def __init__(self, automaton: Automaton, start: int, D: Harms, within: int, meter: Meter) -> None:
        self.automaton, self.D, self.within, self.meter = automaton, D, within, meter
        self.first = automaton.first, self.kept(start)

    def kept(self, sum_so_far: int) -> int:
        """A sum within bounds."""
        return max(-self.within, min(sum_so_far, self.within))

    def moves_at(self, i: int, s: tuple[int, int]) -> Iterable[tuple[tuple[int, int], Row]]:
        """The next states, and the tokens that lead there."""
        (state, so_far), row, found = s, self.D[i], dict[tuple[int, int], Row]()
        for z, tokens in self.automaton.groups[state].items():
            for t in filter(row.__contains__, tokens):
                after = so_far if so_far == self.within else self.kept(so_far + row[t])
                found.setdefault((z, after), []).append(t)
        self.meter.spend(400 + 500 * len(self.automaton.moves[state]))
        self.meter.hold(0, 0, 200 * len(found))
        return found.items()

    def ends(self, s: tuple[int, int]) -> bool:
        """Whether a sequence may end in a state."""
        return self.automaton.accepting[s[0]] and s[1] >= 0


class Question(NamedTuple):
    """Which sequences carry which label, and their masses."""

    automata: dict[int, Automaton]  # [m]: the sequences of label m, for labels that occur
    masses: Rows  # [i][t]
    semantics: str
    margin: tuple[int, int]  # (n, e): a sequence is right if the label's logit is larger by more than n / 2^e than every other
    sha256: str
    total: int  # the mass of all sequences that have a label


def read_question(value: Json, v: int, k: int, meter: Meter) -> Question:
    """The question of a certificate about sequences of k tokens below v. Its hash names it."""
    by = isinstance(value, dict) and "margin" in value
    names = "task masses semantics error_model sha256" + " margin" * by
    task, masses, semantics, error_model, sha256, *margins = fields(value, names, "question")
    margin = dyadic(margins[0]) if by else (0, 0)
    well_formed(by == (margin[0] != 0), "question.margin is 0: leave it out")
    holds(not by or (semantics == REAL and abs(margin[0]) < 1 << 160), "a margin of 2^160 or more, or of float32 arithmetic")
    good = (semantics, error_model) in ((REAL, None), (FLOAT32, ERROR_MODEL))
    well_formed(good, f"semantics {semantics!r:.60}, error model {error_model!r:.60}")
    if task == "max":  # state = largest token so far
        start, following, labels = 0, [[max(s, t) for t in range(v)] for s in range(v)], list(range(v))
    else:
        start, following, labels = fields(task, "start following labels", "question.task")
        rows = items(following, "question.task.following")
        following = [integers(row, 0, len(rows) - 1, "question.task.following", v) for row in rows]
        labels = integers(labels, -1, (1 << 31) - 1, "question.task.labels", len(rows))  # -1: no label
        start = integer(start, 0, len(rows) - 1, "question.task.start")
    weights = [[1] * v] * k
    if masses is not None:
        weights = [integers(row, 0, 1 << 40, "question.masses", v) for row in items(masses, "question.masses", k)]
    good = all(0 < sum(row) <= 1 << 40 for row in weights)
    holds(good, "question.masses: the masses of a position add up to 0, or to more than 2^40")

    def hashed(text: str, rows: Rows) -> str:
        return hashlib.sha256(text.encode() + b"".join(struct.pack(f"<{len(row)}q", *row) for row in rows)).hexdigest()

    asked = f"compactproofs-task-1\nn_ctx {k}\nstates {len(labels)}\ntokens {v}\nstart {start}\n"
    whole = f"compactproofs-question-{1 + by}\n{hashed(asked, [*following, labels])}\n{semantics}\n"
    whole += f"margin {margin[0]}/{1 << margin[1]}\n" if by else ""
    name = hashed(whole + "uniform", []) if masses is None else hashed(whole, weights)
    holds(sha256 == name, f"the question's SHA-256 is {name}, the certificate gives another")
    automata = {m: label_automaton(following, labels, start, m, meter) for m in sorted(set(labels))}
    left_out = sum(mass_by_query(automata.pop(-1), weights, meter).values()) if -1 in automata else 0
    automata = {m: a for m, a in automata.items() if a.tokens}
    holds(bool(automata), "question.task: no sequence has a label")
    return Question(automata, weights, semantics, margin, name, prod(map(sum, weights)) - left_out)


def label_automaton(following: Rows, labels: Row, start: int, m: int, meter: Meter) -> Automaton:
    """The sequences of label m: states that accept the same endings are merged (Moore's algorithm), so that at most one is dead; it is
    left out, and so are those that cannot be reached."""
    group, known = [int(label == m) for label in labels], 0
    while known < len(set(group)):
        meter.spend(len(labels) * (400 + 30 * len(following[0])))
        known = len(set(group))
        signatures = [(group[s], *map(group.__getitem__, row)) for s, row in enumerate(following)]
        numbers = {signature: number for number, signature in enumerate(dict.fromkeys(signatures))}
        group = [numbers[signature] for signature in signatures]
    state_of = dict(zip(group, range(len(group)), strict=True))  # some state of each group
    moves = {g: [group[z] for z in following[s]] for g, s in state_of.items()}
    dead = {g for g, row in moves.items() if set(row) == {g} and labels[state_of[g]] != m}
    number, frontier = dict[int, int](), [group[start]]
    while frontier:
        g = frontier.pop()
        if g not in dead and g not in number:
            number[g] = len(number)
            frontier += moves[g]
    order = sorted(number, key=state_of.__getitem__)
    number = {g: x for x, g in enumerate(order)}
    rows = [{t: number[z] for t, z in enumerate(moves[g]) if z in number} for g in order]
    return Automaton(rows, [labels[state_of[g]] == m for g in order], number[group[start]]) if rows else Automaton([{}], [False], 0)


# ---------------------------------------------------------------- masses, counts, walks; terms


def mass_by_query(automaton: Automaton, masses: Rows, meter: Meter) -> Counter[int]:
    """[q]: the mass of the accepted sequences that end in q, an exact integer."""
    meter.spend(len(masses) * sum(400 + 30 * len(row) for row in automaton.moves))
    ways = {automaton.first: 1}  # the mass of the ways to each state
    for row in masses[:-1]:
        after: dict[int, int] = {}
        for s, found in ways.items():
            for z, tokens in automaton.groups[s].items():
                after[z] = after.get(z, 0) + found * sum(map(row.__getitem__, tokens))
        ways = after
    by_query: Counter[int] = Counter()
    for s, found in ways.items():
        for q, z in automaton.moves[s].items():
            by_query[q] += found * masses[-1][q] if automaton.accepting[z] else 0
    return by_query


class Window(NamedTuple):
    """f_i(s, z) for one i and s, where z can be reached: constant below (0, unless sums are raised) and above, else the (z - begin)-th
    digit, in base 2^width, of one large integer. To read it at z + d is to shift by d digits."""

    begin: int
    digits: int
    packed: int
    above: int
    below: int
    least: int  # sum that the rest can add
    greatest: int


def count_up(start: int, D: Harms, masses: Rows, automaton: Automaton | Remembering, meter: Meter) -> int:
    """At least the mass of the accepted sequences with start + sum_i D[i][x_i] >= 0, where D[i] has the tokens that may stand at i.

    f_k(s, z) = 1 if s accepts and z >= 0, else 0; f_i(s, z) = sum_t masses[i][t] ceil(f_{i+1}(s', z + D[i][t]) / 2^e_i), s' being the state
    after t; the result is f_0(first, start) 2^(e_0 + e_1 + ...). Masses are not negative and rounding is upwards, so by induction f_i(s,
    z) is at least the mass of the ways to finish from s and z, in units of 2^(e_i + e_{i+1} + ...). The e_i are the least that keep
    numbers below 2^62, so that no digit of a window is carried (docs/explanation/threshold-proofs.md, 7).

    If the automaton remembers a second sum, z is kept within bounds too: below -within it is raised, from within on it stays.
    """
    within = automaton.within if isinstance(automaton, Remembering) else LARGE
    start = max(start, -within)
    if isinstance(automaton, Automaton):
        meter.spend(len(D) * sum(400 + 100 * len(row) for row in automaton.moves))
    most, width, exponents = 1, 3, [0] * (len(D) + 1)  # exponents[i + 1] is e_i
    for i in reversed(range(len(D))):
        here = sum(map(masses[i].__getitem__, D[i]))
        while here * -(-most >> exponents[i + 1]) >= 1 << 62:
            exponents[i + 1] += 1
        most = here * -(-most >> exponents[i + 1])
        width = max(width, most.bit_length() + 2)
    reach: list[dict[Any, tuple[int, int]]] = [{automaton.first: (start, start)}]  # the least and greatest sum so far, by state
    steps = []  # by state and next state: the mass of the tokens that add d, by d
    for i, (row, weights) in enumerate(zip(D, masses, strict=True)):
        weighted, after, step = set(weights) != {1}, dict[Any, tuple[int, int]](), dict[Any, dict[Any, Counter[int]]]()
        for s, (low, high) in reach[-1].items():
            step[s] = {}
            for z, tokens in automaton.moves_at(i, s):
                allowed = list(filter(row.__contains__, tokens))
                added = Counter(map(row.__getitem__, allowed))
                for t in allowed if weighted else ():
                    added[row[t]] += weights[t] - 1
                if added:
                    step[s][z] = added
                    sums = max(low + min(added), -within), max(high + max(added), -within), *after.get(z, ())
                    after[z] = min(sums), max(sums)
        reach.append(after)
        steps.append(step)
    windows = {s: Window(0, 0, 0, 1, 0, 0, 0) for s in reach[-1] if automaton.ends(s)}
    for i in reversed(range(len(D))):
        new = {}
        for s, (low, high) in reach[i].items():
            groups = [(windows[z], added) for z, added in steps[i][s].items() if z in windows]
            if groups:
                least = min(min(added) + window.least for window, added in groups)
                greatest = max(max(added) + window.greatest for window, added in groups)
                begin = max(-greatest, low, -within)
                digits = max(min(-least, high + 1, within) - begin, 0)
                meter.add(sum(len(added) for _, added in groups), digits * width)
                meter.hold(0, 0, digits * width)
                packed, above = shifted(groups, begin, digits, width, exponents[i])
                raised = 0 if begin > -within else packed & (1 << width) - 1 if digits else above
                new[s] = Window(begin, digits, packed, above, raised, least, greatest)
        windows = new
    if automaton.first not in windows:
        return 0
    window = windows[automaton.first]  # of the start alone
    found = window.packed if window.digits else window.above if window.begin == start else 0
    return found << sum(exponents)


@lru_cache(1024)
def ones(digits: int, width: int) -> int:
    """1 in every digit: a geometric series."""
    return ((1 << digits * width) - 1) // ((1 << width) - 1)


def shifted(groups: list[tuple[Window, Counter[int]]], begin: int, digits: int, width: int, e: int) -> tuple[int, int]:
    """The digits from `begin` on of the sum of mass times window(z + d), over windows and over {d: mass}; and the constant above. Both
    are divided by 2^e and rounded up."""
    packed = constant = above = 0
    one = ones(digits, width)
    for window, added in groups:
        longer = window.packed | window.above * one << window.digits * width
        for d, weight in added.items():
            above += weight * window.above
            move = begin + d - window.begin
            if move >= window.digits:
                constant += weight * window.above
            elif move > -digits:
                part = longer >> move * width if move >= 0 else longer << -move * width | window.below * ones(-move, width)
                packed += part if weight == 1 else weight * part
            else:
                constant += weight * window.below
    packed = (packed & (1 << digits * width) - 1) + constant * one
    if e:
        packed = (packed + one * ((1 << e) - 1) >> e) & one * ((1 << width - e) - 1)
    return packed, -(-above >> e)


def stays_negative(steps: Iterable[list[tuple[int, int, int]]], automaton: Automaton) -> bool:
    """Whether the sum over every accepted sequence is negative; steps[i] has the moves at i: state, next state, what is added."""
    best = {automaton.first: 0}  # the largest sum so far, by state
    for moves in steps:
        after: dict[int, int] = {}
        for s, z, x in moves:
            if s in best and (z not in after or best[s] + x > after[z]):
                after[z] = best[s] + x
        best = after
    return all(x < 0 for s, x in best.items() if automaton.accepting[s])


class Grid(NamedTuple):
    """How harms become small integers: a certificate's choice, any is sound."""

    mantissa: int
    exponent: int  # a step is mantissa 2^exponent
    depth: int
    offsets: Row  # in 256ths of a step

    def rounded(self, harms: Harms, scale: int, strict: bool) -> tuple[int, Harms]:
        """start and D: start + sum_i D[i][x_i] >= 0 if the harms, over 2^scale, add up to at least zero; if strict, to more than zero.

        D = ceil(harm / step - offset / 256) and start = ceil(sum of offsets / 256), so the integer start + sum D is at least the sum of
        harms over the step. D may be raised to a floor; and a D above the ceiling decides alone, since start + ceiling + the floors of all
        others is zero, so the ceiling will do (docs/explanation/threshold-proofs.md, 3).
        """
        start = -(-sum(self.offsets) // 256) - strict
        floors = [self.depth] * (len(harms) - 1) + [4 * self.depth]
        down, whole, D = scale + self.exponent - 8, 256 * self.mantissa, []
        for row, offset, floor in zip(harms, self.offsets, floors, strict=True):
            ceiling, shift = sum(floors) - floor - start, offset * self.mantissa
            steps = {t: -((shift - (-(-h >> down) if down >= 0 else h << -down)) // whole) for t, h in row.items()}
            if min(steps.values()) < -floor or max(steps.values()) > ceiling:
                steps = {t: max(min(x, ceiling), -floor) for t, x in steps.items()}
            D.append(steps)
        return start, D


def along(harms: Harms, sequence: Row) -> int:
    """The sum of harms over a sequence."""
    return sum(row[t] for row, t in zip(harms, sequence, strict=True))


class Factors(NamedTuple):
    """Hints of factored terms: any are sound."""

    centre: Exact  # moved from the positions to the tokens
    mu: Exact  # moved from the direct path to EVOU
    labels: dict[int, tuple[int | None, Row]]  # [m]: a token to which attention is relative, or None, and weights of outputs


def read_factors(value: Json, sizes: dict[str, int]) -> Factors:
    """The hints of a certificate; none if it has no factored terms."""
    out, d_model = sizes["d_vocab_out"], sizes["d_model"]
    if value is None:
        return Factors(Exact([[0] * d_model], 0), Exact([[0] * out], 0), {})
    *vectors, labels = fields(value, "centre mu labels", "factors")
    moved, hints = [], {}
    for where, vector, length in zip(("factors.centre", "factors.mu"), vectors, (d_model, out), strict=True):
        scale, entries = fields(vector, "scale entries", where)
        moved.append(Exact([integers(entries, -LARGE, LARGE, where, length)], integer(scale, 0, 256, where)))
    for each in items(labels, "factors.labels"):
        m, token, weights = fields(each, "label relative_to weights", "factors.labels")
        relative_to = None if token is None else integer(token, 0, sizes["d_vocab"] - 1, "factors.labels")
        w = [1] * out if weights is None else integers(weights, 1, 1 << 40, "factors.labels", out)
        hints[integer(m, 0, out - 1, "factors.labels")] = relative_to, w
    return Factors(moved[0], moved[1], hints)


class Term(NamedTuple):
    """`joint` outputs and their weights; `apart`, output o less output p, and two factors; `factored`; `spoiler`, one output;
    or `spoilers`, two outputs and two factors. `both` is two of them at once, and covers what both cover."""

    kind: str
    outputs: Row
    numbers: Row
    grid: Grid
    second: Term | None = None  # of two at once
    within: int = 0  # of two at once: how far their sums are followed


class Label:
    """One label m: its sequences, and what its queries share. Rows over outputs leave m out."""

    def __init__(self, T: Tables | Block, automaton: Automaton, m: int) -> None:
        self.T: Any = T
        self.automaton, self.m, self.tokens = automaton, m, automaton.tokens
        self.others = [*range(m), *range(m + 1, T.out)]
        self.mass = mass_by_query(automaton, T.masses, T.meter)
        if isinstance(T, Tables):
            T.meter.add(2 * T.out * (len(T.EVOU) + T.k), T.scale)
            sheets = [[T.EVOU[first + t] for t in self.tokens] for first in range(0, len(T.EVOU), T.v)]
            *self.EVOU, self.PVOU = ([[x - row[m] for x in row[:m] + row[m + 1 :]] for row in rows] for rows in (*sheets, T.PVOU))
            self.at_worst = list(map(max, *self.PVOU, self.PVOU[0]))

    def direct(self, q: int) -> Row:
        """EU[q][o] - EU[q][m], with the slack and the margin, and the error of float32 arithmetic if the claim is about that."""
        row, own = self.T.EU[q], self.T.own[q][self.m]
        return [x - own for x in row[: self.m] + row[self.m + 1 :]]

    @cached_property
    def brackets(self) -> tuple[Rows, Row, dict[int, int]]:
        """With the weights w of the factors: r[t] = max_o w[o] (EVOU[t][o] - EVOU[t][m]), for each sheet; p[i] and s[q] likewise from PVOU
        and EU."""
        weights = self.T.factors.labels[self.m][1]
        size = max(self.T.scale, max(weights).bit_length())
        self.T.meter.multiply(((1 + len(self.EVOU)) * len(self.tokens) + self.T.k) * self.T.out, size)
        w, direct = [weights[o] for o in self.others], list(map(self.direct, self.tokens))
        *r, p, s = ([max(map(mul, w, row), default=-1) for row in rows] for rows in (*self.EVOU, self.PVOU, direct))
        return r, p, dict(zip(self.tokens, s, strict=True))

    def attention(self, q: int) -> list[tuple[Row, Row]]:
        """For each sheet, lower and upper bounds of the attention of q to the tokens."""
        low, high, v = self.T.A_low[q], self.T.A_high[q], self.T.v
        return [([low[f + t] for t in self.tokens], [high[f + t] for t in self.tokens]) for f in range(0, len(low), v)]


Entries = list[tuple[int, int, int, int]]  # (token, x, lower and upper bound of A)


def entries_of(tokens: Row, values: Rows, bounds: list[tuple[Row, Row]]) -> list[Entries]:
    """The entries of each sheet; values and bounds may have one for all, or one for each position."""
    return [list(zip(tokens, values[s % len(values)], *bounds[s % len(bounds)], strict=True)) for s in range(max(len(values), len(bounds)))]


def products(sheets: list[Entries], places: list[tuple[int, int, int]], up: bool, first: int = 0) -> Harms:
    """At least (up) or at most (x + y) A b, for the entries of its sheet at each of the places (y, bounds of b) from the first on."""
    here = ((sheets[i % len(sheets)], place) for i, place in enumerate(places, first))
    return [{t: z * A1 * b1 if ((z := x + y) > 0) == up else z * A0 * b0 for t, x, A0, A1 in entries} for entries, (y, b0, b1) in here]


def pooled(label: Label, queries: Row) -> Harms:
    """[i][t] over 2^(scale + 2 bits): bounds of all outputs of a label at once, at their worst over a pool of queries.

    w[o] (B_o - B_m) <= r[t] + p[i] + s[q], so w[o] G_o(i, t) <= A[t] b[i] (r + p + s); if these add up to less than zero, no output
    reaches the label. A and b of each query may be scaled by any positive numbers; one table then serves a pool, with its largest s, and
    its largest attention where r + p + s is positive, its least where it is not. At the last position the token is the query itself.
    """
    T, tokens, (r, p, s), (relative_to, _) = label.T, label.tokens, label.brackets, label.T.factors.labels[label.m]
    T.meter.multiply(2 * len(queries) * (len(tokens) * len(T.A_low[0]) // T.v + T.k) + 3 * T.k * len(tokens), 2 * T.bits)

    def scaled(low: Row, high: Row, factor: int) -> tuple[Row, Row]:
        return [x * factor >> T.bits for x in low], [-(-x * factor >> T.bits) for x in high]

    def worst_of(bounds: Iterable[tuple[Row, Row]]) -> tuple[Row, Row]:
        low, high = zip(*bounds, strict=True)
        return list(map(min, *low, low[0])), list(map(max, *high, high[0]))

    A, b, last, worst = [], [], {}, max(s[q] for q in queries)
    for q in queries:
        sheets = label.attention(q)
        factor = 0 if relative_to is None else (1 << 2 * T.bits) // max(T.A_high[q][relative_to], 1)
        A.append(sheets if relative_to is None else [scaled(low, high, factor) for low, high in sheets])
        b.append(scaled(T.b_low[q], T.b_high[q], T.tops[q]))
        own, (low, high) = tokens.index(q), A[-1][-1]
        itself, place = (q, r[-1][own], low[own], high[own]), (p[-1] + s[q], b[-1][0][-1], b[-1][1][-1])
        last[q] = products([[itself]], [place], up=True)[0][q]
    entries = entries_of(tokens, r, list(map(worst_of, zip(*A, strict=True))))
    places = zip([x + worst for x in p], *worst_of(b), strict=True)
    return [*products(entries, list(places)[:-1], up=True), last]


class Pair:
    """One query and one label: bounds of G_o(i, t), computed when they are needed."""

    def __init__(self, label: Label, q: int) -> None:
        self.T, self.label, self.q, self.tokens, self.others = label.T, label, q, label.tokens, label.others
        self.own, self.direct, self.A = label.tokens.index(q), label.direct(q), label.attention(q)
        rest = list(map(add, label.at_worst, self.direct))
        self.gains = [[list(map(add, row, rest)) for row in sheet] for sheet in label.EVOU]  # [t][o]: at least B_o - B_m, at all positions
        self.known: dict[tuple[int, bool], Harms] = {}

    def terms(self, o: int, up: bool) -> Harms:
        """[i][t]: at least (up) or at most G_o(i, t)."""
        if (o, up) not in self.known:
            T, q, j = self.T, self.q, self.others.index(o)
            T.meter.multiply(4 * T.k * len(self.tokens), T.bits + T.scale // 2)
            if len(self.known) * T.k * len(self.tokens) > 1 << 22:
                self.known.clear()
            sheets = entries_of(self.tokens, [[row[j] for row in sheet] for sheet in self.label.EVOU], self.A)
            direct = self.direct[j] if up else self.direct[j] - 2 * T.slack  # B_o - B_m lies between the two
            places = list(zip([row[j] + direct for row in self.label.PVOU], T.b_low[q], T.b_high[q], strict=True))
            last = [[entries[self.own]] for entries in sheets]
            self.known[o, up] = products(sheets, places[:-1], up) + products(last, places[-1:], up, T.k - 1)
        return self.known[o, up]

    def harms(self, term: Term) -> Harms:
        """Upper bounds of what a term adds up."""
        self.T.meter.multiply(len(term.outputs) * self.T.k * len(self.tokens), self.T.bits + self.T.scale // 2)
        if term.kind == "spoiler":
            return [{t: -x for t, x in row.items()} for row in self.terms(term.outputs[0], up=False)]
        if term.kind == "spoilers":
            (one, two), (n1, n2) = (self.terms(p, up=False) for p in term.outputs), term.numbers
            return [{t: -n1 * x - n2 * row[t] for t, x in known.items()} for known, row in zip(one, two, strict=True)]
        if term.kind == "apart":
            above, below, (n1, n2) = self.terms(term.outputs[0], up=True), self.terms(term.outputs[1], up=False), term.numbers
            return [{t: n1 * x - n2 * lows[t] for t, x in highs.items()} for highs, lows in zip(above, below, strict=True)]
        most: Rows = []
        for o, w in zip(term.outputs, term.numbers, strict=True):
            rows = [[w * x for x in row.values()] for row in self.terms(o, up=True)]
            most = [list(map(max, *both)) for both in zip(most, rows, strict=True)] if most else rows
        tokens = [self.tokens] * (self.T.k - 1) + [[self.q]]
        return [dict(zip(*row, strict=True)) for row in zip(tokens, most, strict=True)]

    def require_right(self, harmful: Row, x: Row) -> None:
        """A sequence must be certainly right, only these outputs being harmful."""
        holds(all(along(self.terms(o, up=True), x) < 0 for o in harmful), f"the sequence {x} is not certainly right")

    def require_wrong(self, x: Row) -> None:
        """A sequence must be certainly wrong."""
        holds(any(along(self.terms(o, up=False), x) >= 0 for o in self.others), f"the sequence {x} is not certainly wrong")

    def harmful(self, first: int, end: int) -> Row:
        """Those of `others[first:end]` of which no quick walk shows that they never reach the label: it takes every position for the
        worst one, and several outputs at once for the worst of them; a failure halves them."""
        T, q, automaton = self.T, self.q, self.label.automaton
        worst = [[max(row[first:end]) for row in sheet] for sheet in self.gains]
        sheets = entries_of(self.tokens, worst, self.A)
        T.meter.multiply(len(sheets) * len(self.tokens) * (3 + end - first) + T.k * len(automaton.moves), (T.bits + T.scale) // 2)
        harm = [{t: x * (high if x > 0 else low) for t, x, low, high in entries} for entries in sheets]
        groups = [(s, z, ts) for s, group in enumerate(automaton.groups) for z, ts in group.items()]
        moves = [[(s, z, max(map(at.__getitem__, ts))) for s, z, ts in groups] for at in harm]
        steps = [moves[i % len(moves)] for i in range(T.k - 1)]
        steps.append([(s, row[q], harm[-1][q]) for s, row in enumerate(automaton.moves) if q in row])
        b = zip(steps, T.b_low[q], T.b_high[q], strict=True)
        if stays_negative(([(s, z, x * (high if x > 0 else low)) for s, z, x in step] for step, low, high in b), automaton):
            return []
        half = (first + end) // 2
        return self.others[first:end] if end - first == 1 else self.harmful(first, half) + self.harmful(half, end)

    def of_leaf(self, leaf: Leaf, where: str) -> Pair:
        """All leaves have the same harms."""
        return self

    def harmful_in(self, outputs: Row, automaton: Automaton) -> Row:
        """The first of these outputs that no walk shows to be harmless in a leaf."""
        return next(([o] for o in outputs if not self.is_harmless_in(o, automaton)), [])

    def is_harmless_in(self, o: int, automaton: Automaton) -> bool:
        """Whether a walk shows that output o stays below the label on all sequences of a leaf that have a mass."""
        self.T.meter.add(3 * len(automaton.moves) * self.T.k * len(self.tokens), 0)
        everything, groups = set(automaton.tokens), [(s, z, ts) for s, group in enumerate(automaton.groups) for z, ts in group.items()]
        steps = []
        for row, weights in zip(self.terms(o, up=True), self.T.masses, strict=True):
            allowed = row if min(weights) > 0 else {t: x for t, x in row.items() if weights[t]}
            whole = allowed.keys() >= everything
            there = groups if whole else [(s, z, list(filter(allowed.__contains__, tokens))) for s, z, tokens in groups]
            steps.append([(s, z, max(map(allowed.__getitem__, tokens))) for s, z, tokens in there if tokens])
        return stays_negative(steps, automaton)


# ---------------------------------------------------------------- whole blocks: several heads, neurons, final norms that tell outputs apart

CENTRE_BITS, SHARE_BITS, LINE_BITS = 12, 16, 64  # Weights of centres, shares of heads, slopes and directions are over two to these.
WALK_BITS = 60  # Walks round upwards to so many bits at first.
TABLE_BITS = 192  # Tables of whole blocks keep so many bits of their largest number; any number is sound.


class Block(NamedTuple):
    """A layer that is more than one head with an affine readout. Row i v + t belongs to token t at position i.

    The stream is r = base[q] + for each head the average of its values, weighed by its attention. Columns are what is read of it: outputs,
    then the inputs of neurons, or, of a final norm, the centred stream K r, K = d I - 1 1' (RMS: K = I, and 1 instead of d below).
    """

    out: int
    k: int
    v: int
    scale: int
    bits: int
    error: int  # entries of `value` and `base` are off by at most this
    low: list[Rows]  # [head][q][i v + t]: attention
    high: list[Rows]
    value: list[Rows]  # [head][i v + t][column], over 2^scale
    base: Rows  # [q][column]
    factor: Rows  # [neuron][o]: W_out W_U, over 2^unit
    added: Row  # [o]: what stands behind a final norm, over 2^unit; or nothing
    unit: int
    eps: tuple[int, int]  # d^2 times the eps of the final norm, as x / 2^e
    masses: Rows
    factors: Factors
    meter: Meter

    @property
    def more(self) -> int:
        """Differences of logits are over 2^(scale + CENTRE_BITS), and so many bits more if neurons or a norm follow."""
        return self.unit + LINE_BITS if self.factor or self.added else 0

    @property
    def harm_scale(self) -> int:
        """Harms are over two to this."""
        return self.scale + CENTRE_BITS + self.more + self.bits

    @property
    def wide(self) -> int:
        """The dimension of the stream, where there is a final norm."""
        return len(self.base[0]) - self.out if self.added else 0


def block_tables(network: Network, question: Question, factors: Factors, meter: Meter) -> Block:
    """What heads write, read by all columns, and enclosures of their attention."""
    said, sizes, W = network.settings or {}, network.sizes(), {name: exact(name, *raw) for name, raw in network.tensors.items()}
    relu, final = said["act"] == "relu", said["norm_final"]
    known = "several heads, norms before attention, norms at the end without an MLP, and ReLU MLPs without norms after attention"
    good = said["norm_2"] is None and not said["post_norm"] and (said["act"] is None or (relu and final is None))
    holds(good, f"this checker knows {known}")
    holds(question.semantics == REAL, "float32 claims are about networks without biases and norms")
    d, heads, k, v, out = (sizes[name] for name in ("d_model", "n_heads", "n_ctx", "d_vocab", "d_vocab_out"))

    def bias(name: str, n: int) -> Exact:
        return W.get(name, Exact([[0] * n], 0))

    def sum_of(x: Exact, y: Exact) -> Exact:
        finest = max(x.scale, y.scale)
        return x.at(finest).plus(y.at(finest).rows[0])

    read, extra, factor, added, eps = W["W_U"], bias("b_U", out), Exact([], 0), Exact([[]], 0), (0, 0)
    if relu:
        factor, extra = W["mlp.W_out"].times(read, meter), sum_of(extra, bias("mlp.b_out", d).times(read, meter))
        read, extra = read.beside(W["mlp.W_in"]), extra.beside(bias("mlp.b_in", sizes["d_mlp"]))
    elif final is not None:
        w, (e, t) = (d if final[0] == "LN" else 1), dyadic(final[1])
        added, eps = sum_of(extra, bias("norm_final.bias", d).times(read, meter)), (e * w * w, t)
        meter.hold(d * d, 0)
        meter.add(d * d, 0)
        K = Exact([[w * (i == j) - (final[0] == "LN") for j in range(d)] for i in range(d)], 0)
        read, extra = read_behind_norm(read, final[0], W.get("norm_final.weight")).beside(K), Exact([[0] * (out + d)], 0)
    parts = [embedded(network, W, h, factors, meter) for h in range(heads)]
    found, scores = [sum_of(parts[0].stream.times(read, meter), extra)], []
    for part in parts:
        VO = part.W_V.times(part.W_O.times(read, meter), meter)
        found.append(everywhere(part.carrier.times(VO, meter), part.place.times(VO, meter), v, meter))
        EQKE, EQKP = part.scores(meter)
        scores.append(everywhere(EQKE.transposed(), EQKP.transposed(), v, meter).transposed())
    finest = max(x.scale for x in found)
    whole = Exact([row for x in found for row in x.at(finest).rows], finest, max(x.at(finest).error for x in found)).rounded(TABLE_BITS)
    values = [whole.rows[v + h * k * v : v + (h + 1) * k * v] for h in range(heads)]
    n, over = map(int, network.divisor.split("/"))
    bits = max(bits_for(x.rows, x.scale, (n, over)) for x in scores)
    recency = [Exact([[x for x in part.recency.rows[0] for _ in range(v)]], part.recency.scale) for part in parts]
    attended = [
        attention(x, (n, over), after if len(after.rows[0]) == k * v else Exact([[0]], 0), bits, meter)
        for x, after in zip(scores, recency, strict=True)
    ]
    low, high = [x[0] for x in attended], [x[1] for x in attended]
    unit = max(factor.scale, added.scale)
    fixed = factor.at(unit).rows, added.at(unit).rows[0], unit, eps
    return Block(out, k, v, whole.scale, bits, whole.error, low, high, values, whole.rows[:v], *fixed, question.masses, factors, meter)


def everywhere(tokens: Exact, places: Exact, v: int, meter: Meter) -> Exact:
    """Row i v + t: what belongs to a token (or to it at a position already) and what its position adds."""
    entries = len(places.rows) * v * len(places.rows[0])
    meter.add(entries, tokens.bits + places.bits)
    meter.hold(entries, tokens.bits + places.bits)
    finest = max(tokens.scale, places.scale)
    one, other = tokens.at(finest), places.at(finest)
    rows = [list(map(add, one.rows[(i * v + t) % len(one.rows)], row)) for i, row in enumerate(other.rows) for t in range(v)]
    return Exact(rows, finest, one.error + other.error)


def consecutive(numbers: Row, none: int) -> Iterator[tuple[int, int, int]]:
    """Runs of consecutive numbers other than `none`: the first of them, where it stands, and how many there are."""
    begin = None
    for x, number in enumerate([*numbers, none]):
        if begin is not None and (number == none or number != numbers[x - 1] + 1):
            yield numbers[begin], begin, x - begin
            begin = None
        if begin is None and number != none:
            begin = x


class Walks:
    """The largest sums along the accepted sequences that have a mass, by positions and states.

    Tokens that move alike from every state form a group. A state is live before position i if i tokens lead there and the rest can be
    accepted. A step has its groups, and slots: a group and, for each state that is live after it, the number of a state before it from
    which the group leads there, or one more than there are. A table of the last position may have some of its tokens only."""

    def __init__(self, automaton: Automaton, masses: Rows, meter: Meter) -> None:
        meter.spend(len(masses) * sum(1000 + 500 * len(row) for row in automaton.moves))
        self.meter = meter
        alike: dict[tuple[int, ...], Row] = {}
        for t in automaton.tokens:
            alike.setdefault(tuple(row.get(t, -1) for row in automaton.moves), []).append(t)
        steps = [[(move, found) for move, ts in alike.items() if (found := [t for t in ts if row[t]])] for row in masses]
        reached = [{automaton.first}]
        for row in steps:
            reached.append({move[s] for move, _ in row for s in reached[-1]} - {-1})
        live = {s for s in reached.pop() if automaton.accepting[s]}
        self.steps: list[tuple[Rows, list[tuple[int, Row]]]] = []
        self.runs: list[list[tuple[int, int, int, int]]] = []
        for row in reversed(steps):
            after, here = {z: x for x, z in enumerate(sorted(live))}, sorted(reached.pop())
            here = [s for s in here if any(move[s] in after for move, _ in row)]
            slots: list[tuple[int, Row]] = []
            for g, (move, _) in enumerate(row):
                own: Rows = []
                ways = [0] * len(after)  # to each state
                for x, s in enumerate(here):
                    z = after.get(move[s])
                    if z is not None:
                        if ways[z] == len(own):  # as many slots as there are ways to one state
                            meter.spend(100 + 10 * len(after))
                            meter.hold(2 + len(after), 0)
                            own.append([len(here)] * len(after))
                        own[ways[z]][z] = x
                        ways[z] += 1
                slots += [(g, of) for of in own]
            self.steps.append(([ts for _, ts in row], slots))
            self.runs.append([(g, *run) for g, of in slots for run in consecutive(of, len(here))])
            live = set(here)
        self.steps.reverse()
        self.runs.reverse()
        self.size = sum(len(of) for _, slots in self.steps for _, of in slots) if live else 0
        self.regular = 8 * sum(map(len, self.runs)) < self.size

    def forward(self, harms: Harms) -> Rows:
        """Before each position and at the end, the largest sum to each live state. At the end there may be states without a way: they have
        less than any sum, half of `below` at the most."""
        below = 4 * self.least(harms)
        self.meter.add(2 * self.size + sum(map(len, harms)), below.bit_length())
        found = [[0]]
        for row, (groups, slots) in zip(harms, self.steps, strict=True):
            best = [row.get(ts[0], below) if len(ts) == 1 else max((row[t] for t in ts if t in row), default=below) for ts in groups]
            before = [*found[-1], below]
            ways = [[before[x] + y for x in of] for g, of in slots for y in (best[g],)]
            found.append(list(map(max, *ways)) if len(ways) > 1 else ways[0])
        return found

    def least(self, harms: Harms) -> int:
        """Less than every sum."""
        return -1 - sum(max(map(abs, row.values())) for row in harms)

    def largest(self, harms: Harms) -> int:
        """At least the largest sum, and negative if that is; or less than any if there is no sequence."""
        if not self.size:
            return -1
        spare = max(max(max(map(abs, row.values())) for row in harms).bit_length() - WALK_BITS, 0)
        end = self.packed if self.regular else lambda table: max(self.forward(table)[-1])
        rounded = end([{t: -(-x >> spare) for t, x in row.items()} for row in harms])
        return rounded if rounded < 0 or not spare else end(harms)

    def packed(self, harms: Harms) -> int:
        """The largest sum, or -1 if there is no sequence. Sums of all states are digits of one integer, raised so that none is negative,
        plus 1; 0 stands for no way. Consecutive ways are a shift. Of two integers a digit of one is not less than that of the other if the
        highest bit, set before, remains when they are subtracted: sums stay below it."""
        raised = [max(0, -min(row.values())) for row in harms]
        width = (1 + sum(raised) + sum(max(0, *row.values()) for row in harms)).bit_length() + 1
        now = 1
        for row, more, (groups, slots), runs in zip(harms, raised, self.steps, self.runs, strict=True):
            best = [row.get(ts[0]) if len(ts) == 1 else max((row[t] for t in ts if t in row), default=None) for ts in groups]
            top, after = ones(len(slots[0][1]), width) << width - 1, 0
            self.meter.add(10 * len(runs), top.bit_length())
            for g, first, begin, n in runs:
                y = best[g]
                if y is not None:
                    way = (now >> first * width & (1 << n * width) - 1) + (y + more) * ones(n, width) << begin * width
                    kept = ((after | top) - way & top) >> width - 1
                    after = way ^ (after ^ way) & (kept << width) - kept
            now = after
        most = max(now >> x * width & (1 << width) - 1 for x in range(len(self.steps[-1][1][0][1])))
        return most - 1 - sum(raised) if most else -1

    def through(self, harms: Harms) -> Harms:
        """[i][t]: the largest sum over the sequences with token t at position i, for tokens with which there is one."""
        if not self.size:
            return [{} for _ in harms]
        result, least = [], self.least(harms)
        self.meter.add(2 * self.size + sum(map(len, harms)), least.bit_length())
        *before, last = self.forward(harms)
        after = [0 if x > least else 4 * least for x in last]
        for row, (groups, slots), here in zip(reversed(harms), reversed(self.steps), reversed(before), strict=True):
            best, around = [4 * least] * (len(here) + 1), [4 * least] * len(groups)
            most = [max((row[t] for t in ts if t in row), default=4 * least) for ts in groups]
            for g, of in slots:
                for x, rest in zip(of, after, strict=True):
                    best[x] = max(best[x], most[g] + rest)
                around[g] = max(around[g], *(here[x] + rest for x, rest in zip(of, after, strict=True) if x < len(here)))
            result.append({t: row[t] + x for ts, x in zip(groups, around, strict=True) for t in ts if t in row and row[t] + x > least})
            after = [x if x > least else 4 * least for x in best[:-1]]
        return result[::-1]


class Neuron(NamedTuple):
    """How a neuron is bounded over a leaf: on (1) or off (0) everywhere; between two numbers; or by Jensen's inequality."""

    fixed: int | None
    low: int = 0
    high: int = 0
    scale: int = 0
    shares: Row | None = None
    tangent: int = 0  # the slope, 0 or 1, of a line below it


class Hints(NamedTuple):
    """What a certificate says of a leaf of a block; what has to be true of it is checked."""

    rows: Row  # places i v + t, and for each head their weights: about what it writes
    weights: Rows
    neurons: list[Neuron]
    shares: Row  # of heads, for a final norm


def read_hints(value: Json, T: Block, where: str) -> Hints:
    """The hints of a leaf."""
    typical, neurons, shares = fields(value, "typical neurons shares", where + " hints")
    heads, rows, weights = len(T.value), Row(), [Row() for _ in T.value]
    if typical is not None:
        places, *_ = found = items(typical, where + " typical", 1 + heads)
        rows = integers(places, 0, T.k * T.v - 1, where + " typical")
        holds(len(rows) <= T.k * T.v, f"{where}: more places are typical than there are")
        weights = [integers(each, 0, 1 << 20, where + " typical", len(rows)) for each in found[1:]]

    def shared(each: Json) -> Row:
        found = integers(each, 1, 1 << SHARE_BITS, where + " shares", heads)
        holds(sum(found) <= 1 << SHARE_BITS, f"{where}: shares of heads add up to more than 1")
        return found

    read = []
    for each in items(neurons, where + " neurons", len(T.factor)):
        if isinstance(each, dict) and "shares" in each:
            tangent, own = fields(each, "tangent shares", where + " neuron")
            read.append(Neuron(None, shares=shared(own), tangent=integer(tangent, 0, 1, where)))
        elif isinstance(each, dict):
            low, high, scale, tangent = fields(each, "low high scale tangent", where + " neuron")
            low, high = integers([low, high], -LARGE, LARGE, where + " neuron")
            holds(low < 0 < high, f"{where}: a neuron that is between two numbers of one sign is on or off")
            read.append(Neuron(None, low, high, integer(scale, 0, 2000, where), tangent=integer(tangent, 0, 1, where)))
        else:
            read.append(Neuron(integer(each, 0, 1, where + " neuron")))
    return Hints(rows, weights, read, shared(shares) if shares is not None else [1] * heads)


Blend = tuple[int, Rows]  # a constant, and for each head a table over places that its attention averages


class BlockPair:
    """One query and one label of a block. Places are the tokens at all positions, and the query at the last one."""

    def __init__(self, label: Label, q: int) -> None:
        self.T, self.label, self.q, self.tokens, self.others = label.T, label, q, label.tokens, label.others
        T = self.T
        self.rows = [i * T.v + t for i in range(T.k - 1) for t in self.tokens] + [(T.k - 1) * T.v + q]
        self.attention = [
            ([low[q][r] for r in self.rows], [high[q][r] for r in self.rows]) for low, high in zip(T.low, T.high, strict=True)
        ]

    def as_harms(self, flat: Row) -> Harms:
        """Numbers of places by position and token."""
        n = len(self.tokens)
        return [*(dict(zip(self.tokens, flat[i * n : (i + 1) * n], strict=True)) for i in range(self.T.k - 1)), {self.q: flat[-1]}]

    def of_leaf(self, leaf: Leaf, where: str) -> BlockLeaf:
        """Each leaf has bounds of its own."""
        return BlockLeaf(self, leaf.automaton, leaf.hints, where)

    def harmful(self, first: int, end: int) -> Row:
        """Nothing is known before leaves are looked at."""
        return self.others[first:end]

    def logits(self, x: Row) -> list[tuple[int, int]]:
        """Enclosures of the logits on one sequence, up to a positive factor."""
        T, rows, heads = self.T, [i * self.T.v + t for i, t in enumerate(x)], len(self.T.value)
        T.meter.multiply(2 * heads * T.k * len(T.base[0]), (T.bits + T.scale) // 2)
        T.meter.add(2 * len(T.factor) * T.out, T.bits + T.scale)
        off = (heads + 1) * T.error << T.bits
        least, most = ([y << T.bits for y in T.base[self.q]] for _ in range(2))
        for low, high, value in zip(T.low, T.high, T.value, strict=True):
            lows, highs = [low[self.q][r] for r in rows], [high[self.q][r] for r in rows]
            holds(sum(lows) > 0, f"attention on the sequence {x} is too small to tell")
            for r, a, b in zip(rows, lows, highs, strict=True):
                a, b = (a << T.bits) // sum(highs), -((-b << T.bits) // sum(lows))
                least = [y + z * (a if z > 0 else b) for y, z in zip(least, value[r], strict=True)]
                most = [y + z * (b if z > 0 else a) for y, z in zip(most, value[r], strict=True)]
        ends = [(a - off, b + off) for a, b in zip(least, most, strict=True)]
        logits = [(a << T.unit, b << T.unit) for a, b in ends[: T.out]]
        for (a, b), row in zip(ends[T.out :], T.factor, strict=False):
            a, b = max(a, 0), max(b, 0)
            logits = [(y + c * (a if c > 0 else b), z + c * (b if c > 0 else a)) for (y, z), c in zip(logits, row, strict=True)]
        if T.added:
            squares = [(0 if a <= 0 <= b else min(a * a, b * b), max(a * a, b * b)) for a, b in ends[T.out :]]
            sigma = [
                self.root(sum(side), 2 * (T.scale + T.bits), 0, up)
                for side, up in zip(zip(*squares, strict=True), (False, True), strict=True)
            ]
            logits = [(y + c * sigma[c < 0], z + c * sigma[c > 0]) for (y, z), c in zip(logits, T.added, strict=True)]
        return logits

    def root(self, square: int, scale: int, share_bits: int, up: bool, share: int = 1) -> int:
        """sqrt(square / d + d^2 eps share^2), square over 2^scale and share over 2^share_bits, rounded up or down, over 2^(scale / 2)."""
        T, (e, t) = self.T, self.T.eps
        return isqrt(square // T.wide + (e * share * share << scale >> t + 2 * share_bits) + 2 * up) + up

    def require_right(self, harmful: Row, x: Row) -> None:
        """A sequence must be certainly right."""
        logits = self.logits(x)
        good = all(logits[o][1] < logits[self.label.m][0] for o in self.others)
        holds(good, f"the sequence {x} is not certainly right")

    def require_wrong(self, x: Row) -> None:
        """A sequence must be certainly wrong."""
        logits = self.logits(x)
        holds(any(logits[o][0] >= logits[self.label.m][1] for o in self.others), f"the sequence {x} is not certainly wrong")


class BlockLeaf:
    """The bounds of one leaf: every difference of logits is at most a blend, whose sum over a sequence has an additive upper bound.

    A blend is constant + sum_h mean_h(parts_h). One head: it is at most 0 where sum_i a(i, x_i) (constant + parts) is. Several heads
    (Theorem P): let a_h(i, t) / Z_h lie between low and high on the sequences of the leaf with x_i = t; then it is at most constant +
    sum_i sum_h max(low parts_h, high parts_h). The theorems are proved in docs/explanation/blocks.
    """

    def __init__(self, pair: BlockPair, automaton: Automaton, hints: Hints | None, where: str) -> None:
        self.pair, self.T, self.hints, self.where, self.heads = pair, pair.T, hints, where, len(pair.T.value)
        self.walks, self.weights = automaton.walks(self.T.masses, self.T.meter), pair.attention
        self.off = (self.heads + 1) * self.T.error << CENTRE_BITS  # of anything that is read of the stream
        if hints is None:
            return
        if self.heads > 1:
            self.weights = [self.shares(low, high) for low, high in pair.attention]
        self.hold_blends(len(self.T.factor))
        self.inputs = [self.linear(self.T.out + j) for j in range(len(self.T.factor))]
        self.T.meter.multiply((self.heads + 2) * len(self.inputs) * len(pair.rows), self.T.scale)
        grid = self.T.scale + CENTRE_BITS
        for neuron, (constant, parts) in zip(hints.neurons, self.inputs, strict=True):
            up, down = (constant + self.off, parts), (self.off - constant, [[-x for x in row] for row in parts])
            ends = [(down if neuron.fixed else up, 0)] if neuron.fixed is not None else []
            if neuron.fixed is None and neuron.shares is None:
                ends = [(up, neuron.high << grid >> neuron.scale), (down, -neuron.low << grid >> neuron.scale)]
            for (about, rows), most in ends:
                holds(self.walks.largest(self.weighed((about - most, rows))) <= 0, f"{where}: a neuron may leave its range")

    def hold_blends(self, number: int) -> None:
        """Memory for so many blends, for the moment."""
        self.T.meter.hold(0, 0, number * self.heads * len(self.pair.rows) * (40 + self.T.harm_scale // 8))

    def shares(self, low: Row, high: Row) -> tuple[Row, Row]:
        """Bounds of a / Z over the sequences with the token there; 0 where there is none."""
        pair, bits = self.pair, self.T.bits
        greatest, least = self.walks.through(pair.as_harms(high)), self.walks.through(pair.as_harms([-x for x in low]))
        down, up = [], []
        for i, (row, other) in enumerate(zip(greatest, least, strict=True)):
            n = len(pair.tokens)
            for x, t in enumerate(pair.tokens if i < self.T.k - 1 else [pair.q], i * n):
                whole, rest = row.get(t, 0), -other.get(t, 0)
                down.append((low[x] << bits) // whole if whole > 0 else 0)
                up.append(min(-((-high[x] << bits) // rest), 1 << bits) if rest > 0 else (1 << bits) * (t in row))
        return down, up

    def weighed(self, blend: Blend) -> Harms:
        """A table whose sum along a sequence is positive, or zero, where the blend is."""
        constant, parts = blend
        self.T.meter.multiply(self.heads * len(parts[0]), self.T.bits + self.T.scale // 2)
        if self.heads == 1:
            (row,), ((low, high),) = parts, self.weights
            moved = [constant + x for x in row]
            return self.pair.as_harms([x * (b if x > 0 else a) for x, a, b in zip(moved, low, high, strict=True)])
        found = [
            [x * (b if x > 0 else a) for x, a, b in zip(row, low, high, strict=True)]
            for row, (low, high) in zip(parts, self.weights, strict=True)
        ]
        flat = list(map(sum, zip(*found, strict=True)))
        flat[-1] += constant << self.T.bits
        return self.pair.as_harms(flat)

    @cached_property
    def centres(self) -> Rows:
        """[head][column]: about what a head writes, over 2^(scale + CENTRE_BITS); any vectors are sound."""
        hints, columns = self.hints, len(self.T.base[0])
        holds(hints is not None, "there are no hints")
        rows, weights = (hints.rows, hints.weights) if hints is not None else ([], [])
        self.T.meter.multiply(self.heads * len(rows) * columns, self.T.scale)
        return [
            [sum(map(mul, each, column)) for column in zip(*(value[r] for r in rows), strict=True)] if rows else [0] * columns
            for each, value in zip(weights, self.T.value, strict=True)
        ]

    def linear(self, plus: int, minus: int | None = None) -> Blend:
        """A column, or the difference of two, exactly but for `off` each: attention adds up to 1, so the centres may be anywhere."""
        T, rows = self.T, self.pair.rows

        def at(row: Row) -> int:
            return row[plus] if minus is None else row[plus] - row[minus]

        middle = [0] if self.heads == 1 else list(map(at, self.centres))
        parts = [[(at(value[r]) << CENTRE_BITS) - c for r in rows] for value, c in zip(T.value, middle, strict=True)]
        return (at(T.base[self.pair.q]) << CENTRE_BITS) + sum(middle), parts

    def curve(self, j: int, shares: Row) -> Blend:
        """Theorem J for a neuron, which is convex: f(x + sum mean_h(d_h)) <= f(x) + sum mean_h(b_h f(x + d_h / b_h) - b_h f(x))."""
        constant, parts = self.inputs[j]
        at = max(constant, 0)
        rows = [
            [-((b * at - max(b * constant + (x << SHARE_BITS), 0)) >> SHARE_BITS) for x in row]
            for b, row in zip(shares, parts, strict=True)
        ]
        return at, rows

    @cached_property
    def divisor(self) -> tuple[Blend, Blend]:
        """What a final norm divides by, times d: a blend below it and one above it.

        It is sqrt(|K r|^2 / d + d^2 eps) >= <g, K r> for every g with |g|^2 <= 1 / d, and convex in r, so Theorem J bounds it."""
        T, pair, hints = self.T, self.pair, self.hints
        columns, grid = range(T.out, T.out + T.wide), 2 * (T.scale + CENTRE_BITS + SHARE_BITS)
        T.meter.multiply(4 * self.heads * len(pair.rows) * T.wide, T.scale)
        middle = [(T.base[pair.q][c] << CENTRE_BITS) + sum(centre[c] for centre in self.centres) for c in columns]
        length = T.wide * sum(map(mul, middle, middle))
        root = isqrt((1 << 2 * (LINE_BITS + T.scale + 64)) // length) if length else 0
        g = [abs(x) * root >> T.scale + 64 for x in middle]
        g = [y if x > 0 else -y for x, y in zip(middle, g, strict=True)]
        holds(T.wide * sum(map(mul, g, g)) <= 1 << 2 * LINE_BITS, "a direction is too long")
        at = [self.linear(c) for c in columns]
        of_heads = list(zip(*(parts for _, parts in at), strict=True))
        below = (
            sum(c * x for c, (x, _) in zip(g, at, strict=True)) >> LINE_BITS,
            [[sum(map(mul, g, place)) >> LINE_BITS for place in zip(*rows, strict=True)] for rows in of_heads],
        )
        whole = [constant for constant, _ in at]
        top = pair.root(sum(map(mul, whole, whole)) << 2 * SHARE_BITS, grid, 0, True)
        shares, above = [1 << SHARE_BITS] if self.heads == 1 else hints.shares if hints is not None else [], []
        for b, rows in zip(shares, of_heads, strict=True):
            scaled = [b * c for c in whole]
            squares = (sum((c + (x << SHARE_BITS)) ** 2 for c, x in zip(scaled, place, strict=True)) for place in zip(*rows, strict=True))
            above.append([-((b * top >> SHARE_BITS) - pair.root(square, grid, SHARE_BITS, True, b) >> SHARE_BITS) for square in squares])
        return below, (-(-top >> SHARE_BITS), above)

    def difference(self, plus: int, minus: int) -> Blend:
        """At least logit[plus] - logit[minus], times a positive number. Blends that are read of the stream are off by `off`, and what
        neurons and norms make of them by at most four times that."""
        constant, parts = self.linear(plus, minus)
        added, rest = self.behind(plus, minus) if self.T.more else ([], 0)
        self.T.meter.multiply(self.heads * (1 + len(added)) * len(self.pair.rows), self.T.scale)
        constant = (constant + 2 * self.off << self.T.more) + rest
        parts = [[x << self.T.more for x in row] for row in parts]
        for c, (about, rows) in added:
            constant += c * about + 4 * abs(c) * self.off
            parts = [[x + c * y for x, y in zip(*both, strict=True)] for both in zip(parts, rows, strict=True)]
        return self.around((constant, parts)) if added and self.heads > 1 else (constant, parts)

    def around(self, blend: Blend) -> Blend:
        """The same number, every head around about its average at the places of the hints: an identity, as attention adds up to 1."""
        (constant, parts), places = blend, dict(zip(self.pair.rows, range(len(self.pair.rows)), strict=True))
        rows, weights = (self.hints.rows, self.hints.weights) if self.hints is not None else ([], [])
        at = [(places[r], x) for x, r in enumerate(rows) if r in places]
        middle = [sum(each[x] * row[y] for y, x in at) >> CENTRE_BITS for each, row in zip(weights, parts, strict=True)]
        self.T.meter.multiply(self.heads * (len(at) + len(self.pair.rows)), self.T.scale)
        return constant + sum(middle), [[x - c for x in row] for row, c in zip(parts, middle, strict=True)]

    def behind(self, plus: int, minus: int) -> tuple[list[tuple[int, Blend]], int]:
        """What neurons or a final norm add to a difference: factors and blends, and a number.

        A neuron with a positive factor is at most its chord or its curve, with a negative one at least a line below it. A chord: slope y +
        rest is at least 0 at `low` and at least y at `high`, so, a line, it is above the neuron, which is convex, between them."""
        T, found, rest = self.T, list[tuple[int, Blend]](), 0
        if T.added and (c := T.added[plus] - T.added[minus]):
            return [(c << LINE_BITS, self.divisor[c > 0])], 0
        for j, (row, neuron) in enumerate(zip(T.factor, self.hints.neurons if self.hints is not None else (), strict=True)):
            c, slope = row[plus] - row[minus], (neuron.tangent if neuron.fixed is None else neuron.fixed) << LINE_BITS
            if neuron.fixed is None and c > 0 and neuron.shares is not None:
                found.append((c << LINE_BITS, self.curve(j, neuron.shares)))
                continue
            if neuron.fixed is None and c > 0:
                slope = (neuron.high << LINE_BITS) // (neuron.high - neuron.low)
                above = max(-slope * neuron.low, ((1 << LINE_BITS) - slope) * neuron.high)
                rest += c * -(-above << T.scale + CENTRE_BITS >> neuron.scale)
            found.append((c * slope, self.inputs[j]))
        return [(c, blend) for c, blend in found if c], rest

    def harms(self, term: Term) -> Harms:
        """Upper bounds of what a term adds up. Where nothing is known, a joint term counts everything.

        `apart` takes off the very table that is counted for p, or that a walk is about: say that o *threatens* a sequence if its table adds
        up to zero or more there. Every o that reaches the label does. So `failing` holds with "threatens" for "reaches the label"."""
        m = self.pair.label.m
        if self.hints is None:
            holds(term.kind == "joint", f"{self.where}: a term other than a joint one has no hints")
            return self.pair.as_harms([0] * len(self.pair.rows))
        if term.kind == "spoiler":
            return self.weighed(self.difference(m, term.outputs[0]))
        if term.kind == "apart":
            (above, less), (n1, n2) = (self.weighed(self.difference(o, m)) for o in term.outputs), term.numbers
            return [{t: n1 * x - n2 * row[t] for t, x in known.items()} for known, row in zip(above, less, strict=True)]
        most: Harms = []
        for o, w in zip(term.outputs, term.numbers, strict=True):
            rows = [{t: w * x for t, x in row.items()} for row in self.weighed(self.difference(o, m))]
            both = zip(most, rows, strict=True)
            most = [{t: max(x, row[t]) for t, x in known.items()} for known, row in both] if most else rows
        return most

    def harmful_in(self, outputs: Row, _: Automaton) -> Row:
        """Those of which no walk shows that they never reach the label: several at once for the worst of them; a failure halves them."""
        if not outputs or self.hints is None:
            return outputs
        self.hold_blends(len(outputs))
        return self.reaching({o: self.difference(o, self.pair.label.m) for o in outputs})

    def reaching(self, blends: dict[int, Blend]) -> Row:
        """The outputs whose blends no walk shows to be negative: several at once for the worst of them; a failure halves them."""
        self.T.meter.add(self.heads * len(blends) * len(self.pair.rows), self.T.scale)
        if self.heads == 1:  # averages of a constant are the constant
            blends = {j: (0, [[constant + x for x in rows[0]]]) for j, (constant, rows) in blends.items()}
        constants, parts = zip(*blends.values(), strict=True)
        worst = [list(map(max, *rows, rows[0])) for rows in zip(*parts, strict=True)]
        if self.walks.largest(self.weighed((max(constants), worst))) < 0:
            return []
        known, half = list(blends.items()), len(blends) // 2
        return list(blends) if half == 0 else self.reaching(dict(known[:half])) + self.reaching(dict(known[half:]))


def pair_of(label: Label, q: int) -> Pair | BlockPair:
    """One query and one label."""
    return BlockPair(label, q) if isinstance(label.T, Block) else Pair(label, q)


# ---------------------------------------------------------------- the rule

SUMS = ("joint", "apart")
KINDS = {"lower": (*SUMS, "factored", "both"), "upper": ("spoiler", "spoilers", "both")}
FIELDS = {"joint": "joint weights", "apart": "apart less factors", "factored": "factored"}  # beside the grid's
FIELDS |= {"spoiler": "spoiler", "spoilers": "spoilers factors"}


class Leaf(NamedTuple):
    """A leaf of a part: its sequences, its terms, what they cover, and listed sequences; without terms (None) everything counts."""

    automaton: Automaton
    terms: list[Term] | None
    covered: set[int]
    listed: Rows
    hints: Hints | None = None


class Part(NamedTuple):
    """Sequences of a label whose last token is one of the queries, split by how often tokens occur."""

    where: str
    label: Label
    queries: Row
    mass: int
    leaves: list[Leaf]
    factored: bool


def read_parts(value: Json, T: Tables | Block, question: Question, side: str) -> Iterator[Part]:
    """The parts of a bound, one by one, as the automata of all would take much memory. No two are about the same query and label."""
    seen: set[tuple[int, int]] = set()
    label = lru_cache(8)(lambda m: Label(T, question.automata[m], m))  # all of them would take much memory too
    for number, part in enumerate(items(value, side)):
        here = f"{side}[{number}]"
        m, queries, tree = fields(part, "label queries tree", here)
        m = integer(m, 0, T.out - 1, here + ".label")
        holds(m in question.automata, f"{here}: no sequence has the label {m}")
        automaton = question.automata[m]
        queries = integers(queries, 0, T.v - 1, here)
        holds(set(automaton.tokens).issuperset(queries), f"{here}: a token does not occur with label {m}")
        holds(bool(queries) and len(set(queries)) == len(queries), f"{here}: a query stands twice, or there is none")
        holds(seen.isdisjoint((m, q) for q in queries), f"{here}: a query of label {m} is in two parts")
        seen.update((m, q) for q in queries)
        found = [read_leaf(leaf, split, T, m, side, here) for leaf, split in read_tree(tree, automaton, T, here)]
        ends = {sequence[-1] for leaf in found for sequence in leaf.listed}
        holds(ends.issubset(queries), f"{here}: a listed sequence ends in no query")
        kinds = {term.kind for leaf in found for term in leaf.terms or ()}
        if "factored" in kinds:
            holds(isinstance(T, Tables) and m in T.factors.labels, f"label {m} has a factored term, but no factors")
            well_formed(not ends, f"{here}: sequences are listed beside factored terms")
            well_formed(len(kinds) == 1, f"{here}: factored terms stand by themselves, and are true")
        if "factored" in kinds or side == "upper":  # without a term nothing is known
            found = [leaf if leaf.terms else leaf._replace(terms=None) for leaf in found]
        yield Part(here, label(m), queries, sum(map(label(m).mass.__getitem__, queries)), found, "factored" in kinds)


def read_tree(value: Json, automaton: Automaton, T: Tables | Block, where: str) -> Iterator[tuple[Json, Automaton]]:
    """The leaves of a tree, with the automata of their sequences. The halves of a split are disjoint and cover what is split."""
    waiting, memory = [(value, automaton)], 0
    while waiting:
        tree, split = waiting.pop()
        if not isinstance(tree, dict) or "token" not in tree:
            yield tree, split
            continue
        token, n, more, fewer = fields(tree, "token at_least more fewer", where + " split")
        holds(integer(token, 0, T.v - 1, where) in automaton.tokens, f"{where}: a token does not occur with the label")
        moves = (integer(n, 1, T.k, where + ".at_least") + 1) * sum(map(len, split.moves))
        memory += 200 * moves
        T.meter.add(4 * moves, 0)
        T.meter.hold(0, 0, memory)
        waiting += [(fewer, split.split(token, n, False)), (more, split.split(token, n, True))]


def read_leaf(value: Json, automaton: Automaton, T: Tables | Block, m: int, side: str, where: str) -> Leaf:
    """The terms and listed sequences of a leaf."""
    if value is None:
        return Leaf(automaton, None, set(), [])
    terms, listed, *more = fields(value, "terms listed hints" if isinstance(T, Block) else "terms listed", where + " leaf")
    hints = read_hints(more[0], T, where) if isinstance(T, Block) and more[0] is not None else None
    covered: set[int] = set()
    found = [read_term(term, T, m, covered, KINDS[side], where) for term in items(terms, where + " terms")]
    sequences = [integers(x, 0, 1 << 31, where + " listed", T.k) for x in items(listed, where + " listed")]
    holds(len(set(map(tuple, sequences))) == len(sequences), f"{where}: a sequence is listed twice")
    for sequence in sequences:
        holds(automaton.accepts(sequence), f"{where}: the sequence {sequence} is listed, but not of this leaf")
    if side == "upper" and (len(found) > 1 or any(term.second for term in found)):
        spoilers = [term.outputs[0] for term in found if term.kind == "spoiler"]
        named: dict[int, set[int]] = {o: set() for o in spoilers}
        for term in found[len(spoilers) :]:
            of_two = term.kind == "joint" and term.second is not None and term.second.kind == "joint"
            holds(of_two and len(term.outputs) == 1 and term.outputs[0] in named, f"{where}: more than one spoiler, or a term that is none")
            named[term.outputs[0]].update(term.second.outputs if term.second else ())
        good = len(named) == len(spoilers) and all(named[o] >= set(spoilers[:x]) for x, o in enumerate(spoilers))
        holds(good, f"{where}: of several spoilers, one is named twice, or what it spoils together with one before it is not taken off")
        holds(not sequences, f"{where}: sequences are listed beside several spoilers")
    return Leaf(automaton, found, covered, sequences, hints)


def read_term(value: Json, T: Tables | Block, m: int, covered: set[int], kinds: tuple[str, ...], where: str) -> Term:
    """A term of one of these kinds; its outputs are added to those that earlier terms cover."""
    well_formed(isinstance(value, dict), f"{where}: a term is not an object")
    kind = next(filter(value.__contains__, kinds), kinds[0])
    if kind == "both":
        two, within = fields(value, "both reach", where + " term")
        one, other = (read_term(each, T, m, set(covered), SUMS, where + ".both") for each in items(two, where + ".both", 2))
        of_each = (set(term.outputs if term.kind == "joint" else term.outputs[:1]) for term in (one, other))
        covered.update(set.intersection(*of_each))
        return one._replace(second=other, within=integer(within, 1, 1 << 16, where + ".reach"))
    first, *more, step, depth, offsets = fields(value, f"{FIELDS[kind]} step depth offsets", where + " term")
    mantissa, exponent = integers(step, -(1 << 16), 1 << 16, where + ".step", 2)
    holds(mantissa >= 1, f"{where}.step is not positive")
    grid = Grid(mantissa, exponent, integer(depth, 1, 1 << 28, where + ".depth"), integers(offsets, 0, 255, where + ".offsets", T.k))
    outputs, numbers = Row(), Row()
    if kind == "joint":
        outputs = integers(first, 0, T.out - 1, where + ".joint")
        numbers = integers(more[0], 1, 1 << 40, where + ".weights", len(outputs))
        holds(bool(outputs) and m not in outputs, f"{where}: a joint term needs outputs other than the label")
    elif kind == "apart":
        outputs = integers([first, more[0]], 0, T.out - 1, where)
        numbers = integers(more[1], 0, 1 << 40, where + ".factors", 2)
        holds(outputs[1] in covered, f"{where}: a term takes off what output {outputs[1]} spoils, but no earlier term covers that")
        holds(outputs[0] != m, f"{where}: the label cannot spoil a sequence")
    elif kind == "spoiler":
        outputs = [integer(first, 0, T.out - 1, where + ".spoiler")]
        holds(outputs != [m], f"{where}: the label cannot spoil a sequence")
    elif kind == "spoilers":
        outputs = integers(first, 0, T.out - 1, where + ".spoilers", 2)
        numbers = integers(more[0], 1, 1 << 40, where + ".factors", 2)
        holds(m not in outputs, f"{where}: the label cannot spoil a sequence")
        holds(isinstance(T, Tables), f"{where}: two spoilers at once are about one head and an affine readout")
    else:
        well_formed(first is True, f"{where}: factored terms stand by themselves, and are true")
    covered.update(outputs)
    return Term(kind, outputs, numbers, grid)


def failing(T: Tables | Block, part: Part) -> int:
    """At least the mass of a part that fails, whatever its terms are.

    In each leaf, every output other than the label is covered by a term or shown harmless by a walk. If a sequence fails, an output
    reaches the label; take the first term that covers such an output o. It counts the sequence: `joint`, as max_o w_o G_o >= w_o G_o;
    `apart`, as its p, covered before, does not reach the label, so n1 G_o - n2 G_p adds up to at least zero; `factored`, as it covers all
    outputs; `both`, as both of its terms do. So what fails is at most what the terms count, and at most the whole leaf. Right sequences,
    decided one by one, are taken off if a term counts them.
    """
    if part.factored:
        alone = T.factors.labels[part.label.m][0] is None  # attention is relative to no token
        pools = [[q] for q in part.queries] if alone else [part.queries]
        tables = ((queries, whatever(pooled(part.label, queries))) for queries in pools)
        return sum(counted(T, leaf, queries, table, bool) for queries, table in tables for leaf in part.leaves)
    total = 0
    for pair in (pair_of(part.label, q) for q in part.queries):
        harmful = pair.harmful(0, T.out - 1) if pair.others else []
        for leaf in part.leaves:
            own = pair.of_leaf(leaf, part.where)
            total += counted(T, leaf, [pair.q], own.harms, partial(pair.require_right, harmful))
            left = own.harmful_in([o for o in harmful if o not in leaf.covered], leaf.automaton) if leaf.terms is not None else []
            holds(not left, f"{part.where}: output {next(iter(left), None)} might win, and no term covers it")
    return total


def whatever(table: Harms) -> Callable[[Term], Harms]:
    """The same table for every term."""
    return lambda _: table


def right(T: Tables | Block, part: Part) -> int:
    """At least the mass of a part that is right: where the label wins, -G_o adds up to more than zero for the spoiler o of the leaf, and
    -n1 G_o - n2 G_p for two spoilers, n1 and n2 being positive. Without a spoiler everything may be right. Wrong
    sequences, decided one by one, are taken off if they have been counted.

    With several spoilers, all different: a sequence that j > 0 of n spoil is counted by n - j of them, and for each of the j but the first
    by a term that counts what it spoils together with that first one. That makes n - 1 at least; a right sequence is counted n times. So
    what is right is at most what is counted, less n - 1 times the leaf."""
    total = 0
    for pair in (pair_of(part.label, q) for q in part.queries):
        for leaf in part.leaves:
            total += counted(T, leaf, [pair.q], pair.of_leaf(leaf, part.where).harms, pair.require_wrong)
    return total


def counted(T: Tables | Block, leaf: Leaf, queries: Row, harms: Callable[[Term], Harms], require: Callable[[Row], object]) -> int:
    """At least the mass of a leaf that its terms count, or all of it without terms, less the listed sequences among them,
    which must meet what is required. Of several spoilers, less the whole leaf for all but one of them."""
    counters, count, scale, extra = [], 0, T.harm_scale, -1
    for term in leaf.terms or ():
        rounded = []
        for each in (term,) if term.second is None else (term, term.second):
            harm = harms(each)
            T.meter.add(4 * sum(map(len, harm)), scale + abs(each.grid.exponent))
            rounded.append(each.grid.rounded(harm, scale, strict=each.kind in KINDS["upper"]))
        counters.append(rounded)
        (start, D), *others = rounded
        remembering = [Remembering(leaf.automaton, *other, term.within, T.meter) for other in others]
        count += count_up(start, D, T.masses, remembering[0] if remembering else leaf.automaton, T.meter)
        extra += term.kind == "spoiler"
    listed = [x for x in leaf.listed if x[-1] in queries]
    T.meter.multiply(6 * T.k * T.out * len(listed), (T.bits + T.scale) // 2)
    for x in listed:
        if leaf.terms is None or any(all(start + along(D, x) >= 0 for start, D in rounded) for rounded in counters):
            require(x)
            count -= prod(map(list.__getitem__, T.masses, x))
    if leaf.terms is not None and len(leaf.terms) < 2:
        return count
    whole = sum(map(mass_by_query(leaf.automaton, T.masses, T.meter).__getitem__, queries))
    return whole + count if leaf.terms is None else min(count - max(extra, 0) * whole, whole)


# ---------------------------------------------------------------- the certificate


def proven(certificate: Json, network: Network, work: int | Meter) -> tuple[int, int | None, Question]:
    """What a certificate proves about this network, whatever it claims: mass at least, mass at most, of which question."""
    sizes, meter = network.sizes(), Meter(work) if isinstance(work, int) else work
    question = read_question(certificate["question"], sizes["d_vocab"], sizes["n_ctx"], meter)
    holds(max(question.automata) < sizes["d_vocab_out"], f"the label may be up to {max(question.automata)}, beyond the model's outputs")
    plain = is_affine(network) and (network.settings is None or network.settings["norm_final"] is None)  # else logits up to a factor
    holds(plain or not question.margin[0], "margins are certified about one head without an MLP and without a norm at the end")
    T = (tables if is_affine(network) else block_tables)(network, question, read_factors(certificate["factors"], sizes), meter)
    at_least, at_most = 0, None
    for part in read_parts(certificate["lower"], T, question, "lower"):
        at_least += max(0, part.mass - failing(T, part))
    if certificate["upper"] is not None:
        wrong = (max(0, part.mass - right(T, part)) for part in read_parts(certificate["upper"], T, question, "upper"))
        at_most = question.total - sum(wrong)
    return at_least, at_most, question


def checked_claims(data: bytes, network: Network, work: int) -> Checked:
    """The claims of a certificate about this network, if it proves them; raises with the reason otherwise.

    A certificate about positions has a certificate for each: with causal attention, what is answered at a position is what the network
    answers to the tokens up to it."""
    certificate, meter = parse(data, "the certificate"), Meter(work)
    well_formed(isinstance(certificate, dict) and certificate.get("format") == FORMAT, f"not a certificate: its format is not {FORMAT}")
    if "positions" not in certificate:
        return checked_claim(certificate, network, meter)
    _, version, producer, model, positions, end = fields(certificate, "format version producer model positions end", "the certificate")
    whole = version == VERSION and end == FORMAT and isinstance(producer, str)
    well_formed(whole, f"a certificate about positions that is not of version {VERSION}, or does not end with its end marker")
    check_model(model, network)
    found: list[Checked] = []
    for each in items(positions, "positions"):
        well_formed(isinstance(each, dict) and isinstance(each.get("model"), dict), "a position has no certificate of its own")
        length = integer(each["model"].get("n_ctx"), 1, network.sizes()["n_ctx"], "model.n_ctx")
        last = -1 if not found else found[-1].position or 0
        holds(length - 1 > last, "two certificates are about the same position, or they are not in order")
        found.append(checked_claim(each, network.of_length(length), meter)._replace(position=length - 1, assumptions=()))
    well_formed(bool(found), "a certificate about positions has none")
    early = found[0].position != network.sizes()["n_ctx"] - 1
    holds(not early or network.causal is not False, "attention is not causal: a position before the last sees later tokens too")
    holds(len({x.margin for x in found}) == 1, "the certificates of two positions have different margins")
    weakest = min(found, key=lambda x: Fraction(x.correct_at_least or 0, x.total or 1))
    whole = sum(x.correct_at_least == x.total for x in found)
    so = "right" if not found[0].margin else "so"
    where = f"read at {len(found)} of {network.sizes()['n_ctx']} positions, at {whole} of them {so} on all inputs"
    reason = f"{where}; at position {weakest.position}, the weakest, {weakest.reason}"
    unsaid = ["attention is causal: a position sees the tokens up to it"] if early and network.causal is None else []
    assumed = (*network.assumptions, *unsaid)
    return weakest._replace(reason=reason, assumptions=assumed, positions=tuple(found), question_sha256=None)


def checked_claim(certificate: Json, network: Network, work: Meter) -> Checked:
    """The claim of a certificate about one position, the last."""
    well_formed(certificate.get("format") == FORMAT, f"not a certificate: its format is not {FORMAT}")
    version, again = certificate.get("version"), "Make it anew: 'compactproofs prove --certificate'"
    known = version == VERSION and type(version) is int
    well_formed(known, f"certificate of version {version!r:.40}; this checker knows version {VERSION}. {again}")
    names = "format version producer question model claim factors lower upper end"
    _, _, producer, _, model, claim, _, _, above, end = fields(certificate, names, "the certificate")
    well_formed(list(certificate)[-1] == "end" and end == FORMAT, "the certificate does not end with its end marker")
    well_formed(isinstance(producer, str), "producer is not a string")
    check_model(model, network)
    least, most, total = fields(claim, "correct_at_least correct_at_most total", "claim")
    least, total = natural(least, "claim.correct_at_least"), natural(total, "claim.total")
    most = None if most is None else natural(most, "claim.correct_at_most")
    well_formed(most is None or most <= total, "claim.correct_at_most is larger than claim.total")
    well_formed((most is None) == (above is None), "correct_at_most needs a proof `upper`, and such a proof a claim")
    at_least, at_most, question = proven(certificate, network, work)
    holds(total == question.total, "the claim gives another total than the mass of all sequences that have a label")
    holds(least <= at_least, f"the certificate proves a mass of {at_least} right, less than the {least} claimed")
    if at_most is not None and most is not None:
        holds(at_most <= most, f"the certificate proves a mass of at most {at_most} right, more than the {most} claimed")
        holds(question.semantics == REAL, "upper bounds are proven about the real-number network only")
    claimed = f"at least {least}" + ("" if most is None else f" and at most {most}")
    about = {REAL: "over the real numbers", FLOAT32: f"in every float32 evaluation, ASSUMING the error model {ERROR_MODEL}"}
    only = [(i, row) for i, row in enumerate(question.masses) if sum(mass > 0 for mass in row) == 1 < len(row)]
    fixed = "".join(f"; position {i} is the token {next(t for t, mass in enumerate(row) if mass)}" for i, row in only)
    fixed += "" if total == prod(map(sum, question.masses)) else "; sequences without a label are left out"
    read = f"scores are divided by sqrt({network.divisor.removesuffix('/1')}); question {question.sha256[:16]}{fixed}"
    what = "sequences are" if max(map(max, question.masses)) == 1 else "(the mass of all sequences) is"
    margin = Fraction(question.margin[0], 1 << question.margin[1])
    how = f"answered with a logit that is larger by MORE THAN {margin} than every other" if margin else "answered right"
    reason = f"{claimed} of {total} {what} {how}, {about[question.semantics]}; {read}"
    found = Checked(Verdict.ACCEPTED, reason, least, most, total, question.semantics, network.assumptions, question.sha256)
    return found._replace(margin=margin)


def check_model(model: Json, network: Network) -> None:
    """Whether the certificate is about this network: sizes, divisor and hash; and whether it is small enough to check."""
    names = "d_vocab d_vocab_out d_model d_head n_ctx"
    *sizes, divisor, sha256, assumptions = fields(model, f"{names} score_divisor_squared weights_sha256 assumptions", "model")
    well_formed(all(isinstance(text, str) for text in items(assumptions, "model.assumptions")), "an assumption is not a string")
    well_formed(isinstance(divisor, str), "model.score_divisor_squared is not a string")
    found = network.sizes()
    for name, size in zip(names.split(), sizes, strict=True):
        well_formed(type(size) is int, f"model.{name} is not an integer")
        advice = f"; for shorter sequences than the model reads say --n-ctx {size}" if name == "n_ctx" and size < found[name] else ""
        holds(size == found[name], f"the certificate is about {name}={size}, the model has {found[name]}{advice}")
    holds(divisor == network.divisor, f"the certificate divides scores by sqrt({divisor:.60}), the model by sqrt({network.divisor:.60})")
    holds(sha256 == network.sha256(), "the certificate is about other weights: their SHA-256 differs")
    (n, d), v, k = map(int, divisor.split("/")), found["d_vocab"], found["n_ctx"]
    holds(k <= 512 and d <= n << 200 and n <= d << 200 and k * log10(max(v, 2)) < 4000, "the model is too large for this checker")


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


def main(words: list[str]) -> int:
    """`python -m compactproofs.checker CERTIFICATE MODEL`"""
    parser = argparse.ArgumentParser("python -m compactproofs.checker", allow_abbrev=False)
    for name in ("certificate", "model", "--n-heads", "--n-ctx"):
        parser.add_argument(name)
    parser.add_argument("--normalization", dest="normalization_type")
    parser.add_argument("--work", default=str(MOST_WORK))
    given = parser.parse_args(words)
    told = {name: said for name in ("n_heads", "normalization_type") if (said := getattr(given, name)) is not None}
    try:
        model, work = Path(given.model), natural(given.work, "--work")
        well_formed(model.is_file() or not model.exists(), f"the model {given.model} is not a regular file")
        beside = model.parent.joinpath("config.json")
        config = read_bytes(str(beside), "configuration") if beside.is_file() else b"{}"
        network = read_safetensors(read_bytes(given.model, "model"), config, told)
        network = network if given.n_ctx is None else network.of_length(natural(given.n_ctx, "--n-ctx"))
        checked = check(read_bytes(given.certificate, "certificate"), network, work)
    except MalformedError as error:
        checked = Checked(Verdict.MALFORMED, str(error))
    except OSError as error:
        checked = Checked(Verdict.MALFORMED, f"cannot read the model: {error.strerror}")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130  # as shells have it after Ctrl-C
    for line in (f"{checked.verdict.name.lower()}: {checked.reason}", *(f"assumed: {text}" for text in checked.assumptions)):
        sys.stdout.write("".join(c if c.isascii() and c.isprintable() else c.encode("unicode_escape").decode() for c in line) + "\n")
    return checked.verdict.value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
