"""Studies that are under way, kept from one machine to the next: docs/unfinished/NAME.json has their parts so far.

A study computes its parts one after the other and goes on where it was left; what it needs for that is small text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rdgraph.files import read_text, write_text

#: What a run folder must have beside its parts to be gone on with, and what of it says which code computed them.
SETTINGS, ENVIRONMENT, CODES = "config.toml", "environment.json", ("code", "earlier_code")


def save_unfinished(folder: Path, path: Path) -> bool:
    """Write the parts of a run folder into one file; False where there are none.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> save_unfinished(place / "none", place / "kept.json")
    False
    """
    parts = {part.stem: read_text(part, "a part of a study") for part in sorted((folder / "parts").glob("*.csv"))}
    if not parts:
        return False
    known: dict[str, Any] = json.loads(read_text(folder / ENVIRONMENT, "an environment"))
    found = {
        SETTINGS: read_text(folder / SETTINGS, "the settings of a run"),
        ENVIRONMENT: {name: known[name] for name in CODES if name in known},
        "parts": parts,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(found, indent=1) + "\n")
    return True


def restore_unfinished(path: Path, folder: Path) -> None:
    """Make the run folder again that a file was written from; its study then computes what is missing."""
    found = json.loads(read_text(path, "the parts of a study"))
    (folder / "parts").mkdir(parents=True)
    for name, text in found["parts"].items():
        write_text(folder / "parts" / f"{name}.csv", text)
    write_text(folder / SETTINGS, found[SETTINGS])
    write_text(folder / ENVIRONMENT, json.dumps(found[ENVIRONMENT]))
