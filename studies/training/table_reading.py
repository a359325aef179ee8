"""`TableReading`: how the two files of a graph of one's own are read, and how a config.toml and a command say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from gread.datasets.node_data import NodeData
from gread.datasets.preparation import ERROR, FeatureChoices

#: The settings of a config.toml, with their kinds.
HEAD = {
    "id_column": str, "label_column": str, "features": list, "categories": list, "missing": str, "standardise": bool,
}  # fmt: skip


@dataclass(frozen=True)
class TableReading:
    """The names of columns, and what becomes of features; see `NodeData.from_files`.

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

    def __post_init__(self) -> None:
        FeatureChoices(self.features, self.categories, self.missing)  # which refuses what cannot be

    def read(self, edges: Path, nodes: Path) -> NodeData:
        """The graph of the two files."""
        return NodeData.from_files(
            edges, nodes, id=self.id_column, label=self.label_column, features=self.features,
            categories=self.categories, missing=self.missing, standardise=self.standardise,
        )  # fmt: skip

    @property
    def is_of_files(self) -> bool:
        """Whether something was chosen that only files have."""
        return any(name != "standardise" for name in self.head())

    def head(self) -> dict[str, Any]:
        """What differs from the defaults, as toml holds it."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def from_head(cls, head: Mapping[str, Any]) -> TableReading:
        """What `head` gave, among other settings."""
        values: dict[str, Any] = {name: head[name] for name in HEAD if name in head}
        for name in ("features", "categories"):
            if name in values:
                values[name] = tuple(map(str, values[name]))
        return cls(**values)

    def words(self) -> list[str]:
        """The options of the command line that say the same."""
        found: list[str] = []
        for name, value in self.head().items():
            found.append(f"--{name.replace('_', '-')}")
            found += [] if value is True else [",".join(value) if isinstance(value, list) else str(value)]
        return found


#: Columns by their usual names, features as they are.
PLAIN = TableReading()


def read_columns(text: str | None) -> tuple[str, ...] | None:
    """Names with commas between them; None where nothing was given.

    >>> read_columns("age, height"), read_columns(None)
    (('age', 'height'), None)
    """
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())
