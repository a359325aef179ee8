"""What the command line prints: tables and panels built with rich."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from rdgraph.reals.basis import ALONE
from rdgraph.wording import counted
from studies.cli.fitted_table import RecordList

if TYPE_CHECKING:
    from rdgraph.reports.claims import Claim
    from rdgraph.reports.findings import Report
    from rdgraph.reports.summary import Analysis
    from rdgraph.systems.catalogue import CatalogueEntry
    from rdgraph.systems.system import System

_COLOURS = {"holds": "green", "holds if": "yellow", "false": "red", "undecided": "magenta"}
#: Indentation below the title of a claim.
_INDENT = " " * 10
_STATUS = {"ok": "green", "info": "dim", "if": "yellow", "problem": "bold red", "unknown": "magenta"}
_VERDICT = {"safe": "green", "safe if": "yellow", "unsafe": "red", "undecided": "magenta"}


def catalogue_table(entries: Iterable[CatalogueEntry]) -> RecordList:
    """Names, equations, typical parameters and sources."""
    rows = [
        [
            e.name,
            _lines(e.equation if "=" in e.equation else f"dH/dt = {e.equation}"),
            _numbers(e.parameters),
            f"{e.title}. {e.source}" + (f". {e.note}" if e.note else ""),
        ]
        for e in entries
    ]
    headings = ("name", "equations", "parameters", "source")
    return RecordList("Catalogue", headings, rows, ("bold", "cyan"))


def _lines(equation: str) -> str:
    """The equations, each on a line."""
    return equation.replace("; ", "\n")


def _numbers(parameters: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in parameters.items())


def entry_panel(entry: CatalogueEntry) -> Panel:
    """One system of the catalogue: equations, source, typical parameters."""
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
    """A system of several fields: LaTeX, the matrix symbol or why there is none, and the terms of each field."""
    from rdgraph.errors import NotApplicable
    from rdgraph.reports.coupling_words import coupling_words

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


def analysis_page(analysis: Analysis, *, everything: bool = False) -> RenderableType:
    """The equation and its main answers; with `everything` each answer with its conditions and the LaTeX as well."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for topic, text in analysis.headlines:
        grid.add_row(topic, Text(text))
    panel = Panel(grid, box=box.ROUNDED)
    if not everything:
        return panel
    table = Table(box=box.SIMPLE, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for heading, answer, note in analysis.rows:
        shown = Text(answer, style="cyan")
        table.add_row(heading, shown.append(f"\n{note}", style="dim not bold not cyan") if note else shown)
    return Group(panel, table, Text("LaTeX", style="bold"), Text(str(analysis.words["latex"])))


def equation_line(system: System) -> Text:
    """The equations, each on a line, which are known before there are answers."""
    return Text(_lines(repr(system)), style="bold cyan")


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
    alone = sum(ALONE in c.engines for c in decided)
    asked = sum(bool(c.engines) for c in decided)
    engines = f"; {asked - alone} of {asked} proofs by a solver confirmed by a second one" if asked else ""
    return Group(*lines, Text(f"{good} of {len(decided)} claims decided as recorded, {seconds:.1f} s{engines}{rest}"))


def _claim_line(claim: Claim, width: int, mark: str) -> Text:
    from rdgraph.reports.coq.record import WHOLE

    line = Text(f"{claim.outcome:<9} ", style=_COLOURS[claim.outcome], no_wrap=True, overflow="ellipsis")
    line.append(f"{claim.id:<{width}}  ", style="bold default").append(claim.title, style="default")
    if ALONE in claim.engines:
        line.append(" (partly by z3 alone)", style="yellow")
    if not claim.as_expected:
        passed = sum(check.passed for check in claim.evidence)
        remark = f"; NOT AS RECORDED ({claim.expected}), {passed} of {len(claim.evidence)} checks passed"
        line.append(remark, style="bold red")
    return line.append(f" ({mark.replace(WHOLE, 'Coq proof')})", style="green") if mark else line


def _gist(claim: Claim) -> list[Text]:
    """The condition of a claim or its counterexample, cut to one line."""
    gist = f"if {claim.condition}" if claim.condition else claim.witness and f"witness: {claim.witness}"
    return [Text(f"{_INDENT}{gist}", style="dim", no_wrap=True, overflow="ellipsis")] if gist else []


def _evidence(claim: Claim) -> list[RenderableType]:
    parts = [Text(claim.statement), Text(claim.source, style="dim")]
    parts += [Text(f"if {claim.condition}", style="yellow")] if claim.condition else []
    parts += [Text(f"witness: {claim.witness}", style="dim")] if claim.witness else []
    parts += [Text(f"decided by {claim.engines}", style="dim")] if claim.engines else []
    for check in claim.evidence:
        mark = Text("ok " if check.passed else "failed ", style="green" if check.passed else "bold red")
        mark.append(check.text, style="default")
        parts.append(mark.append(f": {check.result}", style="cyan") if check.result else mark)
    return [Padding(Group(*parts), (0, 0, 1, len(_INDENT)))]


#: Topics of a preflight that are printed although they decide nothing.
_BACKGROUND = ("method", "graph", "isolated nodes")


def report_page(report: Report, *, everything: bool = False) -> RenderableType:
    """The equations, settings and verdict of a run, and the findings that decide, or all of them."""
    settings = ", ".join(f"{k} = {v}" for k, v in report.settings.items())
    table = Table(box=box.SIMPLE, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    printed = [f for f in report.findings if everything or f.outcome != "info" or f.topic in _BACKGROUND]
    for f in printed:
        text = Text(f.text)
        if f.reason:
            text.append(f"\n{f.reason}", "dim")
        table.add_row(f.topic, Text(f.outcome, _STATUS[f.outcome]), text)
    verdict = Text("verdict: ").append(report.verdict, _VERDICT[report.outcome])
    panel = Panel(Group(equation_line(report.system), Text(settings), verdict), title="preflight", title_align="left")
    others = len(report.findings) - len(printed)
    return Group(panel, table, *([Text(f"--all shows {counted(others, 'further finding')}", "dim")] if others else []))
