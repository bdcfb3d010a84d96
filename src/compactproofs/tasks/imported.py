"""Tasks of one's own, named on the command line as `module:name`.

Importing runs the module, so it happens because a user names it and for no other reason: `task_for` does not look here, and what a model's
file names is never imported.
"""

from __future__ import annotations

import importlib
import re
import sys
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from compactproofs.errors import TaskError
from compactproofs.tasks import is_known, task_of_size
from compactproofs.tasks.automaton import AbstractTask, LabellingAutomaton
from compactproofs.tasks.rules import Rule, explored

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)

_EXPECTED = (
    "expected a Rule, a task (an AbstractTask such as cp.MaxOfK(4, 64)), or a function or class that makes one of them from n_ctx and "
    "d_vocab; docs/how-to/add-a-task.md has examples"
)


@dataclass(frozen=True)
class RuleTask(AbstractTask):
    """A rule, with a name and with sizes."""

    name: str
    rule: Rule[Any] = field(compare=False)
    n_ctx: int
    d_vocab: int

    @property
    def spec(self) -> str:
        return self.name

    @property
    def title(self) -> str:
        return f"what {self.name} says"

    @cached_property
    def automaton(self) -> LabellingAutomaton:
        return explored(self.rule, self.n_ctx, self.d_vocab)

    def of_length(self, n_ctx: int) -> RuleTask:
        return replace(self, n_ctx=n_ctx)


def task_by_user(spec: str, n_ctx: int, d_vocab: int) -> AbstractTask:
    """The task that a user names: one of the library, or `module:name`, which is imported. The current folder is searched last."""
    if is_known(spec) or not _NAME.fullmatch(spec):
        return task_of_size(spec, n_ctx, d_vocab)
    found = _looked_up(spec)
    try:
        made = found(n_ctx, d_vocab) if callable(found) and not isinstance(found, AbstractTask | Rule) else found
        task = RuleTask(spec, made, n_ctx, d_vocab) if isinstance(made, Rule) else made
        if isinstance(task, AbstractTask):
            task.automaton  # noqa: B018 - what is wrong with a rule shows when it is walked
    except TaskError as error:
        raise TaskError(f"--task {spec}: {error}") from None
    except Exception as error:
        raise TaskError(f"--task {spec}: it raised {type(error).__name__}: {error!s:.200}; {_EXPECTED}") from error
    if not isinstance(task, AbstractTask):
        made_by = "gives" if task is not found else "is"
        raise TaskError(f"--task {spec}: it {made_by} a {type(task).__name__}; {_EXPECTED}")
    return task


def _looked_up(spec: str) -> object:
    module, _, path = spec.partition(":")
    here = str(Path.cwd())
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.append(here)
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        where = "there is no module of that name, neither installed nor in the current folder"
        why = where if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")) else f"{error}"
        raise TaskError(f"--task {spec}: cannot import {module}: {why}. 'compactproofs tasks' lists the tasks of the library") from None
    except Exception as error:
        raise TaskError(f"--task {spec}: importing {module} raised {type(error).__name__}: {error!s:.200}") from error
    finally:
        if added and here in sys.path:
            sys.path.remove(here)
    for name in path.split("."):
        if not hasattr(found, name):
            raise TaskError(f"--task {spec}: {module} has no {path}; {_EXPECTED}")
        found = getattr(found, name)
    return found
