"""Figures and tables of the pages that explain, and of the gallery, are what package and measurements say, and that is true."""

import base64
import importlib.util
import re
import struct
import sys
import xml.etree.ElementTree as ET
import zlib
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import compactproofs as cp
from compactproofs.model.zoo import ZOO_NAMES

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
NAMES = ("drawing", "task_pages", "mechanism_pictures", "picture_pages")


@pytest.fixture(scope="module")
def scripts():
    """By name; they import each other."""
    found = {}
    for name in NAMES:
        spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
        sys.modules[name] = found[name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
        spec.loader.exec_module(found[name])
    yield found
    for name in NAMES:
        del sys.modules[name]


@pytest.fixture(scope="module")
def pages(scripts):
    return scripts["picture_pages"]


@pytest.fixture(scope="module")
def written(pages):
    return pages.everything()


def test_every_figure_and_table_is_as_it_would_be_written_today(pages, written):
    for path, text in written.items():
        assert (pages.ROOT / path).read_text(encoding="utf-8") == text, f"{path}: python benchmarks/picture_pages.py"
    for folder in (pages.PICTURES, pages.GALLERY):
        assert {p.name for p in (pages.ROOT / folder).glob("*.svg")} == {
            p.name for p in written if p.parent == folder and p.suffix == ".svg"
        }


def test_figures_are_small_have_titles_and_work_in_the_dark(written):
    figures = {path: text for path, text in written.items() if path.suffix == ".svg"}
    assert len(figures) == 9 + len(ZOO_NAMES)
    for path, text in figures.items():
        root = ET.fromstring(text)
        names = [child.tag.rpartition("}")[2] for child in root]
        assert names[:2] == ["title", "desc"] and root.get("role") == "img" and len(root[1].text) > 20, path
        assert len(text) < 30_000 and "prefers-color-scheme:dark" in text, path


def test_pages_show_every_figure(pages, written):
    shown = " ".join(text for path, text in written.items() if path.suffix == ".md")
    for path in written:
        assert path.suffix != ".svg" or f"{path.name})" in shown, path


def test_a_table_of_numbers_is_drawn_number_by_number(scripts):
    """Decoded again: the colour of each cell, and nothing where there is no number."""
    d = scripts["drawing"]
    drawn = d.heat(np.array([[0.0, 1.0], [np.nan, 0.5]]), (0.0, 1.0), ("#000000", "#ffffff"), d.Box(0, 0, 2, 2))
    data = base64.b64decode(re.search(r"base64,([^\"]+)", drawn)[1])
    chunks, at = {}, 8
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size)[0] == zlib.crc32(kind + content)
        chunks[kind], at = content, at + 12 + size
    rows = zlib.decompress(chunks[b"IDAT"])
    palette = [tuple(chunks[b"PLTE"][i : i + 3]) for i in range(0, 768, 3)]
    levels = [rows[1], rows[2], rows[4], rows[5]]
    assert levels[2] == 0 and chunks[b"tRNS"] == b"\0"
    assert palette[levels[0]] == (0, 0, 0) and palette[levels[1]] == (255, 255, 255) and 120 <= palette[levels[3]][0] <= 135


def test_what_the_pictures_count_is_what_the_network_does(scripts):
    """All sequences of two squares through the network itself."""
    m, weights = scripts["mechanism_pictures"], cp.zoo("max-of-4")
    for label, query in ((m.LABEL, m.QUERY), m.SPLIT[:2]):
        of = m.square(label, query)
        expected = [(*x, query) for x in product(range(label + 1), repeat=3) if max(*x, query) == label]
        assert of.sequences.tolist() == [list(x) for x in expected]
        logits = np.asarray(cp.forward(weights, of.sequences), dtype=float)
        rivals = np.delete(logits, label, axis=1).max(axis=1)
        assert int((rivals >= logits[:, label]).sum()) == of.failing(of.sequences) <= of.counted(of.sequences)


def test_counts_on_a_grid_are_never_below_what_fails_and_fall_to_it(scripts):
    m = scripts["mechanism_pictures"]
    of = m.square(m.LABEL, m.QUERY)
    found = [n for _, n in m.counts(of)]
    assert found == sorted(found, reverse=True) and found[-1] == of.failing(of.sequences) == 225


def test_a_split_counts_no_less_than_what_fails_and_no_more_than_the_whole(scripts):
    failing, rows = scripts["mechanism_pictures"].split_figures()
    (_, size, rivals, counted, _), *halves = rows
    assert sum(half[1] for half in halves) == size and failing <= sum(half[3] for half in halves) < counted
    assert min(len(half[2]) for half in halves) < len(rivals)


def test_what_is_left_adds_up(pages):
    left = pages.read(pages.PICTURES / "left.json")
    assert sum(failing for _, _, failing, _ in left["failing"]) == 64**4 - left["proven"] == 64**4 - 16765732
    assert left["squares"] == 2080 and all(0 < failing <= mass and query <= label for label, query, failing, mass in left["failing"])


def test_the_gallery_has_every_bundled_model_and_its_figures_agree(pages):
    rows = pages.read(pages.GALLERY / "rows.json")
    assert [row["model"] for row in rows] == list(ZOO_NAMES)
    for row in rows:
        least, most, total = (int(row[name]) for name in ("correct_at_least", "correct_at_most", "total"))
        assert 0 < least <= most <= total == sum(map(int, row["of"]))
        assert sum(map(int, row["failing"])) == total - least
        if row["exact"]:
            assert least <= round(row["accuracy"] * total) <= most
        assert row["accepted"] is True or row["reason"]


def test_a_certificate_that_is_not_accepted_is_not_said_to_be(pages):
    row = {"accepted": False, "bytes": 10, "checking_seconds": 1.0}
    assert pages.verdict(row).startswith("refused") and pages.verdict(row | {"accepted": None}) == "not made"
    assert pages.verdict(row | {"accepted": True, "bytes": 2_340_000}) == "accepted, 2.3 MB, 1 s"


def test_the_ways_to_treat_a_softmax_certify_nothing_that_is_wrong(pages):
    found = pages.read(pages.EXPLAINED / "softmax.json")
    for way in found["ways"].values():
        assert 0 < way["uncut"] <= way["certified"] <= 16765732
    assert found["ways"]["identity"]["certified"] == 16765732 and found["ways"]["identity"]["finished"]
    crown = pages.crown()["found"]
    assert crown["by_blocks"] + crown["singly"] <= 16765732
