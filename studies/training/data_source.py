"""`DataSource`: a data set by its name, or two files of one's own; how it is read, and how commands say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gread.datasets.loading import load_dataset
from gread.datasets.node_data import NodeData
from gread.models.problem import check_classes
from rdgraph.errors import InvalidArgument
from studies.training.table_reading import PLAIN, TableReading

#: Splits that are drawn for a graph that comes without any.
DRAWN_SPLITS = 10


@dataclass(frozen=True)
class DataSource:
    """Where nodes and edges come from; `root` is the folder of public data sets.

    Raises:
        InvalidArgument: Neither a name nor two files, or both, or a way to read files without any.

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
        if (self.edges is None) != (self.nodes is None):
            raise InvalidArgument(
                "expected both --edges and --nodes, got one of them; see docs/data.md for the two files"
            )
        if self.is_own and self.dataset is not None:
            raise InvalidArgument("expected --dataset or two files, got both; leave one of them out")
        if not self.is_own and self.reading.is_of_files:
            raise InvalidArgument(
                f"expected {self.reading.words()[0]} with --edges and --nodes, got it without; leave it out"
            )
        if not self.is_own and self.dataset is None:
            raise InvalidArgument(
                "expected a data set, got none; --dataset digits needs no download, `rdgraph data list` names the "
                "others, and --edges with --nodes reads your own"
            )

    @property
    def is_own(self) -> bool:
        """Whether it is a graph of one's own."""
        return self.edges is not None

    def read(self) -> NodeData:
        """The data set, from files that are here."""
        if self.edges is not None and self.nodes is not None:
            data = self.reading.read(self.edges, self.nodes)
            check_classes(data)
            return data if data.num_splits else data.stratified(DRAWN_SPLITS)
        data = load_dataset(str(self.dataset), root=self.root, offline=True)
        return data.standardised() if self.reading.standardise else data

    def head(self) -> dict[str, Any]:
        """What a config.toml has of it beside the name; `from_head` is the inverse."""
        files = {"edges": str(self.edges), "nodes": str(self.nodes)} if self.is_own else {}
        return files | self.reading.head()

    @classmethod
    def from_head(cls, head: Mapping[str, Any], root: Path | None = None) -> DataSource:
        """What the settings of a run say of its data."""
        reading = TableReading.from_head(head)
        if "edges" in head:
            return cls(edges=Path(head["edges"]), nodes=Path(head["nodes"]), reading=reading)
        return cls(head["dataset"], reading=reading, root=root)

    def words(self) -> list[str]:
        """The options of the command line that say the same."""
        files = ["--edges", str(self.edges), "--nodes", str(self.nodes)]
        return [*(files if self.is_own else ["--dataset", str(self.dataset)]), *self.reading.words()]


@dataclass(frozen=True, eq=False)
class DataRequest:
    """The part of a request that says where the data come from; None stands for a choice left open."""

    dataset: str | None = None
    edges: Path | None = field(default=None, kw_only=True)
    nodes: Path | None = field(default=None, kw_only=True)
    reading: TableReading = field(default=PLAIN, kw_only=True)
    root: Path | None = field(default=None, kw_only=True)

    @property
    def source(self) -> DataSource:
        """Where the data come from."""
        return DataSource(self.dataset, self.edges, self.nodes, self.reading, self.root)
