"""`rdgraph discover`: equations of a grammar, each behaviour once, trained and chosen on validation nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from rdgraph.status_line import StatusLine
from rdgraph.wording import counted, duration
from studies.cli.graph_options import GraphFiles, takes_records
from studies.cli.options import LOADING, DataOptions, option
from studies.cli.train_display import SearchDisplay
from studies.runs.boundary import resumable, say
from studies.runs.libraries import require

if TYPE_CHECKING:
    from studies.discovery.discovery_task import DiscoveryTask

console = Console()
errors = Console(stderr=True)


@dataclass(frozen=True)
class DiscoverOptions(DataOptions):
    """The options of `rdgraph discover`."""

    dataset: list[str] | None = option(
        None, "Data set, from `rdgraph data list`; repeat it to search several.", metavar="NAME"
    )
    terms: str = option("default", "Grammar of terms: default, small or FILE.toml.")
    size: int = option(3, "Largest number of terms of the enumerated equations.")
    budget: int = option(2000, "Number of equations to train.")
    sampler: str = option("tpe", "How larger equations are drawn if the budget allows.", metavar="random|tpe|evolution")
    preset: str | None = option(
        None, "Settings of the networks: paper, authors, modern or FILE.toml.", shown="defaults"
    )
    seed: int = option(0, "Seed of the sampler and of the trainings.")
    round_size: int = option(250, "Number of equations trained and compared together.", "--round")
    fresh: int = option(3, "Retrain the best equation with this many new seeds; 0 skips this and the new splits.")
    transfer: list[str] | None = option(None, "Also train the best one on this data set; repeatable.", metavar="NAME")
    out: Path | None = option(None, "Folder of the run.", shown="runs/discover/DATASET-TERMS-SIZE")


class DiscoverDisplay(SearchDisplay):
    """Progress of a search over equations.

    >>> from types import SimpleNamespace
    >>> now = SimpleNamespace(trials=12.5, total=50, best=0.8125, best_line="alpha*L@H", seconds=10, seconds_left=30)
    >>> DiscoverDisplay.described(now)
    '12 of 50 equations, best validation 81.25 % (alpha*L@H), 30 s left'
    >>> from studies.discovery.discovery_words import RetrainingProgress
    >>> DiscoverDisplay.described(RetrainingProgress("the choice and BS on film", 30, 400, 5.0))
    'the choice and BS on film: 30 of 400 epochs'
    """

    doing = "discovering"

    @staticmethod
    def described(p: Any) -> str:
        from studies.discovery.discovery_words import RetrainingProgress

        if isinstance(p, RetrainingProgress):
            return f"{p.what}: {p.trials} of {counted(p.total, 'epoch')}"
        best = "" if math.isnan(p.best) else f", best validation {100 * p.best:.2f} % ({p.best_line})"
        remaining = "" if math.isnan(p.seconds_left) else f", {duration(p.seconds_left)} left"
        return f"{math.floor(p.trials)} of {counted(p.total, 'equation')}{best}{remaining}"


@takes_records
def discover_command(given: DiscoverOptions, files: GraphFiles) -> None:
    """Search for equations by mean validation accuracy.

    The mean is over the splits; test labels are never used for selection. The equations of a grammar of terms are
    enumerated, each behaviour once. Those whose solutions may blow up get tanh or are left out; the others are trained,
    and the worse ones dropped early. The folder holds equations.csv, best.toml (a preset for `rdgraph train --preset`)
    and a report with proofs, the winner's curse and the transfer to other data sets. The same command
    resumes an interrupted search.

    Example: rdgraph discover --dataset karate --terms small --budget 50
    """
    require("a search over equations", "gread")
    names: list[str | None] = list(dict.fromkeys(given.dataset or [])) or [None]
    with StatusLine(LOADING, console=errors):
        from studies.discovery.discovery_task import DiscoveryRequest, make_discovery_task

        transfer = tuple(given.transfer or ())
        requests = [files.request(DiscoveryRequest, given, dataset=name, transfer=transfer) for name in names]
        tasks = [make_discovery_task(request) for request in requests]
    for task in tasks:
        folder = task.default_folder()
        if given.out is not None:
            folder = given.out / task.dataset if len(tasks) > 1 else given.out
        search_equations(task, folder)


def search_equations(task: DiscoveryTask, folder: Path) -> None:
    """Search, print the result and the path of the report."""
    from studies.discovery import study as study
    from studies.discovery.discovery_words import Listener

    plan = task.plan
    say(
        errors,
        f"{counted(plan.budget, 'equation')} on {task.dataset} from {counted(len(plan.grammar.terms), 'term')}, up to "
        f"{plan.size} each; {counted(len(plan.splits), 'split')}, on {task.request.device}",
    )
    with resumable(errors, folder), DiscoverDisplay(errors) as display:
        rows = study.execute(task, folder, Listener(display.update, display.note))
    trained = sum(row["state"] in ("finished", "dropped", "diverged") for row in rows)
    say(console, f"{counted(trained, 'equation')} trained; {study.best_text(folder)}")
    say(console, f"wrote {folder / 'report.html'}")
