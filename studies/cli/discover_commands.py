"""`rdgraph discover`: equations of a grammar, each behaviour once, trained and chosen on validation nodes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rdgraph.status_line import StatusLine
from rdgraph.wording import counted, duration
from studies.cli.options import LOADING
from studies.cli.own_files import NONE, OwnFiles, takes_own_files
from studies.cli.train_commands import Device, Epochs, Root, Settings, Splits, choose_device, given_settings
from studies.cli.train_display import SearchDisplay
from studies.runs.boundary import resumable, say
from studies.runs.libraries import require

if TYPE_CHECKING:
    from studies.discovery.discovery_task import DiscoveryTask

console = Console()
errors = Console(stderr=True)

Datasets = Annotated[
    list[str] | None,
    typer.Option("--dataset", metavar="NAME", help="A name of `rdgraph data list`; each of several is searched."),
]
Terms = Annotated[str, typer.Option("--terms", help="The grammar: default, small or FILE.toml.")]
Size = Annotated[int, typer.Option("--size", help="All equations of up to so many terms are enumerated.")]
Budget = Annotated[int, typer.Option("--budget", help="How many equations are trained.")]
Sampler = Annotated[
    str,
    typer.Option("--sampler", help="How larger equations are drawn, where the budget allows: random, tpe, evolution."),
]
PresetName = Annotated[
    str | None,
    typer.Option(
        "--preset", help="The settings around the equations: paper, authors or FILE.toml.", show_default="defaults"
    ),
]
Round = Annotated[int, typer.Option("--round", help="Equations that are trained, and compared, together.")]
Seed = Annotated[int, typer.Option("--seed", help="Of draws and trainings.")]
Fresh = Annotated[
    int, typer.Option("--fresh", help="Seeds that the choice is trained with anew; 0 leaves that and fresh splits out.")
]
Transfer = Annotated[
    list[str] | None, typer.Option("--transfer", metavar="SET", help="Another data set that the choice is tried on.")
]
Out = Annotated[
    Path | None, typer.Option("--out", help="Folder of the run.", show_default="runs/discover/DATASET-TERMS-SIZE")
]


class DiscoverDisplay(SearchDisplay):
    """How far a search over equations is.

    >>> from types import SimpleNamespace
    >>> now = SimpleNamespace(trials=12.5, total=50, best=0.8125, best_line="alpha*L@H", seconds=10, seconds_left=30)
    >>> DiscoverDisplay.described(now)
    '12 of 50 equations, best validation 81.25 % (alpha*L@H), 30 s left'
    >>> from studies.discovery.discovery_words import AnewProgress
    >>> DiscoverDisplay.described(AnewProgress("the choice and BS on film", 30, 400, 5.0))
    'the choice and BS on film: 30 of 400 epochs'
    """

    doing = "discovering"

    @staticmethod
    def described(p: Any) -> str:
        from studies.discovery.discovery_words import AnewProgress

        if isinstance(p, AnewProgress):
            return f"{p.what}: {p.trials} of {counted(p.total, 'epoch')}"
        best = "" if math.isnan(p.best) else f", best validation {100 * p.best:.2f} % ({p.best_line})"
        left = "" if math.isnan(p.seconds_left) else f", {duration(p.seconds_left)} left"
        return f"{math.floor(p.trials)} of {counted(p.total, 'equation')}{best}{left}"


@takes_own_files
def discover_command(
    dataset: Datasets = None,
    terms: Terms = "default",
    size: Size = 3,
    budget: Budget = 2000,
    epochs: Epochs = None,
    sampler: Sampler = "tpe",
    preset: PresetName = None,
    settings: Settings = None,
    splits: Splits = None,
    seed: Seed = 0,
    round_size: Round = 250,
    fresh: Fresh = 3,
    transfer: Transfer = None,
    own: OwnFiles = NONE,
    device: Device = "auto",
    root: Root = None,
    out: Out = None,
) -> None:
    """Search equations by mean validation accuracy over the splits; test labels choose nothing.

    Equations of a grammar of terms are enumerated, each behaviour once; those whose solutions may blow up get tanh or
    are left out; the rest are trained, the worse dropped on the way. The folder holds equations.csv, best.toml (a
    preset for `rdgraph train --preset`) and a report with proofs, the winner's curse and the transfer to other sets.
    The same command goes on with a search that was cut off.
    """
    require("a search over equations", "gread")
    names: list[str | None] = list(dict.fromkeys(dataset or [])) or [None]
    with StatusLine(LOADING, console=errors):
        from studies.discovery.discovery_task import DiscoveryRequest, make_discovery_task
        from studies.training.choices import read_pairs

        given = read_pairs(given_settings(settings, epochs=epochs))
        tasks = [
            make_discovery_task(
                DiscoveryRequest(
                    name, terms, size, budget, sampler=sampler, preset=preset, settings=given, splits=splits, seed=seed,
                    round_size=round_size, transfer=tuple(transfer or ()), fresh=fresh, device=choose_device(device),
                    **own.request(root),
                )
            )
            for name in names
        ]  # fmt: skip
    for task in tasks:
        folder = task.default_folder() if out is None else out / task.dataset if len(tasks) > 1 else out
        search_equations(task, folder)


def search_equations(task: DiscoveryTask, folder: Path) -> None:
    """Search, show, say where the report lies."""
    from studies.discovery import study as study
    from studies.discovery.discovery_words import Listener

    plan = task.plan
    say(
        errors,
        f"{counted(plan.budget, 'equation')} for {task.dataset}: {counted(len(plan.grammar.terms), 'term')}, up "
        f"to {plan.size} of "
        f"them, {counted(len(plan.splits), 'split')} each, on {task.request.device}",
    )
    with resumable(errors, folder), DiscoverDisplay(errors) as display:
        rows = study.execute(task, folder, Listener(display.hear, display.note))
    trained = sum(row["state"] in ("finished", "dropped", "diverged") for row in rows)
    say(console, f"{counted(trained, 'equation')} trained; {study.told_best(folder)}")
    say(console, f"wrote {folder / 'report.html'}")
