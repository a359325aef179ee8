"""A server on this machine and the files that it serves, for the tests of the downloader."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gread.datasets.download import CHUNK, fetch_files
from gread.datasets.sources import Dataset, RemoteFile

CONTENT = np.random.default_rng(0).bytes(300_000)
OTHER = bytes(300_000)
HALF = 2 * CHUNK  # whole pieces: what is left of one is lost with the connection


@dataclass(frozen=True)
class Here(RemoteFile):
    """A file of the server on this machine."""

    urls: tuple[str, ...] = ()

    @property
    def addresses(self) -> tuple[str, ...]:
        return self.urls


@dataclass
class Server:
    """Serves `files`; `cut[path]` says after how many bytes the n-th answer breaks off, `status` what it answers."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cut: dict[str, list[int]] = field(default_factory=dict)
    status: dict[str, list[int]] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    honours_range: bool = True
    pause: float = 0.0

    def file(self, content: bytes = CONTENT, *paths: str, known: bool = True) -> Here:
        """The file that the registry would describe, at these paths of the server."""
        urls = tuple(f"{self.url}/{path}" for path in paths or ("good",))
        digest = hashlib.sha256(content).hexdigest()
        return Here("there", "data/file.npz", len(content) if known else None, digest if known else None, urls)


def source(**counts: int) -> Dataset:
    return Dataset(
        "there", "", "npz", (), (), **{"nodes": 4, "edges": 2, "features": 3, "classes": 2} | counts, counts="table"
    )


def get(file: RemoteFile, root: Path | None, **options: Any) -> Path:
    (local,) = fetch_files(source(), [file], root=root, **options)
    assert local.sha256 == hashlib.sha256(local.path.read_bytes()).hexdigest()
    return local.path


def left(root: Path) -> set[str]:
    """The files below a root but for the lock."""
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()} - {".lock"}


def put(root: Path, content: bytes) -> Path:
    path = root / "there/data/file.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
