"""One file over HTTP: continued where it stopped, tried again where that may help, one writer at a time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

#: Seconds without a byte after which a connection counts as dead.
TIMEOUT = 30.0
CHUNK = 1 << 16


class TransferFailed(Exception):
    """An address did not deliver; `is_final` where another try cannot help."""

    def __init__(self, text: str, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final


@dataclass(frozen=True)
class Resuming:
    """A downloader for pooch: bytes gather in `part`, which outlives a broken connection and a killed process.

    `size` is the expected number of bytes where it is known, `report` hears the number of bytes that have arrived,
    `accept` may refuse the complete file by raising. Attempt k + 1 waits `wait`*2^k seconds.
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
        """Append to the part, or write it anew where the server sends the whole file."""
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
    """Hold the folder's lock; a second process waits here, and a killed one gives the lock back."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("ab") as handle:
        _lock(handle)
        try:
            yield
        finally:
            _unlock(handle)


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: IO[bytes]) -> None:
        while True:
            try:
                handle.seek(0)
                return msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK, 1)
            except OSError:  # it gives up after ten seconds
                time.sleep(0.1)

    def _unlock(handle: IO[bytes]) -> None:
        handle.seek(0)
        msvcrt.locking(handle.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(handle: IO[bytes]) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX)

    def _unlock(handle: IO[bytes]) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)
