"""`Run`: the folder of one study, filled piece by piece, valid at any moment, resumed where it was left."""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from rich.console import Console

from rdgraph.errors import FileError, RdgraphError
from rdgraph.files import read_text, replacing, unwritable, write_text
from rdgraph.interrupts import terminable
from studies.runs import report
from studies.runs.config import Config, environment
from studies.runs.tables import Row, Value, read_rows, summary, write_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.progress import Progress

T = TypeVar("T")
#: What the file `state` may say.
STATES = ("running", "done", "interrupted", "failed")
ANSWERS = ("holds", "fails", "undecided")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_RESERVED = ("results", "metrics")


class Study(Protocol):
    """What a study's module offers; `settings(small)`, which may be missing, gives its resolved settings."""

    NAME: str
    TITLE: str
    QUESTION: str

    def run(self, run: Run) -> None:
        """Do the study: compute parts, draw figures, write what was found."""


def settings_of(study: Study, small: bool) -> dict[str, Any]:
    """The numbers a study runs with, in its small or its full mode; {} for a study without `settings`."""
    return dict(study.settings(small)) if hasattr(study, "settings") else {}


class Run:
    """One run of a study, and its folder; a study computes with `part` and writes with the other methods."""

    def __init__(self, study: Study, folder: Path, config: Config, console: Console | None = None) -> None:
        self.folder = folder
        self.config = config
        self._study = study
        self._console = console or Console(stderr=True)
        self._bars: Progress | None = None
        self._names: set[str] = set()
        self._parts: dict[str, list[dict[str, Value]]] = {}
        self._items: list[report.Item] = []
        self._verdicts: list[report.Verdict] = []
        self._started = time.monotonic()
        self._environment = environment(config.device)
        self._earlier_code: list[str] = []

    @property
    def small(self) -> bool:
        """Whether the study is to run in its small mode, in seconds rather than minutes."""
        return self.config.small

    @property
    def seed(self) -> int:
        return self.config.seed

    @property
    def device(self) -> str:
        return self.config.device

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the study's `settings(small)` gave; written in config.toml and shown in the report."""
        return self.config.settings

    def generator(self, name: str) -> np.random.Generator:
        """Random numbers that depend on the seed and this name alone, not on what else was drawn."""
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def part(self, name: str, compute: Callable[[], Sequence[Row]]) -> list[dict[str, Value]]:
        """The rows of `compute()`, computed once: kept as parts/NAME.csv and read back when the study is run again."""
        path = self.folder / "parts" / f"{self._new(name, 'part')}.csv"
        if not path.is_file():
            write_rows(path, compute())
        self._parts[name] = read_rows(path)  # read back even when new, so that a resumed run sees the same values
        return [dict(row) for row in self._parts[name]]

    def progress(self, iterable: Iterable[T], description: str, total: float | None = None) -> Iterator[T]:
        """The items of `iterable`, with a bar on a terminal and in silence elsewhere."""
        if not self._console.is_terminal:
            yield from iterable
            return
        if self._bars is None:
            from studies.runs.progress import progress

            self._bars = progress(self._console)
            self._bars.start()
        count = len(iterable) if total is None and isinstance(iterable, Sized) else total
        task = self._bars.add_task(description, total=count)
        try:
            for item in iterable:
                yield item
                self._bars.advance(task)
        finally:
            self._bars.remove_task(task)

    def figure(self, name: str, figure: Figure, caption: str, rows: Sequence[Row]) -> None:
        """A figure of the report: figures/NAME.png, NAME.pdf and, as NAME.csv, the numbers drawn in it."""
        from analysis.figures import save_figure

        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once, not for every format
        picture, *_ = save_figure(figure, self.folder / "figures", self._new(name, "figure"), rows)
        self._items.append(report.Picture(name, picture, caption))

    def animation(self, name: str, write: Callable[[Path], object], caption: str) -> None:
        """An animation of the report, figures/NAME.gif; `write(path)` writes it."""
        path = self.folder / "figures" / f"{self._new(name, 'figure')}.gif"
        with replacing(path) as draft:
            write(draft)
        self._items.append(report.Picture(name, path, caption))

    def table(self, name: str, rows: Sequence[Row], caption: str) -> None:
        """A table of the report, sorted by a click on its headings, and as NAME.csv."""
        if name in _RESERVED:
            raise RdgraphError(f"expected another name than {', '.join(_RESERVED)} for a table, got {name!r}")
        write_rows(self.folder / f"{self._new(name, 'table')}.csv", rows)
        self._items.append(report.Table(name, caption, [dict(row) for row in rows]))

    def say(self, heading: str, text: str) -> None:
        """A passage of the report in plain text; an empty line begins a new paragraph, an empty heading adds none."""
        self._items.append(report.Passage(heading, text))

    def verdict(self, statement: str, answer: str, evidence: str) -> None:
        """A row of the table of verdicts; answer: holds, fails, undecided or "holds if ..."."""
        if answer not in ANSWERS and not answer.startswith("holds if "):
            raise RdgraphError(f"expected one of {', '.join(ANSWERS)} or 'holds if ...', got {answer!r}")
        self._verdicts.append(report.Verdict(statement, answer, evidence))

    def results(self, rows: Sequence[Row]) -> None:
        """The numbers of record, results.csv."""
        self._new("results", "table")
        write_rows(self.folder / "results.csv", rows)

    def _new(self, name: str, kind: str) -> str:
        """The name, if it can be a file's and was not used for this kind."""
        if not _NAME.fullmatch(name):
            raise RdgraphError(f"expected a name of letters, digits and _.+- for a {kind}, got {name!r}")
        if f"{kind} {name}" in self._names:
            raise RdgraphError(f"expected a new name for a {kind}, got {name!r} for the second time")
        self._names.add(f"{kind} {name}")
        return name

    def begin(self) -> None:
        """Write what is known before the first number: config.toml, environment.json, state."""
        self._earlier_code = sorted(earlier_codes(self.folder / "environment.json") - {self._environment["code"]})
        write_text(self.folder / "config.toml", self.config.toml())
        self._write_environment()
        write_text(self.folder / "state", "running\n")

    def finish(self, state: str, problem: str = "") -> None:
        """Write metrics.csv, environment.json, report.html and state; also after an interruption or an error."""
        if self._bars is not None:
            self._bars.stop()
        if state != "done":  # said first, whatever becomes of the report
            write_text(self.folder / "state", f"{state}\n")
        write_rows(self.folder / "metrics.csv", [row for n, rows in self._parts.items() for row in summary(n, rows)])
        self._environment["seconds"] = round(time.monotonic() - self._started, 1)
        self._write_environment()
        page = report.Page(
            title=self._study.TITLE,
            question=self._study.QUESTION,
            state=state,
            problem=problem,
            config=self.config,
            environment=self._environment,
            items=tuple(self._items),
            verdicts=tuple(self._verdicts),
            command=self.command,
            parts=tuple(self._parts),
            mixed=bool(self._earlier_code and self._parts),
        )
        write_text(self.folder / "report.json", report.contents(page))
        write_text(self.folder / "report.html", report.render(page))
        write_text(self.folder / "state", f"{state}\n")

    def _write_environment(self) -> None:
        kept = {**self._environment, **({"earlier_code": self._earlier_code} if self._earlier_code else {})}
        write_text(self.folder / "environment.json", json.dumps(kept, indent=2) + "\n")

    @property
    def command(self) -> str:
        """The line that makes this run again."""
        small = " --small" if self.small else ""
        device = "" if self.device == "cpu" else f" --device {self.device}"
        return f"rdgraph study {self.config.study}{small} --seed {self.seed}{device} --out {self.folder}"


