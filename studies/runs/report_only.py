"""`rebuild_report`: the report of a run, computed again by this code from the parts that were measured anywhere."""

from __future__ import annotations

import json
import shutil
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
from rdgraph.wording import counted
from studies.runs.report import Heading
from studies.runs.run_config import RunConfig, earlier_codes, locked
from studies.runs.setting_limits import CHANGED, check_settings
from studies.runs.study import Study
from studies.runs.study_run import GIVEN_UP, StudyRun
from studies.runs.tables import Row, Value, read_rows

# ---------------------------------------------------------------------- config file
# A study as a TOML file: the config.toml of a run, or a part of one that a user writes.

#: The entries that such a file may have with their types, and entries of a finished run that a new run ignores.
KINDS: Mapping[str, type] = {"study": str, "small": bool, "seed": int, "device": str, "settings": dict}
OF_A_RUN = ("version", "changed")


@dataclass(frozen=True)
class StudyFile:
    """The settings in a study file; None where the file does not set one."""

    study: str | None = None
    small: bool | None = None
    seed: int | None = None
    device: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def changes(self, study: Study, small: bool) -> dict[str, Any]:
        """The settings that differ from the defaults of the study."""
        defaults = study.settings(small)
        return {n: value for n, value in self.settings.items() if n not in defaults or defaults[n] != value}


def read_study_file(path: Path) -> StudyFile:
    """Read a file such as

        study = "sensitivity"
        seed = 1

        [settings]
        times = [0.5, 1.0]

    Raises:
        FileError: for invalid TOML, unknown entries, or entries of the wrong type.
    """
    try:
        values = tomllib.loads(read_text(path, "the settings of a study"))
    except tomllib.TOMLDecodeError as problem:
        raise FileError(f"{path} is not valid TOML: {problem}") from None
    entries = {name: value for name, value in values.items() if name not in OF_A_RUN}
    for name, value in entries.items():
        if name not in KINDS or type(value) is not KINDS[name]:
            known = ", ".join(f"{key} ({kind.__name__})" for key, kind in KINDS.items())
            raise FileError(f"unknown entry {name} = {value!r} in {path}; a study file may have {known}")
    return StudyFile(**entries)


# ---------------------------------------------------------------------- rebuilding
#: The entry of environment.json about the code that rebuilt the report, and what it records of that code.
REBUILT = "retold"
RECORDED = ("started", "python", "code", "libraries")


def rebuild_report(study: Study, folder: Path, console: Console | None = None) -> Path:
    """Path of the report of a run, rebuilt from its stored parts: answer, verdicts, tables and figures.

    Nothing is measured. Settings, device, seed and the environment of the measurement stay; environment.json and the
    report record which code rebuilt them. An error leaves the folder unchanged.

    Args:
        study: the record of the study.
        folder: of a finished or interrupted run of it, from any device.
        console: where progress is shown; nowhere by default.

    Returns:
        The path of the report, report.html in the folder.

    Raises:
        FileError: if the folder belongs to another study, lacks settings that this code needs, or has missing parts.

    Example:
        >>> from studies.runs.study import execute
        >>> body = lambda run: run.results(run.part("sum", lambda: [{"total": 1 + 2}]))
        >>> study = Study("sum", "A sum", "What is 1 + 2?", body)
        >>> folder = Path(tempfile.mkdtemp()) / "sum"
        >>> rebuild_report(study, execute(study, folder).parent) == folder / "report.html"
        True
    """
    config = recorded_config(study, folder)
    heading = Heading(study.title, study.question, *study.commands(config, folder))
    with locked(folder), terminable(), _scratch_in(folder) as scratch:
        run = ReportOnly(folder, Path(scratch), config, heading, console)
        try:
            with run.status:
                study.run(run)
        except Exception:
            run.check_parts("at least ")  # missing rows explain any other error
            raise
        run.check_parts()
        run.finish("done")
        for path in sorted(path for path in Path(scratch).rglob("*") if path.is_file()):
            target = folder / path.relative_to(scratch)
            target.parent.mkdir(parents=True, exist_ok=True)
            move(path, target)
    return folder / "report.html"


