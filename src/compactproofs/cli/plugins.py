"""Verbs that other distributions bring along, and what is said where they are missing."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer

from compactproofs.errors import MissingExtraError

GROUP = "compactproofs.verbs"
"""Entry points of this group are verbs: a name, and a function that typer understands."""

Verb = Callable[..., Any]


def add_to(app: typer.Typer) -> None:
    """Add the verbs that are installed besides our own; `reproduce` is always there, if only to say where it comes from."""
    found = {entry.name: _loaded(entry) for entry in entry_points(group=GROUP)}
    for name, verb in {"reproduce": reproduce, **found}.items():
        anything = {"allow_extra_args": True, "ignore_unknown_options": True} if verb is reproduce else {}
        app.command(name, context_settings=anything)(verb)


def _loaded(entry: EntryPoint) -> Verb:
    """The verb of another distribution; one that cannot be loaded says so when it is called, and spoils no other."""
    try:
        verb: Verb = entry.load()
    except Exception as error:
        reason = f"the verb {entry.name} of {entry.value} cannot be loaded ({type(error).__name__}: {error})"

        def broken() -> None:
            raise MissingExtraError(reason)

        return broken
    return verb


def reproduce() -> None:
    """Reproduce the paper (an experiment that is installed apart: pip install ./experiments, in a clone)."""
    raise MissingExtraError(
        "the reproduction of the paper is an experiment beside the package: in a clone of the project, pip install ./experiments"
    )
