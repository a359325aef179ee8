"""`Study`: a question with the program that answers it, as one record; `execute` runs one in a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from rich.console import Console

from rdgraph.errors import FileError, InvalidArgument
from rdgraph.interrupts import terminable
from rdgraph.run.engines.engine import Engine
from studies.runs.report import Heading
from studies.runs.run_config import RunConfig
from studies.runs.run_folder import locked, prepare
from studies.runs.setting_limits import CHANGED, Limits, changed_settings, check_settings, no_limits, setting_text
from studies.runs.study_run import NAME_PATTERN, StudyRun


def no_settings(small: bool) -> dict[str, Any]:
    """The settings of a study that has none."""
    return {}


def study_commands(config: RunConfig, folder: Path) -> tuple[str, str]:
    """The line that makes a run of a study again, which also resumes it."""
    small = " --small" if config.small else ""
    device = "" if config.device == "cpu" else f" --device {config.device}"
    settings = config.settings
    changed = "".join(f" --set {quote(f'{n}={setting_text(settings[n])}')}" for n in config.head.get(CHANGED, ()))
    line = f"rdgraph study {config.study}{small} --seed {config.seed}{device}{changed} --out {folder}"
    return line, line


@dataclass(frozen=True)
class Study:
    """A question, and the program that answers it with numbers, figures, verdicts and a report.

    `rdgraph study NAME` runs it once it is registered, see `register_study`.

    Args:
        name: a word for the command line, letters, digits and -.
        title: the title of its report.
        question: what it asks, in a sentence.
        run: does the study: takes a `StudyRun`, computes with `run.part(...)`, and writes with `run.figure(...)`,
            `run.table(...)`, `run.verdict(...)`, `run.say(...)` and `run.results(...)`.
        settings: the numbers it runs with, by name, of its small mode (True: seconds) and its full one (False); they
            are written to config.toml, shown in the report and found in `run.settings`.
        extra: the extra of this package that brings the libraries it needs, such as torch or gread.
        commands: from the settings of a run and its folder, the line that makes it again and the one that resumes it.
        limits: what the settings may be, by name, as `studies.runs.setting_limits.Limit`; any where there is none.

    Raises:
        InvalidArgument: for a name that cannot be a word of the command line, or a title or question without text.

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
    settings: Callable[[bool], Mapping[str, Any]] = no_settings
    extra: str | None = None
    commands: Callable[[RunConfig, Path], tuple[str, str]] = study_commands
    limits: Limits = no_limits

    def __post_init__(self) -> None:
        if not NAME_PATTERN.fullmatch(self.name):
            raise InvalidArgument(f"expected a study's name of letters, digits and _.+-, got {self.name!r}")
        if not (self.title.strip() and self.question.strip()):
            raise InvalidArgument(f"expected a title and a question for the study {self.name}, got an empty one")

    def config(
        self, *, small: bool = False, seed: int = 0, device: str = "cpu", changes: Mapping[str, Any] | None = None
    ) -> RunConfig:
        """What the numbers of a run depend on, in one of its two modes, with some settings changed."""
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
    """Run a study in a folder, anew or from where it was left.

    Ctrl-C and SIGTERM leave a valid folder whose report says so, and end in a KeyboardInterrupt.

    Args:
        study: the record of the study.
        folder: where the run is written; an empty or new folder, or one of the same study and settings.
        small: whether in its small mode.
        seed: of all its random numbers.
        device: cpu, cuda or cuda:N.
        changes: settings of the study, by name, that are to differ from its own.
        console: where progress is shown; nowhere by default.
        engine: where cells are computed, such as `rdgraph.run.engines.ray_engine.RayEngine()`; here by default.

    Returns:
        The path of the report, report.html in the folder.

    Raises:
        FileError: for a folder that holds something else, or cannot be written.
        InvalidArgument: for a seed, a device or settings that cannot be used.

    Example:
        See `Study`.
    """
    config = study.config(small=small, seed=seed, device=device, changes=changes)
    prepare(folder, config)
    return perform(study, config, folder, console, engine)


def perform(
    study: Study, config: RunConfig, folder: Path, console: Console | None = None, engine: Engine | None = None
) -> Path:
    """Run a study with these settings in a folder that is prepared; returns the path of its report."""
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
