"""C source to a loaded library: the installed compiler, and a cache on disk that several processes may share.

The file of a library is named by a digest of everything that it depends on (source, compiler, flags, processor), so an
old file is never used for a new source. It is written to a temporary file and moved into place, so a reader sees all of
it or none; one that does not load is compiled again. `RDGRAPH_CACHE` names another folder, `CC` another compiler.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rdgraph.errors import InvalidArgument, MissingDependency

#: Fast, yet with the meaning of IEEE: no sums are reordered, NaN and infinity stay what they are.
FLAGS = ("-O3", "-std=gnu11", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math")
#: Tried in this order; a compiler without support for the processor or OpenMP still compiles for one thread.
FURTHER_FLAGS = (("-march=native", "-fopenmp"), ("-mcpu=native", "-fopenmp"), ("-march=native",), ())
_SMALLEST = """#include <tgmath.h>
#ifdef _OPENMP
#include <omp.h>
#endif
float half(float x) { return sqrt(x) / 2; }
"""
_SECONDS = 60


@dataclass(frozen=True)
class Compiler:
    """A C compiler: its command, and the flags that it takes."""

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]

    def digest(self, source: str) -> str:
        """The digest that names the library of a source."""
        parts = (source, *self.command, self.version, *self.flags, _processor())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]

    def compile(self, source: str, target: Path) -> None:
        """Compile a source to the library `target`, which appears at once and whole."""
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.stem}-") as folder:
            file, library = Path(folder, "field.c"), Path(folder, "field.so")
            file.write_text(source, encoding="utf-8")
            run = _run([*self.command, *self.flags, str(file), "-o", str(library), "-lm"])
            if run.returncode != 0:
                raise InvalidArgument(
                    f"expected C source that {self.command[0]} compiles, got {run.stderr.strip()[:2000]}; evaluate the "
                    "field itself, or name another compiler in CC"
                )
            library.replace(target)


def find_compiler() -> Compiler | None:
    """The compiler that `CC` names, or the first of cc, gcc and clang; None if there is none."""
    named = os.environ.get("CC")
    return _first_compiler((named,) if named else ("cc", "gcc", "clang"))


@functools.cache
def _first_compiler(commands: tuple[str, ...]) -> Compiler | None:
    if sys.platform == "win32":  # its compilers take other flags
        return None
    for command in map(shlex.split, commands):
        path = shutil.which(command[0]) if command else None
        if path is None:
            continue
        whole = (path, *command[1:])
        version = _run([*whole, "--version"])
        flags = _accepted_flags(whole) if version.returncode == 0 else None
        if flags is not None:
            return Compiler(whole, version.stdout, flags)
    return None


def _accepted_flags(command: tuple[str, ...]) -> tuple[str, ...] | None:
    """The first flags that compile a minimal library; None if none do."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "empty.c")
        file.write_text(_SMALLEST, encoding="utf-8")
        for further in FURTHER_FLAGS:
            flags = (*FLAGS, *further)
            if _run([*command, *flags, str(file), "-o", str(Path(folder, "empty.so"))]).returncode == 0:
                return flags
    return None


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return subprocess.CompletedProcess(command, 1, "", str(problem))


@functools.cache
def _processor() -> str:
    """The processor that `native` refers to: machines with different processors may share a cache folder."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    facts = sorted({line for line in lines if line.partition(":")[0].strip() in ("model name", "flags", "Features")})
    return "\n".join([sys.platform, platform.machine(), platform.processor(), *facts])


def cache_folder() -> Path:
    """Where libraries are kept: `RDGRAPH_CACHE`, or a folder of the user's caches."""
    if named := os.environ.get("RDGRAPH_CACHE"):
        return Path(named).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "rdgraph"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rdgraph"


def load_library(source: str) -> ctypes.CDLL:
    """The library of a C source: from this process, from the cache, or compiled now.

    Args:
        source: one C file that includes nothing but the standard library.

    Returns:
        The loaded library.

    Raises:
        MissingDependency: there is no C compiler.
        InvalidArgument: the source does not compile.
    """
    compiler = find_compiler()
    if compiler is None:
        raise MissingDependency(
            "compiled fields need a C compiler: install gcc or clang, name one in CC, or evaluate the field itself"
        )
    return _loaded(compiler, source, cache_folder())


@functools.lru_cache(maxsize=256)
def _loaded(compiler: Compiler, source: str, folder: Path) -> ctypes.CDLL:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(folder):
            return _loaded_aside(compiler, source)
        target = folder / f"{compiler.digest(source)}.so"
        if target.exists():
            try:
                return ctypes.CDLL(str(target))
            except OSError:  # cut short, or made for another system
                pass
        compiler.compile(source, target)
        return ctypes.CDLL(str(target))
    except OSError:  # a folder that cannot be written, or from which nothing may be loaded
        return _loaded_aside(compiler, source)


def _is_private(folder: Path) -> bool:
    """Whether the folder belongs to the user and only the user can write to it: its libraries can be trusted."""
    state = folder.stat()
    return state.st_uid == os.getuid() and not state.st_mode & 0o022


def _loaded_aside(compiler: Compiler, source: str) -> ctypes.CDLL:
    """The library, compiled in a temporary folder."""
    with tempfile.TemporaryDirectory() as aside:
        target = Path(aside, "field.so")
        compiler.compile(source, target)
        return ctypes.CDLL(str(target))
