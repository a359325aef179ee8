"""What studies measured, kept from one machine to the next: docs/parts/NAME.json has the parts of a run.

A study computes its parts one after the other, goes on where it was left, and tells its report again from them; what it
needs for that is small text.
"""

from __future__ import annotations

import json
from pathlib import Path

from rdgraph.files import read_text, write_text

#: What a run folder must have beside its parts.
SETTINGS, ENVIRONMENT = "config.toml", "environment.json"
#: The file of a run folder that says whether it is finished.
STATE = "state"


def save_parts(folder: Path, path: Path) -> bool:
    """Write the parts of a run folder, finished or cut off, into one file; False where there are none.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> save_parts(place / "none", place / "kept.json")
    False
    """
    parts = {part.stem: read_text(part, "a part of a study") for part in sorted((folder / "parts").glob("*.csv"))}
    if not parts:
        return False
    found = {
        SETTINGS: read_text(folder / SETTINGS, "the settings of a run"),
        ENVIRONMENT: json.loads(read_text(folder / ENVIRONMENT, "an environment")),
        STATE: (folder / STATE).read_text("utf-8").strip() if (folder / STATE).exists() else "interrupted",
        "parts": parts,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(found, indent=1) + "\n")
    return True


def is_finished(path: Path) -> bool:
    """Whether a file has all parts of a run.

    >>> is_finished(Path("none"))
    False
    """
    return path.exists() and json.loads(read_text(path, "the parts of a study")).get(STATE) == "done"


def restore_parts(path: Path, folder: Path) -> None:
    """Make the run folder again that a file was written from; its study then computes what is missing, or tells it."""
    found = json.loads(read_text(path, "the parts of a study"))
    (folder / "parts").mkdir(parents=True)
    for name, text in found["parts"].items():
        write_text(folder / "parts" / f"{name}.csv", text)
    write_text(folder / SETTINGS, found[SETTINGS])
    write_text(folder / ENVIRONMENT, json.dumps(found[ENVIRONMENT]))
