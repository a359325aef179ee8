"""Graphs in files, by the ending of the name: GraphML, GEXF, and edge lists as csv, tsv or with white space."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import ParseError
from xml.parsers import expat

from rdgraph.errors import FileError, closest
from rdgraph.files import Place, reason_of

GEXF = ".gexf"
#: Files of a graph with the attributes of its nodes.
GRAPHS = (".graphml", GEXF)
#: Endings of text files with the separator of cells; None is white space.
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": None, ".edges": None, ".edgelist": None}
SEPARATOR_WORDS = {",": "commas", "\t": "tabs", None: "white space"}
GZIP = ".gz"
#: Beginnings of comment lines; in csv and tsv files a comment is a single cell.
REMARKS = ("#", "%")


@dataclass(frozen=True, eq=False)
class EdgeRows:
    """The ends of edges by name, weights or None, their line numbers, and unused columns.

    `nodes` are the nodes of a file that lists them.
    """

    ends: Sequence[tuple[str, str]]
    weights: Sequence[float] | None
    lines: Sequence[int]
    unused: tuple[str, ...] = ()
    is_directed: bool = False
    nodes: tuple[str, ...] = ()


def ending(path: str | Path) -> str:
    """The ending of a file name in lower case, without .gz.

    >>> ending("g.GraphML.gz"), ending("edges.csv")
    ('.graphml', '.csv')
    """
    path = Path(path)
    return Path(path.stem if path.suffix.lower() == GZIP else path.name).suffix.lower()


def is_graph_file(path: str | Path) -> bool:
    """Whether the name of a file is that of a GraphML or GEXF file."""
    return ending(path) in GRAPHS


def read_edge_rows(path: Path, weight: str | None) -> EdgeRows:
    """The edges of a file; `weight` names their column or attribute, which only "weight" may lack."""
    return _graph_edges(path, weight) if is_graph_file(path) else _listed_edges(path, weight)


def node_order(rows: EdgeRows) -> list[str]:
    """The names of the nodes: whole numbers in numeric order, others in order of appearance.

    >>> node_order(EdgeRows([("10", "9"), ("9", "0")], None, [1, 2]))
    ['0', '9', '10']
    """
    names = list(dict.fromkeys([*rows.nodes, *(name for pair in rows.ends for name in pair)]))
    return sorted(names, key=int) if all(map(_is_whole, names)) else names


# ---------------------------------------------------------------------- GraphML, GEXF
def read_networkx(path: Path) -> Any:
    """The networkx graph of a GraphML or GEXF file, with node ids as text; refuses entities.

    The label of a GEXF node is its title, and is dropped if all titles differ.
    """
    import networkx as nx

    with _opened(path) as file:
        _refuse_doctype(path, file)
    with _opened(path) as file:
        try:
            graph = nx.read_gexf(file) if ending(path) == GEXF else nx.read_graphml(file)
        except (ParseError, nx.NetworkXException, KeyError, ValueError, AttributeError, StopIteration) as problem:
            kind = ending(path).removeprefix(".")
            raise FileError(f"{path} is not a {kind} file that networkx can read ({problem}); save it again") from None
    titles = [values.get("label") for _, values in graph.nodes(data=True)]
    if ending(path) == GEXF and len(set(titles)) == len(titles):
        for _, values in graph.nodes(data=True):
            values.pop("label", None)
    return graph


def _refuse_doctype(path: Path, file: IO[bytes]) -> None:
    """Raise FileError for a document type, which may declare entities that grow without bound or read other files."""

    def refuse(*_: Any) -> None:
        raise FileError(f"{path} declares a document type (DOCTYPE), which may hold entities; remove the declaration")

    def begin(*_: Any) -> None:
        raise _BodyReached

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler, parser.StartElementHandler = refuse, begin
    try:
        parser.ParseFile(file)
    except _BodyReached:
        return
    except expat.ExpatError as problem:
        raise FileError(f"{path} is not XML ({problem}); save it again, or end its name in .csv or .edgelist") from None


class _BodyReached(Exception):
    """Raised at the first element of a document, after all declarations."""


def _graph_edges(path: Path, weight: str | None) -> EdgeRows:
    graph = read_networkx(path)
    edges = list(graph.edges(data=True))
    if weight not in (None, "weight") and not any(weight in values for *_, values in edges):
        known = list(dict.fromkeys(name for *_, values in edges for name in values))
        raise FileError(f"{path} has no edge attribute {weight!r}; it has {', '.join(known) or 'none'}")
    weights = None
    if weight is not None and any(weight in values for *_, values in edges):
        weights = [
            _weight(Place(f"{path}, edge {a} - {b}", weight, "attribute"), str(values.get(weight, 1.0)))
            for a, b, values in edges
        ]
    ends = [(str(a), str(b)) for a, b, _ in edges]
    return EdgeRows(ends, weights, range(len(ends)), (), graph.is_directed(), tuple(map(str, graph)))


# ---------------------------------------------------------------------- lines
def text_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and stripped cells of every row that is not blank; all rows have as many cells as the first."""
    if ending(path) not in SEPARATORS:
        raise FileError(f"cannot tell what {path} holds from its name; {formats()}")
    separator, width, line = SEPARATORS[ending(path)], 0, 1
    try:
        with _opened(path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            for line, cells in _split(text, separator):
                if not any(cells):
                    continue
                width = width or len(cells)
                if len(cells) != width:
                    check = "check the commas" if separator == "," else "check what separates them"
                    raise Place.line(path, line).error(f"{width} cells, one per column", f"{len(cells)} cells", check)
                yield line, [cell.strip() for cell in cells]
    except _BadLine as reason:
        remedy = "save it as such" if reason.is_encoding else "close its quotes, or shorten its cells"
        raise Place.line(path, reason.line).error("a csv file in UTF-8", str(reason), remedy) from None


def _split(text: Iterable[str], separator: str | None) -> Iterator[tuple[int, list[str]]]:
    """The line number and the cells of every row; a quoted cell may span lines."""
    line = 1
    try:
        if separator is None:
            for line, row in enumerate(text, start=1):
                cells = row.split()
                if cells and not cells[0].startswith(REMARKS):
                    yield line, cells[:2] if cells[2:] == ["{}"] else cells  # as networkx writes an edge without data
            return
        reader = csv.reader(text, delimiter=separator, strict=True)
        for cells in reader:
            if len(cells) > 1 or not cells[:1] or not cells[0].startswith(REMARKS):
                yield line, cells
            line = reader.line_num + 1
    except (csv.Error, UnicodeDecodeError) as reason:
        raise _BadLine(line, str(reason), isinstance(reason, UnicodeDecodeError)) from None


class _BadLine(Exception):
    """A line that cannot be read."""

    def __init__(self, line: int, reason: str, is_encoding: bool) -> None:
        super().__init__(reason)
        self.line, self.is_encoding = line, is_encoding


def header_columns(path: Path, rows: Iterator[tuple[int, list[str]]], needed: Mapping[str, str]) -> dict[str, int]:
    """The index of each column of the header.

    `needed` maps every required column to the remedy if it is missing; NAME in it becomes the most similar column.
    """
    line, header = next(rows, (1, []))
    if not header:
        raise Place.line(path, 1).error("a header", "an empty file", f"write the columns {', '.join(needed)}, ...")
    place = Place.line(path, line)
    if not all(header):
        raise place.error("a name for every column", f"none for column {header.index('') + 1}", "name it or remove it")
    twice = [name for k, name in enumerate(header) if name in header[:k]]
    if twice:
        raise place.error("every column once", f"{twice[0]!r} twice", "rename one of them")
    for name, remedy in needed.items():
        if name not in header:
            separate = f"separate the cells by {SEPARATOR_WORDS[SEPARATORS[ending(path)]]}"
            hint = separate if len(header) == 1 else column_hint(name, header, remedy)
            raise place.error(f"a column {name!r}", f"the columns {', '.join(header)}", hint)
    return {name: k for k, name in enumerate(header)}


def column_hint(name: str, known: Sequence[str], remedy: str) -> str:
    """The remedy for a missing column, with the most similar existing name.

    >>> column_hint("label", ["id", "Label"], "name the column with label=NAME")
    "did you mean 'Label'? name the column with label=Label"
    """
    close = closest(name, known)
    return f"did you mean {close!r}? {remedy.replace('NAME', close)}" if close else remedy


def edge_columns(weight: str | None) -> dict[str, str]:
    """The required columns of a table of edges, with the remedy for a missing one; only "weight" is optional."""
    needed = dict.fromkeys(("source", "target"), "rename the column that holds it")
    return needed if weight in (None, "weight") else needed | {str(weight): "name the column with weight=NAME"}


def _listed_edges(path: Path, weight: str | None) -> EdgeRows:
    rows = text_rows(path)
    first = next(rows, (1, []))
    if _is_edge(path, first[1]):
        columns = dict(zip(("source", "target", weight or "weight"), range(len(first[1])), strict=False))
        rows = _again(first, rows)
    else:
        columns = header_columns(path, _again(first, rows), edge_columns(weight))
    ends = [columns["source"], columns["target"]]
    weighed = columns.get(weight) if weight is not None else None
    pairs: list[tuple[str, str]] = []
    weights: list[float] = []
    lines: list[int] = []
    for line, cells in rows:
        pairs.append((cells[ends[0]], cells[ends[1]]))
        lines.append(line)
        if weighed is not None:
            weights.append(_weight(Place.line(path, line, str(weight)), cells[weighed]))
    if not lines:
        raise Place.line(path, 2).error("a row for every edge", "the end of the file", "write one at least")
    used = {*ends, weighed}
    unused = tuple(name for name, k in columns.items() if k not in used)
    return EdgeRows(pairs, weights if weighed is not None else None, lines, unused)


def _is_edge(path: Path, cells: Sequence[str]) -> bool:
    """Whether the first row of a file is an edge, not names of columns."""
    if not 2 <= len(cells) <= 3:
        return False
    if SEPARATORS[ending(path)] is None:
        return list(cells[:2]) != ["source", "target"]
    return _is_whole(cells[0]) and _is_whole(cells[1])


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _again(first: tuple[int, list[str]], rows: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    """The rows with the first one, which was already read, in front."""
    if first[1]:
        yield first
    yield from rows


def _weight(place: Place, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value < float("inf"):
        raise place.error("a finite weight >= 0", repr(text) if text else "an empty cell", "write 1 for a plain edge")
    return value


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed if its name ends in .gz."""
    try:
        with gzip.open(path) if path.suffix.lower() == GZIP else path.open("rb") as file:
            yield file  # type: ignore[misc]
    except FileError:
        raise
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise FileError(f"{path} cannot be unpacked ({problem}); pack it again") from None
    except OSError as problem:
        raise FileError(f"cannot read {path}: {reason_of(problem)}; check its name") from None


def formats() -> str:
    """The supported file endings, in words."""
    return f"graphs end in {' or '.join(GRAPHS)}, edge lists in {', '.join(SEPARATORS)}, each also packed as {GZIP}"
