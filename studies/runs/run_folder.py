"""The folder of a run: made or refused, held by one process, and what it remembers of the code that filled it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rdgraph.errors import FileError
from rdgraph.files import read_text, unwritable
from studies.runs.run_config import RunConfig

#: Settings of a folder that are told where it is another run's; the first ones name the data and the network.
TOLD = 4


def prepare(folder: Path, config: RunConfig, *, resume: bool = True) -> str:
    """Make the folder and say its state, "" for a new one.

    One that holds other things, another study or other settings is refused, and without `resume` any that is not empty.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        entries = [p.name for p in folder.iterdir() if not p.name.startswith(".")]
    except OSError as problem:
        raise unwritable(folder, problem) from None
    if not entries:
        return ""
    known = folder / "config.toml"
    if not resume or not known.is_file():
        remedy = "add --resume, or choose another with --out" if known.is_file() else "choose another with --out"
        raise FileError(f"expected an empty folder, got {folder} with {min(entries)} in it; {remedy}")
    different = config.differences(read_text(known, "the settings of a run"))
    if different:
        told = "; ".join(different[:TOLD]) + (f" and {len(different) - TOLD} more" if len(different) > TOLD else "")
        raise FileError(
            f"expected the folder of the same study and settings, got {folder} with {told}; resume with the same "
            "settings, choose another folder with --out, or delete it"
        )
    state = folder / "state"
    return read_text(state, "the state of a run").strip() if state.is_file() else ""


def earlier_codes(path: Path) -> set[str]:
    """Fingerprints of the code that worked on a folder before, from its environment.json; none where there is none."""
    if not path.is_file():
        return set()
    try:
        earlier = json.loads(read_text(path, "an environment"))
        codes = [*earlier.get("earlier_code", []), earlier["code"]]
    except (FileError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        codes = [""]
    if not all(isinstance(code, str) and code for code in codes):
        raise FileError(f"expected what a study wrote in {path}, got a file that was changed; delete the folder")
    return set(codes)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder; a process that dies gives it up. Where the system has no flock, nothing is held."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        file = (folder / ".lock").open("a")
    except OSError as problem:
        raise unwritable(folder, problem) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileError(
                f"expected a folder nobody writes to, got {folder}, where a study is running; wait, or choose --out"
            ) from None
        yield
