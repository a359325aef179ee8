"""The downloader against a server on this machine: what it delivers is checked, and nothing else enters the cache."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gread.datasets import download
from gread.datasets.download import DownloadError, fetch_files, find
from gread.datasets.npz import KEYS
from gread.datasets.sources import Dataset, RemoteFile
from gread.datasets.transfer import CHUNK
from rdgraph.errors import FileError, MissingDependency, RdgraphError

pytest.importorskip("pooch")

CONTENT = np.random.default_rng(0).bytes(300_000)
OTHER = bytes(300_000)
HALF = 2 * CHUNK  # whole pieces: what is left of one is lost with the connection


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only this machine can be reached."""
    connect, lookup = socket.socket.connect, socket.getaddrinfo

    def guarded(self: socket.socket, address: Any) -> None:
        assert address[0] == "127.0.0.1"
        connect(self, address)

    def local(host: Any, *args: Any, **options: Any) -> Any:
        assert host == "127.0.0.1"
        return lookup(host, *args, **options)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket, "getaddrinfo", local)


@pytest.fixture(autouse=True)
def _folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(download.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download, "WAIT", 0.01)


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


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server(files={"good": CONTENT, "other": OTHER})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, asked = self.path.strip("/"), self.headers["Range"]
            state.asked.append((path, asked))
            status = state.status[path].pop(0) if state.status.get(path) else 200
            if status != 200 or path not in state.files:
                self.send_error(status if status != 200 else 404)
                return
            content = state.files[path]
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and state.honours_range else 0
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            stop = state.cut[path].pop(0) if state.cut.get(path) else len(content)
            self.pour(content[start:stop])

        def pour(self, content: bytes) -> None:
            try:
                for k in range(0, len(content), 20_000):
                    self.wfile.write(content[k : k + 20_000])
                    time.sleep(state.pause)
            except OSError:
                pass  # the other side has left
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        state.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, args=(0.02,))
        thread.start()
        yield state
        http.shutdown()
        thread.join()


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


# ---------------------------------------------------------------------- what arrives
def test_a_good_file_arrives_and_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    path = get(server.file(), tmp_path)
    assert path == tmp_path / "there/data/file.npz"
    assert path.read_bytes() == CONTENT
    assert left(tmp_path) == {"there/data/file.npz"}
    assert get(server.file(), tmp_path, offline=True) == path
    assert server.asked == [("good", None)]


def test_without_root_it_goes_to_the_cache_of_the_system(server: Server, tmp_path: Path) -> None:
    assert get(server.file(), None).is_relative_to(tmp_path / "cache/rdgraph")


def test_a_wrong_file_never_enters(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"(?s)another sha256 than .* put the file below") as caught:
        get(server.file(CONTENT, "other"), tmp_path)
    assert isinstance(caught.value, OSError)
    assert isinstance(caught.value, RdgraphError)
    assert f"{server.url}/other" in str(caught.value)
    assert left(tmp_path) == set()
    assert find(source(), server.file(), root=tmp_path) is None


def test_the_next_address_is_tried(server: Server, tmp_path: Path) -> None:
    get(server.file(CONTENT, "other", "nowhere", "good"), tmp_path)
    assert [path for path, _ in server.asked] == ["other", "nowhere", "good"]
    assert left(tmp_path) == {"there/data/file.npz"}


def test_a_missing_page_is_asked_for_once(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="answered 404"):
        get(server.file(CONTENT, "nowhere"), tmp_path)
    assert server.asked == [("nowhere", None)]
    assert left(tmp_path) == set()


def test_a_tired_server_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.status["good"] = [500, 429]
    assert get(server.file(), tmp_path).read_bytes() == CONTENT
    assert len(server.asked) == 3
    server.status["good"] = [503] * download.ATTEMPTS
    with pytest.raises(DownloadError, match="answered 503"):
        get(server.file(), tmp_path / "again")
    assert len(server.asked) == 3 + download.ATTEMPTS


