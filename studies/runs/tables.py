"""Tables of rows as csv files that read back unchanged."""

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
#: One value of a table, one row, and a row under construction.
Value = float | int | str
Row = Mapping[str, Value]
MutableRow = dict[str, Value]
#: A missing number in pages and on the command line; csv files say nan, json null.
NO_NUMBER = "-"


def number_text(value: float | None, form: str = ".2f", missing: str = NO_NUMBER) -> str:
    """Text of a number in a table, or a dash if it is missing.

    >>> number_text(0.5), number_text(-1.0, "+z.1f"), number_text(math.nan), number_text(None)
    ('0.50', '-1.0', '-', '-')
    """
    return missing if value is None or math.isnan(value) else format(value, form)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table; the first column is text, the others are numbers.

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
    """The csv text of rows with the same columns; empty without rows.

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
                f"row {position} has the columns {', '.join(row)}, and the first row {', '.join(columns)}"
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
    raise InvalidArgument(f"a table holds float, int and str, got {value!r}; use item() or str()")


def read_rows(path: Path) -> list[dict[str, Value]]:
    """Rows of a file of `write_rows`: quoted cells as str, others as int or float."""
    text = read_text(path, "a table written by a study")
    try:
        return parse_rows(text)
    except (ValueError, csv.Error):
        raise FileError(f"{path} was changed by hand; delete it") from None


def parse_rows(text: str) -> list[dict[str, Value]]:
    """Rows of a csv text; the inverse of `format_rows`.

    >>> parse_rows(format_rows([{"name": 'the "BS"', "lam": 0.1, "count": 2}]))
    [{'name': 'the "BS"', 'lam': 0.1, 'count': 2}]
    """
    if not text:
        return []
    # Read twice: QUOTE_NONNUMERIC marks quoted cells but makes every number a float; the text shows which are integers.
    typed = csv.reader(io.StringIO(text, newline=""), quoting=csv.QUOTE_NONNUMERIC, strict=True)
    written = csv.reader(io.StringIO(text, newline=""), strict=True)
    lines = [[_value(*pair) for pair in zip(*both, strict=True)] for both in zip(typed, written, strict=True)]
    return [dict(zip(map(str, lines[0]), line, strict=True)) for line in lines[1:]]


def _value(cell: str | float, written: str) -> Value:
    """The str of a quoted cell; the int or float of another."""
    if isinstance(cell, str):
        return cell
    return int(written) if re.fullmatch(r"[+-]?\d+", written) else cell


def summary(name: str, rows: Sequence[Row]) -> list[dict[str, Value]]:
    """A row for every numeric column: count, number of non-finite values, and least, mean and largest of the rest.

    >>> summary("decay", [{"t": 0, "energy": 1.0}, {"t": 1, "energy": float("inf")}])[1]
    {'part': 'decay', 'measure': 'energy', 'count': 2, 'not_finite': 1, 'least': 1.0, 'mean': 1.0, 'largest': 1.0}
    """
    summaries: list[dict[str, Value]] = []
    for column in rows[0] if rows else ():
        values = [float(v) for v in (row[column] for row in rows) if not isinstance(v, str)]
        finite = [v for v in values if math.isfinite(v)]
        if not values:
            continue
        summaries.append(
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
    return summaries


# ---------------------------------------------------------------------- parquet rows
# The rows of a csv file as a parquet file, if pyarrow is installed.


def write_parquet(path: Path, rows: Sequence[Row]) -> bool:
    """Write rows with the same columns; returns False, and writes nothing, without rows or without pyarrow."""
    if not rows or not is_installed("pyarrow"):
        return False
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table({name: one_kind([row[name] for row in rows]) for name in rows[0]})
    with replacing(path) as draft:
        parquet.write_table(table, draft, compression="zstd")
    return True


def one_kind(values: Sequence[Any]) -> list[Any]:
    """Values of a column converted to one type: str if any value is a str, else float if any is a float.

    >>> one_kind([1, "a"]), one_kind([1, 2.5]), one_kind([1, 2])
    (['1', 'a'], [1.0, 2.5], [1, 2])
    """
    if any(isinstance(value, str) for value in values):
        return [str(value) for value in values]
    kind = int if all(isinstance(value, Integral) for value in values) else float
    return [kind(value) for value in values]
