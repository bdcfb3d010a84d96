"""Files that a verb writes: looked at before any work is done, so that nothing is lost and nothing of somebody else's is replaced."""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from compactproofs.errors import CompactProofsError

PRODUCER = "compactproofs"
"""What our files say who wrote them."""

_CERTIFICATE = "compactproofs-certificate"
_LOOKED_AT = 1 << 26
_BEGINNING = 2048
"""Bytes within which pages and figures say what they are."""

Made = TypeVar("Made")

Recognise = Callable[[bytes], bool]
"""Whether the content of a file is of the kind that we write to that place."""


class Destination:
    """A place for one file.

    Refused, with the reason, are: a folder that is not there or cannot be written to, the name of a folder, an input of the same command,
    and an existing file of another origin unless `force` is given.
    """

    def __init__(self, option: str, path: str | Path, ours: Recognise, *, force: bool = False, inputs: Iterable[Path] = ()) -> None:
        self._option, self.path = option, Path(path)
        self._refuse_place()
        for other in inputs:
            if _same_file(self.path, other):
                raise self._error(f"that is {other}, which this command reads; choose another name")
        if not force and self.path.is_file() and not _is_ours(self.path, ours):
            raise self._error("that file exists and is not one of ours; choose another name, or replace it with --force")

    def write(self, data: bytes) -> None:
        """Write the whole file or nothing."""
        self.fill(lambda path: path.write_bytes(data))

    def fill(self, make: Callable[[Path], Made]) -> Made:
        """Have `make` write a file and put it here, whole or not at all; /dev/stdout and its like get a copy. Returns what `make` does."""
        from compactproofs.model.files import whole

        try:
            if self.path.exists() and not self.path.is_file():
                with tempfile.TemporaryDirectory() as folder:
                    made = make(Path(folder) / "made")
                    with (Path(folder) / "made").open("rb") as source, self.path.open("wb") as target:
                        shutil.copyfileobj(source, target)
                return made
            with whole(self.path.resolve()) as temporary:
                return make(temporary)
        except OSError as error:
            raise self._error(f"cannot write ({error.strerror}); nothing was written") from None

    def _refuse_place(self) -> None:
        try:
            if self.path.is_dir():
                raise self._error("that is a folder; expected the name of a file")
            if self.path.exists() and not self.path.is_file():
                return
            require_folder(self._option, self.path.resolve().parent, shown=self.path)
        except OSError as error:
            raise self._error(f"cannot be used ({error.strerror})") from None

    def _error(self, reason: str) -> CompactProofsError:
        return CompactProofsError(f"{self._option} {self.path}: {reason}")


def require_folder(option: str, folder: Path, shown: Path | None = None) -> None:
    """Raise unless the folder is there and takes new files."""
    if not folder.is_dir():
        raise CompactProofsError(f"{option} {shown or folder}: the folder {folder} does not exist")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CompactProofsError(f"{option} {shown or folder}: the folder {folder} cannot be written to ({error.strerror})") from None


def make_folder(option: str, folder: Path) -> Path:
    """The folder, made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "a file has that name" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
        raise CompactProofsError(f"{option} {folder}: expected a folder, or a name for a new one ({why})") from None
    require_folder(option, folder)
    return folder


def is_json_of_ours(data: bytes) -> bool:
    """Whether this is what `--json` writes: every object says who produced it."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return False
    objects = found if isinstance(found, list) else [found]
    return bool(objects) and all(isinstance(each, dict) and _is_result(each) for each in objects)


def _is_result(found: dict[str, object]) -> bool:
    """Certificates have a producer too; what they prove is worth more than to be replaced by a measurement."""
    return str(found.get("producer")).startswith(f"{PRODUCER} ") and found.get("format") != _CERTIFICATE


def is_certificate(data: bytes) -> bool:
    """Whether this is a certificate, of any version."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("format") == _CERTIFICATE


def is_page(data: bytes) -> bool:
    """Whether this is an HTML page that names us as its generator, at its beginning."""
    return data.startswith(b"<!doctype html>") and b'<meta name="generator" content="compactproofs ' in data[:_BEGINNING]


def is_figure(data: bytes) -> bool:
    """Whether this is a figure of ours: an SVG or PNG with our title in its metadata."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return b"Title\0compactproofs figure" in _png_texts(data)
    return data.startswith(b"<?xml") and b"<svg" in data[:_BEGINNING] and b"<dc:title>compactproofs figure</dc:title>" in data[:_BEGINNING]


def _png_texts(data: bytes) -> list[bytes]:
    """The text chunks that stand before the image."""
    texts, at = [], 8
    while at + 8 <= len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        if kind == b"IDAT":
            break
        if kind == b"tEXt":
            texts.append(data[at + 8 : at + 8 + size])
        at += size + 12
    return texts


def is_csv_of_ours(data: bytes) -> bool:
    """Whether the first line has columns that only our tables have."""
    return {b"weights_sha256", b"correct_at_least"} <= set(data.split(b"\n", 1)[0].strip().split(b","))


def _is_ours(path: Path, ours: Recognise) -> bool:
    try:
        with path.open("rb") as file:
            data = file.read(_LOOKED_AT + 1)
    except OSError:
        return False
    return len(data) == 0 or (len(data) <= _LOOKED_AT and ours(data))


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return one.absolute() == other.absolute()
