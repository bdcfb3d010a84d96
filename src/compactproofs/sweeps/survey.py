"""Before a sweep: what there is, under which names, and what is left to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from compactproofs.errors import ModelError
from compactproofs.results.schema import FAILED, MEASURED, PROOF, Row
from compactproofs.results.store import UNREADABLE, Entry, Key, Place, content_of, entries, put_aside, read_part, write_part
from compactproofs.strategies.base import AbstractStrategy
from compactproofs.sweeps.plan import Plan, Work
from compactproofs.sweeps.work import failed_model
from compactproofs.text import as_utf8


@dataclass(frozen=True)
class Missing:
    """A model and what is left to do with it."""

    model: Path
    work: Work
    measured: Row = field(default_factory=dict)
    """Its accuracy, as an earlier part has it."""
    obsolete: tuple[Path, ...] = ()
    """Parts that say that the model as a whole failed, which is tried again."""


@dataclass(frozen=True)
class Survey:
    """All files of a plan."""

    missing: list[Missing]
    twins: list[Path]
    """More files of the same content as a missing one."""
    unreadable: int
    """Files that are no models; they are recorded."""


def survey(plan: Plan, out: Path, *, retry_failed: bool = False) -> Survey:
    """Look at every file, write rows of the same content down under its name, and put aside what is stale."""
    known = _known(plan.work, out)
    missing: dict[str, Missing] = {}
    twins: list[Path] = []
    present: set[str] = set()
    unreadable = 0
    for model in plan.models:
        place = plan.place(model)
        try:
            content = content_of(plan.load(model))
        except Exception as error:
            present.add(f"{UNREADABLE}-{place.digest}")
            write_part(out / place.part(UNREADABLE, plan.work.digest), place.named(failed_model(plan.work, error)))
            unreadable += 1
            continue
        present.add(f"{content}-{place.digest}")
        found = known.get(content, [])
        left = _left(plan.work, model, [e for e in found if e.place == place.digest], found, retry_failed=retry_failed)
        _adopt(plan.work, out, place, found)
        if left is not None and content in missing:
            twins.append(model)
        elif left is not None:
            missing[content] = left
    put_aside(out, as_utf8(str(plan.folder.resolve())), present)
    return Survey(list(missing.values()), twins, unreadable)


def adopt_twins(plan: Plan, out: Path, twins: Sequence[Path]) -> None:
    """Write what was found about a content down under the names of more files that have it."""
    known = _known(plan.work, out) if twins else {}
    for model in twins:
        with suppress(ModelError):  # the file was readable a moment ago; the next sweep records what became of it
            _adopt(plan.work, out, plan.place(model), known.get(content_of(plan.load(model)), []))


def _known(work: Work, out: Path) -> dict[str, list[Entry]]:
    """Rows of the plan that are there, by content."""
    known = entries(out, work.plan)
    for content, found in entries(out, work.measuring).items() if work.documents else ():
        known.setdefault(content, []).extend(found)
    return known


def _wanted(work: Work) -> list[Key]:
    return [*map(_key, work.strategies), *((kind, None, None) for kind in work.documents)]


def _key(strategy: AbstractStrategy) -> Key:
    return PROOF, strategy.label, strategy.variant


def _left(work: Work, model: Path, own: Sequence[Entry], found: Sequence[Entry], *, retry_failed: bool) -> Missing | None:
    """What of the work is not there yet; None if all of it is, or if the model as a whole failed at just this work before."""
    whole = [entry for entry in found if (entry.kind, entry.label) == (PROOF, None)]
    if whole and retry_failed:
        return Missing(model, work, obsolete=tuple({entry.part for entry in own if entry in whole}))
    done = {e.key for e in found if not (retry_failed and e.status == FAILED)}
    strategies = [s for s in work.strategies if _key(s) not in done]
    left = [kind for kind in work.documents if (kind, None, None) not in done]
    if not strategies and not left:
        return None
    less = work.only(strategies, left)
    if any(entry.work == less.digest for entry in whole):
        return None
    return Missing(model, less, _measured(found))


def _measured(found: Iterable[Entry]) -> Row:
    """The accuracy of the model, if one of these rows has it."""
    for part in {entry.part for entry in found if entry.kind == PROOF}:
        rows = read_part(part) or []
        if rows and rows[0]["accuracy"] is not None:
            return {name: rows[0][name] for name in MEASURED}
    return {}


def _adopt(work: Work, out: Path, place: Place, found: Sequence[Entry]) -> None:
    """Rows that are there, but under other names only: written down under this one."""
    mine = {entry.key for entry in found if entry.place == place.digest and entry.part.parent == out}
    lacking = {(PROOF, None, None), *_wanted(work)} - mine
    sources: dict[Path, set[Key]] = {}
    for entry in found:
        if entry.key in lacking and (entry.label is not None or entry.kind != PROOF or entry.work == work.digest):
            lacking.remove(entry.key)
            sources.setdefault(entry.part, set()).add(entry.key)
    for part, keys in sources.items():
        rows = [r for r in read_part(part) or [] if (r["kind"], r["label"], r["variant"]) in keys]
        less = work.only([s for s in work.strategies if _key(s) in keys], [kind for kind in work.documents if (kind, None, None) in keys])
        if rows:
            write_part(out / place.part(part.name.split("-")[0], less.digest), place.named(rows))
