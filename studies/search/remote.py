"""Parts of a search done in several places: trials planned to a file, trained anywhere, told of afterwards."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gread.tuning.candidates import PlannedRound, load_plan, load_results, save_results
from gread.tuning.rounds import train_round
from gread.tuning.search_progress import SearchProgress
from gread.tuning.searching import Search
from rdgraph.errors import FileError
from rdgraph.files import write_text
from studies.runs.run_folder import locked
from studies.search.study import write_trials
from studies.search.tasks import CONFIG, SearchTask
from studies.training.data_source import DataRequest

#: The data set that a plan names, wherever data sets are kept.
BY_NAME = DataRequest()


def next_round(task: SearchTask, folder: Path) -> PlannedRound | None:
    """The next trials of the search in a folder; asked again before they are told of, the same ones."""
    _open(task, folder)
    with locked(folder):
        return Search(task.plan, folder, storage=task.request.storage).plan_round()


def take_up(task: SearchTask, folder: Path, results: Path) -> int:
    """Note what became of planned trials; returns how many are still to come."""
    load_results(results)  # a file that is none leaves no folder behind
    if task.request.storage is None and not (folder / CONFIG).is_file():
        raise FileError(f"expected the folder of a search with planned trials, got {folder}; name it with --out")
    _open(task, folder)
    with locked(folder):
        search = Search(task.plan, folder, storage=task.request.storage)
        left = search.hear_results(results)
        write_trials(folder, search.found(importance=False))
    return left


def _open(task: SearchTask, folder: Path) -> None:
    """Make the folder of a search, or refuse another one's."""
    if not task.prepare(folder):
        write_text(folder / CONFIG, task.run_config.toml())
        write_text(folder / "state", "running\n")


def run_plan(
    path: Path,
    *,
    device: str,
    request: DataRequest = BY_NAME,
    progress: Callable[[SearchProgress], None] = lambda now: None,
    tell: Callable[[str], object] = warnings.warn,
) -> Path:
    """Train the trials of a plan's file; needs no optuna. Returns the file of their results, beside it.

    Its data are read as `request` says, by the name in the plan where that names no files: a plan for a graph of one's
    own has to be told where it lies here.

    One that was cut off goes on from its checkpoints, which lie beside it too.
    """
    plan, started = load_plan(path), time.monotonic()
    data = (request if request.edges else replace(request, dataset=plan.dataset)).source.read()
    checkpoints = path.with_name(f"{path.stem}-{plan.digest[:16]}.checkpoints")
    total = len(plan.candidates)

    def hear(share: float) -> None:
        passed = time.monotonic() - started
        left = passed * (1 - share) / share if share else float("nan")
        progress(SearchProgress(share * total, total, float("nan"), -1, passed, left))

    done = train_round(data, plan, device=device, checkpoint=checkpoints, progress=hear, tell=tell)
    results = path.with_name(f"{path.stem}.results.json")
    save_results(results, plan, done)
    shutil.rmtree(checkpoints, ignore_errors=True)
    return results
