"""The downloader and files whose sha256 is not known: trusted on first use only, and read before that."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gread.datasets.download import DownloadError
from gread.datasets.npz import KEYS
from rdgraph.errors import FileError
from tests.gread.datasets.download.local_server import CONTENT, Server, get, left, put

pytest.importorskip("pooch")


def archive(tmp_path: Path, *, edges: int = 2, secret: Any = None, top: int = 1) -> bytes:
    arrays = {
        "node_features": np.ones((4, 3), np.float32),
        "node_labels": np.array([0, 1, 1, 0]),
        "edges": np.array([[0, top]] * edges),
        **dict.fromkeys(KEYS[3:], np.zeros((2, 4), bool)),
    }
    if secret is not None:
        arrays["node_labels"] = np.array([secret] * 4, dtype=object)
    path = tmp_path / "made.npz"
    np.savez(path, **arrays)
    return path.read_bytes()


def test_an_unknown_file_is_trusted_on_first_use_only(server: Server, tmp_path: Path) -> None:
    root = tmp_path / "root"
    server.files["first"] = archive(tmp_path)
    path = get(server.file(b"", "first", known=False), root)
    pin = path.with_name("file.npz.sha256")
    assert pin.read_text() == f"{hashlib.sha256(server.files['first']).hexdigest()}  file.npz\n"
    assert left(root) == {"there/data/file.npz", "there/data/file.npz.sha256"}

    path.write_bytes(archive(tmp_path, top=2))  # as plausible, but another file
    with pytest.raises(DownloadError, match=r"the file has changed; delete it and file.npz.sha256 to trust a new one"):
        get(server.file(b"", "first", known=False), root)
    path.unlink()
    server.files["second"] = archive(tmp_path, top=2)
    with pytest.raises(DownloadError, match="another sha256"):
        get(server.file(b"", "second", known=False), root)
    assert get(server.file(b"", "first", known=False), root) == path
    pin.unlink()
    get(server.file(b"", "first", known=False), root, offline=True)
    assert pin.is_file()


class Planted:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("kind", ["other counts", "node out of range", "objects", "no npz", "pickle"])
def test_an_unknown_file_with_other_content_is_refused(server: Server, tmp_path: Path, kind: str) -> None:
    trace = tmp_path / "trace"
    content = {
        "other counts": archive(tmp_path, edges=3),
        "node out of range": archive(tmp_path, top=4),
        "objects": archive(tmp_path, secret=Planted(trace)),
        "no npz": CONTENT,
        "pickle": b"\x80\x02cbuiltins\neval\nU\x04exit\x85R.",
    }[kind]
    server.files["bad"] = content
    with pytest.raises(DownloadError, match="expected"):
        get(server.file(b"", "bad", known=False), tmp_path / "root")
    assert left(tmp_path / "root") == set()
    put(tmp_path / "own", content)
    with pytest.raises(FileError, match="expected"):
        get(server.file(b"", "bad", known=False), tmp_path / "own", offline=True)
    assert left(tmp_path / "own") == {"there/data/file.npz"}
    assert not trace.exists()
