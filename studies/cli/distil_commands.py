"""`rdgraph distil`: a formula for a learned function of a training, or for a layer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console

from rdgraph.errors import InvalidArgument
from studies.cli.graph_options import takes_records
from studies.cli.options import DEVICE, LOADING, Root, argument, choose_device, option, say_report
from studies.cli.train_display import Display
from studies.runs.boundary import resumable
from studies.runs.libraries import require

#: The default range of the entries of a layer.
SPAN = "-3:3"
console = Console()
errors = Console(stderr=True)


@dataclass(frozen=True)
class DistilOptions:
    """The options of `rdgraph distil`."""

    run: Path | None = argument(None, "Folder of a training with a learned function such as phi(H).", "RUN")
    layer: str | None = option(
        None, "Instead of RUN: the part of a layer that acts on each entry.", metavar="MODULE:OBJECT"
    )
    function: str | None = option(None, "Name of the learned function, if there are several.")
    span: str | None = option(None, "Range of the entries, with --layer.", "--range", metavar="LOWER:UPPER", shown=SPAN)
    tolerance: float | None = option(None, "Largest relative error of the formula.", shown="0.1, or 0.05 for a layer")
    max_size: int = option(20, "Largest size of the formula; signs, functions and constants count 2.")
    functions: str = option("tanh,sigmoid,exp,sin,cos,relu,abs", "Functions allowed in the formula, comma-separated.")
    seed: int = option(0, "Seed of the search.")
    device: str = option("auto", DEVICE)
    root: Root = None
    out: Path | None = option(None, "Folder of the run.", shown="runs/distil/NAME")


@takes_records
def distil_command(given: DistilOptions) -> None:
    """Replace a learned function by a short formula and retrain.

    Fits the formula, retrains the network with it, and analyses the resulting equation. The answer is the formula with
    its cost in accuracy and the confidence interval, or that no formula of the allowed size is close enough. The same
    command resumes an interrupted run. Exits with 1 if there is no formula.

    Example: rdgraph distil runs/train/karate-equation-1 --max-size 12
    """
    run, layer = given.run, given.layer
    require("a distillation", "gread")
    from gread.formulas.distilled_network import TOLERANCE
    from studies.distilling.study import (
        LAYER_TOLERANCE,
        FormulaChoices,
        execute_distillation,
        execute_layer,
        layer_curves,
        read_run,
    )

    if (run is None) == (layer is None):
        raise InvalidArgument("give either a run folder or --layer")
    if run is not None and given.span is not None:
        raise InvalidArgument("--range goes with --layer: the states of a training determine its range; leave it out")
    if layer is not None and given.function is not None:
        raise InvalidArgument("--function goes with a run folder: a layer is one function; leave it out")
    functions = tuple(word.strip() for word in given.functions.split(",") if word.strip())
    default = TOLERANCE if layer is None else LAYER_TOLERANCE
    tolerance = default if given.tolerance is None else given.tolerance
    choices = FormulaChoices(tolerance, given.max_size, functions, given.seed)
    name = run.resolve().name if run is not None else re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(layer or "").name)
    folder = given.out or Path("runs/distil") / name
    with resumable(errors, folder), Display(errors) as display:
        if layer is not None:
            from studies.cli.conform_commands import load_layer

            display.say("searching for a formula of the layer")
            report = execute_layer(layer, layer_curves(load_layer(layer), given.span or SPAN), choices, folder)
        elif run is not None:
            display.say(LOADING)
            plan = read_run(run, given.function, choices, choose_device(given.device), given.root)
            report = execute_distillation(plan, folder, display.update)
    answer = say_report(console, report, all_verdicts=True)
    if "no formula of size" in answer:
        raise typer.Exit(1)
