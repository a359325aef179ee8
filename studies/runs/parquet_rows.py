"""Rows of a table as a parquet file beside the csv, where pyarrow is installed."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from rdgraph.files import replacing
from studies.runs.libraries import is_installed
from studies.runs.tables import Row


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
