"""`rdgraph predict`: classes and probabilities of nodes, from a trained network."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path

from rich.console import Console

from rdgraph.status_line import StatusLine
from studies.cli.graph_options import EDGES, NODES, takes_records
from studies.cli.options import LOADING, Root, argument, option
from studies.runs.boundary import say
from studies.runs.libraries import require

console = Console()
errors = Console(stderr=True)


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
