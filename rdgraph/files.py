"""Files: written whole or not at all, and read with errors that name the file and the remedy."""

from __future__ import annotations

import errno
import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rdgraph.errors import FileError, InvalidArgument, RdgraphError


@dataclass(frozen=True)
class Place:
    """The location of a value, for errors: the column or attribute `name` of `owner`.

    >>> print(Place.line(Path("e.csv"), 3, "weight").error("a number", "'x'", "write one"))
    e.csv, line 3, column 'weight': expected a number, got 'x'; write one
    """

    owner: str
    name: str = ""
    part: str = "column"
    kind: type[RdgraphError] = FileError

    @classmethod
    def line(cls, path: Path, line: int, column: str = "") -> Place:
        """A line of a file, counted from 1."""
        return cls(f"{path}, line {line}", column)

    def error(self, expected: str, got: str, remedy: str) -> RdgraphError:
        name = f", {self.part} {self.name!r}" if self.name else ""
        return self.kind(f"{self.owner}{name}: expected {expected}, got {got}; {remedy}")


@contextmanager
def drafting(path: Path) -> Iterator[Path]:
    """Yield a new empty file next to `path`, with the same ending; remove it if it is still there at the end.

    Its name is random and must not exist, so that no existing file or link of that name is written through. An OSError
    in the block becomes a FileError about `path`.
    """
    draft = path.with_name(f".{secrets.token_hex(8)}.part{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
        os.close(os.open(draft, flags, 0o666))
        yield draft
    except FileError:
        raise
    except OSError as problem:
        raise unwritable(path, problem) from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """A draft of `path` that replaces it if the block succeeds; `durable` waits until it is on disk.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "a.txt"
    >>> with replacing(target) as draft:
    ...     _ = draft.write_text("whole")
    >>> target.read_text(), [p.name for p in target.parent.iterdir()]
    ('whole', ['a.txt'])
    """
    with drafting(path) as draft:
        yield draft
        move(draft, path, durable=durable)


def remove_drafts(folder: Path) -> None:
    """Remove the drafts that killed processes left in a folder, which no other process may be writing to."""
    for draft in folder.rglob("." + "[0-9a-f]" * 16 + ".part*"):
        with suppress(OSError):
            draft.unlink()


def move(draft: Path, path: Path, *, durable: bool = False) -> None:
    """Replace a file by another one of the same folder atomically."""
    if durable:
        _sync(draft, os.O_RDWR)
    draft.replace(path)
    if durable and os.name == "posix":
        _sync(path.parent, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    number = os.open(path, flags)
    try:
        os.fsync(number)
    finally:
        os.close(number)


if sys.platform == "win32":
    import msvcrt

    def _take(file: IO[bytes], *, wait: bool) -> bool:
        while True:
            with suppress(OSError):
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
                return True
            if not wait:
                return False
            time.sleep(0.1)

else:
    import fcntl

    def _take(file: IO[bytes], *, wait: bool) -> bool:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False


@contextmanager
def file_lock(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of a file against other processes; a process that dies releases it.

    Yields False if another process holds it and `wait` is off.
    """
    with path.open("ab") as file:
        yield _take(file, wait=wait)


def write_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Write a text as UTF-8, whole or not at all."""
    with replacing(path, durable=durable) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")


def read_bytes(path: Path, what: str) -> bytes:
    """The bytes of a file that should contain `what`."""
    try:
        return path.read_bytes()
    except OSError as problem:
        raise FileError(
            f"expected {what} in {path}, got a file that cannot be read ({reason_of(problem)}); check its name"
        ) from None


def read_text(path: Path, what: str) -> str:
    """The text of a UTF-8 file that should contain `what`, with its line ends unchanged."""
    try:
        return read_bytes(path, what).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise FileError(
            f"expected {what} in UTF-8 in {path}, got byte {problem.object[problem.start]:#04x} at position "
            f"{problem.start}; save it as UTF-8"
        ) from None


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Within the block, an `InvalidArgument` is a mistake in a file, which the error then names."""
    try:
        yield
    except InvalidArgument as problem:
        raise FileError(f"{path}: {problem}") from None


def unwritable(path: Path, problem: OSError) -> FileError:
    """The error for a path that cannot be written."""
    is_full = problem.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "make room, or choose another folder" if is_full else "choose another folder"
    return FileError(f"cannot write {path}: {reason_of(problem)}; {remedy}")


def reason_of(problem: OSError) -> str:
    """The operating system's message of an OSError, without the path."""
    return problem.strerror or str(problem)
