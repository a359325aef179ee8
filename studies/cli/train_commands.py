"""`rdgraph train` trains a network on a data set, with a live table and a report; `rdgraph predict` uses it."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from rdgraph.errors import InvalidArgument
from rdgraph.status_line import StatusLine
from rdgraph.wording import counted
from studies.cli.graph_options import EDGES, NODES, GraphFiles, takes_records
from studies.cli.options import (
    DATASET,
    FIRST_SEED,
    LOADING,
    SEEDS,
    SMALL,
    DataOptions,
    Root,
    argument,
    option,
    with_options,
)
from studies.cli.train_display import Display
from studies.runs.boundary import interruptible, say
from studies.runs.libraries import require

if TYPE_CHECKING:
    from studies.training.plan import TrainingPlan

console = Console()
errors = Console(stderr=True)
#: Options that the folder of an interrupted training determines.
FIXED_BY_FOLDER = (
    "settings", "learned", "method", "epochs", "preset", "model", "reaction", "splits", "decoupled", "batch",
)  # fmt: skip


@dataclass(frozen=True)
class TrainOptions(DataOptions):
    """The options of `rdgraph train`."""

    dataset: str | None = option(None, DATASET)
    model: str | None = option(None, "Network, from `rdgraph models`.", shown="that of the preset, else gread")
    reaction: str | None = option(
        None, "Equation of the network, or its name from `rdgraph catalogue`.", "--reaction", "--equation",
        shown="that of the preset, else BS", metavar="EQUATION",
    )  # fmt: skip
    learned: list[str] | None = option(
        None, "Declare a learned function in the equation, as in 'phi: knots=12, odd, lipschitz=2'; repeatable.",
        metavar="'NAME: FACTS'",
    )  # fmt: skip
    preset: str | None = option(
        None, "Settings to start from: published, paper, authors, modern, defaults, quick or FILE.toml.",
        shown="quick for digits and karate, else defaults",
    )  # fmt: skip
    seeds: int = option(1, SEEDS)
    seed: int = option(0, FIRST_SEED)
    method: str | None = option(None, "Integration method: auto, exact, euler, rk4, ...; short for --set method=NAME.")
    out: Path | None = option(None, "Folder of the run.", shown="runs/train/DATASET-REACTION-N")
    resume: bool = option(False, "Resume an interrupted training; with --out alone, its settings are used.", "--resume")
    small: bool = option(False, SMALL, "--small")
    decoupled: bool = option(
        False,
        "Propagate the features once, then train on batches of nodes; needs a linear equation, the original adjacency "
        "and a linear encoder.",
        "--decoupled",
    )
    batch: int | None = option(None, "Training nodes per optimiser step, with --decoupled.", shown="all")
    log: str | None = option(None, "Write event files to the folder of the run.", metavar="tensorboard")
    references: bool = option(
        True, "Run baselines on the same splits: label propagation, majority class, MLP and GCN.",
        "--references/--no-references",
    )  # fmt: skip
    figures: bool = option(True, "Draw the figures of the report.", "--figures/--no-figures")


@takes_records
def train_command(given: TrainOptions, files: GraphFiles) -> None:
    """Train a network on every split and write a report.

    The network is GREAD with a reaction, or any other from `rdgraph models`. Settings come from the defaults, then the
    preset, then the command line; config.toml in the folder of the run stores them, and --preset reads it. `rdgraph
    presets` lists the published settings.

    The result is the test accuracy at the first epoch with the best validation accuracy: its mean and standard
    deviation over the splits, the published number if there is one, and baselines on the same splits. predictions.csv
    holds the class and the probabilities of every node; `rdgraph predict FOLDER` applies the network to other graphs.

    Example: rdgraph train --dataset digits --small
    """
    with StatusLine(LOADING, console=errors):
        plan = _planned(given, files)
    run(plan, given)


def _planned(given: TrainOptions, files: GraphFiles) -> TrainingPlan:
    """The plan of the command, or of the folder to resume."""
    require("a training", "gread")
    from studies.training.choices import with_learned
    from studies.training.plan import Request, make_plan, read_plan

    if given.resume and given.out is not None and given.dataset is None and files.edges is None and not given.small:
        changed = [getattr(given, name) for name in FIXED_BY_FOLDER]
        if any(changed):
            raise InvalidArgument("--resume takes the settings of the folder; leave the others out")
        return read_plan(given.out, given.root, resumes=True)
    reaction = with_learned(given.reaction, given.learned or ())
    return make_plan(files.request(Request, given, reaction=reaction, settings=given.pairs(method=given.method)))


def run(plan: TrainingPlan, given: TrainOptions) -> None:
    """Train, print the result and the paths of the files."""
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
        say(
            errors,
            f"States {plan.config.gread.region}, so no run overflows; --set states=free removes the restriction.",
        )
    for sentence in plan.data.warnings():
        say(errors, with_options(sentence, {"standardise": "--standardise"}))
    advice = f"resume it with rdgraph train --resume --out {folder}"
    with interruptible(errors, advice), Display(errors) as display:
        rows = study.execute(
            plan, folder, resume=given.resume, progress=display.update, reference_progress=display.update,
            tell=display.note, log=given.log, stage=display.stage, has_references=given.references,
            has_figures=given.figures,
        )  # fmt: skip
    say(console, "\n".join(summarise(plan, rows, read_references(folder)).sentences()), wrap=True)
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


# ---------------------------------------------------------------------- predict
@dataclass(frozen=True)
class PredictOptions:
    """The options of `rdgraph predict`."""

    run: Path = argument(MISSING, "Folder of a training.", "RUN")
    edges: Path | None = option(None, EDGES, "--edges", "--graph")
    nodes: Path | None = option(None, NODES)
    out: Path | None = option(
        None, "File to write.", shown="RUN/predictions.csv, or RUN/predictions-NODES.csv for other nodes"
    )
    root: Root = None
    overwrite: bool = option(False, "Replace an existing file.", "--overwrite")


@takes_records
def predict_command(given: PredictOptions) -> None:
    """Predict the class of every node with a trained network.

    Writes classes and probabilities. Without files, predicts the nodes of the graph the network was trained on; with
    --edges and --nodes, those of another graph, whose features are prepared as in the training. Labels are optional; if
    there are any, the command reports the accuracy. A file with other contents is only replaced with --overwrite.

    Example: rdgraph predict RUN --edges edges.csv --nodes nodes.csv
    """
    require("a prediction", "gread")
    with StatusLine(LOADING, console=errors):
        from studies.training.data_source import check_pair
        from studies.training.predictions import predict_again, predict_files, predictions_file

        check_pair(given.edges, given.nodes)
        target = given.out or predictions_file(given.run, given.nodes or given.edges)
        if given.edges is None:
            predictions, cautions = predict_again(given.run, given.root), tuple[str, ...]()
        else:
            predictions, data = predict_files(given.run, given.edges, given.nodes)
            cautions = data.meta.cautions
    is_new = predictions.write_once(target, overwrite=given.overwrite)
    say(console, "\n".join((*cautions, *predictions.sentences())), wrap=True)
    say(console, f"wrote {target}" if is_new else f"{target} already has these predictions")
