"""Cells of a study on an engine: the parts that are missing, computed elsewhere, to the same folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rdgraph.run.engines.engine import LocalEngine, Reporter
from studies.runs.cell_work import each_cell
from studies.runs.study import Study, execute
from studies.runs.study_run import StudyRun
from tests.paths import ROOT


class Elsewhere(LocalEngine):
    """Does the work as another process would, in the reverse order, and notes what it was given."""

    name = "elsewhere"

    def __init__(self) -> None:
        self.given: list[Any] = []

    def run(self, work: Callable[[Any, Reporter], Any], items: Iterable[Any], **_: Any) -> Iterator[tuple[Any, Any]]:
        for item in reversed(list(items)):
            self.given.append(item)
            yield item, work(item, Reporter())


def cell(run: StudyRun, k: int) -> list[dict[str, Any]]:
    draw = float(run.generator(f"cell {k}").random())
    rows = run.part(f"draw-{k}", lambda: [{"k": k, "draw": draw, "third": 1 / 3, "text": "a, b"}])
    run.table(f"table-{k}", rows, "A table.")
    return rows + run.part(f"square-{k}", lambda: [{"k": k, "draw": k * rows[0]["draw"], "third": 0.0, "text": ""}])


def body(run: StudyRun) -> None:
    found = list(each_cell(run, range(3), cell, "cells"))
    assert [k for k, _ in found] == [0, 1, 2]
    run.results([row for _, rows in found for row in rows])


STUDY = Study("cells", "Cells", "What do they hold?", body)


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*.csv"))}


def test_parts_of_an_engine_are_those_of_this_process(tmp_path: Path) -> None:
    engine = Elsewhere()
    for name, chosen in (("here", None), ("there", engine)):
        execute(STUDY, tmp_path / name, engine=chosen)
    assert files(tmp_path / "here") == files(tmp_path / "there")
    assert engine.given == [2, 1, 0]


def test_only_cells_that_lack_a_part_are_given_away(tmp_path: Path) -> None:
    execute(STUDY, tmp_path)
    before = files(tmp_path)
    (tmp_path / "parts" / "square-1.csv").unlink()
    engine = Elsewhere()
    execute(STUDY, tmp_path, engine=engine)
    assert engine.given == [1]
    assert files(tmp_path) == before


def test_what_cannot_leave_the_process_may_be_left_out(tmp_path: Path) -> None:
    told = []

    def here(run: StudyRun, k: int) -> None:
        run.part(f"a-{k}", lambda: told.append(k) or [{"k": k}])

    def there(run: StudyRun, k: int) -> None:
        run.part(f"a-{k}", lambda: [{"k": k}])

    study = Study("two", "Two", "Which?", lambda run: list(each_cell(run, [0, 1], here, "cells", there)))
    execute(study, tmp_path, engine=Elsewhere())
    assert told == []


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize("words", [["atlas", "--set", "points=3"], ["discretisation"]])
def test_a_study_on_ray_is_that_of_this_process(tmp_path: Path, words: list[str]) -> None:
    pytest.importorskip("ray")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    for engine in ("local", "ray"):
        done = subprocess.run(
            [sys.executable, "-m", "studies.cli.app", "study", *words, "--small", "--engine", engine, "--out",
             tmp_path / engine],
            cwd=ROOT, env=variables | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
    assert files(tmp_path / "local") == files(tmp_path / "ray")
