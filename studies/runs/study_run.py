"""`StudyRun`: the folder of one run, written part by part, valid at any moment and resumable."""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from rich.console import Console

from rdgraph.errors import InvalidArgument
from rdgraph.files import replacing, write_text
from rdgraph.run.engines.engine import Engine, LocalEngine
from rdgraph.status_line import StatusLine
from rdgraph.wording import counted
from studies.runs import report
from studies.runs.report import Formula
from studies.runs.run_config import RunConfig, earlier_codes, environment
from studies.runs.tables import Row, Value, read_rows, summary, write_parquet, write_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")
#: Contents of the file `state`.
STATES = ("running", "done", "interrupted", "failed")
ANSWERS = ("holds", "fails", "undecided")
#: The entry of environment.json about parts that could not be computed, with the reasons.
GIVEN_UP = "given_up"
#: Names of studies, parts, figures and tables, which also name files.
NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_RESERVED = ("results", "metrics")
#: A missing number in a formatted text.
_NO_NUMBER = re.compile(r"[+-]?\bnan\b")


def in_words(text: str) -> str:
    """A sentence of a report with missing numbers shown as "unknown".

    >>> in_words("difference +1.00 (error nan, p nan)")
    'difference +1.00 (error unknown, p unknown)'
    """
    return _NO_NUMBER.sub("unknown", text)


