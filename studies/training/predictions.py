"""Predictions of a trained network: predictions.csv, for the graph of the training and for others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gread.datasets.node_data import NodeData
from gread.datasets.splits import PARTS
from gread.models.trained_network import MANIFEST, Network
from rdgraph.errors import FileError, InvalidArgument
from rdgraph.files import read_text, write_text
from rdgraph.wording import counted
from studies.runs.tables import MutableRow, format_rows, write_rows
from studies.training.choices import read_toml
from studies.training.data_source import TableReading
from studies.training.plan import read_plan

FILE = "predictions.csv"
CAPTION = "the prediction for every node: id, class, probabilities, and its part of the split"
#: The folder of the network in the folder of a training.
NETWORK = "network"
#: Names of the nodes of each part, in the order of reporting; "" is outside of all parts.
NODES = {"test": "test nodes", "val": "validation nodes", "train": "training nodes", "": "nodes of no part"}


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted classes of all nodes: `probabilities` (n, classes), and `parts` of the split, "" outside of all.

    `ids` are those of the nodes in their file or graph, their numbers if they have none.
    """

    ids: tuple[str, ...]
    class_names: tuple[str, ...]
    probabilities: np.ndarray
    parts: tuple[str, ...]
    labels: tuple[str, ...]

    @classmethod
    def of(cls, network: Network, data: NodeData, split: int | None = None) -> Predictions:
        """Predictions of a network for a data set; `split` is the one it was trained on."""
        names = network.class_names or tuple(str(k) for k in range(network.classes))
        probabilities = network.probabilities(data.x, data.graph).double().cpu().numpy()
        parts = np.full(data.num_nodes, "", dtype=object)
        if split is not None:
            for part in PARTS:
                parts[getattr(data.masks, part)[split]] = part
        known = data.meta.classes or tuple(str(k) for k in range(data.num_classes))
        labels = tuple(known[y] if y >= 0 else "" for y in data.y.tolist())
        ids = tuple(map(str, data.graph.names or range(data.num_nodes)))
        return cls(ids, names, probabilities, tuple(parts.tolist()), labels)

    @property
    def classes(self) -> list[str]:
        """The predicted class of every node."""
        return [self.class_names[k] for k in self.probabilities.argmax(1).tolist()]

    def rows(self) -> list[MutableRow]:
        """A row per node."""
        columns = [f"probability_{name}" for name in self.class_names]
        return [
            {"id": node, "class": name, **dict(zip(columns, chances, strict=True)), "split": part}
            for node, name, chances, part in zip(
                self.ids, self.classes, self.probabilities.tolist(), self.parts, strict=True
            )
        ]

    def write(self, path: Path) -> None:
        write_rows(path, self.rows())

    def write_once(self, path: Path, *, overwrite: bool = False) -> bool:
        """Write a file; returns False if it already has these rows, and raises for other contents unless "
        "`overwrite`."""
        text = format_rows(self.rows())
        if path.is_file():
            if read_text(path, "predictions") == text:
                return False
            if not overwrite:
                raise FileError(f"{path} exists with other contents; add --overwrite, or name another file with --out")
        write_text(path, text)
        return True

    def sentences(self) -> list[str]:
        """Number of nodes by predicted class, and the accuracy on labelled nodes by part, test nodes first.

        Parts are not mixed, because the network has seen the labels of training nodes.
        """
        counts = Counter(self.classes)
        shown = ", ".join(f"{counts[name]:,} {name}" for name in self.class_names if counts[name])
        texts = [f"{len(self.ids):,} nodes: {shown}."]
        if not any(self.labels):
            return texts
        texts.append(self._met_by_part() if any(self.parts) else self._met())
        strange = sum(bool(label) and label not in self.class_names for label in self.labels)
        if strange:
            texts.append(f"{counted(strange, 'label')} of classes unknown to the network count as wrong.")
        return texts

    def _met(self) -> str:
        hits, known = self._hits(set(self.parts))
        return f"Correct on {hits:,} of {known:,} labelled nodes ({100 * hits / known:.2f} %)."

    def _met_by_part(self) -> str:
        hits = {words: self._hits({part}) for part, words in NODES.items()}
        parts = [f"{n:,} of {known:,} {words} ({100 * n / known:.2f} %)" for words, (n, known) in hits.items() if known]
        return f"Correct on {', '.join(parts)}."

    def _hits(self, parts: set[str]) -> tuple[int, int]:
        """Number of correct predictions for labelled nodes of these parts, and of such nodes."""
        nodes = zip(self.classes, self.labels, self.parts, strict=True)
        hits = [name == label for name, label, part in nodes if label and part in parts]
        return sum(hits), len(hits)


def predictions_file(run: Path, nodes: Path | None) -> Path:
    """Default path of the predictions of a run; those of other nodes are named after their file.

    >>> predictions_file(Path("run"), Path("new.csv")).name, predictions_file(Path("run"), None).name
    ('predictions-new.csv', 'predictions.csv')
    """
    return run / (FILE if nodes is None else f"{Path(FILE).stem}-{nodes.name.partition('.')[0]}.csv")


def load_network(run: Path) -> Network:
    """The network in the folder of a training, or in one written by `Network.save`."""
    if not run.is_dir():
        raise FileError(f"there is no folder {run}; name the folder of a training")
    folder = run if (run / MANIFEST).is_file() else run / NETWORK
    if not (folder / MANIFEST).is_file():
        raise FileError(
            f"{run} holds no trained network; interrupted and diverged trainings have none. Train again, or name "
            "another folder"
        )
    return Network.load(folder)


def predict_again(run: Path, root: Path | None = None) -> Predictions:
    """Predictions of the network of a training for its own graph."""
    network = load_network(run)
    if not (run / "config.toml").is_file():
        raise InvalidArgument(f"{run} has no config.toml that names its graph; give --edges and --nodes")
    plan = read_plan(run, root)
    return Predictions.of(network, plan.data, plan.splits[0])


def predict_files(run: Path, edges: Path, nodes: Path | None) -> tuple[Predictions, NodeData]:
    """Predictions of the network of a training for other files, with features prepared as in the training."""
    network = load_network(run)
    config = run / "config.toml"
    reading = TableReading.from_head(read_toml(config, "settings")) if config.is_file() else TableReading()
    data = reading.read_prepared(edges, nodes, network.preparation)
    preparation = network.preparation
    if preparation is not None and not preparation.columns and data.num_nodes != network.features:
        raise InvalidArgument(
            f"the network was trained without features, on {network.features} nodes, so it cannot predict "
            f"{data.num_nodes} other nodes; train with features"
        )
    return Predictions.of(network, data), data
