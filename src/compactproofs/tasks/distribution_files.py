"""What `--distribution` says: a word, weights, or a JSON file with weights. Numbers are read exactly."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from compactproofs.errors import TaskError
from compactproofs.tasks.chains import Chain
from compactproofs.tasks.distributions import Product, weight
from compactproofs.tasks.mixture import Mixture

KNOWN = "uniform, product:w0,w1,... (one weight per token; a list for each position, separated by ;), markov:FILE.json or FILE.json"
MARKOV = "markov:"
_LARGEST_FILE = 10**7


def distribution_of(text: str) -> Product | Chain | Mixture | None:
    """The distribution that a text names; None if it is uniform."""
    if text == "uniform":
        return None
    if text.startswith("product:"):
        return Product.from_text(text)
    if text.startswith(MARKOV):
        return _chain_in(Path(text.removeprefix(MARKOV)))
    if text.endswith(".json"):
        return _read(Path(text))
    raise TaskError(f"unknown distribution {text!r:.60}; expected {KNOWN}")


def product_of(text: str) -> Product | None:
    """The same, where there is no place for a mixture."""
    found = distribution_of(text)
    if isinstance(found, Chain):
        raise TaskError(f"{text:.60} is a Markov chain, which is no task of its own; in Python use MarkovQuestion and prove_markov")
    if isinstance(found, Mixture):
        raise TaskError(f"{text:.60} is a mixture, about which there is no single task; in Python use prove_mixture")
    return found


def _read(path: Path) -> Product | Chain | Mixture:
    content, name = _content(path, _EXPECTED)
    match content:
        case {"product": rows} if len(content) == 1:
            return _product(rows, name, name)
        case {"markov": chain} if len(content) == 1:
            return _chain(chain, name, name)
        case {"mixture": [_, *_] as parts} if len(content) == 1:
            return Mixture(tuple(_part(part, f"part {n} of {name}", name) for n, part in enumerate(parts)), name)
    raise TaskError(f"--distribution {path}: {_EXPECTED}")


def _chain_in(path: Path) -> Chain:
    """A file with a chain and nothing else."""
    content, name = _content(path, _EXPECTED_CHAIN)
    wrapped = isinstance(content, dict) and set(content) == {"markov"}
    return _chain(content["markov"] if wrapped else content, name, name)


def _content(path: Path, expected: str) -> tuple[Any, str]:
    """What a JSON file says, and its name with its hash."""
    try:
        data = path.read_bytes() if path.stat().st_size <= _LARGEST_FILE else None
    except OSError as error:
        raise TaskError(f"--distribution {path}: cannot be read ({error.strerror})") from None
    if data is None:
        raise TaskError(f"--distribution {path}: larger than {_LARGEST_FILE} bytes")
    try:
        content = json.loads(data.decode(), parse_float=str)  # 0.1 is one tenth
    except (ValueError, RecursionError):
        raise TaskError(f"--distribution {path}: not JSON; {expected}") from None
    return content, f"{path.name} (SHA-256 {hashlib.sha256(data).hexdigest()[:16]}...)"


_EXPECTED_CHAIN = (
    'expected {"initial": [w0, w1, ...], "transition": [[...], ...]} with a weight for every token, and a row of such weights for every '
    "token that stands before"
)
_EXPECTED = (
    'expected {"product": [w0, w1, ...]} with a weight for every token (a list of such lists if positions differ), {"markov": {"initial": '
    '[...], "transition": [[...], ...]}} or {"mixture": [{"share": "1/3", "product": [...]}, ...]}'
)


def _part(part: Any, name: str, where: str) -> tuple[Fraction, Product | Chain]:
    if not isinstance(part, dict) or set(part) not in ({"share", "product"}, {"share", "markov"}):
        raise TaskError(f"{where}: {_EXPECTED}")
    share = weight(part["share"], where)
    return share, _product(part["product"], name, where) if "product" in part else _chain(part["markov"], name, where)


def _chain(content: Any, name: str, where: str) -> Chain:
    if not isinstance(content, dict) or set(content) != {"initial", "transition"}:
        raise TaskError(f"{where}: {_EXPECTED_CHAIN}")
    initial, rows = content["initial"], content["transition"]
    if not isinstance(rows, list) or not all(isinstance(row, list) and row for row in (initial, *rows)):
        raise TaskError(f"{where}: {_EXPECTED_CHAIN}")
    return Chain(tuple(weight(w, where) for w in initial), tuple(tuple(weight(w, where) for w in row) for row in rows), name)


def _product(rows: Any, name: str, where: str) -> Product:
    if not isinstance(rows, list) or not rows:
        raise TaskError(f"{where}: {_EXPECTED}")
    lists = rows if isinstance(rows[0], list) else [rows]
    if not all(isinstance(row, list) and row for row in lists):
        raise TaskError(f"{where}: {_EXPECTED}")
    return Product(tuple(tuple(weight(w, where) for w in row) for row in lists), name)
