"""A study as a toml file: what the config.toml of a run holds, or a part of it that a user writes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rdgraph.errors import FileError
from rdgraph.files import read_text
from studies.runs.study import Study

#: The entries that such a file may have, with their kinds, and those of a run's own that say nothing about a new one.
KINDS: Mapping[str, type] = {"study": str, "small": bool, "seed": int, "device": str, "settings": dict}
OF_A_RUN = ("version", "changed")


@dataclass(frozen=True)
class StudyFile:
    """What a file asks for; None is left open."""

    study: str | None = None
    small: bool | None = None
    seed: int | None = None
    device: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def changes(self, study: Study, small: bool) -> dict[str, Any]:
        """The settings that differ from the study's own, whole numbers for real ones included."""
        own = study.settings(small)
        return {name: value for name, value in self.settings.items() if name not in own or own[name] != value}


def read_study_file(path: Path) -> StudyFile:
    """Read a file such as

        study = "sensitivity"
        seed = 1

        [settings]
        times = [0.5, 1.0]

    Raises:
        FileError: for what is no toml, entries that a study does not have, or that are of another kind.
    """
    try:
        values = tomllib.loads(read_text(path, "the settings of a study"))
    except tomllib.TOMLDecodeError as problem:
        raise FileError(f"expected the settings of a study as toml in {path}, got {problem}; mend that line") from None
    found = {name: value for name, value in values.items() if name not in OF_A_RUN}
    for name, value in found.items():
        if name not in KINDS or type(value) is not KINDS[name]:
            known = ", ".join(f"{key} ({kind.__name__})" for key, kind in KINDS.items())
            raise FileError(f"expected the entries {known} in {path}, got {name} = {value!r}; rename or remove it")
    return StudyFile(**found)
