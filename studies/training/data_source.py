"""`DataSource`: a data set by name, or the user's own graph in files, with its reading options."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from gread.datasets.array_files import is_array_file
from gread.datasets.loading import load_dataset
from gread.datasets.node_data import NodeData
from gread.datasets.node_tables import has_label
from gread.datasets.preparation import ERROR, FeatureChoices, Preparation
from gread.models.problem import check_classes
from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.graphs.edges import DUPLICATES
from rdgraph.graphs.graph_files import GRAPHS, is_graph_file
from studies.runs.run_config import option_words

# ---------------------------------------------------------------------- table reading
# `TableReading`: options for reading files, and their forms in config.toml and on the command line.

#: The entries of config.toml with their types.
HEAD = {
    "id_column": str, "label_column": str, "features": list, "categories": list, "missing": str, "standardise": bool,
    "weight_column": str, "directed": bool, "duplicates": str,
}  # fmt: skip


@dataclass(frozen=True)
class TableReading:
    """Names of columns and treatment of features; see `NodeData.from_files`.

    >>> TableReading(label_column="kind", standardise=True).head()
    {'label_column': 'kind', 'standardise': True}
    >>> TableReading(features=("a", "b")).words()
    ['--features', 'a,b']
    """

    id_column: str = "id"
    label_column: str = "label"
    features: tuple[str, ...] | None = None
    categories: tuple[str, ...] = ()
    missing: str = ERROR
    standardise: bool = False
    weight_column: str = "weight"
    directed: bool | None = None
    duplicates: str = "once"

    def __post_init__(self) -> None:
        FeatureChoices(self.features, self.categories, self.missing)  # raises for invalid choices
        if self.duplicates not in DUPLICATES:
            raise UnknownName("treatment of duplicates", self.duplicates, DUPLICATES)

    def read(self, edges: Path, nodes: Path | None) -> NodeData:
        """The graph of the files."""
        return NodeData.from_files(
            edges, nodes, id=self.id_column, label=self.label_column, features=self.features,
            categories=self.categories, missing=self.missing, standardise=self.standardise, **self._edges(),
        )  # fmt: skip

    def read_prepared(self, edges: Path, nodes: Path | None, preparation: Preparation | None) -> NodeData:
        """The graph of other files with features prepared as in the training; labels are optional."""
        table = nodes or edges
        has_labels = is_array_file(table) or has_label(table, self.label_column)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # which `NodeData.warnings` repeats
            return NodeData.from_files(
                edges, nodes, id=self.id_column, label=self.label_column if has_labels else None,
                preparation=preparation, **self._edges(),
            )  # fmt: skip

    def _edges(self) -> dict[str, Any]:
        return {"weight": self.weight_column, "directed": self.directed, "duplicates": self.duplicates}

    @property
    def is_of_files(self) -> bool:
        """Whether an option differs that applies to files only."""
        return any(name != "standardise" for name in self.head())

    def head(self) -> dict[str, Any]:
        """The options that differ from the defaults, for TOML."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def from_head(cls, head: Mapping[str, Any]) -> TableReading:
        """The options in a `head`, which may have other entries."""
        values: dict[str, Any] = {name: head[name] for name in HEAD if name in head}
        for name in ("features", "categories"):
            if name in values:
                values[name] = tuple(map(str, values[name]))
        return cls(**values)

    def words(self) -> list[str]:
        """The equivalent options of the command line."""
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in self.head().items()}
        return option_words(values | ({"undirected": True} if self.directed is False else {}))


#: The default options.
PLAIN = TableReading()


def read_columns(text: str | None) -> tuple[str, ...] | None:
    """Names separated by commas; None for None.

    >>> read_columns("age, height"), read_columns(None)
    (('age', 'height'), None)
    """
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


# ---------------------------------------------------------------------- data source
#: Number of splits drawn for a graph without splits.
DRAWN_SPLITS = 10


@dataclass(frozen=True)
class DataSource:
    """Source of nodes and edges; `root` is the folder of public data sets.

    Raises:
        InvalidArgument: without a name and files, with both, or with reading options but no files.

    >>> DataSource("karate").read().num_nodes, DataSource("karate").words()
    (34, ['--dataset', 'karate'])
    >>> DataSource(edges=Path("e.csv"), nodes=Path("n.csv")).head()
    {'edges': 'e.csv', 'nodes': 'n.csv'}
    """

    dataset: str | None = None
    edges: Path | None = None
    nodes: Path | None = None
    reading: TableReading = PLAIN
    root: Path | None = None

    def __post_init__(self) -> None:
        check_pair(self.edges, self.nodes)
        if self.is_own and self.dataset is not None:
            raise InvalidArgument("--dataset and --edges exclude each other; give one of them")
        if not self.is_own and self.reading.is_of_files:
            raise InvalidArgument(f"{self.reading.words()[0]} is for files; add --edges and --nodes, or leave it out")
        if not self.is_own and self.dataset is None:
            raise InvalidArgument(
                "no data set is given; --dataset digits needs no download, `rdgraph data list` names the "
                "others, and --edges with --nodes, or --graph with a GraphML file, reads your own"
            )

    @property
    def is_own(self) -> bool:
        """Whether it is the user's own graph."""
        return self.edges is not None

    def read(self) -> NodeData:
        """The data set, read from local files."""
        if self.edges is not None:
            data = self.reading.read(self.edges, self.nodes)
            check_classes(data)
            return data if data.num_splits else data.stratified(DRAWN_SPLITS)
        data = load_dataset(str(self.dataset), root=self.root, offline=True)
        return data.standardised() if self.reading.standardise else data

    def head(self) -> dict[str, Any]:
        """Its entries in config.toml, except the name; `from_head` reads them."""
        files = {"edges": self.edges, "nodes": self.nodes}
        return {name: str(path) for name, path in files.items() if path is not None} | self.reading.head()

    @classmethod
    def from_head(cls, head: Mapping[str, Any], root: Path | None = None) -> DataSource:
        """The source described by the settings of a run."""
        reading = TableReading.from_head(head)
        if "edges" in head:
            nodes = Path(head["nodes"]) if "nodes" in head else None
            return cls(edges=Path(head["edges"]), nodes=nodes, reading=reading)
        return cls(head["dataset"], reading=reading, root=root)

    def words(self) -> list[str]:
        """The equivalent options of the command line."""
        files = {"dataset": self.dataset, "edges": self.edges, "nodes": self.nodes}
        return [*option_words(files), *self.reading.words()]


def check_pair(edges: Path | None, nodes: Path | None) -> None:
    """Raise InvalidArgument for edges without nodes, unless the file holds both, and for nodes without edges."""
    if edges is None and nodes is not None:
        raise InvalidArgument(f"--nodes {nodes} has no edges; add --edges FILE")
    if edges is not None and nodes is None and not is_graph_file(edges):
        endings = " and ".join(GRAPHS)
        raise InvalidArgument(f"--edges {edges} has no nodes; add --nodes FILE (only {endings} files hold both)")


@dataclass(frozen=True, eq=False)
class DataRequest:
    """The part of a request about the data; None for choices left open."""

    dataset: str | None = None
    edges: Path | None = field(default=None, kw_only=True)
    nodes: Path | None = field(default=None, kw_only=True)
    reading: TableReading = field(default=PLAIN, kw_only=True)
    root: Path | None = field(default=None, kw_only=True)

    @property
    def source(self) -> DataSource:
        """Source of the data."""
        return DataSource(self.dataset, self.edges, self.nodes, self.reading, self.root)
