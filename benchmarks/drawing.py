"""Small figures as SVG: light and dark, no script, the same bytes on every machine. For the pages that scripts of this folder write.

Colours are safe for colour-blind readers: blue and orange for two kinds, cividis for amounts, blue to orange for signs. What a colour says is
always said by a place, a sign or a word as well.
"""

from __future__ import annotations

import base64
import html
import struct
import zlib
from dataclasses import dataclass

import numpy as np

STYLE = """
text{font:13px system-ui,sans-serif;fill:#222;dominant-baseline:central;text-anchor:middle}
.small{font-size:12px;fill:#555}.left{text-anchor:start}.right{text-anchor:end}.strong{font-weight:600}
.axis{stroke:#8a94a6;stroke-width:1;fill:none}.frame{stroke:#8a94a6;stroke-width:1;fill:none}.link{stroke:#8a94a6;stroke-width:1.3;fill:none}
.good{fill:#3f6fd1}.bad{fill:#d17a00}.faint{fill:#8a94a6}.goodline{stroke:#3f6fd1;fill:none;stroke-width:2}.badline{stroke:#d17a00;fill:none;stroke-width:2}
.greyline{stroke:#6b7280;fill:none;stroke-width:2;stroke-dasharray:5 3}.dotline{stroke:#8a5a9e;fill:none;stroke-width:2;stroke-dasharray:2 3}
.box{fill:#e8f0fe;stroke:#3f6fd1;stroke-width:1.3}.boxbad{fill:#fdf1dc;stroke:#b7791f;stroke-width:1.3}
@media (prefers-color-scheme:dark){text{fill:#e6e6e6}.small{fill:#b0b6c2}.axis,.frame,.link{stroke:#7d8799}
.good{fill:#84a9ff}.bad{fill:#f0a63c}.goodline{stroke:#84a9ff}.badline{stroke:#f0a63c}.greyline{stroke:#aab2c0}.dotline{stroke:#c79bd9}
.box{fill:#22304d;stroke:#84a9ff}.boxbad{fill:#40331a;stroke:#e0b15c}}
""".replace("\n", "")

AMOUNTS = ("#00224e", "#35456c", "#666970", "#948e77", "#c8b866", "#fee838")
"""From little to much."""
SIGNS = ("#0b3c7f", "#5b9bd5", "#f4f4f2", "#e59a4a", "#7f3b08")
"""From negative to positive; zero is in the middle."""
_LEVELS = 255


@dataclass(frozen=True)
class Box:
    """A place in a figure."""

    x: float
    y: float
    width: float
    height: float


def svg(size: tuple[float, float], title: str, said: str, parts: list[str]) -> str:
    """A figure, with a title and a description in words for those who do not see it."""
    width, height = size
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" aria-labelledby="t d">',
            f'<title id="t">{html.escape(title)}</title><desc id="d">{html.escape(said)}</desc><style>{STYLE}</style>',
            *parts,
            "</svg>",
            "",
        ]
    )


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Words; `kind` is a list of classes."""
    return f'<text{_class(kind)} x="{_n(x)}" y="{_n(y)}">{html.escape(words)}</text>'


def rotated(x: float, y: float, words: str, kind: str = "small") -> str:
    """Words that run upwards."""
    return f'<text{_class(kind)} transform="translate({_n(x)} {_n(y)}) rotate(-90)">{html.escape(words)}</text>'


def bar(box: Box, kind: str) -> str:
    """A rectangle."""
    return f'<rect{_class(kind)} x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}"/>'


def line(points: list[tuple[float, float]], kind: str = "axis") -> str:
    """Through points, in order."""
    return f'<path{_class(kind)} d="M{"L".join(f"{_n(x)} {_n(y)}" for x, y in points)}"/>'


def heat(values: np.ndarray, limits: tuple[float, float], colours: tuple[str, ...], box: Box) -> str:
    """A table of numbers as colours, in a frame; what is not a number is not drawn."""
    low, high = limits
    known = np.clip((np.nan_to_num(values, nan=low) - low) / (high - low), 0, 1)
    levels = np.where(np.isnan(values), 0, 1 + np.rint(known * (_LEVELS - 1))).astype(np.uint8)
    image = base64.b64encode(_png(levels, _palette(colours))).decode("ascii")
    place = f'x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}"'
    drawn = f'<image {place} preserveAspectRatio="none" style="image-rendering:pixelated" href="data:image/png;base64,{image}"/>'
    return drawn + bar(box, "frame")


def scale(colours: tuple[str, ...], words: list[str], box: Box) -> list[str]:
    """What colours mean: a strip from the first to the last, with words below it, evenly apart."""
    strip = heat(np.arange(64.0)[None], (0.0, 63.0), colours, box)
    step = box.width / (len(words) - 1)
    kinds = ["small left", *["small"] * (len(words) - 2), "small right"]
    return [strip, *(text(box.x + i * step, box.y + box.height + 11, each, kinds[i]) for i, each in enumerate(words))]


def ticks(box: Box, numbers: list[int], many: int) -> list[str]:
    """Numbers of columns below a table and of rows to its left."""
    across = [text(box.x + (n + 0.5) * box.width / many, box.y + box.height + 11, str(n), "small") for n in numbers]
    return across + [text(box.x - 5, box.y + (n + 0.5) * box.height / many, str(n), "small right") for n in numbers]


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _n(value: float) -> str:
    return f"{round(float(value), 1):g}"


def _palette(colours: tuple[str, ...]) -> bytes:
    anchors = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colours], dtype=float)
    at = np.concatenate([[0.0], np.linspace(0, len(colours) - 1, _LEVELS)])
    return np.stack([np.rint(np.interp(at, np.arange(len(colours)), anchors[:, i])) for i in range(3)], axis=1).astype(np.uint8).tobytes()


def _png(levels: np.ndarray, palette: bytes) -> bytes:
    """An image with a palette, of which colour 0 is transparent; not compressed: a compressor may do otherwise tomorrow."""
    height, width = levels.shape
    raw = b"".join(b"\0" + row.tobytes() for row in levels)
    assert len(raw) < 1 << 16
    stored = b"\x78\x01\x01" + struct.pack("<HH", len(raw), len(raw) ^ 0xFFFF) + raw + struct.pack(">I", zlib.adler32(raw))
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette),
        (b"tRNS", b"\0"),
        (b"IDAT", stored),
        (b"IEND", b""),
    ]
    packed = (struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)
