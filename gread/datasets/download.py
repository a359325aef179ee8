"""The files of the public data sets: from a local copy or downloaded with pooch, and always checked.

A file is searched below `root`; without it below $RDGRAPH_DATA, a read-only local copy, then in the cache folder of the
system. A missing file is downloaded to `root`, else to the cache, and moved into place by one rename after its sha256
was checked, so a broken, truncated or forged file is never used.

Three files (roman_empire, amazon_ratings, questions) have no sha256 in the registry. They are trusted on first use: the
file must be an npz without Python objects with the published numbers of nodes, edges, features and classes; its sha256
is then written next to it (`NAME.npz.sha256`), and any later change is an error.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gread.datasets.sources import Dataset, RemoteFile, entry
from rdgraph.errors import FileError, MissingDependency
from rdgraph.files import file_lock, write_text

# ---------------------------------------------------------------------- transfer
# The download of one file over HTTP: resumed after a failure, retried if that may help, one writer at a time.

#: Seconds without data after which a connection is given up.
TIMEOUT = 30.0
CHUNK = 1 << 16


class TransferFailed(Exception):
    """A failed download from one address; `is_final` if a retry cannot help."""

    def __init__(self, text: str, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final


@dataclass(frozen=True)
class Resuming:
    """A downloader for pooch that collects bytes in `part`, which survives a broken connection or a killed process.

    `size` is the expected number of bytes if known, `report` is called with the number of received bytes, `accept` may
    refuse the complete file by raising. Attempt k + 1 waits `wait`*2^k seconds.
    """

    part: Path
    size: int | None
    attempts: int
    wait: float
    report: Callable[[int], None]
    accept: Callable[[Path], None]

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:
        for attempt in range(self.attempts):
            try:
                self._continue(url)
                break
            except TransferFailed as reason:
                if reason.is_final or attempt + 1 == self.attempts:
                    raise
                time.sleep(self.wait * 2**attempt)
        self.accept(self.part)
        self.part.replace(output_file)

    def _continue(self, url: str) -> None:
        import requests

        start = self.part.stat().st_size if self.part.exists() else 0
        if self.size is not None and start == self.size:
            return
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        try:
            with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
                self._check_status(response)
                is_rest = response.status_code == requests.codes.partial_content and start > 0
                if is_rest and not response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
                    raise self._start_again("the server sent another part of the file than asked for")
                self._write(response, start if is_rest else 0)
        except requests.RequestException as reason:
            raise TransferFailed(f"the connection failed ({type(reason).__name__})") from reason

    def _check_status(self, response: Any) -> None:
        status = response.status_code
        if status == 416:
            raise self._start_again("the server has no more bytes than those already here")
        if status >= 400:
            may_pass = status >= 500 or status in (408, 429)
            raise TransferFailed(f"the server answered {status} {response.reason}", is_final=not may_pass)

    def _write(self, response: Any, start: int) -> None:
        """Append to the part, or overwrite it if the server sends the whole file."""
        length = response.headers.get("Content-Length")
        announced = self.size if self.size is not None else start + int(length) if length else None
        done = start
        with self.part.open("ab" if start else "wb") as part:
            for piece in response.iter_content(CHUNK):
                part.write(piece)
                done += len(piece)
                self.report(done)
                if announced is not None and done > announced:
                    break
        if announced is not None and done > announced:
            self.part.unlink()
            raise TransferFailed(f"the server sent more than the expected {announced} bytes", is_final=True)
        if announced is not None and done < announced:
            raise TransferFailed(f"the server sent {done} of {announced} bytes")

    def _start_again(self, text: str) -> TransferFailed:
        self.part.unlink(missing_ok=True)
        return TransferFailed(text)


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold the lock of the folder; a second process waits, and a killed process releases the lock."""
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / ".lock"):
        yield


# ---------------------------------------------------------------------- download
VARIABLE = "RDGRAPH_DATA"
#: Attempts per address, and seconds before the second one; each further wait is twice as long.
ATTEMPTS = 4
WAIT = 0.5


class DownloadError(FileError):
    """A file that is unavailable: missing while offline, not delivered, or with wrong content."""


@dataclass(frozen=True)
class LocalFile:
    """A local file of the registry with checked content."""

    file: RemoteFile
    path: Path
    sha256: str


def fetch(
    name: str, *, root: str | Path | None = None, offline: bool = False, progress: bool | None = None
) -> tuple[LocalFile, ...]:
    """All files of a public set, including its splits; downloads missing ones."""
    source = entry(name)
    return fetch_files(source, source.all_files, root=root, offline=offline, progress=progress)


def fetch_files(
    source: Dataset,
    files: Sequence[RemoteFile],
    *,
    root: str | Path | None = None,
    offline: bool = False,
    progress: bool | None = None,
) -> tuple[LocalFile, ...]:
    """Some files of a set. `progress` shows a progress bar while downloading; None: only on a terminal."""
    local = {file: find(source, file, root=root) for file in files}
    missing = [file for file in files if local[file] is None]
    if missing and offline:
        raise DownloadError(
            f"expected the files of {source.name} below {folder(root)}, got {len(missing)} missing or damaged: "
            f"{', '.join(file.key for file in missing)}; run `rdgraph data fetch {source.name}` with a network"
        )
    with _bar(source.name, missing, progress) as report:
        fetched = {file: _download(source, file, folder(root), report) for file in missing}
    return tuple(local[file] or fetched[file] for file in files)


