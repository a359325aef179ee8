"""`rdgraph predict`: what a trained network says of the nodes of its own graph, or of another one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rdgraph.status_line import StatusLine
from studies.cli.options import LOADING, Root
from studies.cli.own_files import Edges, Nodes
from studies.runs.boundary import say
from studies.runs.libraries import require

console = Console()
errors = Console(stderr=True)

Run = Annotated[Path, typer.Argument(help="The folder of a training.", metavar="RUN")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", help="The file that is written.", show_default="RUN/predictions.csv, RUN/predictions-NODES.csv"
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")]


def predict_command(
    run: Run, edges: Edges = None, nodes: Nodes = None, out: Out = None, root: Root = None, overwrite: Overwrite = False
) -> None:
    """Class and probabilities of every node, by its id, from a network that `rdgraph train` left.

    Without files, of the graph that it was trained on; with --edges and --nodes of another one, whose features are
    prepared as those of the training were. A column of labels is not needed; where there is one, the hits are counted.
    A file with other contents is not overwritten unless --overwrite is given.
    """
    require("a prediction", "gread")
    with StatusLine(LOADING, console=errors):
        from studies.training.data_source import check_pair
        from studies.training.predictions import predict_again, predict_files, predictions_file

        check_pair(edges, nodes)
        target = out or predictions_file(run, nodes or edges)
        if edges is None:
            found, cautions = predict_again(run, root), tuple[str, ...]()
        else:
            found, data = predict_files(run, edges, nodes)
            cautions = data.meta.cautions
    is_new = found.write_once(target, overwrite=overwrite)
    for sentence in (*cautions, *found.sentences()):
        say(console, sentence)
    say(console, f"wrote {target}" if is_new else f"{target} has these predictions already")
