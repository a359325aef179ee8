"""`rdgraph train`: train a network on a data set, with a table on the way and a report at the end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rdgraph.errors import InvalidArgument
from rdgraph.status_line import StatusLine
from rdgraph.wording import counted
from studies.cli.options import LOADING, with_options
from studies.cli.own_files import NONE, OwnFiles, takes_own_files
from studies.cli.train_display import Display
from studies.runs.boundary import interruptible, say
from studies.runs.libraries import require

if TYPE_CHECKING:
    from studies.training.plan import TrainingPlan

console = Console()
errors = Console(stderr=True)


Dataset = Annotated[
    str | None, typer.Option("--dataset", help="A name of `rdgraph data list`; digits and karate need no files.")
]
Model = Annotated[
    str | None, typer.Option("--model", help="A network of `rdgraph models`.", show_default="of the preset, else gread")
]
Reaction = Annotated[
    str | None,
    typer.Option(
        "--reaction",
        "--equation",
        help="A name of the catalogue, or an equation, of several fields too; for networks around an equation.",
        show_default="of the preset, else BS",
    ),
]
Learned = Annotated[
    list[str] | None,
    typer.Option(
        "--learned",
        metavar="NAME: FACTS",
        help="What is declared of a learned function of the equation, as in 'phi: knots=12, odd, lipschitz=2'; any "
        "number of them.",
    ),
]
PresetName = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="published, paper, authors, defaults, quick or FILE.toml.",
        show_default="quick for digits and karate, else defaults",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="One setting of the network or the training; any number of them."),
]
Splits = Annotated[str | None, typer.Option("--splits", help="all, 0,1,2 or 0-4.", show_default="all")]
Seeds = Annotated[int, typer.Option("--seeds", help="How many seeds every split is trained with.")]
FirstSeed = Annotated[int, typer.Option("--seed", help="The first of them.")]
Method = Annotated[str | None, typer.Option("--method", help="As --set method=...: auto, exact, euler, rk4 ...")]
Epochs = Annotated[int | None, typer.Option("--epochs", help="As --set epochs=...")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
Root = Annotated[
    Path | None,
    typer.Option("--root", help="Folder of the data files.", show_default="RDGRAPH_DATA, else the user's cache"),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Folder of the run.", show_default="runs/train/DATASET-REACTION-N or DATASET-MODEL-N"),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the training in that folder.")]
Decoupled = Annotated[
    bool,
    typer.Option(
        "--decoupled",
        help="Multiply the features with the graph once, then train on rows of the result; for linear equations with "
        "the original adjacency and a linear encoder.",
    ),
]
Batch = Annotated[
    int | None, typer.Option("--batch", help="Training nodes per step, with --decoupled.", show_default="all")
]
Log = Annotated[
    str | None, typer.Option("--log", help="tensorboard: event files in the folder of the run.", show_default="none")
]
References = Annotated[
    bool,
    typer.Option(
        "--references/--no-references",
        help="Compare with label propagation, the majority class and an MLP on the same splits.",
    ),
]
Figures = Annotated[bool, typer.Option("--figures/--no-figures", help="Draw the figures of the report.")]
Small = Annotated[
    bool, typer.Option("--small", help="Seconds: three splits, 20 epochs, and karate if no data set is named.")
]


@takes_own_files
def train_command(
    dataset: Dataset = None,
    model: Model = None,
    reaction: Reaction = None,
    learned: Learned = None,
    preset: PresetName = None,
    settings: Settings = None,
    splits: Splits = None,
    seeds: Seeds = 1,
    seed: FirstSeed = 0,
    method: Method = None,
    epochs: Epochs = None,
    own: OwnFiles = NONE,
    device: Device = "auto",
    root: Root = None,
    out: Out = None,
    resume: Resume = False,
    small: Small = False,
    decoupled: Decoupled = False,
    batch: Batch = None,
    log: Log = None,
    references: References = True,
    figures: Figures = True,
) -> None:
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
        plan = _planned(
            resume, out, own, learned, settings, method, epochs, root, dataset=dataset, reaction=reaction,
            preset=preset, splits=splits, seed=seed, seeds=seeds, device=device, small=small, model=model,
            decoupled=decoupled, batch=batch,
        )  # fmt: skip
    run(plan, out, resume, log, has_references=references, has_figures=figures)


def _planned(
    resume: bool, out: Path | None, own: OwnFiles, learned: list[str] | None, settings: list[str] | None,
    method: str | None, epochs: int | None, root: Path | None, **request: Any,
) -> TrainingPlan:  # fmt: skip
    """The plan of the command, or that of the folder to resume."""
    require("a training", "gread")
    from studies.training.choices import read_pairs, with_learned
    from studies.training.plan import Request, make_plan, read_plan

    if resume and out is not None and request["dataset"] is None and own.edges is None and not request["small"]:
        named = ("preset", "model", "reaction", "splits", "decoupled", "batch")
        if settings or learned or method or epochs or any(request[name] for name in named):
            raise InvalidArgument("expected --resume with the folder alone, got other settings too; leave them out")
        return read_plan(out, root, resumes=True)
    request["reaction"] = with_learned(request["reaction"], learned or ())
    request["device"] = choose_device(request["device"])
    pairs = read_pairs(given_settings(settings, method=method, epochs=epochs))
    return make_plan(Request(**request, settings=pairs, **own.request(root)))


def run(
    plan: TrainingPlan,
    out: Path | None,
    resume: bool,
    log: str | None = None,
    *,
    has_references: bool = True,
    has_figures: bool = True,
) -> None:
    """Train, show, say where the report lies."""
    from gread.models.resolution import pole_warning
    from studies.training import study
    from studies.training.reference_answers import read_references
    from studies.training.training_summary import summarise

    folder = out or study.default_folder(plan, resume=resume)
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
            plan, folder, resume=resume, progress=display.hear, reference_progress=display.hear, tell=display.note,
            log=log, stage=display.stage, has_references=has_references, has_figures=has_figures,
        )  # fmt: skip
    for sentence in summarise(plan, rows, read_references(folder)).sentences():
        say(console, sentence)
    for name in ("report.html", "predictions.csv"):
        if (folder / name).is_file():
            say(console, f"wrote {folder / name}")


def choose_device(device: str) -> str:
    """cpu, or the device named; auto is the first CUDA device where there is one."""
    from gread.training.trainer import choose_device as choose

    return choose(device)


def given_settings(settings: list[str] | None, **options: object) -> list[str]:
    """The texts NAME=VALUE of --set, with those of options that say the same.

    >>> given_settings(["hidden=8"], epochs=20, method=None)
    ['hidden=8', 'epochs=20']
    """
    found = [*(settings or []), *(f"{name}={value}" for name, value in options.items() if value is not None)]
    reaction = next((text.partition("=")[2] for text in found if text.partition("=")[0].strip() == "reaction"), None)
    if reaction is not None:
        raise InvalidArgument(f"expected the reaction as --reaction {reaction}, got it with --set")
    return found


def _headline(plan: TrainingPlan) -> str:
    data = plan.data
    return (
        f"{plan.subject} on {plan.preset.dataset}: {data.num_nodes:,} nodes, {data.num_classes} classes; preset "
        f"{plan.preset.name}; {counted(len(plan.trials), 'training')} of "
        f"{counted(plan.config.training.epochs, 'epoch')} on {plan.device}"
    )
