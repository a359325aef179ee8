"""The runner of the paper's studies: sheets, what a report holds, parts that fail, and tables, charts of rows."""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path

import numpy as np
import pytest

from rdgraph.errors import NotApplicable
from studies.cells.cell import BORROWS, REACTIONS, SETS
from studies.paper import paired_rows
from studies.paper.drawing import panels_chart, row_curves, row_map
from studies.paper.paired_rows import Printed, compared, picked, with_holm, with_printed
from studies.paper.runner import Findings, Passage, Picture, Sheet, Table, attempt, make_run
from studies.runs.chart import Line
from studies.runs.study import Study, execute
from studies.runs.study_run import StudyRun
from studies.runs.tables import MutableRow, read_rows
from tests.studies.paper.planted import planted_rows
from tests.studies.paper.test_limits import NAMES


# ---------------------------------------------------------------------- sheets
def test_a_sheet_fills_in_lists_and_small_settings() -> None:
    sheet = Sheet("forensics", lists={"completions": lambda: ["tanh", "ReLU"]})
    full, small = sheet.settings(False), sheet.settings(True)
    assert (full["sets"], full["reactions"], full["completions"]) == (list(SETS), list(REACTIONS), ["tanh", "ReLU"])
    assert list(small) == list(full)
    assert (small["sets"], small["seeds"]) == (["karate"], full["seeds"])
    limits = sheet.limits(False)
    assert list(limits) == list(full)
    assert list(limits["sets"].known) == [*SETS, *BORROWS]
    assert not limits["sets"].some
    assert list(limits["completions"].known) == ["tanh", "ReLU"]
    assert limits["splits"].least == 1


@pytest.mark.parametrize("name", NAMES)
def test_every_sheet_is_used(name: str) -> None:
    """A misspelt entry would be ignored in silence."""
    module = importlib.import_module(f"studies.paper.{name}")
    entries = Sheet(name).entries
    assert set(entries["small"]) <= set(entries["settings"])
    assert set(entries.get("limits", {})) <= set(entries["settings"])
    assert {one for one in entries.get("limits", {}).values() if isinstance(one, str)} <= set(Sheet("limits").entries)
    folder = Path(str(module.__file__)).parent
    source = "".join(
        (folder / f"{one}.py").read_text(encoding="utf-8")
        for one in dict.fromkeys((name, "forensics", "degrees", "families"))
    )
    for text in (*entries["texts"], *entries.get("verdicts", {})):
        assert f'"{text}"' in source or text in ("T", "step")  # the names of the two curves of one study
    for table in set(entries) - {"study", "settings", "small", "limits", "texts"}:
        assert f'"{table}"' in source


# ---------------------------------------------------------------------- runs
def measure_two(run: StudyRun) -> tuple[list[MutableRow], list[str]]:
    """A part that can be computed, and one that cannot."""

    def refused() -> list[MutableRow]:
        raise NotApplicable("no such thing\nwith details")

    return attempt(run, "parts", [("a", "one", lambda: [{"x": 1.0}]), ("b", "two", refused)])


def found_two(measured: tuple[list[MutableRow], list[str]], s: object) -> Findings:
    rows, missing = measured
    chart = panels_chart({"p": [Line.of("l", rows, "x", "x")]}, "x")
    return Findings(
        results=rows, items=[Picture("dots", chart, "Dots."), None, Table("all", rows, "All."),
                             Passage("Left out", "; ".join(missing))],
        verdicts=[("It is one.", "holds" if rows[0]["x"] == 1 else "fails", "seen")], answer="It is one.",
        shows="dots", about="Nothing much.", equations={"mine": "ST"},
    )  # fmt: skip


def test_a_report_holds_what_was_found(tmp_path: Path) -> None:
    study = Study("two", "Two", "What is one?", make_run(measure_two, found_two))
    report = execute(study, tmp_path / "run")
    assert read_rows(report.parent / "results.csv") == read_rows(report.parent / "all.csv") == [{"x": 1.0}]
    outline = json.loads((report.parent / "report.json").read_text(encoding="utf-8"))
    assert [(v["statement"], v["answer"]) for v in outline["verdicts"]] == [("It is one.", "holds")]
    page = report.read_text(encoding="utf-8")
    places = [page.index(words) for words in ("Dots.", "All.", "b: no such thing<", "Nothing much.")]
    assert places == sorted(places)
    assert "with details" not in page
    assert "mine" in page


# ---------------------------------------------------------------------- numbers
def test_a_row_beside_what_is_printed() -> None:
    own = planted_rows(80.0, 3.0, "cora")
    own[0]["status"] = "diverged at epoch 3"
    found = with_printed(own, Printed(84.0, 4.0, "Table 8"))
    assert (found["mean"], found["std"], found["splits"], found["diverged"]) == (80.0, 3.0, 10, 1)
    assert (found["standard_error"], found["difference"], found["error"]) == pytest.approx((1.0, -4.0, 5 / 3))
    assert (found["verdict"], found["source"]) == ("below", "Table 8")
    alone = with_printed(own, None)
    assert math.isnan(float(alone["paper"]))
    assert alone["verdict"] == "undecided"
    assert picked(found, "std gap=difference") == {"std": 3.0, "gap": -4.0}


def test_pairs_are_tested_with_the_share_of_their_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired_rows, "load_set", lambda name: name)
    monkeypatch.setattr(paired_rows, "share_ratio", lambda data: {"cora": 0.5, "film": 0.0}[data])
    own, other = planted_rows(82.0, 2.0, ""), planted_rows(80.0, 1.0, "")
    shared, apart = (compared(own, other, name) for name in ("cora", "film"))
    assert (shared.difference, apart.difference) == pytest.approx((2.0, 2.0))
    assert shared.error / apart.error == pytest.approx(math.sqrt((0.1 + 0.5) / 0.1))
    rows = with_holm([{"p": shared.p}, {"p": apart.p}])
    assert [float(row["p_holm"]) for row in rows] == pytest.approx([max(shared.p, 2 * apart.p), 2 * apart.p])


# ---------------------------------------------------------------------- charts
def test_maps_and_curves_of_rows() -> None:
    rows: list[MutableRow] = [
        {"r": r, "s": s, "x": x, "y": value}
        for r, s, x, value in (("F", "b", 2, 1.0), ("F", "b", 1, 2.0), ("Z", "a", 1, 3.0))
    ]  # fmt: skip
    found = row_map(
        rows[1:], "r", "s", lambda row: float(row["y"]), lambda row: row["y"] == 3.0, "y",
        note=lambda row: f"{row['y']}!",
    )  # fmt: skip
    assert (found.rows, found.columns) == (["F", "Z"], ["b", "a"])
    np.testing.assert_array_equal(found.values, [[2.0, math.nan], [math.nan, 3.0]])
    assert found.sure.tolist() == [[False, False], [False, True]]
    assert found.notes[1][1] == "3.0!"
    panels = row_curves(rows, "s", "r", "x", "y")
    assert list(panels) == ["b", "a"]
    (line,) = panels["b"]
    assert (line.label, line.x.tolist(), line.y.tolist(), line.error) == ("F", [1.0, 2.0], [2.0, 1.0], None)