def execute(
    study: Study,
    folder: Path,
    *,
    small: bool = False,
    seed: int = 0,
    device: str = "cpu",
    console: Console | None = None,
) -> Path:
    """Run a study in a folder, anew or from where it was left; returns the path of its report.

    Ctrl-C and SIGTERM leave a valid folder whose report says so, and end in a KeyboardInterrupt.

    >>> import tempfile, types
    >>> body = lambda run: run.results(run.part("sum", lambda: [{"total": 1 + 2}]))
    >>> study = types.SimpleNamespace(NAME="sum", TITLE="A sum", QUESTION="What is 1 + 2?", run=body)
    >>> report = execute(study, Path(tempfile.mkdtemp()) / "sum")
    >>> print((report.parent / "results.csv").read_text(), end="")
    "total"
    3
    """
    config = Config(study.NAME, small, seed, device, settings=settings_of(study, small))
    prepare(folder, config)
    with locked(folder), terminable():
        run = Run(study, folder, config, console)
        try:
            run.begin()
            study.run(run)
            run.finish("done")
        except BaseException as error:
            with suppress(FileError):  # the first error counts; a full disk would hide it behind a second one
                if isinstance(error, Exception):
                    run.finish("failed", f"{type(error).__name__}: {error}")
                else:
                    run.finish("interrupted")
            raise
    return folder / "report.html"


def earlier_codes(path: Path) -> set[str]:
    """Fingerprints of the code that worked on a folder before, from its environment.json; none where there is none."""
    if not path.is_file():
        return set()
    try:
        earlier = json.loads(read_text(path, "an environment"))
        codes = [*earlier.get("earlier_code", []), earlier["code"]]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        codes = [""]
    if not all(isinstance(code, str) and code for code in codes):
        raise FileError(f"expected what a study wrote in {path}, got a file that was changed; delete the folder")
    return set(codes)


def prepare(folder: Path, config: Config) -> None:
    """Make the folder; refuse one that holds other things, another study or other settings."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        entries = [p for p in folder.iterdir() if not p.name.startswith(".")]
    except OSError as problem:
        raise unwritable(folder, problem) from None
    known = folder / "config.toml"
    if not known.is_file():
        if entries:
            raise RdgraphError(
                f"expected an empty folder or one of this study, got {folder} with {entries[0].name} in it; "
                "choose another with --out"
            )
        return
    different = config.differences(read_text(known, "the settings of a study"))
    if different:
        raise RdgraphError(
            f"expected the folder of the same study and settings, got {folder} with {'; '.join(different)}; "
            "choose another with --out, or delete it"
        )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder; a process that dies gives it up. Where the system has no flock, nothing is held."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        file = (folder / ".lock").open("a")
    except OSError as problem:
        raise unwritable(folder, problem) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RdgraphError(
                f"expected a folder nobody writes to, got {folder}, where a study is running; wait, or choose --out"
            ) from None
        yield
