"""Compiled libraries: cached by all that they depend on, remade where a file is broken, shared by processes."""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from rdgraph.errors import InvalidArgument, MissingDependency
from rdgraph.graphs.kernels import c_compiler
from rdgraph.graphs.kernels.c_compiler import cache_folder, find_compiler, load_library
from tests.paths import ROOT

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")

SOURCE = "int answer(void) {{ return {}; }}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a process that has loaded nothing."""
    monkeypatch.setenv("RDGRAPH_CACHE", str(tmp_path / "cache"))
    c_compiler._loaded.cache_clear()
    return tmp_path / "cache"


def libraries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.so"))


def test_a_library_is_made_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_library(SOURCE.format(41)).answer() == 41
    (file,) = libraries(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sorted(folder.iterdir()) == [file]  # nothing is left of the compiling
    c_compiler._loaded.cache_clear()
    monkeypatch.setattr(c_compiler.Compiler, "compile", lambda *_: pytest.fail("compiled again"))
    assert load_library(SOURCE.format(41)).answer() == 41


def test_another_source_is_another_library(folder: Path) -> None:
    assert [load_library(SOURCE.format(k)).answer() for k in (1, 2, 1)] == [1, 2, 1]
    assert len(libraries(folder)) == 2


def test_the_name_depends_on_compiler_flags_and_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = find_compiler()
    assert compiler is not None
    first = compiler.digest("x")
    others = [
        replace(compiler, version="another"),
        replace(compiler, flags=(*compiler.flags, "-g")),
        replace(compiler, command=("/usr/bin/other",)),
    ]
    assert len({first, compiler.digest("y"), *(other.digest("x") for other in others)}) == 5
    monkeypatch.setattr(c_compiler, "_processor", lambda: "another")
    assert compiler.digest("x") != first


@pytest.mark.parametrize("content", [b"", b"not a library"])
def test_a_broken_file_is_made_again(folder: Path, content: bytes) -> None:
    compiler = find_compiler()
    assert compiler is not None
    folder.mkdir(mode=0o700)
    file = folder / f"{compiler.digest(SOURCE.format(7))}.so"
    file.write_bytes(content)
    assert load_library(SOURCE.format(7)).answer() == 7
    assert ctypes.CDLL(str(file)).answer() == 7


def test_a_folder_that_others_can_write_is_not_trusted(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    assert load_library(SOURCE.format(8)).answer() == 8
    assert libraries(folder) == []


def test_a_folder_that_cannot_be_made_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("RDGRAPH_CACHE", str(tmp_path / "file" / "below"))
    c_compiler._loaded.cache_clear()
    assert load_library(SOURCE.format(9)).answer() == 9


def test_processes_may_compile_the_same_at_once(folder: Path) -> None:
    program = (
        "from rdgraph.graphs.kernels.c_compiler import load_library; "
        f"print(load_library({SOURCE.format(5)!r}).answer())"
    )

    def run(_: int) -> str:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == ["5"] * 4
    assert len(libraries(folder)) == 1
    assert sorted(folder.iterdir()) == libraries(folder)


def test_source_that_does_not_compile_is_reported(folder: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"(?s)expected C source that .* compiles, got .*error"):
        load_library("int answer(void) { return }\n")
    assert list(folder.iterdir()) == []


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    assert find_compiler() is None
    with pytest.raises(MissingDependency, match="install gcc or clang"):
        load_library(SOURCE.format(1))


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RDGRAPH_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("RDGRAPH_CACHE")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own" / "rdgraph"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "rdgraph"


def test_a_named_compiler_with_flags(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    compiler = find_compiler()
    assert compiler is not None
    monkeypatch.setenv("CC", f"{compiler.command[0]} -DANSWER=6")
    assert load_library("int answer(void) { return ANSWER; }\n").answer() == 6
