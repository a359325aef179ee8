"""The downloader and what lies on the disk already: copies, damaged files, places that cannot be written."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gread.datasets import download
from gread.datasets.download import DownloadError
from rdgraph.errors import MissingDependency
from tests.gread.datasets.download.local_server import CONTENT, OTHER, Server, get, left, put

pytest.importorskip("pooch")


def test_offline_names_the_files_and_the_command(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"there/data/file\.npz; run `rdgraph data fetch there`"):
        get(server.file(), tmp_path, offline=True)
    assert server.asked == []


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
