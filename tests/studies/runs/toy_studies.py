"""Studies of a moment and what their folders hold, for the tests of runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from studies.runs.study import Study
from studies.runs.study_run import StudyRun


def toy(body: Callable[[StudyRun], object], numbers: dict[str, Any] | None = None, *, name: str = "toy") -> Study:
    """A study with a body of the test's choice."""
    chosen = numbers or {"alpha": 0.5, "times": [0.0, 1.0]}
    return Study(name, "A toy", "Does it run?", body, lambda small: {**chosen, "count": 2 if small else 3})


def whole(run: StudyRun) -> None:
    """A study that uses everything a run offers."""
    draws = run.generator("draws")
    rows = run.part("draws", lambda: [{"k": k, "x": float(draws.random())} for k in range(run.settings["count"])])
    figure = Figure()
    figure.subplots().plot([row["x"] for row in rows])
    run.say("First", "one\n\ntwo")
    run.figure("line", figure, "A line.", rows)
    run.animation("moving", lambda path: path.write_bytes(b"GIF89a"), "It moves.")
    run.table("rows", rows, "The rows.")
    run.verdict("It runs.", "holds", "It ran.")
    run.results(rows)


def files(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and p.name != ".lock"}


def state(folder: Path) -> str:
    return (folder / "state").read_text(encoding="utf-8").strip()
