"""Every Python block in the README and the documentation runs, in order, page by page (blocks marked `notest` excepted)."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_python_blocks_run(page, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    namespace = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)


def test_there_are_blocks_to_run():
    assert sum(page.read_text().count("```python\n") for page in PAGES) >= 5


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_the_readmes_two_commands_exist(command):
    assert command in (ROOT / "README.md").read_text()
    assert re.search(rf"^{command.split()[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_no_machine_paths_or_hosts_in_tracked_text():
    forbidden = re.compile(r"/(home|root|work|tmp)/[a-z.]|pypi\.org|deb\.debian\.org|registry\.npmjs")
    for path in [*ROOT.glob("*.md"), *ROOT.glob("*.toml"), *(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]:
        assert not forbidden.search(path.read_text()), path
