"""`rdgraph search`: settings chosen on validation nodes, in one command or planned, trained and collected apart."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from rdgraph.errors import InvalidArgument
from rdgraph.status_line import StatusLine
from rdgraph.wording import counted
from studies.cli.graph_options import NO_FILES, GraphFiles, takes_records
from studies.cli.options import (
    ADDRESS,
    DATASET,
    ENGINE,
    LOADING,
    RAY_DEFAULT,
    DataOptions,
    choose_device,
    chosen_engine,
    follow_alone,
    option,
)
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
    """The options of `rdgraph search`."""

    dataset: str | None = option(None, DATASET)
    reaction: str | None = option(
        None, "Equation of the network, or its name.", "--reaction", "--equation", shown="BS", metavar="EQUATION"
    )
    model: str | None = option(None, "Network instead of GREAD, such as gcn.")
    preset: str | None = option(
        None, "Settings to search around: paper, authors, modern, published or FILE.toml.", shown="defaults"
    )
    space: str | None = option(
        None, "Search space: paper, wide, small, tuned or FILE.toml.", shown="paper, or wide with --model"
    )
    trials: int = option(50, "Number of trials.")
    sampler: str = option("random", "How trials are drawn.", metavar="random|tpe|cmaes")
    halving: bool = option(False, "Drop the worse trials of a round after 10, 20 and 40 % of the epochs.", "--halving")
    seed: int = option(0, "Seed of the sampler and of the trainings.")
    round_size: int | None = option(
        None, "Number of trials drawn and trained together.", "--round", shown="200 random trials, else 16"
    )
    out: Path | None = option(None, "Folder of the run.", shown="runs/search/DATASET-REACTION-SPACE")
    storage: str | None = option(
        None, "Database of the trials: sqlite:///FILE, postgresql://USER@HOST/NAME, ...", metavar="URL",
        shown="a journal file in the folder",
    )  # fmt: skip
    engine: str = option("local", ENGINE, metavar="local|ray")
    address: str | None = option(None, ADDRESS, shown=RAY_DEFAULT)
    plan: Path | None = option(None, "Write the next trials to a file and stop.", metavar="FILE")
    run: Path | None = option(
        None, "Train the trials of a file (needs no optuna); writes FILE.results.json.", metavar="FILE"
    )
    tell: Path | None = option(None, "Add the results of trials trained on another machine.", metavar="FILE")
    show: int | None = option(None, "Print the settings of trial N as TOML and stop.", metavar="N")


@takes_records
def search_command(context: typer.Context, given: SearchOptions, files: GraphFiles) -> None:
    """Search for hyperparameters by mean validation accuracy.

    The mean is over the splits; test labels are never used for selection. The folder of the run holds trials.csv,
    best.toml (a preset for `rdgraph train --preset`), the storage and a report with the selection gap. The same command
    resumes an interrupted search. A setting given with --set is fixed. --plan, --run and --tell train on another
    machine, --engine ray on a cluster.

    Example: rdgraph search --dataset karate --model gcn --space small
    """
    require("a search", "gread")
    if sum(option is not None for option in (given.plan, given.run, given.tell, given.show)) > 1:
        raise InvalidArgument("--plan, --run, --tell and --show exclude each other; give one of them")
    if given.run is not None:
        follow_alone(context, "--run", "device", "root", *vars(NO_FILES))
        train_planned(given.run, given, files)
        return
    require("a search", "search")
    if given.show is not None:
        follow_alone(context, "--show", "out", "storage")
        show_trial(given.out, given.show, given.storage)
        return
    space = given.space or ("wide" if given.model else "paper")
    with chosen_engine(given.engine, given.address) as engine:
        is_elsewhere = engine.name != "local"
        with StatusLine(LOADING, console=errors):
            from studies.search.tasks import SearchRequest, make_task

            device = {"device": engine.device(given.device)} if is_elsewhere else {}
            request = files.request(SearchRequest, given, space=space, is_elsewhere=is_elsewhere, **device)
            task = make_task(request)
        folder = given.out or task.default_folder()
        if given.plan is not None:
            write_plan(task, folder, given.plan)
        elif given.tell is None or not add_results(task, folder, given.tell):
            search(task, folder, engine)


def search(task: SearchTask, folder: Path, engine: Engine) -> None:
    """Search, print the result and the path of the report."""
    from studies.search import study

    say(errors, headline(task))
    with resumable(errors, folder), SearchDisplay(errors) as display:
        rows = study.execute(task, folder, progress=display.update, tell=display.note, engine=engine)
    say(console, f"{counted(len(rows), 'trial')}; {study.best_text(folder)}")
    say(console, f"wrote {folder / 'report.html'}")


def headline(task: SearchTask) -> str:
    plan = task.plan
    return (
        f"{task.subject} on {task.dataset}: {counted(plan.trials, f'{plan.sampler} trial')} in the space "
        f"{plan.space.name} ({counted(len(plan.space.searched), 'setting')}), {counted(len(plan.splits), 'split')} "
        f"each, on {task.request.device}"
    )


# ---------------------------------------------------------------------- planned trials
def write_plan(task: SearchTask, folder: Path, path: Path) -> None:
    """Write the next trials of a search to a file."""
    from studies.search.study import next_round

    planned = next_round(task, folder)
    if planned is None:
        say(console, f"the search is complete: {counted(task.plan.trials, 'trial')} done")
        return
    planned.save(path)
    count = counted(len(planned.candidates), "trial")
    say(console, f"wrote {path} with {count}; train them with rdgraph search --run {path}")


def train_planned(path: Path, given: SearchOptions, files: GraphFiles) -> None:
    """Train the trials of a file and write their results to FILE.results.json."""
    from studies.search.study import run_plan
    from studies.training.data_source import DataRequest

    with SearchDisplay(errors) as display:
        results = run_plan(
            path, device=choose_device(given.device), request=files.request(DataRequest, given),
            progress=display.update, tell=display.note,
        )  # fmt: skip
    say(console, f"wrote {results}; add it to the search with --tell {results}")


def add_results(task: SearchTask, folder: Path, path: Path) -> bool:
    """Add the results of planned trials; returns whether trials remain."""
    from studies.search.study import take_up

    remaining = take_up(task, folder, path)
    if remaining:
        say(console, f"added {path}; {counted(remaining, 'trial')} left, write the next with --plan")
    return bool(remaining)


def show_trial(folder: Path | None, number: int, storage: str | None = None) -> None:
    """Print the settings of a trial."""
    from gread.tuning.ask_tell import recorded_candidate
    from studies.search.tasks import stored_trials

    if folder is None:
        raise InvalidArgument("--show needs the folder of a search; name it with --out")
    trials, study = stored_trials(folder, storage)
    console.file.write(recorded_candidate(trials, number, study).config.toml())
