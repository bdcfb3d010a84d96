"""Every Python block in the README and the documentation runs, in order, page by page (blocks marked `notest` excepted)."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


BLOCKS = {
    str(page.relative_to(ROOT)): blocks
    for page in PAGES
    if (blocks := re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL))
}


@pytest.mark.long
@pytest.mark.parametrize("page", BLOCKS)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    """In an empty folder, so that what a page writes is not left behind."""
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in BLOCKS[page]:
        exec(compile(block, page, "exec"), namespace)


def test_there_are_blocks_to_run():
    assert sum(map(len, BLOCKS.values())) >= 5 and "README.md" in BLOCKS


def test_nothing_that_the_package_writes_is_tracked_at_the_root():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    assert not [name for name in tracked if "/" not in name and name.endswith((".cert.json", ".safetensors", ".html", ".parquet"))]


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_the_readmes_two_commands_exist(command):
    assert command in (ROOT / "README.md").read_text()
    assert re.search(rf"^{command.split()[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_no_machine_paths_or_hosts_in_tracked_text():
    forbidden = re.compile(r"/(home|root|work|tmp)/[a-z.]|pypi\.org|deb\.debian\.org|registry\.npmjs")
    for path in [*ROOT.glob("*.md"), *ROOT.glob("*.toml"), *(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]:
        assert not forbidden.search(path.read_text()), path


@pytest.mark.long
def test_the_readmes_lines_run_as_printed(tmp_path):
    """In an empty folder, in order: each line may use what an earlier one wrote."""
    (block,) = [
        b for b in re.findall(r"^```console\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL) if "prove" in b
    ]
    lines = block.splitlines()
    assert len(lines) == 5 and all(line.startswith("compactproofs ") for line in lines)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for line in lines:
        result = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, (line, result.stderr)
    assert (tmp_path / "report.html").exists() and "accepted" in subprocess.run(
        ["sh", "-c", lines[3]], cwd=tmp_path, env=environment, capture_output=True, text=True
    ).stdout
