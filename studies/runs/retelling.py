"""`retell`: the report of a run told again by this code, from the parts that were measured, wherever that was."""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from rdgraph.errors import FileError, NotApplicable
from rdgraph.files import move, read_text, unwritable
from rdgraph.interrupts import terminable
from studies.runs.report import Heading
from studies.runs.run_config import RunConfig
from studies.runs.run_folder import earlier_codes, locked
from studies.runs.setting_limits import CHANGED, check_settings
from studies.runs.study import Study
from studies.runs.study_run import GIVEN_UP, StudyRun
from studies.runs.tables import Row, Value, read_rows

# ---------------------------------------------------------------------- config file
# A study as a toml file: what the config.toml of a run holds, or a part of it that a user writes.

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


# ---------------------------------------------------------------------- retelling
#: The entry of environment.json about the code that told the report again, and what it keeps of it.
RETOLD = "retold"
TOLD = ("started", "python", "code", "libraries")


def retell(study: Study, folder: Path, console: Console | None = None) -> Path:
    """Compute answer, verdicts, tables, figures and report again from the parts of a folder, and measure nothing.

    Settings, device, seed and the environment of the measurement stay; environment.json and the report say which code
    told them. What is told is written in a place of its own first, so that an error leaves the folder as it was.

    Args:
        study: the record of the study.
        folder: of a run of it, finished or cut off, made on any device.
        console: where progress is shown; nowhere by default.

    Returns:
        The path of the report, report.html in the folder.

    Raises:
        FileError: for a folder of another study, of other settings than this code has, or with parts that are missing.

    Example:
        >>> from studies.runs.study import execute
        >>> body = lambda run: run.results(run.part("sum", lambda: [{"total": 1 + 2}]))
        >>> study = Study("sum", "A sum", "What is 1 + 2?", body)
        >>> folder = Path(tempfile.mkdtemp()) / "sum"
        >>> retell(study, execute(study, folder).parent) == folder / "report.html"
        True
    """
    config = kept_config(study, folder)
    heading = Heading(study.title, study.question, *study.commands(config, folder))
    with locked(folder), terminable(), _place_in(folder) as place:
        run = Retelling(folder, Path(place), config, heading, console)
        try:
            with run.status:
                study.run(run)
        except Exception:
            run.check_parts("at least ")  # what a study does without some of its rows is no mistake of its own
            raise
        run.check_parts()
        run.finish("done")
        for path in sorted(path for path in Path(place).rglob("*") if path.is_file()):
            told = folder / path.relative_to(place)
            told.parent.mkdir(parents=True, exist_ok=True)
            move(path, told)
    return folder / "report.html"


def _place_in(folder: Path) -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix=".retelling-", dir=folder)
    except OSError as problem:
        raise unwritable(folder, problem) from None


def kept_config(study: Study, folder: Path) -> RunConfig:
    """The settings of a run as its config.toml has them, for a device that need not be here."""
    path = folder / "config.toml"
    text = read_text(path, f"the settings of a run of {study.name}")
    kept = read_study_file(path)
    if kept.study != study.name:
        raise FileError(f"expected a run of the study {study.name} in {folder}, got one of {kept.study}; name that one")
    values = tomllib.loads(text)
    lacking = [name for name in study.settings(bool(kept.small)) if name not in kept.settings]
    if lacking:
        raise FileError(
            f"expected the settings {', '.join(lacking)} in {path}, got a run of code that had none; run the study anew"
        )
    check_settings(kept.settings, study.limits(bool(kept.small)))
    return RunConfig(
        study.name, bool(kept.small), kept.seed or 0, kept.device or "cpu", str(values.get("version", "unknown")),
        sections={"settings": kept.settings}, head={n: values[n] for n in (CHANGED,) if n in values}, is_elsewhere=True,
    )  # fmt: skip


class Retelling(StudyRun):
    """A run that has the parts of an earlier one and computes none; it writes to a folder of its own.

    Args:
        kept: the folder of the earlier run.
        place: an empty folder.
        config: what the numbers of the earlier run depend on.
        heading: its title, its question, and the lines that repeat and resume it.
        console: where progress is shown; nowhere by default.
    """

    def __init__(
        self, kept: Path, place: Path, config: RunConfig, heading: Heading, console: Console | None = None
    ) -> None:
        super().__init__(place, config, heading, console)
        self._kept = kept
        self.missing: list[str] = []
        measured = kept_environment(kept)
        self._earlier_code = list(measured.pop("earlier_code", []))
        self._environment = {**measured, RETOLD: {name: self._environment[name] for name in TOLD}}

    @property
    def device(self) -> str:
        """Where what is drawn is computed: the processor, which is everywhere."""
        return "cpu"

    def part(self, name: str, compute: Callable[[], Sequence[Row]]) -> list[dict[str, Value]]:
        """The rows of a part of the earlier run; none where it is missing, which `check_parts` then tells.

        A part that the earlier run gave up raises what it was given up for.
        """
        path = self._kept / "parts" / f"{self._new(name, 'part')}.csv"
        if not path.is_file():
            if name in (given_up := self._environment.get(GIVEN_UP, {})):
                raise NotApplicable(given_up[name])
            self.missing.append(name)
            return []
        self._parts[name] = read_rows(path)
        return [dict(row) for row in self._parts[name]]

    def has_part(self, name: str) -> bool:
        """True, so that nobody begins to measure: `part` finds out what is missing."""
        return True

    def give_up(self, name: str, reason: str) -> None:
        """Nothing: what was given up is known."""

    def record(self, **facts: Any) -> None:
        """Nothing: facts about how the run went are those of the measurement."""

    def check_parts(self, bound: str = "") -> None:
        """Refuse to tell a run whose parts are not all there."""
        if self.missing:
            count = len(self.missing)
            pieces = "part" if count == 1 else "parts"
            raise FileError(
                f"expected all parts of the run in {self._kept}, got {bound}{count} missing {pieces}, the first of "
                f"them {self.missing[0]}; measure with {self.heading.resume}"
            )


def kept_environment(folder: Path) -> dict[str, Any]:
    """What environment.json says of a measurement."""
    path = folder / "environment.json"
    text = read_text(path, "the environment of a run")
    earlier_codes(path)  # refuses what no study wrote
    found: dict[str, Any] = json.loads(text)
    return found
