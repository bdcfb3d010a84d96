"""What `--distribution` says: a word, weights, or a JSON file with weights. Numbers are read exactly."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from compactproofs.errors import TaskError
from compactproofs.tasks.distributions import Mixture, Product, weight

KNOWN = "uniform, product:w0,w1,... (one weight per token; a list for each position, separated by ;) or FILE.json"
_LARGEST_FILE = 10**7

_NO_MARKOV = (
    "Markov chains are not supported: proofs and certificates have a mass for each token at each position, and a chain's masses depend on "
    "the token before too. A product (product:...), a mixture of products (FILE.json) or a region (--where) may do"
)


def distribution_of(text: str) -> Product | Mixture | None:
    """The distribution that a text names; None if it is uniform."""
    if text == "uniform":
        return None
    if text.startswith("product:"):
        return Product.from_text(text)
    if text.startswith("markov:"):
        raise TaskError(f"{text:.60}: {_NO_MARKOV}")
    if text.endswith(".json"):
        return _read(Path(text))
    raise TaskError(f"unknown distribution {text!r:.60}; expected {KNOWN}")


def product_of(text: str) -> Product | None:
    """The same, where there is no place for a mixture."""
    found = distribution_of(text)
    if isinstance(found, Mixture):
        raise TaskError(f"{text:.60} is a mixture, about which there is no single task; in Python use prove_mixture")
    return found


def _read(path: Path) -> Product | Mixture:
    try:
        data = path.read_bytes() if path.stat().st_size <= _LARGEST_FILE else None
    except OSError as error:
        raise TaskError(f"--distribution {path}: cannot be read ({error.strerror})") from None
    if data is None:
        raise TaskError(f"--distribution {path}: larger than {_LARGEST_FILE} bytes")
    try:
        content = json.loads(data.decode(), parse_float=str)  # 0.1 is one tenth
    except (ValueError, RecursionError):
        raise TaskError(f"--distribution {path}: not JSON; {_EXPECTED}") from None
    name = f"{path.name} (SHA-256 {hashlib.sha256(data).hexdigest()[:16]}...)"
    match content:
        case {"product": rows} if len(content) == 1:
            return _product(rows, name, name)
        case {"mixture": [_, *_] as parts} if len(content) == 1:
            return Mixture(tuple(_part(part, f"part {n} of {name}", name) for n, part in enumerate(parts)), name)
    raise TaskError(f"--distribution {path}: {_EXPECTED}")


_EXPECTED = (
    'expected {"product": [w0, w1, ...]} with a weight for every token (a list of such lists if positions differ), or {"mixture": '
    '[{"share": "1/3", "product": [...]}, ...]}'
)


def _part(part: Any, name: str, where: str) -> tuple[Fraction, Product]:
    if not isinstance(part, dict) or set(part) != {"share", "product"}:
        raise TaskError(f"{where}: {_EXPECTED}")
    return weight(part["share"], where), _product(part["product"], name, where)


def _product(rows: Any, name: str, where: str) -> Product:
    if not isinstance(rows, list) or not rows:
        raise TaskError(f"{where}: {_EXPECTED}")
    lists = rows if isinstance(rows[0], list) else [rows]
    if not all(isinstance(row, list) and row for row in lists):
        raise TaskError(f"{where}: {_EXPECTED}")
    return Product(tuple(tuple(weight(w, where) for w in row) for row in lists), name)
