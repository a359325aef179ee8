"""`rdgraph predict`: what a trained network says of the nodes of its own graph, or of another one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rdgraph.errors import InvalidArgument
from studies.cli.own_files import Edges, Nodes
from studies.cli.train_commands import Root
from studies.runs.boundary import say
from studies.runs.libraries import require

console = Console()

Run = Annotated[Path, typer.Argument(help="The folder of a training.", metavar="RUN")]
Out = Annotated[Path, typer.Option("--out", help="The file that is written.")]


def predict_command(
    run: Run, edges: Edges = None, nodes: Nodes = None, out: Out = Path("predictions.csv"), root: Root = None
) -> None:
    """Class and probabilities of every node, by its id, from a network that `rdgraph train` left.

    Without files, of the graph that it was trained on; with --edges and --nodes of another one, whose features are
    prepared as those of the training were. A column of labels is not needed; where there is one, the hits are counted.
    """
    require("a prediction", "gread")
    from studies.training.predictions import predict_again, predict_files

    if (edges is None) != (nodes is None):
        raise InvalidArgument("expected both --edges and --nodes, or none of them, got one; add the other")
    found = predict_again(run, root) if edges is None or nodes is None else predict_files(run, edges, nodes)
    found.write(out)
    for sentence in found.sentences():
        say(console, sentence)
    say(console, f"wrote {out}")
