"""What the command line prints: tables and panels built with rich."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

if TYPE_CHECKING:
    from rdgraph.claims import Claim
    from rdgraph.reports.findings import Report
    from rdgraph.reports.summary import Analysis
    from rdgraph.systems.catalogue import CatalogueEntry

_COLOURS = {"holds": "green", "holds if": "yellow", "false": "red", "undecided": "magenta"}
_STATUS = {"ok": "green", "info": "dim", "if": "yellow", "problem": "bold red", "unknown": "magenta"}
_VERDICT = {"safe": "green", "safe if": "yellow", "unsafe": "red", "undecided": "magenta"}


def catalogue_table(entries: Iterable[CatalogueEntry]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title="Catalogue", title_justify="left")
    for heading, style in (("name", "bold"), ("equation: dH/dt =", "cyan"), ("source", "")):
        table.add_column(heading, style=style, overflow="fold")
    for e in entries:
        table.add_row(
            escape(e.name), escape(e.equation), escape(f"{e.title}. {e.source}" + (f". {e.note}" if e.note else ""))
        )
    return table


def entry_panel(entry: CatalogueEntry) -> Panel:
    lines = [f"dH/dt = [cyan]{escape(entry.equation)}[/]", f"source: {escape(entry.source)}"]
    if entry.note:
        lines.append(f"note: {escape(entry.note)}")
    if entry.aliases:
        lines.append(f"also called: {escape(', '.join(entry.aliases))}")
    return Panel("\n".join(lines), title=f"{escape(entry.name)}: {escape(entry.title)}", title_align="left")


def analysis_table(analysis: Analysis) -> Table:
    """Question, answer, note."""
    table = Table(box=box.SIMPLE_HEAD, title=escape(repr(analysis.system)), title_justify="left")
    table.add_column("question", style="bold", no_wrap=True)
    table.add_column("answer", style="cyan", overflow="fold")
    table.add_column("note", style="dim", overflow="fold")
    for key, answer in analysis.words.items():
        if key != "text":
            table.add_row(key, escape(_answer(answer)), escape(analysis.notes.get(key, "")))
    if analysis.filter_classes:
        table.add_row("filter", escape("; ".join(analysis.filter_classes)), "exact flow on lam in [0, 2]")
    if analysis.fastest is not None:
        table.add_row("fastest frequency", escape(analysis.fastest), "")
    table.add_row("method", escape(analysis.method.method), escape(analysis.method.reason))
    table.add_row("energy law", escape(analysis.energy), "E = tr(H^T L H), A symmetric")
    return table


def _answer(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case dict():
            same = len({str(v) for v in value.values()}) == 1
            return (
                _answer(next(iter(value.values())))
                if same
                else "\n".join(f"{k}: {_answer(v)}" for k, v in value.items())
            )
        case list():
            return f"[{', '.join(map(str, value))}]"
    return str(value)


def claims_table(claims: Iterable[Claim], *, evidence: bool) -> RenderableType:
    decided = list(claims)
    table = Table(box=box.SIMPLE_HEAD, title="Claims", title_justify="left")
    for heading in ("claim", "statement", "status", "checks", "as recorded"):
        table.add_column(heading, overflow="fold")
    for c in decided:
        passed = sum(x.passed for x in c.evidence)
        witness = f"\n[dim]witness: {escape(c.witness)}[/]" if c.witness else ""
        table.add_row(
            f"[bold]{escape(c.id)}[/]", f"{escape(c.statement)}\n[dim]{escape(c.source)}[/]{witness}",
            f"[{_COLOURS[c.status]}]{escape(c.verdict)}[/]", f"{passed}/{len(c.evidence)}",
            "yes" if c.as_expected else "[bold red]NO[/]",
        )  # fmt: skip
        if evidence:
            for x in c.evidence:
                mark = "[green]ok[/]" if x.passed else "[bold red]failed[/]"
                table.add_row(
                    "",
                    f"  {mark} {escape(x.text)}" + (f": [cyan]{escape(x.result)}[/]" if x.result else ""),
                    "",
                    "",
                    "",
                )
    good = sum(c.as_expected for c in decided)
    seconds = sum(c.seconds for c in decided)
    return Group(table, f"{good} of {len(decided)} claims decided as recorded, {seconds:.1f} s")


def report_page(report: Report) -> RenderableType:
    settings = ", ".join(f"{k} = {v}" for k, v in report.settings.items())
    table = Table(box=box.SIMPLE, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for f in report.findings:
        reason = f"\n[dim]{escape(f.reason)}[/]" if f.reason else ""
        table.add_row(escape(f.topic), f"[{_STATUS[f.status]}]{f.status}[/]", escape(f.text) + reason)
    title = f"preflight of dH/dt = {escape(str(report.system))}"
    verdict = f"[{_VERDICT[report.status]}]{escape(report.verdict)}[/]"
    return Group(Panel(escape(settings), title=title, title_align="left"), table, f"verdict: {verdict}")
