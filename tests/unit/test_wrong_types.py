"""What a user can get wrong in Python is an error in words. In a process of its own: the suite's type checker would be quicker."""

import json
import subprocess
import sys

import pytest

CASES = {
    "cp.prove(w, 7)": "strategy=7 is a int; expected a name such as 'threshold-best'",
    "list(cp.prove_many(w, ['cubic', 7]))": "strategy=7 is a int",
    "cp.prove(w, None)": "strategy=None is a NoneType",
    "cp.prove(w, 'cubic', 'max')": "a str was given for a task; expected one such as MaxOfK(n_ctx=4, d_vocab=64)",
    "cp.accuracy(w, task=3)": "a int was given for a task",
    "cp.load(7)": "a int was given for a model file; expected its path",
    "cp.from_transformer_lens(None)": "not None",
    "cp.from_transformer_lens('x.pth')": "for the file 'x.pth' use load",
    "cp.prove(3)": "a int was given for a model; expected Weights",
    "cp.accuracy('max-of-4')": "a str was given for a model; expected Weights or a Network, such as zoo('max-of-4') or load(path)",
    "cp.check('nowhere.json', 3)": "a int was given for a model",
    "cp.prove(w, 'cubic', Unhashable())": "",
}

SCRIPT = """
import json, sys
import compactproofs as cp
from dataclasses import dataclass, field

@dataclass(frozen=True)
class Unhashable(cp.MaxOfK):
    n_ctx: int = 4
    d_vocab: int = 64
    notes: list = field(default_factory=list)

w = cp.zoo("max-of-4")
found = {}
for case in json.loads(sys.argv[1]):
    try:
        eval(case)
        found[case] = None
    except cp.CompactProofsError as error:
        found[case] = str(error)
    except BaseException as error:
        found[case] = f"RAW {type(error).__name__}: {error}"
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def messages():
    done = subprocess.run([sys.executable, "-c", SCRIPT, json.dumps(list(CASES))], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", CASES)
def test_message(messages, case):
    if CASES[case]:
        assert messages[case] is not None and CASES[case] in messages[case]
    else:
        assert messages[case] is None
