"""Scripts of users: what happens if they start workers where every worker would do so again."""

import subprocess
import sys

import pytest

SCRIPT = """
import compactproofs as cp
cp.train(cp.MaxOfK(n_ctx=2, d_vocab=3), seeds=[0, 1], steps=1, out="models")
"""


@pytest.mark.long
def test_a_script_without_main(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode != 0 and not list(tmp_path.glob("models/*.safetensors"))
    assert "put what starts workers under if __name__ == '__main__'" in done.stderr
    assert "BrokenProcessPool" not in done.stderr and "freeze_support" not in done.stderr
    whole = SCRIPT.replace("cp.train", 'if __name__ == "__main__":\n    cp.train')
    (tmp_path / "script.py").write_text(whole)
    subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert len(list(tmp_path.glob("models/*.safetensors"))) == 2
