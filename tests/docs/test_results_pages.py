"""The committed pages on results are what the committed store says."""

from pathlib import Path

import pytest

from compactproofs_experiments.reproduction import pages
from compactproofs_experiments.reproduction.docs import COMMAND, RESULTS

STORE = RESULTS / "store"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Every page anew; figures take long to draw, and are taken for drawn if they are there."""
    into = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "save_figures", lambda configuration, folder: drawn(configuration, folder))
        return [path for path in pages.write_pages(STORE, into, command=COMMAND) if path.suffix != ".svg"]


def drawn(configuration, folder):
    names = [f"{configuration.name}-{figure}.svg" for figure in ("pareto", "singular-ratio", "unexplained", "accuracy")]
    assert all((RESULTS / name).is_file() for name in names)
    return [folder / name for name in names]


@pytest.mark.long
def test_every_page_is_as_it_would_be_written_today(written):
    assert len(written) == 10
    for path in written:
        assert path.read_text() == (RESULTS / path.name).read_text(), f"{path.name}: python -m compactproofs_experiments.reproduction.docs"


def test_the_store_is_small_and_tells_nobody_where_it_was_made():
    (part,) = STORE.iterdir()
    assert part.stat().st_size < 10_000_000
    for word in (str(Path.home()), str(RESULTS.parents[1])):
        assert len(word) < 5 or word.encode() not in part.read_bytes()
