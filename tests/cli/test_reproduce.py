"""`compactproofs reproduce`: what it refuses."""

from command import run


def test_an_unknown_configuration_is_named_with_the_known_ones(tmp_path):
    result = run("reproduce", "--config", "k6", "--out", tmp_path, check=False)
    assert result.returncode == 2 and "unknown configuration 'k6'; known: k4, k5, k10, k20, k10-v128, all" in result.stderr
    assert list(tmp_path.iterdir()) == []
