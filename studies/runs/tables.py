"""Tables of rows as csv files that come back as they were."""

from __future__ import annotations

import csv
import io
import math
import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from rdgraph.errors import FileError, InvalidArgument
from rdgraph.files import read_text, replacing, write_text
from studies.runs.libraries import is_installed

# ---------------------------------------------------------------------- tables
#: One value of a table, one row of it, and a row that is being made.
Value = float | int | str
Row = Mapping[str, Value]
MutableRow = dict[str, Value]
#: What stands for a number that there is not, in pages and on the command line; csv files say nan, json null.
NO_NUMBER = "-"


def number_text(value: float | None, form: str = ".2f", missing: str = NO_NUMBER) -> str:
    """A number as a table shows it, or a dash where there is none.

    >>> number_text(0.5), number_text(-1.0, "+z.1f"), number_text(math.nan), number_text(None)
    ('0.50', '-1.0', '-', '-')
    """
    return missing if value is None or math.isnan(value) else format(value, form)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table in Markdown; the first column is text, the others are numbers.

    >>> print("\\n".join(markdown_table(["set", "mean"], [["texas", "80.0"]])))
    | set | mean |
    |---|---:|
    | texas | 80.0 |
    """
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return [lines[0], "|---|" + "---:|" * (len(head) - 1), *lines[1:]]


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as csv: texts in quotes, numbers without, floats in the shortest form that reads back equal."""
    write_text(path, format_rows(rows))


def format_rows(rows: Sequence[Row]) -> str:
    """The csv text of rows that share their columns; no rows, no text.

    >>> print(format_rows([{"name": "BS", "lam": 0.1, "count": 2}]), end="")
    "name","lam","count"
    "BS",0.1,2
    """
    if not rows:
        return ""
    columns = tuple(rows[0])
    for position, row in enumerate(rows):
        if tuple(row) != columns:
            raise InvalidArgument(
                f"expected the columns {', '.join(columns)} in every row, got {', '.join(row)} in row {position}"
            )
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row.values()] for row in rows)
    return text.getvalue()


def _cell(value: object) -> Value:
    match value:
        case str():
            return value
        case bool():
            pass
        case numbers.Integral():
            return int(value)
        case numbers.Real():
            return float(value)
    raise InvalidArgument(f"expected a float, an int or a str in a table, got {value!r}; use item() or str()")


def read_rows(path: Path) -> list[dict[str, Value]]:
    """What `write_rows` wrote: quoted cells come back as str, others as int or float."""
    text = read_text(path, "a table written by a study")
    try:
        return parse_rows(text)
    except (ValueError, csv.Error):
        raise FileError(f"expected a table written by a study, got {path}, which was changed; delete it") from None


def parse_rows(text: str) -> list[dict[str, Value]]:
    """Rows of a csv text; the inverse of `format_rows`.

    >>> parse_rows(format_rows([{"name": 'the "BS"', "lam": 0.1, "count": 2}]))
    [{'name': 'the "BS"', 'lam': 0.1, 'count': 2}]
    """
    if not text:
        return []
    # The csv module tells a quoted cell from a number, but makes every number a float: the text tells which are whole.
    told = csv.reader(io.StringIO(text, newline=""), quoting=csv.QUOTE_NONNUMERIC, strict=True)
    written = csv.reader(io.StringIO(text, newline=""), strict=True)
    lines = [[_value(*pair) for pair in zip(*both, strict=True)] for both in zip(told, written, strict=True)]
    return [dict(zip(map(str, lines[0]), line, strict=True)) for line in lines[1:]]


def _value(cell: str | float, written: str) -> Value:
    """The text of a quoted cell, the number of another, which is an int where it is written as one."""
    if isinstance(cell, str):
        return cell
    return int(written) if re.fullmatch(r"[+-]?\d+", written) else cell


def summary(name: str, rows: Sequence[Row]) -> list[dict[str, Value]]:
    """One row a numeric column: how many numbers, how many of them not finite, least, mean and largest of the others.

    >>> summary("decay", [{"t": 0, "energy": 1.0}, {"t": 1, "energy": float("inf")}])[1]
    {'part': 'decay', 'measure': 'energy', 'count': 2, 'not_finite': 1, 'least': 1.0, 'mean': 1.0, 'largest': 1.0}
    """
    found: list[dict[str, Value]] = []
    for column in rows[0] if rows else ():
        values = [float(v) for v in (row[column] for row in rows) if not isinstance(v, str)]
        finite = [v for v in values if math.isfinite(v)]
        if not values:
            continue
        found.append(
            {
                "part": name,
                "measure": column,
                "count": len(values),
                "not_finite": len(values) - len(finite),
                "least": min(finite, default=math.nan),
                "mean": math.fsum(v / len(finite) for v in finite) if finite else math.nan,
                "largest": max(finite, default=math.nan),
            }
        )
    return found


# ---------------------------------------------------------------------- parquet rows
# Rows of a table as a parquet file beside the csv, where pyarrow is installed.


def write_parquet(path: Path, rows: Sequence[Row]) -> bool:
    """Write rows that share their columns; returns whether that was done: not without rows, nor without pyarrow."""
    if not rows or not is_installed("pyarrow"):
        return False
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table({name: one_kind([row[name] for row in rows]) for name in rows[0]})
    with replacing(path) as draft:
        parquet.write_table(table, draft, compression="zstd")
    return True


def one_kind(values: Sequence[Any]) -> list[Any]:
    """Values of a column as one kind: text where one of them is text, real numbers where one of them is.

    >>> one_kind([1, "a"]), one_kind([1, 2.5]), one_kind([1, 2])
    (['1', 'a'], [1.0, 2.5], [1, 2])
    """
    if any(isinstance(value, str) for value in values):
        return [str(value) for value in values]
    kind = int if all(isinstance(value, Integral) for value in values) else float
    return [kind(value) for value in values]
