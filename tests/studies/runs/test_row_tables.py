"""Tables of rows: written and read back, refused where they cannot be, and files that are replaced whole."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdgraph.errors import RdgraphError
from rdgraph.files import replacing, write_text
from studies.runs.tables import format_rows, parse_rows, read_rows, summary, write_rows
from tests.studies.runs.toy_studies import files

VALUES = st.one_of(st.floats(allow_nan=False), st.integers(), st.text(st.characters(exclude_categories=["Cs"])))


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=4))
def test_rows_come_back_as_they_were(pairs: list[tuple[Any, Any]]) -> None:
    rows = [{"first, \n": a, '"second"': b} for a, b in pairs]
    back = parse_rows(format_rows(rows))
    assert back == rows
    assert [[type(v) for v in row.values()] for row in back] == [[type(v) for v in row.values()] for row in rows]


def test_rows_of_every_kind(tmp_path: Path) -> None:
    rows = [
        {
            "n": math.nan,
            "i": -math.inf,
            "big": 10**30,
            "np": np.float64(0.1),
            "k": np.int64(3),
            "text": "1.0",
            "end": "\r\n",
        }
    ]
    write_rows(tmp_path / "t.csv", rows)
    (row,) = read_rows(tmp_path / "t.csv")
    assert math.isnan(float(row.pop("n")))
    assert row == {"i": -math.inf, "big": 10**30, "np": 0.1, "k": 3, "text": "1.0", "end": "\r\n"}
    assert format_rows([]) == ""
    assert parse_rows("") == []


@pytest.mark.parametrize("value", [None, True, [1], 1j])
def test_values_that_are_no_cells_are_refused(value: Any) -> None:
    with pytest.raises(RdgraphError, match="a table holds"):
        format_rows([{"x": value}])


def test_rows_share_their_columns() -> None:
    with pytest.raises(RdgraphError, match="row 1 has the columns y"):
        format_rows([{"x": 1}, {"y": 1}])


@pytest.mark.parametrize("text", ['"x"\nword\n', '"x"\n1,2\n', '"x"\n"a"b\n'])
def test_a_damaged_table_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(RdgraphError, match="was changed"):
        read_rows(tmp_path / "t.csv")


def test_summary_leaves_out_what_is_not_finite() -> None:
    rows = summary("p", [{"s": "a", "x": 1.0}, {"s": "b", "x": math.nan}, {"s": "c", "x": 4.0}])
    assert rows == [
        {"part": "p", "measure": "x", "count": 3, "not_finite": 1, "least": 1.0, "mean": 2.5, "largest": 4.0}
    ]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as draft:  # noqa: PT012
        draft.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert files(tmp_path) == {"a.txt"}
