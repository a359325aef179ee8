"""The options for reading the user's own graph from files, shared by every command that reads data sets."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_type_hints

from studies.cli.options import DataOptions, choose_device, option

T = TypeVar("T")
EDGES = (
    "Your own graph: source,target[,weight] as csv, tsv, edgelist or parquet; edge_index[,weight] as npz or npy; or "
    "graphml or gexf, which hold the nodes too."
)
NODES = "Nodes of that graph: id,label[,split],feature,... as csv, tsv or parquet, or y[,x,train,val,test] as npz."


@dataclass(frozen=True)
class GraphFiles:
    """The files of the user's own graph and how they are read; every field is an option of the command line."""

    SECTION: ClassVar[str] = "Your own graph"

    edges: Path | None = option(None, EDGES, "--edges", "--graph")
    nodes: Path | None = option(None, NODES)
    id_column: str = option("id", "Column of the node ids.")
    label_column: str = option("label", "Column of the classes.")
    features: str | None = option(None, "Feature columns, comma-separated.", shown="all others", metavar="LIST")
    categories: str | None = option(None, "Columns to one-hot encode, comma-separated.", shown="those without numbers")
    missing: str = option("error", "Missing values: fail, or use the mean (words: none).", metavar="error|mean")
    standardise: bool = option(False, "Scale every feature to mean 0 and standard deviation 1.", "--standardise")
    weight_column: str = option("weight", "Column of the edge weights.")
    directed: bool | None = option(
        None, "Read edges as directed from source to target, or as undirected.", "--directed/--undirected",
        shown="as stated in a graphml or gexf file, else undirected",
    )  # fmt: skip
    duplicates: str = option(
        "once",
        "Repeated edges (in an undirected graph, also the reverse ones): once keeps one, and their weights must be "
        "equal; or error, sum, mean, max, first.",
        metavar="RULE",
    )

    def request(self, kind: type[T], given: DataOptions, **chosen: Any) -> T:
        """A `DataRequest` of that kind, with the fields that are options in `given`, these files, and `chosen`.

        >>> from studies.training.data_source import DataRequest
        >>> NO_FILES.request(DataRequest, DataOptions(splits="0"), dataset="cora").dataset
        'cora'
        """
        from studies.training.data_source import TableReading, read_columns

        reading = TableReading(
            self.id_column, self.label_column, read_columns(self.features), read_columns(self.categories) or (),
            self.missing, self.standardise, self.weight_column, self.directed, self.duplicates,
        )  # fmt: skip
        values = {"edges": self.edges, "nodes": self.nodes, "reading": reading, **chosen}
        for name in {field.name for field in fields(kind)} - values.keys():  # type: ignore[arg-type]
            if name == "settings":
                values[name] = given.pairs()
            elif name == "device":
                values[name] = choose_device(given.device)
            elif hasattr(given, name):
                values[name] = getattr(given, name)
        return kind(**values)


NO_FILES = GraphFiles()


def takes_records(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters are records of options, as typer needs it: with a parameter for every field.

    >>> def count(files: GraphFiles, size: int = 1) -> None: ...
    >>> list(inspect.signature(takes_records(count)).parameters)[::10]
    ['edges', 'duplicates']
    """
    records: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    hints = get_type_hints(command, include_extras=True)
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if is_dataclass(kind):
            records[parameter.name] = kind  # type: ignore[assignment]
            parameters += _field_parameters(kind)  # type: ignore[arg-type]
        else:
            parameters.append(parameter.replace(annotation=kind))

    @functools.wraps(command)
    def call(**given: Any) -> None:
        values = {n: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for n, kind in records.items()}
        command(**given, **values)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _field_parameters(record: type[Any]) -> list[inspect.Parameter]:
    """A parameter for every field of a record, annotated with its option; inherited fields come last."""
    hints = get_type_hints(record, include_extras=True)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = []
    declared = inspect.get_annotations(record)
    for field in sorted(fields(record), key=lambda field: field.name not in declared):
        built = field.metadata.get("typer")
        if built is not None:  # the heading of the help text, where the record has one
            built.rich_help_panel = vars(record).get("SECTION")
        hint = hints[field.name] if built is None else Annotated[hints[field.name], built]
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        parameters.append(inspect.Parameter(field.name, kind, default=default, annotation=hint))
    return parameters
