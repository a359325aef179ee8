"""`rdgraph search`: settings chosen on validation nodes alone, in one go or planned, run and told in three places."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rdgraph.errors import InvalidArgument
from rdgraph.status_line import StatusLine
from rdgraph.wording import counted
from studies.cli.options import (
    LOADING,
    Address,
    DataOptions,
    Dataset,
    EngineName,
    choose_device,
    chosen_engine,
    follow_alone,
)
from studies.cli.own_files import NONE, OwnFiles, takes_records
from studies.cli.train_display import SearchDisplay
from studies.runs.boundary import resumable, say
from studies.runs.libraries import require

if TYPE_CHECKING:
    from rdgraph.run.engines.engine import Engine
    from studies.search.tasks import SearchTask

console = Console()
errors = Console(stderr=True)


@dataclass(frozen=True)
class SearchOptions(DataOptions):
    """The options of `rdgraph search`; those of your own graph are in `OwnFiles`."""

    dataset: Dataset = None
    reaction: Annotated[
        str | None,
        typer.Option("--reaction", "--equation", help="A name of the catalogue, or an equation.", show_default="BS"),
    ] = None
    model: Annotated[
        str | None, typer.Option("--model", help="Another network, such as gcn, in place of an equation.")
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset", help="What is searched around: paper, authors, published or FILE.toml.", show_default="defaults"
        ),
    ] = None
    space: Annotated[
        str | None,
        typer.Option(
            "--space", help="paper, wide, small, tuned or FILE.toml.", show_default="paper, and wide with --model"
        ),
    ] = None
    trials: Annotated[int, typer.Option("--trials", help="How many settings are tried.")] = 50
    sampler: Annotated[str, typer.Option("--sampler", help="random, tpe or cmaes.")] = "random"
    halving: Annotated[
        bool, typer.Option("--halving", help="Drop the worse trials of a round after 10, 20 and 40 % of the epochs.")
    ] = False
    seed: Annotated[int, typer.Option("--seed", help="Of the sampler and of the trainings.")] = 0
    round_size: Annotated[
        int | None,
        typer.Option("--round", help="Trials drawn and trained together.", show_default="200 random ones, else 16"),
    ] = None
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the run.", show_default="runs/search/DATASET-REACTION-SPACE")
    ] = None
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage",
            metavar="URL",
            help="A database for the trials: sqlite:///FILE, postgresql://USER@HOST/NAME, ...",
            show_default="a journal file in the folder",
        ),
    ] = None
    engine: EngineName = "local"
    address: Address = None
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="Write the next trials to a file and stop.")
    ] = None
    run: Annotated[
        Path | None,
        typer.Option(
            "--run", metavar="FILE", help="Train the trials of a file, without optuna; writes FILE.results.json."
        ),
    ] = None
    tell: Annotated[
        Path | None,
        typer.Option("--tell", metavar="FILE", help="Take up the results of trials that were trained elsewhere."),
    ] = None
    show: Annotated[
        int | None, typer.Option("--show", metavar="N", help="Print the settings of trial N as toml and stop.")
    ] = None


@takes_records
def search_command(context: typer.Context, given: SearchOptions, own: OwnFiles) -> None:
    """Search for settings by mean validation accuracy over the splits; test labels choose nothing.

    The folder of the run holds trials.csv, best.toml (a preset for `rdgraph train --preset`), the storage and a report
    with the selection gap. The same command goes on with a search that was cut off. A setting given with --set is
    fixed, not searched. With --plan, --run and --tell the trainings are done on another machine, with --engine ray on
    many.
    """
    require("a search", "gread")
    if sum(option is not None for option in (given.plan, given.run, given.tell, given.show)) > 1:
        raise InvalidArgument("expected one of --plan, --run, --tell and --show, got several")
    if given.run is not None:
        follow_alone(context, "--run", "device", "root", *vars(NONE))
        train_planned(given.run, given, own)
        return
    require("a search", "search")
    if given.show is not None:
        follow_alone(context, "--show", "out", "storage")
        show_trial(given.out, given.show, given.storage)
        return
    space = given.space or ("wide" if given.model else "paper")
    with chosen_engine(given.engine, given.address) as place:
        is_elsewhere = place.name != "local"
        with StatusLine(LOADING, console=errors):
            from studies.search.tasks import SearchRequest, make_task

            device = {"device": place.device(given.device)} if is_elsewhere else {}
            request = own.request(SearchRequest, given, space=space, is_elsewhere=is_elsewhere, **device)
            task = make_task(request)
        folder = given.out or task.default_folder()
        if given.plan is not None:
            write_plan(task, folder, given.plan)
        elif given.tell is None or not hear(task, folder, given.tell):
            search(task, folder, place)


def search(task: SearchTask, folder: Path, engine: Engine) -> None:
    """Search, show, say where the report lies."""
    from studies.search import study

    say(errors, headline(task))
    with resumable(errors, folder), SearchDisplay(errors) as display:
        rows = study.execute(task, folder, progress=display.hear, tell=display.note, engine=engine)
    say(console, f"{counted(len(rows), 'trial')}; {study.told_best(folder)}")
    say(console, f"wrote {folder / 'report.html'}")


def headline(task: SearchTask) -> str:
    plan = task.plan
    return (
        f"{task.subject} on {task.dataset}: {counted(plan.trials, f'{plan.sampler} trial')} in the space "
        f"{plan.space.name} "
        f"({counted(len(plan.space.searched), 'setting')}), {counted(len(plan.splits), 'split')} each, on "
        f"{task.request.device}"
    )


# ---------------------------------------------------------------------- in three places
def write_plan(task: SearchTask, folder: Path, path: Path) -> None:
    """Write the next trials of a search to a file."""
    from studies.search.study import next_round

    planned = next_round(task, folder)
    if planned is None:
        say(console, f"nothing is left to plan: {counted(task.plan.trials, 'trial')} done")
        return
    planned.save(path)
    count = counted(len(planned.candidates), "trial")
    say(console, f"wrote {path} with {count}; train them with rdgraph search --run {path}")


def train_planned(path: Path, given: SearchOptions, own: OwnFiles) -> None:
    """Train the trials of a file and write what became of them beside it."""
    from studies.search.study import run_plan
    from studies.training.data_source import DataRequest

    with SearchDisplay(errors) as display:
        results = run_plan(
            path, device=choose_device(given.device), request=own.request(DataRequest, given), progress=display.hear,
            tell=display.note,
        )  # fmt: skip
    say(console, f"wrote {results}; tell of them with --tell {results} where the search lies")


def hear(task: SearchTask, folder: Path, path: Path) -> bool:
    """Take up results; whether trials are still to come."""
    from studies.search.study import take_up

    left = take_up(task, folder, path)
    if left:
        say(console, f"took up {path}; {counted(left, 'trial')} left, the next with --plan")
    return bool(left)


def show_trial(folder: Path | None, number: int, storage: str | None = None) -> None:
    """Print the settings of a trial."""
    from gread.tuning.ask_tell import recorded_candidate
    from studies.search.tasks import stored_trials

    if folder is None:
        raise InvalidArgument("expected the folder of a search, got none; name it with --out")
    place, study = stored_trials(folder, storage)
    console.file.write(recorded_candidate(place, number, study).config.toml())
