"""`Study`: a question with the program that answers it; `execute` runs one in a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from rdgraph.errors import FileError, InvalidArgument
from rdgraph.interrupts import terminable
from rdgraph.run.engines.engine import Engine
from studies.runs.report import Heading
from studies.runs.run_config import RunConfig, command_line, locked, prepare
from studies.runs.setting_limits import CHANGED, Limits, changed_settings, check_settings, setting_text
from studies.runs.study_run import NAME_PATTERN, StudyRun


def nothing(small: bool) -> dict[str, Any]:
    """The settings, and the limits, of a study without any."""
    return {}


def study_commands(config: RunConfig, folder: Path) -> tuple[str, str]:
    """The command that repeats a run of a study, twice, since it also resumes the run."""
    device = None if config.device == "cpu" else config.device
    changed = [f"{name}={setting_text(config.settings[name])}" for name in config.head.get(CHANGED, ())]
    line = command_line(
        "study", config.study, small=config.small, seed=config.seed, device=device, set=changed, out=folder
    )
    return line, line


@dataclass(frozen=True)
class Study:
    """A question and the program that answers it with numbers, figures, verdicts and a report.

    `rdgraph study NAME` runs it once it is registered, see `register_study`.

    Args:
        name: on the command line; A-Z, a-z, 0-9 and `_.+-`.
        title: the title of its report.
        question: in one sentence.
        run: takes a `StudyRun`, computes with `run.part(...)` and writes with `run.figure(...)`,
            `run.table(...)`, `run.verdict(...)`, `run.say(...)` and `run.results(...)`.
        settings: called with True for the small mode (seconds) or False for the full one; returns the settings by
            name, which config.toml, the report and `run.settings` show.
        extra: the extra that installs the libraries it needs, such as torch or gread.
        commands: called with the settings of a run and its folder; returns the commands that repeat and resume it.
        limits: the allowed values by setting, as `studies.runs.setting_limits.Limit`; without one, any value.

    Raises:
        InvalidArgument: if the name has other characters, or the title or question is empty.

    Example:
        >>> from pathlib import Path
        >>> import tempfile, studies
        >>> body = lambda run: run.results(run.part("sum", lambda: [{"total": 1 + 2}]))
        >>> study = studies.Study("sum", "A sum", "What is 1 + 2?", body)
        >>> report = studies.execute(study, Path(tempfile.mkdtemp()) / "sum")
        >>> print((report.parent / "results.csv").read_text(), end="")
        "total"
        3
    """

    name: str
    title: str
    question: str
    run: Callable[[StudyRun], object]
    settings: Callable[[bool], Mapping[str, Any]] = nothing
    extra: str | None = None
    commands: Callable[[RunConfig, Path], tuple[str, str]] = study_commands
    limits: Limits = nothing

    def __post_init__(self) -> None:
        if not NAME_PATTERN.fullmatch(self.name):
            raise InvalidArgument(f"a study's name consists of letters, digits and _.+-, got {self.name!r}")
        if not (self.title.strip() and self.question.strip()):
            raise InvalidArgument(f"the study {self.name} needs a title and a question, got an empty one")

    def config(
        self, *, small: bool = False, seed: int = 0, device: str = "cpu", changes: Mapping[str, Any] | None = None
    ) -> RunConfig:
        """Configuration of a run in one of the two modes, with some settings changed."""
        settings = changed_settings(self.settings(small), changes or {})
        check_settings(settings, self.limits(small))
        head = {CHANGED: sorted(changes)} if changes else {}
        return RunConfig(self.name, small, seed, device, sections={"settings": settings}, head=head)


def execute(
    study: Study,
    folder: Path,
    *,
    small: bool = False,
    seed: int = 0,
    device: str = "cpu",
    changes: Mapping[str, Any] | None = None,
    console: Console | None = None,
    engine: Engine | None = None,
) -> Path:
    """Path of the report of a study, run in a new folder or resumed in its own.

    Ctrl-C and SIGTERM leave a valid folder whose report says "interrupted", and raise KeyboardInterrupt.

    Args:
        study: the record of the study.
        folder: new, empty, or of the same study and settings.
        small: whether to run the small mode.
        seed: of all its random numbers.
        device: cpu, cuda or cuda:N.
        changes: settings by name that replace the defaults.
        console: where progress is shown; nowhere by default.
        engine: where cells are computed, such as `rdgraph.run.engines.ray_engine.RayEngine()`; by default this process.

    Returns:
        The path of the report, report.html in the folder.

    Raises:
        FileError: if the folder holds something else or cannot be written.
        InvalidArgument: for an invalid seed, device or setting.

    Example:
        See `Study`.
    """
    config = study.config(small=small, seed=seed, device=device, changes=changes)
    prepare(folder, config)
    return perform(study, config, folder, console, engine)


def perform(
    study: Study, config: RunConfig, folder: Path, console: Console | None = None, engine: Engine | None = None
) -> Path:
    """Path of the report of a study, run with these settings in a prepared folder."""
    with locked(folder), terminable():
        heading = Heading(study.title, study.question, *study.commands(config, folder))
        run = StudyRun(folder, config, heading, console, engine)
        try:
            with run.status:
                run.begin()
                study.run(run)
                run.finish("done")
        except BaseException as error:
            with suppress(FileError):  # the first error counts; a full disk would hide it behind a second one
                if isinstance(error, Exception):
                    run.finish("failed", f"{type(error).__name__}: {error}")
                else:
                    run.finish("interrupted")
            raise
    return folder / "report.html"
