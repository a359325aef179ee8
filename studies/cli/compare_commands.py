"""`rdgraph compare`: networks and baselines on the same splits, in one table and one report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from rdgraph.status_line import StatusLine
from rdgraph.wording import counted
from studies.cli.fitted_table import FittedTable
from studies.cli.graph_options import GraphFiles, takes_records
from studies.cli.options import (
    ADDRESS,
    DATASET,
    ENGINE,
    FIRST_SEED,
    LOADING,
    RAY_DEFAULT,
    SEEDS,
    SMALL,
    DataOptions,
    chosen_engine,
    given_settings,
    option,
)
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
    """The options of `rdgraph compare`."""

    settings: list[str] | None = option(
        None, "Change a setting of one network, or of all that have it; repeatable.", "--set",
        metavar="[MODEL.]NAME=VALUE",
    )  # fmt: skip
    dataset: str | None = option(None, DATASET)
    models: str = option(
        "gread,gcn,mlp,labelprop",
        "Networks from `rdgraph models`, gread-R for a reaction R, labelprop, majority; comma-separated.",
    )
    reaction: list[str] | None = option(
        None, "Add a GREAD network with this reaction or equation; repeatable.", "--reaction", "--equation",
        metavar="REACTION",
    )  # fmt: skip
    seeds: int = option(1, SEEDS)
    seed: int = option(0, FIRST_SEED)
    preset: str = option("published", "Settings: published (defaults where nothing is published) or defaults.")
    out: Path | None = option(None, "Folder of the run.", shown="runs/compare/DATASET-MODELS")
    small: bool = option(False, SMALL, "--small")
    engine: str = option("local", ENGINE, metavar="local|ray")
    address: str | None = option(None, ADDRESS, shown=RAY_DEFAULT)


@takes_records
def compare_command(given: CompareOptions, files: GraphFiles) -> None:
    """Compare networks and baselines on the same splits.

    Writes a report with learning curves and verdicts. Differences are paired by split and taken from the first network,
    with the corrected standard error of the resampled t-test. The same command resumes an interrupted run.

    Example: rdgraph compare --dataset karate --models gread-bs,gcn,labelprop --small
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

        request = files.request(Request, given, reaction=None, preset=None, settings=None)
        names = [name.strip() for name in given.models.split(",") if name.strip()]
        changes = tuple(given_settings(given.settings, epochs=given.epochs))
        plan = make_contest(request, names, given.preset, changes, tuple(given.reaction or ()))
    folder = given.out or contest_folder(plan)
    say(errors, _headline(plan))
    with resumable(errors, folder), chosen_engine(given.engine, given.address) as engine, Display(errors) as display:
        rows = execute_contest(plan, folder, progress=display.update, tell=display.stage, engine=engine)
    answer, *others = contest_words(plan, folder)
    say(console, answer, wrap=True)
    console.print(contest_table(rows))
    say(console, "\n".join(others), wrap=True)
    if (folder / BEST).is_file():
        say(console, f"train the network with the best validation accuracy:\n  {train_command(plan, folder)}")
    say(console, f"wrote {folder / 'report.html'}")


def contest_table(rows: Sequence[Any]) -> FittedTable:
    """Table of method, accuracy, difference from the first method, parameters and time."""
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
        "accuracy in percent ± standard deviation over the splits; difference from the first method, paired by split "
        "(corrected standard error)"
    )
    headings = ["method", "accuracy", "difference", "parameters", "ms/epoch", "published"]
    if all(math.isnan(float(row["published"])) for row in rows):
        headings, cells = headings[:-1], [row[:-1] for row in cells]
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
