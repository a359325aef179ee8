"""What a trained network says of every node: predictions.csv, of the graph it was trained on and of others."""

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
CAPTION = "what the network says of every node: id, class, probabilities, and the part of the split it was in"
#: The folder of the network in the folder of a training.
NETWORK = "network"
#: What nodes of a part are called, in the order in which they are told; "" is outside of all.
NODES = {"test": "test nodes", "val": "validation nodes", "train": "training nodes", "": "nodes of no part"}


@dataclass(frozen=True, eq=False)
class Predictions:
    """Classes of all nodes by their ids: `probabilities` (n, classes), `parts` the words of the split, "" outside."""

    ids: tuple[str, ...]
    class_names: tuple[str, ...]
    probabilities: np.ndarray
    parts: tuple[str, ...]
    labels: tuple[str, ...]

    @classmethod
    def of(cls, network: Network, data: NodeData, split: int | None = None) -> Predictions:
        """What a network says of the nodes of a data set; `split` is the one it was trained on."""
        names = network.class_names or tuple(str(k) for k in range(network.classes))
        probabilities = network.probabilities(data.x, data.graph).double().cpu().numpy()
        parts = np.full(data.num_nodes, "", dtype=object)
        if split is not None:
            for part in PARTS:
                parts[getattr(data.masks, part)[split]] = part
        known = data.meta.classes or tuple(str(k) for k in range(data.num_classes))
        labels = tuple(known[y] if y >= 0 else "" for y in data.y.tolist())
        return cls(node_ids(data), names, probabilities, tuple(parts.tolist()), labels)

    @property
    def classes(self) -> list[str]:
        """The class of every node."""
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
        """Write a file; False where it has the same rows already. Another content is refused unless `overwrite`."""
        text = format_rows(self.rows())
        if path.is_file():
            if read_text(path, "predictions") == text:
                return False
            if not overwrite:
                raise FileError(f"{path} exists with other contents; add --overwrite, or name another with --out")
        write_text(path, text)
        return True

    def sentences(self) -> list[str]:
        """How many nodes of which class, and how many labels were met, where there are some; test nodes come first.

        Labels of training nodes were shown to the network, so that parts are not mixed where they are known.
        """
        counts = Counter(self.classes)
        shown = ", ".join(f"{counts[name]:,} {name}" for name in self.class_names if counts[name])
        told = [f"{len(self.ids):,} nodes: {shown}."]
        if not any(self.labels):
            return told
        told.append(self._met_by_part() if any(self.parts) else self._met())
        strange = sum(bool(label) and label not in self.class_names for label in self.labels)
        if strange:
            told.append(f"{counted(strange, 'label')} of classes that the network does not know: counted as missed.")
        return told

    def _met(self) -> str:
        hits, known = self._hits(set(self.parts))
        return f"{hits:,} of {known:,} known labels were met ({100 * hits / known:.2f} %)."

    def _met_by_part(self) -> str:
        found = {words: self._hits({part}) for part, words in NODES.items()}
        (first, (hits, known)), *others = [(words, pair) for words, pair in found.items() if pair[1]]
        text = f"{hits:,} of {known:,} labels of {first} were met ({100 * hits / known:.2f} %)"
        rest = ", ".join(
            f"of {words} {hits:,} of {known:,} ({100 * hits / known:.2f} %)" for words, (hits, known) in others
        )
        return f"{text}; {rest}." if rest else f"{text}."

    def _hits(self, parts: set[str]) -> tuple[int, int]:
        """How many labels of nodes of these parts were met, and how many there are."""
        own = zip(self.classes, self.labels, self.parts, strict=True)
        met = [name == label for name, label, part in own if label and part in parts]
        return sum(met), len(met)


def predictions_file(run: Path, nodes: Path | None) -> Path:
    """Where predictions of a run go by default: those of other nodes under the name of their file.

    >>> predictions_file(Path("run"), Path("new.csv")).name, predictions_file(Path("run"), None).name
    ('predictions-new.csv', 'predictions.csv')
    """
    return run / (FILE if nodes is None else f"{Path(FILE).stem}-{nodes.name.partition('.')[0]}.csv")


def node_ids(data: NodeData) -> tuple[str, ...]:
    """The ids that the nodes have in their file or graph; their numbers where they have none."""
    names = data.graph.names
    return tuple(map(str, range(data.num_nodes))) if names is None else tuple(map(str, names))


def load_network(run: Path) -> Network:
    """The network in the folder of a training, or in one that `Network.save` wrote."""
    if not run.is_dir():
        raise FileError(f"expected the folder of a training, got {run}, which is none; check its name")
    folder = run if (run / MANIFEST).is_file() else run / NETWORK
    if not (folder / MANIFEST).is_file():
        raise FileError(
            f"expected a trained network in {run}, got a folder without; train into it, or name another: a training "
            "that was cut off or diverged has none"
        )
    return Network.load(folder)


def predict_again(run: Path, root: Path | None = None) -> Predictions:
    """What the network of a training says of the graph that it was trained on."""
    network = load_network(run)
    if not (run / "config.toml").is_file():
        raise InvalidArgument(
            f"expected the folder of a training, whose config.toml names its graph, got {run}; give --edges and --nodes"
        )
    plan = read_plan(run, root)
    return Predictions.of(network, plan.data, plan.splits[0])


def predict_files(run: Path, edges: Path, nodes: Path | None) -> tuple[Predictions, NodeData]:
    """What the network of a training says of the nodes of other files, whose features are prepared as its own were."""
    network = load_network(run)
    config = run / "config.toml"
    reading = TableReading.from_head(read_toml(config, "settings")) if config.is_file() else TableReading()
    data = reading.read_prepared(edges, nodes, network.preparation)
    own = network.preparation
    if own is not None and not own.columns and data.num_nodes != network.features:
        raise InvalidArgument(
            f"expected the {network.features} nodes that the network was trained on, since it had no features but the "
            f"nodes themselves, got {data.num_nodes}; train with features"
        )
    return Predictions.of(network, data), data