class StudyRun:
    """One run of a study and its folder; a study computes with `part` and writes with the other methods.

    `execute` passes one to the study; every file is written whole or not at all.

    Args:
        folder: where the run is written.
        config: what its numbers depend on.
        heading: its title, its question, and the commands that repeat and resume it.
        console: where progress is shown; nowhere by default.
        engine: where cells are computed, see `studies.runs.cell_work`; in this process by default.

    Example:
        >>> from pathlib import Path
        >>> import tempfile, studies
        >>> def body(run):
        ...     rows = run.part("draws", lambda: [{"x": float(run.generator("draws").random())}])
        ...     run.verdict("The draw lies in [0, 1).", "holds" if 0 <= rows[0]["x"] < 1 else "fails", "Its value.")
        ...     run.results(rows)
        >>> study = studies.Study("draw", "A draw", "Where does it lie?", body)
        >>> report = studies.execute(study, Path(tempfile.mkdtemp()) / "draw")
        >>> sorted(path.name for path in report.parent.glob("*.csv"))
        ['metrics.csv', 'results.csv']
    """

    def __init__(
        self,
        folder: Path,
        config: RunConfig,
        heading: report.Heading,
        console: Console | None = None,
        engine: Engine | None = None,
    ) -> None:
        self.folder = folder
        self.engine: Engine = engine or LocalEngine()
        self.config = config
        self.heading = heading
        self.status = StatusLine(config.study, shown=console is not None, console=console)
        self._names: set[str] = set()
        self._parts: dict[str, list[dict[str, Value]]] = {}
        self._items: list[report.Item] = []
        self._verdicts: list[report.ReportVerdict] = []
        self._files: dict[str, str] = {}
        self._answer = ("", "")
        self._formulas: list[Formula] = []
        self._started = time.monotonic()
        self._environment = environment(self.device)
        self._earlier_code: list[str] = []

    @property
    def small(self) -> bool:
        """Whether the study runs in its small mode, in seconds instead of minutes."""
        return self.config.small

    @property
    def seed(self) -> int:
        return self.config.seed

    @property
    def device(self) -> str:
        return self.config.device

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the run; config.toml and the report show them."""
        return self.config.settings

    def generator(self, name: str) -> np.random.Generator:
        """Random numbers that depend on the seed and this name only."""
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def part(self, name: str, compute: Callable[[], Sequence[Row]]) -> list[dict[str, Value]]:
        """The rows of `compute()`, computed once, stored as parts/NAME.csv and read back when the study is resumed."""
        path = self.folder / "parts" / f"{self._new(name, 'part')}.csv"
        self.status.say(name)
        if not path.is_file():
            write_rows(path, compute())
        self._parts[name] = read_rows(path)  # also read back when new, so that a resumed run has the same values
        return [dict(row) for row in self._parts[name]]

    def give_up(self, name: str, reason: str) -> None:
        """Record in environment.json why a part could not be computed, so that the report can be rebuilt without it."""
        self.record(**{GIVEN_UP: {**self._environment.get(GIVEN_UP, {}), name: reason}})
        self._write_environment()

    def has_part(self, name: str) -> bool:
        """Whether an earlier run computed a part."""
        return (self.folder / "parts" / f"{name}.csv").is_file()

    def progress(self, iterable: Iterable[T], description: str, total: float | None = None) -> Iterator[T]:
        """The items of `iterable`, counted on a terminal, or by occasional lines elsewhere."""
        yield from self.status.track(iterable, description, total)

    def figure(self, name: str, drawn: report.Drawn | Figure, caption: str, rows: Sequence[Row] | None = None) -> None:
        """Add a figure to the report: figures/NAME.png, NAME.pdf and NAME.csv with the numbers drawn.

        The page also draws a chart itself, with readable values and lines that can be hidden; `rows` replace the
        numbers of a chart, and are needed for a matplotlib figure.
        """
        from analysis.figure_files import save_figure
        from studies.runs.chart_figures import drawn_figure

        self.status.say(f"drawing {name}")
        chart = drawn if isinstance(drawn, report.Drawn) else None
        figure = drawn_figure(drawn) if isinstance(drawn, report.Drawn) else drawn
        if figure.get_layout_engine() is not None:
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # laid out once, not for every format
        numbers = chart.numbers() if rows is None and chart is not None else rows or ()
        picture, *_ = save_figure(figure, self.folder / "figures", self._new(name, "figure"), numbers)
        self._items.append(report.Picture(name, picture, caption, chart))

    def equation(self, text: str, name: str = "") -> None:
        """Show an equation, or a catalogue entry by name, as mathematics and as text."""
        self._formulas.append(Formula.of(text, name))

    def animation(self, name: str, write: Callable[[Path], object], caption: str, *, is_shown: bool = True) -> None:
        """Add an animation, figures/NAME.gif, written by `write(path)`; unless shown, it is only listed as a file."""
        path = self.folder / "figures" / f"{self._new(name, 'figure')}.gif"
        self.status.say(f"drawing {name}")
        with replacing(path) as draft:
            write(draft)
        if is_shown:
            self._items.append(report.Picture(name, path, caption))
        else:
            self.describe(f"figures/{path.name}", caption.rstrip("."))

    def table(self, name: str, rows: Sequence[Row], caption: str) -> None:
        """Add a table to the report and write it as NAME.csv; clicks on its headings sort it."""
        if name in _RESERVED:
            raise InvalidArgument(f"a table cannot be called {name!r}: {' and '.join(_RESERVED)} are reserved")
        write_rows(self.folder / f"{self._new(name, 'table')}.csv", rows)
        self.show(name, caption, rows)

    def say(self, heading: str, text: str) -> None:
        """Add a passage of plain text; an empty line starts a new paragraph, and an empty heading adds no heading."""
        self._items.append(report.Passage(heading, in_words(text)))

    def verdict(self, statement: str, answer: str, evidence: str) -> None:
        """Add a verdict; its answer is holds, fails, undecided or "holds if ..."."""
        if answer not in ANSWERS and not answer.startswith("holds if "):
            raise InvalidArgument(f"expected one of {', '.join(ANSWERS)} or 'holds if ...', got {answer!r}")
        self._verdicts.append(report.ReportVerdict(statement, answer, in_words(evidence)))

    def answer(self, sentence: str, figure: str = "") -> None:
        """Set the answer in one sentence with its number, and the figure that shows it; they open the report."""
        self._answer = (in_words(sentence), figure)

    def results(self, rows: Sequence[Row]) -> None:
        """Write the main results: results.csv and, if pyarrow is installed, results.parquet."""
        self._new("results", "table")
        write_rows(self.folder / "results.csv", rows)
        if write_parquet(self.folder / "results.parquet", rows):
            self.describe("results.parquet", "the same as parquet")

    def show(self, name: str, caption: str, rows: Sequence[Row]) -> None:
        """Add a table whose rows are already in NAME.csv."""
        self._items.append(report.ReportTable(name, caption, [dict(row) for row in rows]))

    def describe(self, file: str, text: str) -> None:
        """Describe an extra file of the folder in the report."""
        self._files[file] = text

    def record(self, **facts: Any) -> None:
        """Record facts about the run in environment.json."""
        self._environment |= facts

    def _new(self, name: str, kind: str) -> str:
        """The name, after a check that it can name a file and is new for this kind."""
        if not NAME_PATTERN.fullmatch(name):
            raise InvalidArgument(f"the name of a {kind} consists of letters, digits and _.+-, got {name!r}")
        if f"{kind} {name}" in self._names:
            raise InvalidArgument(f"there are two {kind}s called {name!r}; rename one")
        self._names.add(f"{kind} {name}")
        return name

    def begin(self) -> None:
        """Write config.toml, environment.json and state before anything is computed."""
        self._earlier_code = sorted(earlier_codes(self.folder / "environment.json") - {self._environment["code"]})
        write_text(self.folder / "config.toml", self.config.toml())
        self._write_environment()
        write_text(self.folder / "state", "running\n")

    def finish(self, state: str, problem: str = "") -> None:
        """Write metrics.csv, environment.json, report.html and state, also after an interruption or an error."""
        self.status.say("writing the report")
        if state != "done":  # first, in case the report cannot be written
            write_text(self.folder / "state", f"{state}\n")
        if self._parts:
            rows = [row for name, part in self._parts.items() for row in summary(name, part)]
            write_rows(self.folder / "metrics.csv", rows)
        self.record(seconds=round(time.monotonic() - self._started, 1))
        self._write_environment()
        page = report.Page(
            heading=self.heading,
            state=state,
            problem=problem,
            config=self.config,
            environment=self._environment,
            items=tuple(self._items),
            verdicts=tuple(self._verdicts),
            files=self.files,
            mixed=bool(self._earlier_code and self._parts),
            answer=self._answer[0],
            shows=self._answer[1],
            formulas=tuple(self._formulas),
        )
        write_text(self.folder / "report.json", report.contents(page))
        write_text(self.folder / "report.html", report.render(page))
        write_text(self.folder / "state", f"{state}\n")

    @property
    def files(self) -> dict[str, str]:
        """What each file of the folder holds."""
        files = {"config.toml": "settings", "environment.json": "versions and machine"}
        if "table results" in self._names:
            files["results.csv"] = "the main results"
        if self._parts:
            files["metrics.csv"] = "least, mean and largest of every measured column"
            files["parts/"] = f"{counted(len(self._parts), 'finished part')}, reused when the study is resumed"
        if any(isinstance(item, report.Picture) for item in self._items):
            files["figures/"] = "figures as png and pdf, and the numbers drawn as csv"
        return files | self._files

    def _write_environment(self) -> None:
        environment = {**self._environment, **({"earlier_code": self._earlier_code} if self._earlier_code else {})}
        write_text(self.folder / "environment.json", json.dumps(environment, indent=2) + "\n")
