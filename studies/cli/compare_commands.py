"""`rdgraph compare`: networks and references on the same splits, in one table and one report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rdgraph.status_line import StatusLine
from rdgraph.wording import counted
from studies.cli.fitted_table import FittedTable
from studies.cli.options import (
    LOADING,
    Address,
    DataOptions,
    Dataset,
    EngineName,
    FirstSeed,
    Seeds,
    Small,
    chosen_engine,
    given_settings,
)
from studies.cli.own_files import OwnFiles, takes_records
from studies.cli.train_display import Display
from studies.runs.boundary import resumable, say
from studies.runs.libraries import require
from studies.runs.tables import number_text

if TYPE_CHECKING:
    from studies.contest.study import ContestPlan

console = Console()
errors = Console(stderr=True)


@dataclass(frozen=True)
class CompareOptions(DataOptions):
    """The options of `rdgraph compare`; those of your own graph are in `OwnFiles`."""

    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="[MODEL.]NAME=VALUE", help="A setting of one network, or of all that have it."),
    ] = None
    dataset: Dataset = None
    models: Annotated[
        str,
        typer.Option(
            "--models", help="Names of `rdgraph models`, gread-R for a reaction R, labelprop, majority; commas between."
        ),
    ] = "gread,gcn,mlp,labelprop"
    reaction: Annotated[
        list[str] | None,
        typer.Option(
            "--reaction",
            "--equation",
            metavar="REACTION",
            help="A reaction or an equation, for one more GREAD; any number of them.",
        ),
    ] = None
    seeds: Seeds = 1
    seed: FirstSeed = 0
    preset: Annotated[str, typer.Option("--preset", help="published (defaults where there are none) or defaults.")] = (
        "published"
    )
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the run.", show_default="runs/compare/DATASET-MODELS")
    ] = None
    small: Small = False
    engine: EngineName = "local"
    address: Address = None


@takes_records
def compare_command(given: CompareOptions, own: OwnFiles) -> None:
    """Compare networks and references on the same splits: one table, learning curves side by side, verdicts.

    Differences are from the first of them, split by split, with their corrected standard error. The same command
    resumes a run that was interrupted.
    """
    require("a comparison", "gread")
    with StatusLine(LOADING, console=errors):
        from studies.contest.study import (
            BEST,
            contest_folder,
            contest_words,
            execute_contest,
            make_contest,
            train_command,
        )
        from studies.training.plan import Request

        request = own.request(Request, given, reaction=None, preset=None, settings=None)
        names = [name.strip() for name in given.models.split(",") if name.strip()]
        changes = tuple(given_settings(given.settings, epochs=given.epochs))
        plan = make_contest(request, names, given.preset, changes, tuple(given.reaction or ()))
    folder = given.out or contest_folder(plan)
    say(errors, _headline(plan))
    with resumable(errors, folder), chosen_engine(given.engine, given.address) as place, Display(errors) as display:
        rows = execute_contest(plan, folder, progress=display.hear, tell=display.note, engine=place)
    console.print(contest_table(rows))
    for sentence in contest_words(plan, folder):
        say(console, sentence)
    if (folder / BEST).is_file():
        say(console, f"to predict with the best network on validation nodes, train it: {train_command(plan, folder)}")
    say(console, f"wrote {folder / 'report.html'}")


def contest_table(rows: Sequence[Any]) -> FittedTable:
    """Method, accuracy, difference from the first, parameters and time."""
    cells = [
        [
            str(row["method"]), number_text(float(row["mean"])) + _spread(float(row["std"]), " ± {:.2f}"),
            _difference(row) if k else "",
            f"{int(row['parameters']):,}", number_text(float(row["ms_per_epoch"])),
            number_text(float(row["published"])),
        ]
        for k, row in enumerate(rows)
    ]  # fmt: skip
    caption = (
        "percent; ± is the standard deviation over the splits; differences are from the first, split by split, with "
        "the corrected standard error in brackets"
    )
    headings = ("method", "accuracy", "difference", "parameters", "ms/epoch", "published")
    return FittedTable("", headings, cells, caption=caption)


def _difference(row: Any) -> str:
    return number_text(float(row["difference"]), "+z.2f") + _spread(float(row["difference_error"]), " ({:.2f})")


def _spread(number: float, form: str) -> str:
    return "" if math.isnan(number) else form.format(number)


def _headline(plan: ContestPlan) -> str:
    names = ", ".join(one.title for one in plan.contestants)
    return (
        f"{names} on {plan.dataset}: {plan.data.num_nodes:,} nodes, {plan.data.num_classes} classes; "
        f"{counted(len(plan.splits), 'split')}, {counted(plan.seeds, 'seed')} on {plan.device}"
    )