def _scratch_in(folder: Path) -> tempfile.TemporaryDirectory[str]:
    for left in folder.glob(".report-only-*"):  # by a killed process
        shutil.rmtree(left, ignore_errors=True)
    try:
        return tempfile.TemporaryDirectory(prefix=".report-only-", dir=folder)
    except OSError as problem:
        raise unwritable(folder, problem) from None


def recorded_config(study: Study, folder: Path) -> RunConfig:
    """The settings in a run's config.toml; its device need not exist on this machine."""
    path = folder / "config.toml"
    text = read_text(path, f"the settings of a run of {study.name}")
    recorded = read_study_file(path)
    if recorded.study != study.name:
        raise FileError(f"{folder} is a run of the study {recorded.study}, not of {study.name}")
    values = tomllib.loads(text)
    lacking = [name for name in study.settings(bool(recorded.small)) if name not in recorded.settings]
    if lacking:
        raise FileError(
            f"{path} lacks the settings {', '.join(lacking)}, which older code did not have; rerun the study"
        )
    check_settings(recorded.settings, study.limits(bool(recorded.small)))
    return RunConfig(
        study.name, bool(recorded.small), recorded.seed or 0, recorded.device or "cpu",
        str(values.get("version", "unknown")), sections={"settings": recorded.settings},
        head={n: values[n] for n in (CHANGED,) if n in values}, is_elsewhere=True,
    )  # fmt: skip


class ReportOnly(StudyRun):
    """A run that reads the parts of an earlier one and computes none; it writes to a scratch folder.

    Args:
        measured: the folder of the earlier run.
        scratch: an empty folder.
        config: what the numbers of the earlier run depend on.
        heading: its title, its question, and the commands that repeat and resume it.
        console: where progress is shown; nowhere by default.
    """

    def __init__(
        self, measured: Path, scratch: Path, config: RunConfig, heading: Heading, console: Console | None = None
    ) -> None:
        super().__init__(scratch, config, heading, console)
        self._measured = measured
        self.missing: list[str] = []
        path = measured / "environment.json"
        text = read_text(path, "the environment of a run")
        earlier_codes(path)  # raises for files that no study wrote
        recorded = json.loads(text)
        self._earlier_code = list(recorded.pop("earlier_code", []))
        self._environment = {**recorded, REBUILT: {name: self._environment[name] for name in RECORDED}}

    @property
    def device(self) -> str:
        """The CPU, which every machine has."""
        return "cpu"

    def part(self, name: str, compute: Callable[[], Sequence[Row]]) -> list[dict[str, Value]]:
        """The rows of a part of the earlier run; none where it is missing, which `check_parts` reports.

        A part that the earlier run gave up raises `NotApplicable` with the recorded reason.
        """
        path = self._measured / "parts" / f"{self._new(name, 'part')}.csv"
        if not path.is_file():
            if name in (given_up := self._environment.get(GIVEN_UP, {})):
                raise NotApplicable(given_up[name])
            self.missing.append(name)
            return []
        self._parts[name] = read_rows(path)
        return [dict(row) for row in self._parts[name]]

    def has_part(self, name: str) -> bool:
        """True, so that nothing is measured: `part` records what is missing."""
        return True

    def give_up(self, name: str, reason: str) -> None:
        """Does nothing: the environment already records what was given up."""

    def record(self, **facts: Any) -> None:
        """Does nothing: the facts are those of the measurement."""

    def check_parts(self, bound: str = "") -> None:
        """Raise `FileError` if parts of the run are missing."""
        if self.missing:
            count = counted(len(self.missing), "part")
            raise FileError(
                f"{self._measured} lacks {bound}{count}, the first of them {self.missing[0]}; measure with "
                f"{self.heading.resume}"
            )
