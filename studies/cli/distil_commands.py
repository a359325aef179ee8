"""`rdgraph distil`: a formula for a learned function of a training, or for the function of a layer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rdgraph.errors import InvalidArgument
from studies.cli.options import LOADING, Device, Root, choose_device
from studies.cli.train_display import Display
from studies.runs.boundary import resumable, say
from studies.runs.libraries import require

#: The entries of a layer where nothing is said.
SPAN = "-3:3"

console = Console()
errors = Console(stderr=True)

Run = Annotated[
    Path | None, typer.Argument(metavar="RUN", help="The folder of a training with a learned function, phi(H).")
]
Layer = Annotated[
    str | None,
    typer.Option(
        "--layer", metavar="MODULE:OBJECT", help="In place of a run: a part of a layer that acts on one entry."
    ),
]
Function = Annotated[str | None, typer.Option("--function", help="The learned function, where there are several.")]
Range = Annotated[
    str | None,
    typer.Option("--range", metavar="LOWER:UPPER", help="Of the entries, for a layer.", show_default="-3:3"),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        "--tolerance",
        help="What a formula may miss, as a share of the function's size.",
        show_default="0.1, or 0.05 of a layer",
    ),
]
MaxSize = Annotated[int, typer.Option("--max-size", help="Of the formula: signs, functions and constants count 2.")]
Functions = Annotated[str, typer.Option("--functions", help="That may occur in a formula, with commas between.")]
Seed = Annotated[int, typer.Option("--seed", help="Of the search.")]
Out = Annotated[Path | None, typer.Option("--out", help="Folder of the run.", show_default="runs/distil/NAME")]


def distil_command(
    run: Run = None,
    layer: Layer = None,
    function: Function = None,
    span: Range = None,
    tolerance: Tolerance = None,
    max_size: MaxSize = 20,
    functions: Functions = "tanh,sigmoid,exp,sin,cos,relu,abs",
    seed: Seed = 0,
    device: Device = "auto",
    root: Root = None,
    out: Out = None,
) -> None:
    """Put a learned function into a short formula, train the formula in its place, and prove what can be proved.

    The page has the answer first: the formula with the accuracy that it costs and its interval, or that no formula of
    the size is near enough. The same command resumes a run that was interrupted. Exit 1 if there is no formula.
    """
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
        raise InvalidArgument("expected a run folder or --layer, got both or none; name one of them")
    if run is not None and span is not None:
        raise InvalidArgument(
            f"expected --range with --layer, got {span!r} for a training, whose states say where; leave it out"
        )
    if layer is not None and function is not None:
        raise InvalidArgument(f"expected --function with a run folder, got {function!r} for a layer; leave it out")
    words = tuple(word.strip() for word in functions.split(",") if word.strip())
    usual = TOLERANCE if layer is None else LAYER_TOLERANCE
    choices = FormulaChoices(usual if tolerance is None else tolerance, max_size, words, seed)
    name = run.resolve().name if run is not None else re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(layer or "").name)
    folder = out or Path("runs/distil") / name
    with resumable(errors, folder), Display(errors) as display:
        if layer is not None:
            from studies.cli.conform_commands import load_layer

            display.say("looking for a formula of the layer")
            report = execute_layer(layer, layer_curves(load_layer(layer), span or SPAN), choices, folder)
        elif run is not None:
            display.say(LOADING)
            plan = read_run(run, function, choices, choose_device(device), root)
            report = execute_distillation(plan, folder, display.hear)
    _tell(report)


def _tell(report: Path) -> None:
    import json

    told = json.loads((report.parent / "report.json").read_text(encoding="utf-8"))
    say(console, told["answer"])
    for verdict in told["verdicts"]:
        say(console, f"{verdict['answer']}: {verdict['statement']} {verdict['evidence']}")
    say(console, f"wrote {report}")
    if "no formula of size" in told["answer"]:
        raise typer.Exit(1)
