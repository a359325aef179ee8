"""The downloader against a server on this machine: what it delivers is checked, and nothing else enters the cache."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gread.datasets import download
from gread.datasets.download import DownloadError, find
from rdgraph.errors import RdgraphError
from tests.gread.datasets.download.local_server import CONTENT, HALF, OTHER, Server, get, left, source

pytest.importorskip("pooch")


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
    monkeypatch.setattr("gread.datasets.download.time.sleep", waits.append)
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
from gread.datasets.download import fetch_files
from local_server import CONTENT, Server, source
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
    server.pause = 0.5
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
