"""The cells of a study, computed in this process or on the machines of an engine, with the same numbers.

A worker computes the parts of a cell and returns their texts, which are written to the folder of the run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rdgraph.files import write_text
from rdgraph.run.engines.engine import Reporter
from studies.runs.report import Drawn, Heading
from studies.runs.run_config import RunConfig
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row, Value, read_rows, write_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")
R = TypeVar("R")


def each_cell(
    run: StudyRun,
    items: Iterable[T],
    cell: Callable[[StudyRun, T], R],
    description: str,
    elsewhere: Callable[[StudyRun, T], Any] | None = None,
) -> Iterator[tuple[T, R]]:
    """Every item with `cell(run, item)`; the engine of the run computes missing parts.

    Args:
        run: a run of a study.
        items: the subjects of the cells.
        cell: computes the parts of one item with `run.part`, and random numbers with `run.generator`.
        description: the text of the progress bar.
        elsewhere: `cell` without what cannot leave this process, such as a display.

    >>> from studies.runs.study import Study, execute
    >>> def body(run):
    ...     cell = lambda run, k: run.part(f"square-{k}", lambda: [{"k": k, "square": k * k}])
    ...     run.results([row for _, rows in each_cell(run, range(3), cell, "squares") for row in rows])
    >>> report = execute(Study("squares", "Squares", "What is k*k?", body), Path(tempfile.mkdtemp()) / "squares")
    >>> [row["square"] for row in read_rows(report.parent / "results.csv")]
    [0, 1, 4]
    """
    chosen = list(items)
    if run.engine.name != "local":
        _compute(run, chosen, elsewhere or cell, description)
    for item in run.progress(chosen, description):
        yield item, cell(run, item)


def _compute(run: StudyRun, items: list[T], cell: Callable[[StudyRun, T], Any], description: str) -> None:
    """Compute the missing parts on the engine; those of a cell are written as soon as it is done."""
    work = CellWork(run.folder, run.config, cell)
    missing = [item for item in items if work.is_missing(item)]
    running = run.engine.run(work, missing, device=run.device)
    with closing(running):  # type: ignore[type-var]  # stops running work when this process stops
        for _, texts in run.progress(running, f"{description}, on {run.engine.name}", len(missing)):
            for name, text in texts.items():
                if not (path := run.folder / "parts" / f"{name}.csv").is_file():
                    write_text(path, text)


@dataclass(frozen=True, eq=False)
class CellWork(Generic[T]):
    """The work of one cell: computing its parts."""

    folder: Path
    config: RunConfig
    cell: Callable[[StudyRun, T], Any]

    def __call__(self, item: T, reporter: Reporter) -> dict[str, str]:
        with tempfile.TemporaryDirectory(prefix="rdgraph-parts-") as scratch:
            recorder = PartRecorder(self.folder, self.config, Path(scratch))
            self.cell(recorder, item)
            return recorder.texts

    def is_missing(self, item: T) -> bool:
        """Whether the folder lacks a part of the cell."""
        try:
            self.cell(PartRecorder(self.folder, self.config, None), item)
        except PartMissing:
            return True
        return False


class PartMissing(Exception):
    """The folder lacks a part."""


class PartRecorder(StudyRun):
    """A run that only computes missing parts and stores their texts; it draws and writes nothing else.

    Args:
        folder: the folder of the run, if this machine can read it.
        config: what the numbers of the run depend on.
        scratch: a folder for computed parts; with None a missing part raises `PartMissing`.
    """

    def __init__(self, folder: Path, config: RunConfig, scratch: Path | None) -> None:
        super().__init__(folder if scratch is None or folder.is_dir() else scratch, config, Heading("", "", "", ""))
        self._scratch, self._stored = scratch, folder / "parts"
        self.texts: dict[str, str] = {}

    def part(self, name: str, compute: Callable[[], Sequence[Row]]) -> list[dict[str, Value]]:
        path = self._stored / f"{self._new(name, 'part')}.csv"
        if not path.is_file():
            if self._scratch is None:
                raise PartMissing(name)
            path = self._scratch / f"{name}.csv"
            write_rows(path, compute())
            self.texts[name] = path.read_text(encoding="utf-8")
        return read_rows(path)

    def progress(self, iterable: Iterable[T], description: str, total: float | None = None) -> Iterator[T]:
        yield from iterable

    def figure(self, name: str, drawn: Drawn | Figure, caption: str, rows: Sequence[Row] | None = None) -> None:
        """Does nothing."""

    def animation(self, name: str, write: Callable[[Path], object], caption: str, *, is_shown: bool = True) -> None:
        """Does nothing."""

    def table(self, name: str, rows: Sequence[Row], caption: str) -> None:
        """Does nothing."""

    def results(self, rows: Sequence[Row]) -> None:
        """Does nothing."""
