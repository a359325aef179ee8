"""`rdgraph study`: lists the studies, or runs one in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from rdgraph.errors import InvalidArgument
from rdgraph.status_line import StatusLine
from studies.cli.fitted_table import RecordList
from studies.cli.graph_options import takes_records
from studies.cli.options import ADDRESS, ENGINE, LOADING, RAY_DEFAULT, argument, chosen_engine, option, say_report
from studies.runs.boundary import interruptible, resumable, say

console = Console()
errors = Console(stderr=True)


@dataclass(frozen=True)
class StudyOptions:
    """The options of `rdgraph study`."""

    name: str | None = argument(None, "Name of a study; without one, lists all studies.", "NAME")
    small: bool = option(False, "Run fewer and smaller cases, in seconds instead of minutes.", "--small")
    out: Path | None = option(None, "Folder of the run.", shown="runs/NAME, or runs/NAME-small")
    seed: int | None = option(None, "Seed of all random numbers.", shown="0")
    device: str | None = option(None, "Device: cpu, cuda or cuda:N.", shown="cpu")
    models: str | None = option(None, "Networks to compare, comma-separated, in studies of networks.", metavar="LIST")
    equation: str | None = option(
        None, "Equation, or its name, in the study oversmoothing.", "--equation", "--reaction", metavar="EQUATION"
    )
    changes: list[str] | None = option(
        None, "Change a setting of the study, named as in config.toml; repeatable.", "--set", metavar="NAME=VALUE"
    )
    config: Path | None = option(
        None, "Read study, small, seed, device and [settings] from a TOML file.", metavar="FILE"
    )
    index: Path | None = option(None, "Write FOLDER/index.html, an index of the runs in FOLDER.", metavar="FOLDER")
    report_only: bool = option(False, "Rebuild the report of a finished run without running it again.", "--report-only")
    engine: str = option("local", ENGINE, metavar="local|ray")
    address: str | None = option(None, ADDRESS, shown=RAY_DEFAULT)


@takes_records
def study_command(given: StudyOptions) -> None:
    """Run a study; writes tables, figures and a report.

    The same command resumes an interrupted run; Ctrl-C is safe.

    Example: rdgraph study grid --small
    """
    if given.index is not None:
        from studies.runs.index import write_index

        say(console, f"wrote {write_index(given.index)}")
    elif given.report_only:
        say_report(console, _rebuilt(given))
    elif given.name is None and given.config is None:
        console.print(_studies_list())
        say(console, "rdgraph study NAME --small takes seconds; --device cuda runs on a GPU")
    else:
        say_report(console, _executed(given))


def _executed(given: StudyOptions) -> Path:
    """Path of the report of the study, after a run with the options of the command line and of --config."""
    with StatusLine(LOADING, console=errors):
        from studies.registered_studies import find_study, require_libraries
        from studies.runs.report_only import StudyFile, read_study_file
        from studies.runs.setting_limits import read_changes
        from studies.runs.study import execute

        stored = StudyFile() if given.config is None else read_study_file(given.config)
        name = given.name or stored.study
        if name is None:
            raise InvalidArgument(f"{given.config} names no study; write rdgraph study NAME --config {given.config}")
        if stored.study not in (None, name):
            raise InvalidArgument(f"{given.config} has settings of the study {stored.study}, not of {name}")
        study = find_study(name)
        require_libraries(study)
        small = given.small or bool(stored.small)
        folder = given.out or _usual_folder(name, small)
        changes = stored.changes(study, small) | read_changes(given.changes or [])
        changes |= {} if given.models is None else {"models": read_names(given.models)}
        changes |= {} if given.equation is None else {"equation": given.equation}
    with resumable(errors, folder), chosen_engine(given.engine, given.address) as engine:
        return execute(
            study, folder, small=small, seed=given.seed if given.seed is not None else stored.seed or 0,
            device=given.device or stored.device or "cpu", changes=changes, console=errors, engine=engine,
        )  # fmt: skip


def _usual_folder(name: str, small: bool) -> Path:
    return Path("runs") / (f"{name}-small" if small else name)


def _rebuilt(given: StudyOptions) -> Path:
    """Path of the rebuilt report of a run; options that ask for another measurement are refused."""
    refused = {
        "--seed": given.seed, "--device": given.device, "--models": given.models, "--equation": given.equation,
        "--set": given.changes, "--config": given.config, "--address": given.address,
        "--engine": None if given.engine == "local" else given.engine,
    }  # fmt: skip
    if names := [name for name, value in refused.items() if value not in (None, [])]:
        raise InvalidArgument(f"--report-only runs nothing, so {', '.join(names)} has no effect; leave it out")
    if given.name is None:
        raise InvalidArgument("--report-only needs the name of a study; write rdgraph study NAME --report-only")
    from studies.registered_studies import find_study, require_libraries
    from studies.runs.report_only import rebuild_report

    study = find_study(given.name)
    require_libraries(study)
    folder = given.out or _usual_folder(given.name, given.small)
    with interruptible(errors, f"{folder} is unchanged"):
        return rebuild_report(study, folder, errors)


def read_names(text: str) -> list[str]:
    """Names of networks, from a text with commas.

    >>> read_names("gcn, gat")
    ['gcn', 'gat']
    """
    from gread.settings.model_records import find_model

    return [find_model(name.strip()).name for name in text.split(",") if name.strip()]


def _studies_list() -> RecordList:
    from studies.registered_studies import STUDIES, study_records

    rows = [[record.name, record.title, record.question] for record in study_records()]
    rows += [[study.name, study.title, study.question] for study in STUDIES.added.values()]
    return RecordList("Studies: rdgraph study NAME", ("name", "title", "question"), rows, ("bold", "cyan"))
