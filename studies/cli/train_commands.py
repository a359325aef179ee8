"""`rdgraph train`: train a network on a data set, with a table on the way and a report at the end."""

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
    DataOptions,
    Dataset,
    FirstSeed,
    Seeds,
    Small,
    with_options,
)
from studies.cli.own_files import OwnFiles, takes_records
from studies.cli.train_display import Display
from studies.runs.boundary import interruptible, say
from studies.runs.libraries import require

if TYPE_CHECKING:
    from studies.training.plan import TrainingPlan

console = Console()
errors = Console(stderr=True)


@dataclass(frozen=True)
class TrainOptions(DataOptions):
    """The options of `rdgraph train`; those of your own graph are in `OwnFiles`."""

    dataset: Dataset = None
    model: Annotated[
        str | None,
        typer.Option("--model", help="A network of `rdgraph models`.", show_default="of the preset, else gread"),
    ] = None
    reaction: Annotated[
        str | None,
        typer.Option(
            "--reaction",
            "--equation",
            help="A name of the catalogue, or an equation, of several fields too; for networks around an equation.",
            show_default="of the preset, else BS",
        ),
    ] = None
    learned: Annotated[
        list[str] | None,
        typer.Option(
            "--learned",
            metavar="NAME: FACTS",
            help="What is declared of a learned function of the equation, as in 'phi: knots=12, odd, lipschitz=2'; any "
            "number of them.",
        ),
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            help="published, paper, authors, defaults, quick or FILE.toml.",
            show_default="quick for digits and karate, else defaults",
        ),
    ] = None
    seeds: Seeds = 1
    seed: FirstSeed = 0
    method: Annotated[str | None, typer.Option("--method", help="As --set method=...: auto, exact, euler, rk4 ...")] = (
        None
    )
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder of the run.", show_default="runs/train/DATASET-REACTION-N or DATASET-MODEL-N"
        ),
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the training in that folder.")] = False
    small: Small = False
    decoupled: Annotated[
        bool,
        typer.Option(
            "--decoupled",
            help="Multiply the features with the graph once, then train on rows of the result; for linear equations "
            "with the original adjacency and a linear encoder.",
        ),
    ] = False
    batch: Annotated[
        int | None, typer.Option("--batch", help="Training nodes per step, with --decoupled.", show_default="all")
    ] = None
    log: Annotated[
        str | None,
        typer.Option("--log", help="tensorboard: event files in the folder of the run.", show_default="none"),
    ] = None
    references: Annotated[
        bool,
        typer.Option(
            "--references/--no-references",
            help="Compare with label propagation, the majority class and an MLP on the same splits.",
        ),
    ] = True
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Draw the figures of the report.")] = True


@takes_records
def train_command(given: TrainOptions, own: OwnFiles) -> None:
    """Train a network on every chosen split with every seed; a table on the way, a report at the end.

    The network is GREAD around a reaction, or any other of `rdgraph models`.

    Settings are resolved as defaults < preset < command line, and written to config.toml in the folder of the run,
    which --preset reads again. `rdgraph presets` lists the published ones. What counts is the test accuracy at the
    first epoch with the best validation accuracy; its mean and population standard deviation are shown beside the
    published number, where there is one, and beside what label propagation, the majority class, an MLP and a GCN reach
    on the same splits.

    predictions.csv in the folder has the class and the probabilities of every node; `rdgraph predict FOLDER` applies
    the network to other graphs. An interrupted training goes on with: rdgraph train --resume --out FOLDER
    """
    with StatusLine(LOADING, console=errors):
        plan = _planned(given, own)
    run(plan, given)


def _planned(given: TrainOptions, own: OwnFiles) -> TrainingPlan:
    """The plan of the command, or that of the folder to resume."""
    require("a training", "gread")
    from studies.training.choices import with_learned
    from studies.training.plan import Request, make_plan, read_plan

    if given.resume and given.out is not None and given.dataset is None and own.edges is None and not given.small:
        named = [
            "settings",
            "learned",
            "method",
            "epochs",
            "preset",
            "model",
            "reaction",
            "splits",
            "decoupled",
            "batch",
        ]
        if any(getattr(given, name) for name in named):
            raise InvalidArgument("expected --resume with the folder alone, got other settings too; leave them out")
        return read_plan(given.out, given.root, resumes=True)
    reaction = with_learned(given.reaction, given.learned or ())
    return make_plan(own.request(Request, given, reaction=reaction, settings=given.pairs(method=given.method)))


def run(plan: TrainingPlan, given: TrainOptions) -> None:
    """Train, show, say where the report lies."""
    from gread.models.resolution import pole_warning
    from studies.training import study
    from studies.training.reference_answers import read_references
    from studies.training.training_summary import summarise

    folder = given.out or study.default_folder(plan, resume=given.resume)
    say(errors, _headline(plan))
    if bias := plan.selection_bias:
        say(errors, f"warning: {bias}")
    if warning := pole_warning(plan.method_reason):
        say(errors, f"warning: {warning}")
    elif plan.has_equation and not plan.config.gread.region.is_free:
        say(errors, f"States {plan.config.gread.region}, so that no run overflows; --set states=free starts anywhere.")
    for sentence in plan.data.warnings():
        say(errors, with_options(sentence, {"standardise": "--standardise"}))
    advice = f"to go on: rdgraph train --resume --out {folder}"
    with interruptible(errors, advice), Display(errors) as display:
        rows = study.execute(
            plan, folder, resume=given.resume, progress=display.hear, reference_progress=display.hear,
            tell=display.note, log=given.log, stage=display.stage, has_references=given.references,
            has_figures=given.figures,
        )  # fmt: skip
    for sentence in summarise(plan, rows, read_references(folder)).sentences():
        say(console, sentence)
    for name in ("report.html", "predictions.csv"):
        if (folder / name).is_file():
            say(console, f"wrote {folder / name}")


def _headline(plan: TrainingPlan) -> str:
    data = plan.data
    return (
        f"{plan.subject} on {plan.preset.dataset}: {data.num_nodes:,} nodes, {data.num_classes} classes; preset "
        f"{plan.preset.name}; {counted(len(plan.trials), 'training')} of "
        f"{counted(plan.config.training.epochs, 'epoch')} on {plan.device}"
    )
