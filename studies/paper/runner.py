"""The runner of the paper's studies: a sheet with settings and words, something measured, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rdgraph.errors import RdgraphError
from studies.cells.cell import (
    ALL_TRAINED,
    BORROWS,
    LINEAR,
    REACTIONS,
    SETS,
    Cell,
    Load,
    load_set,
    train_cells,
    write_trials,
)
from studies.runs.report import Drawn
from studies.runs.setting_limits import Limit
from studies.runs.tables import MutableRow, Row
from studies.runs.uncertainty import FAILS
from studies.runs.word_sheets import Verdict as Verdict
from studies.runs.word_sheets import WordSheet

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

Settings = Mapping[str, Any]
T = TypeVar("T")

#: Lists that a sheet names: "*sets" stands for all of them.
LISTS: Mapping[str, Sequence[str]] = {
    "sets": SETS,
    "published sets": (*SETS, *BORROWS),
    "reactions": REACTIONS,
    "linear": LINEAR,
}


@dataclass(frozen=True)
class Sheet(WordSheet):
    """The file NAME.toml: what the study asks, settings, what the small mode changes, limits, and texts with {places}.

    Args:
        name: of the study and of its file.
        folder: of the file.
        lists: further lists that the sheet names, or what makes them.

    Example:
        >>> sheet = Sheet("significance")
        >>> sheet.settings(True)
        {'sets': ['karate'], 'splits': 3, 'seeds': 2, 'epochs': 15, 'hidden': 8}
        >>> sheet.limits(True)["splits"].least
        1
    """

    folder: str = field(default="paper", kw_only=True)
    name: str
    _: KW_ONLY
    lists: Mapping[str, Sequence[str] | Callable[[], Sequence[str]]] = field(default_factory=dict)

    def settings(self, small: bool) -> dict[str, Any]:
        """The settings of a mode, in the order of the file, with the lists that they name."""
        return {name: self._list(value) for name, value in super().settings(small).items()}

    def limits(self, small: bool) -> dict[str, Limit]:
        """What every setting may be, the same in both modes."""
        known = Sheet("limits").entries
        named = {**known["usual"], **self.entries.get("limits", {})}
        result = {name: named[name] for name in self.entries["settings"]}
        return {name: self._limit(known[one] if isinstance(one, str) else one) for name, one in result.items()}

    def _limit(self, entry: Mapping[str, Any]) -> Limit:
        needed = tuple(entry.get("needed", ()))
        return Limit(**{**entry, "known": tuple(self._list(entry.get("known", ()))), "needed": needed})

    def _list(self, value: Any) -> Any:
        """The list that a word with a star names; any other value as it is."""
        if not (isinstance(value, str) and value.startswith("*")):
            return value
        chosen = {**LISTS, **self.lists}[value[1:]]
        return list(chosen() if callable(chosen) else chosen)


@dataclass(frozen=True, eq=False)
class Table:
    """A table of the report and NAME.csv."""

    name: str
    rows: Sequence[Row]
    caption: str

    def add_to(self, run: StudyRun) -> None:
        run.table(self.name, self.rows, self.caption)


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure of the report; `rows` are the numbers in it, by default those of the chart."""

    name: str
    chart: Drawn
    caption: str
    rows: Sequence[Row] | None = None

    def add_to(self, run: StudyRun) -> None:
        run.figure(self.name, self.chart, self.caption, self.rows)


@dataclass(frozen=True, eq=False)
class Film:
    """An animation in the folder of the figures."""

    name: str
    write: Callable[[Path], object]
    caption: str

    def add_to(self, run: StudyRun) -> None:
        run.animation(self.name, self.write, self.caption, is_shown=False)


@dataclass(frozen=True, eq=False)
class Passage:
    """A passage of the report."""

    heading: str
    text: str

    def add_to(self, run: StudyRun) -> None:
        run.say(self.heading, self.text)


@dataclass(frozen=True, eq=False)
class Findings:
    """What a study found: all that its report says.

    Args:
        results: the numbers of record.
        items: figures and tables in the order of the page; None is left out.
        verdicts: statements with answers and evidence.
        answer: one sentence, and `shows`, the figure that shows it.
        about: what was run.
        equations: texts by their headings; without them those of the reactions in the settings.
    """

    results: Sequence[Row]
    items: Sequence[Table | Picture | Film | Passage | None]
    verdicts: Sequence[Verdict]
    answer: str
    shows: str
    about: str
    equations: Mapping[str, str] | None = None


def make_run(
    measure: Callable[[StudyRun], T], findings: Callable[[T, Settings], Findings]
) -> Callable[[StudyRun], None]:
    """The program of a study: measure, then put what was found into the report."""

    def run(run: StudyRun) -> None:
        result = findings(measure(run), run.settings)
        for item in result.items:
            if item is not None:
                item.add_to(run)
        for verdict in result.verdicts:
            run.verdict(*verdict)
        run.answer(result.answer, result.shows)
        named = result.equations
        for name, text in (reaction_equations(run.settings) if named is None else named).items():
            run.equation(text, name)
        run.say("What is run", result.about)
        run.results(result.results)

    return run


def trained(
    make_cells: Callable[[Settings], list[Cell]], load: Load = load_set
) -> Callable[[StudyRun], list[MutableRow]]:
    """What measures a study of cells: it trains them, keeps every training as a row, and gives the rows."""

    def measure(run: StudyRun) -> list[MutableRow]:
        rows = train_cells(run, make_cells(run.settings), load).rows
        write_trials(run, rows)
        return rows

    return measure


def untrained_verdicts(missing: Sequence[str]) -> list[Verdict]:
    """A verdict where something could not be trained, with the reasons."""
    return [(ALL_TRAINED, FAILS, "; ".join(missing))] if missing else []


def reaction_equations(s: Settings) -> dict[str, str]:
    """The equations of the reactions in the settings, by the names of their networks."""
    return {f"GREAD-{reaction}": str(reaction) for reaction in s["reactions"]}


def attempt(
    run: StudyRun, what: str, parts: Sequence[tuple[str, str, Callable[[], Sequence[Row]]]]
) -> tuple[list[MutableRow], list[str]]:
    """The rows of several parts (title, name, what computes it); and, by their titles, why some have none."""
    rows: list[MutableRow] = []
    missing = []
    for title, name, compute in run.progress(parts, what):
        try:
            rows += run.part(name, compute)
        except (RdgraphError, RuntimeError) as problem:
            missing.append(f"{title}: {str(problem).partition(chr(10))[0]}")
    return rows, missing
