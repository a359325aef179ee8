"""What the command line prints: tables and panels built with rich."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from studies.cli.fitted_table import RecordList

if TYPE_CHECKING:
    from rdgraph.reports.claims import Claim
    from rdgraph.reports.findings import Report
    from rdgraph.reports.summary import Analysis
    from rdgraph.systems.catalogue import CatalogueEntry
    from rdgraph.systems.system import System

_COLOURS = {"holds": "green", "holds if": "yellow", "false": "red", "undecided": "magenta"}
#: Under the claim, beside the status.
_INDENT = " " * 10
_STATUS = {"ok": "green", "info": "dim", "if": "yellow", "problem": "bold red", "unknown": "magenta"}
_VERDICT = {"safe": "green", "safe if": "yellow", "unsafe": "red", "undecided": "magenta"}


def catalogue_table(entries: Iterable[CatalogueEntry]) -> RecordList:
    """Names, equations (a right-hand side alone is that of dH/dt), usual numbers and sources."""
    rows = [
        [
            e.name,
            _lines(e.equation),
            _numbers(e.parameters),
            f"{e.title}. {e.source}" + (f". {e.note}" if e.note else ""),
        ]
        for e in entries
    ]
    headings = ("name", "equation, or dH/dt", "parameters", "source")
    return RecordList("Catalogue", headings, rows, ("bold", "cyan"))


def _lines(equation: str) -> str:
    """One equation below the other."""
    return equation.replace("; ", "\n")


def _numbers(parameters: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in parameters.items())


def entry_panel(entry: CatalogueEntry) -> Panel:
    """One system of the catalogue: equations, source, usual numbers."""
    several = not entry.system.is_single
    lines = [f"{'' if several else 'dH/dt = '}[cyan]{escape(_lines(entry.equation))}[/]"]
    lines += [f"fields: {escape(', '.join(entry.system.fields))}"] if several else []
    lines.append(f"source: {escape(entry.source)}")
    if entry.parameters:
        lines.append(f"parameters: {escape(_numbers(entry.parameters))} ({escape(entry.parameters_source)})")
    if entry.note:
        lines.append(f"note: {escape(entry.note)}")
    if entry.aliases:
        lines.append(f"also called: {escape(', '.join(entry.aliases))}")
    return Panel("\n".join(lines), title=f"{escape(entry.name)}: {escape(entry.title)}", title_align="left")


def system_table(system: System) -> Table:
    """What a system of several fields is: LaTeX, the matrix symbol or why there is none, and what moves each field."""
    from rdgraph.errors import NotApplicable
    from rdgraph.reports.plain_words import coupling_words

    table = Table(box=box.SIMPLE_HEAD, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(style="cyan", overflow="fold")
    table.add_row("LaTeX", escape(system.latex()))
    table.add_row("fields", escape(", ".join(system.fields)))
    table.add_row("coefficients", escape(", ".join(f"{n} {k}" for n, k in system.coefficients.items())))
    try:
        table.add_row("symbol P(lam)", escape(str(system.symbol().tolist())))
    except NotApplicable as reason:
        table.add_row("symbol P(lam)", escape(str(reason)))
    for left, words in coupling_words(system).items():
        table.add_row(escape(left), escape(words))
    return table


def analysis_page(analysis: Analysis) -> RenderableType:
    """The answers: in a few sentences, then each with its note, the LaTeX last."""
    from rdgraph.reports.plain_words import plain_words

    table = Table(box=box.SIMPLE, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for key, answer in analysis.words.items():
        if key not in ("text", "latex") and answer != "":
            table.add_row(key, _noted(_answer(key, answer), analysis.notes.get(key, "")))
    if analysis.filter_classes:
        table.add_row("filter", _noted("\n".join(analysis.filter_classes), "exact flow on lam in [0, 2]"))
    if analysis.fastest is not None:
        table.add_row("fastest frequency", _noted(analysis.fastest, ""))
    table.add_row("method", _noted(analysis.method.method, analysis.method.reason))
    table.add_row("energy law", _noted(analysis.energy, "E = tr(H^T L H), A symmetric"))
    table.add_row("gradient flow", _noted(analysis.gradient, "<X, Y> = tr(X^T Y), A symmetric"))
    panel = _titled("\n".join(plain_words(analysis)), analysis.system)
    return Group(panel, table, Text("LaTeX", style="bold"), Text(str(analysis.words["latex"])))


def below_opening(analysis: Analysis) -> Lines:
    """What `analysis_page` prints below `opening_line`."""
    return Lines(analysis_page(analysis), first=1)


def opening_line(system: System) -> Lines:
    """The first line of `analysis_page`, which is known before there are answers."""
    return Lines(_titled("", system), end=1)


def _titled(text: str, system: System) -> Panel:
    return Panel(Text(text), title=Text(repr(system)), title_align="left")


@dataclass(frozen=True)
class Lines:
    """The lines of something that can be printed, from `first` on and before `end`."""

    whole: RenderableType
    first: int = 0
    end: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self.whole, options, pad=False, new_lines=True)[self.first : self.end]:
            yield from line


def _noted(answer: str, note: str) -> Text:
    shown = Text(answer, style="cyan")
    return shown.append(f"\n{note}", style="dim not bold") if note else shown


def _answer(key: str, value: Any) -> str:
    match key, value:
        case _, None:
            return "-"
        case _, bool():
            return "yes" if value else "no"
        case "steady_states", {"states": list(states)}:
            return "\n".join(state["words"] for state in states) or "none"
        case "turing", {"sets": dict(sets)}:
            return "\n".join(f"{name}: {_outcome(found)}" for name, found in sets.items())
        case _, dict():
            return _same_or_each({k: _answer(key, v) for k, v in value.items()})
        case _, list():
            return f"[{', '.join(map(str, value))}]"
    return str(value)


def _outcome(conditions: Mapping[str, Any]) -> str:
    """The outcome of a set of conditions, with the example or the reason behind it."""
    example = ", ".join(f"{name} = {value}" for name, value in conditions["example"].items())
    why = f"for example at {example}" if example else conditions["reason"]
    return ", ".join(filter(None, [conditions["outcome"], why]))


def _same_or_each(answers: Mapping[str, str]) -> str:
    """One answer where all are the same, else each with its name."""
    if len(set(answers.values())) == 1:
        return next(iter(answers.values()))
    return "\n".join(f"{name}: {answer}" for name, answer in answers.items())


def claims_page(claims: Iterable[Claim], *, evidence: bool, marks: Mapping[str, str] | None = None) -> RenderableType:
    """A line or two per claim; with evidence the statement, its source, the witness and every check as well.

    `marks` says what Coq's kernel checked of a claim, by its id.
    """
    decided, checked = list(claims), marks or {}
    width = max((len(c.id) for c in decided), default=0)
    lines: list[RenderableType] = []
    for c in decided:
        lines.append(_claim_line(c, width, checked.get(c.id, "")))
        lines += _evidence(c) if evidence else _gist(c)
    good = sum(c.as_expected for c in decided)
    seconds = sum(c.seconds for c in decided)
    rest = "" if evidence else "; --evidence shows statements, sources, witnesses and checks"
    return Group(*lines, Text(f"{good} of {len(decided)} claims decided as recorded, {seconds:.1f} s{rest}"))


def _claim_line(claim: Claim, width: int, mark: str) -> Text:
    line = Text(f"{claim.outcome:<9} ", style=_COLOURS[claim.outcome], no_wrap=True, overflow="ellipsis")
    line.append(f"{claim.id:<{width}}  ", style="bold default").append(claim.title, style="default")
    if not claim.as_expected:
        passed = sum(check.passed for check in claim.evidence)
        found = f"; NOT AS RECORDED ({claim.expected}), {passed} of {len(claim.evidence)} checks passed"
        line.append(found, style="bold red")
    return line.append(f" ({mark})", style="green") if mark else line


def _gist(claim: Claim) -> list[Text]:
    """The condition under which a claim holds, or what refutes it, as far as it fits in a line."""
    gist = f"if {claim.condition}" if claim.condition else claim.witness and f"witness: {claim.witness}"
    return [Text(f"{_INDENT}{gist}", style="dim", no_wrap=True, overflow="ellipsis")] if gist else []


def _evidence(claim: Claim) -> list[RenderableType]:
    parts = [Text(claim.statement), Text(claim.source, style="dim")]
    parts += [Text(f"if {claim.condition}", style="yellow")] if claim.condition else []
    parts += [Text(f"witness: {claim.witness}", style="dim")] if claim.witness else []
    for check in claim.evidence:
        mark = Text("ok " if check.passed else "failed ", style="green" if check.passed else "bold red")
        mark.append(check.text, style="default")
        parts.append(mark.append(f": {check.result}", style="cyan") if check.result else mark)
    return [Padding(Group(*parts), (0, 0, 1, len(_INDENT)))]


def report_page(report: Report) -> RenderableType:
    settings = ", ".join(f"{k} = {v}" for k, v in report.settings.items())
    table = Table(box=box.SIMPLE, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for f in report.findings:
        reason = f"\n[dim]{escape(f.reason)}[/]" if f.reason else ""
        table.add_row(escape(f.topic), f"[{_STATUS[f.outcome]}]{f.outcome}[/]", escape(f.text) + reason)
    title = f"preflight of dH/dt = {escape(str(report.system))}"
    verdict = f"[{_VERDICT[report.outcome]}]{escape(report.verdict)}[/]"
    return Group(Panel(escape(settings), title=title, title_align="left"), table, f"verdict: {verdict}")
