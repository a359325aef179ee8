"""The options of your own graph: written once, taken by every command that reads data sets."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from studies.cli.options import DataOptions, choose_device

T = TypeVar("T")
Edges = Annotated[
    Path | None,
    typer.Option(
        "--edges",
        "--graph",
        help="Your own graph: source,target[,weight] as csv, tsv, edgelist or parquet, edge_index[,weight] as npz, or "
        "npy; or with its nodes as graphml or gexf.",
    ),
]
Nodes = Annotated[
    Path | None,
    typer.Option(
        "--nodes",
        help="Its nodes: id,label[,split],feature,... as csv, tsv or parquet, or y[,x,train,val,test] as npz.",
    ),
]
IdColumn = Annotated[str, typer.Option("--id-column", help="The column of the ids of nodes.")]
LabelColumn = Annotated[str, typer.Option("--label-column", help="The column of the classes.")]
FeatureNames = Annotated[
    str | None, typer.Option("--features", help="The feature columns, commas between.", show_default="all others")
]
Categories = Annotated[
    str | None,
    typer.Option("--categories", help="Columns that become a feature per word.", show_default="those without numbers"),
]
Missing = Annotated[
    str, typer.Option("--missing", help="A missing value is an error, or the mean of its column (for words, none).")
]
Standardise = Annotated[
    bool, typer.Option("--standardise", help="Features of mean 0 and deviation 1, over all nodes of the file.")
]
WeightColumn = Annotated[str, typer.Option("--weight-column", help="The column of the weights of edges.")]
Directed = Annotated[
    bool | None,
    typer.Option(
        "--directed/--undirected",
        help="Edges go from source to target alone, or both ways.",
        show_default="as a graphml or gexf file says, else both ways",
    ),
]
Duplicates = Annotated[
    str,
    typer.Option(
        "--duplicates",
        help="An edge that is repeated, also from target to source where edges go both ways, must have one weight "
        "(once), is an error, or takes the sum, mean, max or first of its weights.",
    ),
]


@dataclass(frozen=True)
class OwnFiles:
    """What was said of files; all fields are options of the command line."""

    edges: Edges = None
    nodes: Nodes = None
    id_column: IdColumn = "id"
    label_column: LabelColumn = "label"
    features: FeatureNames = None
    categories: Categories = None
    missing: Missing = "error"
    standardise: Standardise = False
    weight_column: WeightColumn = "weight"
    directed: Directed = None
    duplicates: Duplicates = "once"

    def request(self, kind: type[T], given: DataOptions, **chosen: Any) -> T:
        """A `DataRequest` of some kind: its fields that are options `given`, these files, and what is `chosen`.

        >>> from studies.training.data_source import DataRequest
        >>> NONE.request(DataRequest, DataOptions(splits="0"), dataset="cora").dataset
        'cora'
        """
        from studies.training.data_source import TableReading, read_columns

        reading = TableReading(
            self.id_column, self.label_column, read_columns(self.features), read_columns(self.categories) or (),
            self.missing, self.standardise, self.weight_column, self.directed, self.duplicates,
        )  # fmt: skip
        read = {"edges": self.edges, "nodes": self.nodes, "reading": reading, **chosen}
        for name in {field.name for field in fields(kind)} - read.keys():  # type: ignore[arg-type]
            if name == "settings":
                read[name] = given.pairs()
            elif name == "device":
                read[name] = choose_device(given.device)
            elif hasattr(given, name):
                read[name] = getattr(given, name)
        return kind(**read)


NONE = OwnFiles()


def takes_records(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters are records of options, as typer is to see it: with an option for each field.

    >>> def count(own: OwnFiles, size: int = 1) -> None: ...
    >>> list(inspect.signature(takes_records(count)).parameters)[::10]
    ['edges', 'duplicates']
    """
    records: dict[str, type[Any]] = {}
    seen: list[inspect.Parameter] = []
    known = get_type_hints(command, include_extras=True)
    for parameter in inspect.signature(command).parameters.values():
        kind = known[parameter.name]
        if not is_dataclass(kind):
            seen.append(parameter.replace(annotation=kind))
            continue
        records[parameter.name] = kind  # type: ignore[assignment]
        hints = get_type_hints(kind, include_extras=True)
        seen += [
            inspect.Parameter(
                field.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=field.default, annotation=hints[field.name]
            )
            for field in fields(kind)
        ]

    @functools.wraps(command)
    def call(**given: Any) -> None:
        made = {n: kind(**{field.name: given.pop(field.name) for field in fields(kind)}) for n, kind in records.items()}
        command(**given, **made)

    call.__signature__ = inspect.Signature(seen)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in seen}
    return call