def find(source: Dataset, file: RemoteFile, *, root: str | Path | None = None) -> LocalFile | None:
    """The local file, checked; None if it is missing, or damaged in a folder managed by this package."""
    copy = os.environ.get(VARIABLE) if root is None else None
    if copy:
        if not Path(copy).is_dir():
            raise DownloadError(f"expected a folder in {VARIABLE}, got {copy!r}; correct or unset it")
        if (path := Path(copy, file.key)).is_file():
            return _checked_copy(source, file, path)
    path = folder(root) / file.key
    return _checked(source, file, path) if path.is_file() else None


def _checked_copy(source: Dataset, file: RemoteFile, path: Path) -> LocalFile:
    """A file of the read-only local copy; wrong content is an error."""
    from gread.datasets.npz import check_npz  # loads numpy, which finding files does not need

    digest = sha256(path)
    wanted = file.sha256 or _pinned(path)
    if wanted is None:
        check_npz(path, source)
    elif digest != wanted:
        raise _changed(path, wanted, digest, f"replace it, or unset {VARIABLE} to use the cache")
    return LocalFile(file, path, digest)


def _checked(source: Dataset, file: RemoteFile, path: Path) -> LocalFile | None:
    """A file of a managed folder: damaged counts as missing, unless its hash was recorded on first use."""
    digest = sha256(path)
    if file.sha256 is None:
        if (pinned := _pinned(path)) is None:
            _pin(source, path, path)
        elif digest != pinned:
            raise _changed(path, pinned, digest, f"delete it and {_pin_path(path).name} to trust a new one")
    elif digest != file.sha256:
        return None
    return LocalFile(file, path, digest)


def _download(source: Dataset, file: RemoteFile, folder: Path, report: Callable[[RemoteFile, int], None]) -> LocalFile:
    reasons = []
    path = folder / file.key
    try:
        with only_writer(folder):
            if path.is_file() and (ready := _checked(source, file, path)):
                return ready
            for address in file.addresses:
                try:
                    _retrieve(source, file, path, address, lambda done: report(file, done))
                    return LocalFile(file, path, sha256(path))
                except (TransferFailed, FileError) as reason:
                    reasons.append(f"{address}: {reason}")
    except FileError:
        raise
    except OSError as reason:
        raise DownloadError(f"expected to write below {folder}, got {reason}; pass another root=") from reason
    raise DownloadError(
        f"expected {file.key} from one of {len(file.addresses)} addresses, got\n  " + "\n  ".join(reasons) + "\n"
        f"try again later, or put the file below {folder}"
    )


def _retrieve(source: Dataset, file: RemoteFile, path: Path, address: str, report: Callable[[int], None]) -> None:
    """Download from one address with pooch; a resumed file with a wrong hash is downloaded again from the start."""
    pooch = _pooch()
    part = path.with_name(path.name + ".part")
    wanted = file.sha256 or _pinned(path)
    accept: Callable[[Path], None] = (lambda _: None) if wanted else (lambda ready: _pin(source, path, ready))
    if part.is_symlink():  # not created here, so nothing is written through it
        part.unlink()
    was_begun = part.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    downloader = Resuming(part, file.bytes, ATTEMPTS, WAIT, report, accept)
    try:
        with _quiet(pooch):
            pooch.retrieve(address, wanted, fname=path.name, path=path.parent, downloader=downloader)
    except FileError:
        part.unlink(missing_ok=True)
        raise
    except ValueError:
        if was_begun:
            return _retrieve(source, file, path, address, report)
        raise TransferFailed(f"a file with another sha256 than {wanted}; it may have changed there") from None


def _pin(source: Dataset, path: Path, ready: Path) -> None:
    """Trust on first use: check the published counts, then write the hash next to the file."""
    from gread.datasets.npz import check_npz

    check_npz(ready, source)
    write_text(_pin_path(path), f"{sha256(ready)}  {path.name}\n")


def _pin_path(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _pinned(path: Path) -> str | None:
    pin = _pin_path(path)
    return pin.read_text(encoding="ascii").split()[0] if pin.is_file() else None


def _changed(path: Path, wanted: str, got: str, remedy: str) -> DownloadError:
    return DownloadError(f"expected sha256 {wanted} of {path}, got {got}: the file has changed; {remedy}")


def sha256(path: Path) -> str:
    """The hash of a file's content; cached per process while size and time are unchanged."""
    state = path.stat()
    return _sha256(path.resolve(), state.st_size, state.st_mtime_ns)


@cache
def _sha256(path: Path, size: int, time: int) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def folder(root: str | Path | None) -> Path:
    """The folder of downloads: the given root or the cache folder of the system."""
    return Path(root).expanduser() if root is not None else Path(_pooch().os_cache("rdgraph"))


def _pooch() -> Any:
    try:
        import pooch
    except ImportError:
        raise MissingDependency(
            f"loading public data sets needs pooch: pip install 'rdgraph[gread]', or set {VARIABLE} to a local copy of "
            "the files"
        ) from None
    return pooch


@contextmanager
def _quiet(pooch: Any) -> Iterator[None]:
    """Silence pooch's message about every file."""
    logger = pooch.get_logger()
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _bar(title: str, files: Sequence[RemoteFile], progress: bool | None) -> Iterator[Callable[[RemoteFile, int], None]]:
    """A function to call with the received bytes of a file, which shows a progress bar if wanted."""
    if not files or not (sys.stderr.isatty() if progress is None else progress):
        yield lambda file, done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    sizes = [file.bytes for file in files]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    received: dict[RemoteFile, int] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total)

        def report(file: RemoteFile, done: int) -> None:
            received[file] = done
            bar.update(task, completed=sum(received.values()))

        yield report