def test_waits_double(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("gread.datasets.transfer.time.sleep", waits.append)
    server.status["good"] = [500] * 3
    server.pause = -1.0  # the patched sleep takes every number; the server's own pauses are told apart by the sign
    get(server.file(), tmp_path)
    assert [wait for wait in waits if wait > 0] == [0.01, 0.02, 0.04]


def test_a_dead_server_is_one_clear_error(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(DownloadError, match=r"the connection failed \(ConnectionError\)"):
        get(Server(url=dead).file(), tmp_path)
    assert left(tmp_path) == set()


# ---------------------------------------------------------------------- broken off, continued
def test_a_broken_connection_is_continued(server: Server, tmp_path: Path) -> None:
    server.cut["good"] = [HALF, 2 * HALF]
    assert get(server.file(), tmp_path).read_bytes() == CONTENT
    assert server.asked == [("good", None), ("good", f"bytes={HALF}-"), ("good", f"bytes={2 * HALF}-")]
    assert left(tmp_path) == {"there/data/file.npz"}


def test_a_truncated_file_never_enters_and_is_continued_later(server: Server, tmp_path: Path) -> None:
    server.files["short"] = CONTENT[:HALF]
    with pytest.raises(DownloadError, match=r"expected there/data/file.npz from one of 1 addresses"):
        get(server.file(CONTENT, "short"), tmp_path)
    assert left(tmp_path) <= {"there/data/file.npz.part"}
    assert find(source(), server.file(), root=tmp_path) is None

    server.cut["good"] = [HALF] * download.ATTEMPTS
    with pytest.raises(DownloadError, match="connection failed"):
        get(server.file(), tmp_path / "b")
    assert left(tmp_path / "b") == {"there/data/file.npz.part"}
    server.asked.clear()
    assert get(server.file(), tmp_path / "b").read_bytes() == CONTENT
    assert server.asked == [("good", f"bytes={HALF}-")]


@pytest.mark.parametrize("begun", [OTHER[:HALF], OTHER, OTHER + b"more"])
def test_a_foreign_beginning_is_thrown_away(server: Server, tmp_path: Path, begun: bytes) -> None:
    part = tmp_path / "there/data/file.npz.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(begun)
    assert get(server.file(), tmp_path).read_bytes() == CONTENT
    assert left(tmp_path) == {"there/data/file.npz"}


def test_a_planted_link_is_not_written_through(server: Server, tmp_path: Path) -> None:
    letter, part = tmp_path / "letter.txt", tmp_path / "root/there/data/file.npz.part"
    letter.write_bytes(b"dear")
    part.parent.mkdir(parents=True)
    part.symlink_to(letter)
    path = get(server.file(), tmp_path / "root")
    assert path.read_bytes() == CONTENT
    assert not path.is_symlink()
    assert letter.read_bytes() == b"dear"


def test_a_server_without_ranges_sends_all_of_it_again(server: Server, tmp_path: Path) -> None:
    server.honours_range = False
    server.cut["good"] = [HALF]
    assert get(server.file(), tmp_path).read_bytes() == CONTENT
    assert server.asked[1] == ("good", f"bytes={HALF}-")


def test_a_longer_file_is_not_swallowed(server: Server, tmp_path: Path) -> None:
    server.files["endless"] = CONTENT + bytes(5_000_000)
    with pytest.raises(DownloadError, match=f"more than the expected {len(CONTENT)} bytes"):
        get(server.file(CONTENT, "endless"), tmp_path)
    assert left(tmp_path) == set()


# ---------------------------------------------------------------------- several processes
SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_download import CONTENT, Server, fetch_files, source
(local,) = fetch_files(source(), [Server(url={url!r}).file()], root={root!r})
assert local.path.read_bytes() == CONTENT
"""


def start(server: Server, root: Path) -> subprocess.Popen[bytes]:
    code = SCRIPT.format(tests=str(Path(__file__).parent), url=server.url, root=str(root))
    return subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)


def wait_for(condition: Any, process: subprocess.Popen[bytes]) -> None:
    limit = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_two_processes_at_once_both_succeed_with_one_download(server: Server, tmp_path: Path) -> None:
    server.pause = 0.02
    pair = [start(server, tmp_path), start(server, tmp_path)]
    for process in pair:
        _, text = process.communicate(timeout=60)
        assert process.returncode == 0, text
    assert server.asked == [("good", None)]
    assert left(tmp_path) == {"there/data/file.npz"}


def test_a_killed_process_leaves_a_beginning_that_is_continued(server: Server, tmp_path: Path) -> None:
    server.pause = 0.1
    process = start(server, tmp_path)
    part = tmp_path / "there/data/file.npz.part"
    wait_for(lambda: part.exists() and part.stat().st_size > 0, process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    server.pause = 0.0
    begun = part.stat().st_size
    assert 0 < begun < len(CONTENT)
    assert find(source(), server.file(), root=tmp_path) is None
    assert get(server.file(), tmp_path).read_bytes() == CONTENT
    assert server.asked[-1] == ("good", f"bytes={begun}-")
    assert not part.exists()


# ---------------------------------------------------------------------- local copies
def test_offline_names_the_files_and_the_command(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"there/data/file\.npz; run `rdgraph data fetch there`"):
        get(server.file(), tmp_path, offline=True)
    assert server.asked == []


def put(root: Path, content: bytes) -> Path:
    path = root / "there/data/file.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_local_copy_is_used_and_never_written_to(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(download.VARIABLE, str(tmp_path / "copy"))
    with pytest.raises(DownloadError, match="expected a folder in RDGRAPH_DATA"):
        get(server.file(), None)
    path = put(tmp_path / "copy", CONTENT)
    assert get(server.file(), None) == path
    assert server.asked == []
    path.write_bytes(OTHER)
    with pytest.raises(DownloadError, match="the file has changed"):
        get(server.file(), None)
    assert path.read_bytes() == OTHER
    path.unlink()
    assert get(server.file(), None).is_relative_to(tmp_path / "cache")
    assert left(tmp_path / "copy") == set()


def test_root_goes_before_the_variable(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "copy", OTHER)
    monkeypatch.setenv(download.VARIABLE, str(tmp_path / "copy"))
    assert get(server.file(), tmp_path / "root").is_relative_to(tmp_path / "root")


def test_a_damaged_file_is_replaced(server: Server, tmp_path: Path) -> None:
    path = put(tmp_path, CONTENT[:-1] + b"!" if CONTENT[-1:] != b"!" else CONTENT[:-1] + b"?")
    with pytest.raises(DownloadError, match="1 missing or damaged"):
        get(server.file(), tmp_path, offline=True)
    assert get(server.file(), tmp_path) == path
    assert path.read_bytes() == CONTENT


def test_the_hash_is_computed_once(server: Server, tmp_path: Path) -> None:
    get(server.file(), tmp_path)
    before = download._sha256.cache_info().misses
    get(server.file(), tmp_path)
    assert download._sha256.cache_info().misses == before
    os.utime(tmp_path / "there/data/file.npz", ns=(1, 1))
    get(server.file(), tmp_path)
    assert download._sha256.cache_info().misses == before + 1


def test_a_root_that_cannot_be_written_is_said(server: Server, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(DownloadError, match="expected to write below"):
        get(server.file(), tmp_path / "taken")


def test_without_pooch_the_extra_is_named(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingDependency, match=r"pip install 'rdgraph\[gread\]'"):
        get(server.file(), tmp_path)
    monkeypatch.setenv(download.VARIABLE, str(tmp_path))
    put(tmp_path, CONTENT)
    assert get(server.file(), None).read_bytes() == CONTENT


def test_a_bar_is_drawn_when_asked(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    get(server.file(), tmp_path / "a", progress=False)
    get(server.file(), tmp_path / "b")
    assert capsys.readouterr() == ("", "")
    get(server.file(), tmp_path / "c", progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "there" in err
    assert "300.0/300.0 kB" in err


# ---------------------------------------------------------------------- trust on first use
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
