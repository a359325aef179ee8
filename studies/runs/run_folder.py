"""The folder of a run: preparing it, locking it, and which code has written to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rdgraph.errors import FileError
from rdgraph.files import read_text, unwritable
from studies.runs.run_config import RunConfig

#: Differing settings that an error lists; the first ones name the data and the network.
MOST_LISTED = 4


def prepare(folder: Path, config: RunConfig, *, resume: bool = True) -> str:
    """State of the folder, which is made if necessary; "" if it is new.

    Raises FileError if it holds other files, another study or other settings, or without `resume` anything at all.
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
        raise FileError(f"{folder} is not empty (it holds {min(entries)}); {remedy}")
    different = config.differences(read_text(known, "the settings of a run"))
    if different:
        rest = len(different) - MOST_LISTED
        listed = "; ".join(different[:MOST_LISTED]) + (f" and {rest} more" if rest > 0 else "")
        raise FileError(
            f"{folder} holds a run with other settings: {listed}; resume with the same settings, choose another folder "
            "with --out, or delete this one"
        )
    state = folder / "state"
    return read_text(state, "the state of a run").strip() if state.is_file() else ""


def earlier_codes(path: Path) -> set[str]:
    """Fingerprints of the code that has written to a folder, from its environment.json, if there is one."""
    if not path.is_file():
        return set()
    try:
        earlier = json.loads(read_text(path, "an environment"))
        codes = [*earlier.get("earlier_code", []), earlier["code"]]
    except (FileError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        codes = [""]
    if not all(isinstance(code, str) and code for code in codes):
        raise FileError(f"{path} was changed by hand; delete the folder")
    return set(codes)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the folder until the process ends; does nothing on systems without flock."""
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
                f"another study is writing to {folder}; wait for it, or choose another folder with --out"
            ) from None
        yield
