"""Error handling of every program: errors that a user can mend are shown as text, never as a traceback."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from rdgraph.errors import MissingDependency, RdgraphError
from rdgraph.files import reason_of
from studies.runs.libraries import EXTRAS, missing


def run_program(main: Callable[[], int | None]) -> NoReturn:
    """Run the program of a module, `python -m MODULE`, and exit with its status; errors print one line and exit with 2.

    >>> def main(): raise RdgraphError("expected a data set, got 'cara'; did you mean cora?")
    >>> run_program(main)
    Traceback (most recent call last):
    ...
    SystemExit: 2
    """
    with reported(Console(stderr=True), one_line=True):
        sys.exit(main() or 0)


@contextmanager
def reported(console: Console, *, one_line: bool = False) -> Iterator[None]:
    """Show errors of the package, of files and of missing libraries, and exit with 2.

    Any other exception is a bug, and keeps its traceback.
    """
    try:
        yield
    except RdgraphError as problem:
        _end(console, type(problem).__name__, str(problem), one_line)
    except (MemoryError, RuntimeError) as problem:
        if not isinstance(problem, MemoryError) and not re.search("allocate memory|out of memory", str(problem)):
            raise
        _end(console, MemoryError.__name__, "the memory is not enough; lower settings such as hidden", one_line)
    except ModuleNotFoundError as problem:
        library = (problem.name or "").partition(".")[0]
        if not any(library in known for known in EXTRAS.values()):
            raise
        _end(console, MissingDependency.__name__, str(missing(library, "this command")), one_line)
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename is not None else ""
        is_no_folder = isinstance(problem, FileExistsError)  # which mkdir raises
        reason = "expected a folder, got a file; name another path" if is_no_folder else reason_of(problem)
        _end(console, type(problem).__name__, f"{where}{reason}", one_line)


@contextmanager
def interruptible(console: Console, advice: str) -> Iterator[None]:
    """On Ctrl-C, print how to continue, and exit with 130."""
    try:
        yield
    except KeyboardInterrupt:
        say(console, f"interrupted; {advice}")
        sys.exit(130)


def resumable(console: Console, folder: Path) -> AbstractContextManager[None]:
    """`interruptible`, for a folder that the same command resumes."""
    return interruptible(console, f"{folder} is valid, and the same command resumes it")


def _end(console: Console, name: str, text: str, one_line: bool) -> NoReturn:
    if one_line:
        say(console, f"error: {name}: {' '.join(text.split())}")
    else:
        console.print(f"[bold red]error:[/] {name}", highlight=False)
        say(console, text)
    sys.exit(2)


def say(console: Console, text: str, *, wrap: bool = False) -> None:
    """Print a text without markup or colours: unchanged, or as sentences wrapped to the width of the console."""
    console.print(text, markup=False, highlight=False, soft_wrap=not wrap)
