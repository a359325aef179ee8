"""`rdgraph ledger`: every published number and claim with a status, as a tally, a table, csv, json or one page."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from rdgraph.errors import InvalidArgument
from rdgraph.files import write_text
from rdgraph.status_line import StatusLine
from studies.cli.fitted_table import FittedTable
from studies.runs.boundary import say
from studies.runs.libraries import require

if TYPE_CHECKING:
    from studies.ledger.entry import LedgerEntry

console = Console()
ledger_app = typer.Typer(
    help="Every published number and claim beside ours, with a status.", invoke_without_command=True
)


@dataclass(frozen=True)
class LedgerFiles:
    """Where the ledger is read from: the folder of results files, and files that other people measured; the options
    that choose and form rows."""

    folder: Path | None
    added: tuple[Path, ...]
    as_json: bool = False
    others: tuple[str, ...] = ()

    def entries(self) -> list[LedgerEntry]:
        require("the ledger", "gread")
        if self.folder is not None and not self.folder.is_dir():
            raise InvalidArgument(f"expected a folder of results files, got {self.folder}; check its name")
        with StatusLine("reading the ledger", shown=True):
            from studies.ledger.assessment import make_ledger
            from studies.ledger.other_people import read_added

            return make_ledger(self.folder, [one for path in self.added for one in read_added(path)])


@ledger_app.callback()
def ledger_command(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: tally and rows.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the rows as csv.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the page of the documentation.")] = False,
    status: Annotated[
        str | None, typer.Option("--status", help='Rows of this status, such as "not reproduced".')
    ] = None,
    table: Annotated[str | None, typer.Option("--table", help="Rows of this table: 8, 20 ... or claims.")] = None,
    page: Annotated[Path | None, typer.Option("--page", metavar="FILE", help="Write one page of html.")] = None,
    add: Annotated[
        list[Path] | None,
        typer.Option("--add", metavar="FILE", help="csv or json of others: cell, value, who, command[, std, splits]."),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="FOLDER", help="The results files.", show_default="those of the package"),
    ] = None,
) -> None:
    """The tally of all published numbers and claims; `rdgraph ledger show CELL` tells all that is known of one."""
    given = {"--csv": as_csv, "--markdown": as_markdown, "--status": status, "--table": table, "--page": page}
    files = LedgerFiles(results, tuple(add or ()), as_json, tuple(name for name, value in given.items() if value))
    context.obj = files
    if context.invoked_subcommand is not None:
        return
    if as_json + as_csv + as_markdown > 1:
        raise InvalidArgument("expected one of --json, --csv and --markdown, got several; choose one")
    every = files.entries()
    from studies.ledger import ledger_forms

    chosen = ledger_forms.chosen_entries(every, status, table)
    if page is not None:
        write_text(page, ledger_forms.as_page(chosen))
        say(Console(stderr=True), f"wrote {page}")
    if as_json or as_csv or as_markdown:
        form = (
            ledger_forms.as_json if as_json else ledger_forms.as_csv if as_csv else ledger_forms.as_markdown
        )  # fmt: skip
        sys.stdout.write(form(chosen))
    elif page is None:
        say(console, ledger_forms.answer(every))
        console.print(tally_table(every) if status is None and table is None else rows_table(chosen))


@ledger_app.command("show")
def show_command(
    context: typer.Context,
    cell: Annotated[str, typer.Argument(help="A cell such as T8/GREAD-BS/cora, T7/MLP/rank or M1.4.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: the row.")] = False,
) -> None:
    """All that is known of one cell: published, ours, settings, what others measured, command, hash."""
    files = context.obj
    if not isinstance(files, LedgerFiles):
        raise InvalidArgument("expected the options of `rdgraph ledger`, got none; run it as `rdgraph ledger show`")
    if files.others:
        raise InvalidArgument(f"expected a cell alone, got {files.others[0]} beside `show`; leave one of them out")
    entries = {entry.printed.cell: entry for entry in files.entries()}
    from studies.ledger.ledger_forms import known_of
    from studies.ledger.other_people import find_cell

    entry = entries[find_cell(cell, entries)]
    if as_json or files.as_json:
        sys.stdout.write(json.dumps(entry.row(), indent=1, ensure_ascii=False) + "\n")
        return
    for heading, text in known_of(entry):
        say(console, f"{heading}: {text}")


def tally_table(entries: Sequence[LedgerEntry]) -> FittedTable:
    """How many rows of every table have each status."""
    from studies.ledger.entry import status_tally

    total = status_tally(entries)
    rows: list[list[str | Text]] = []
    for name in dict.fromkeys(entry.printed.table for entry in entries):
        found = status_tally(entry for entry in entries if entry.printed.table == name)
        rows.append([name, *(str(found.get(status, "")) for status in total)])
    rows.append([Text(cell, style="bold") for cell in ("all", *map(str, total.values()))])
    headings = ["table", *(status.replace(" ", "\n") for status in total)]
    return FittedTable("rdgraph ledger --table T --status S lists rows", headings, rows)


def rows_table(entries: Sequence[LedgerEntry]) -> FittedTable:
    """Rows with their numbers."""
    from studies.ledger.ledger_forms import shown_number

    cells = []
    for entry in entries:
        row = entry.row()
        ours = row["answer"].partition(" ")[0] or shown_number(row["ours"], row["ours_std"]).replace("none", "")
        gap = "" if row["difference"] is None else f"{row['difference']:+z.2f}"
        paper = shown_number(row["published"], row["published_std"]).replace("none", "")
        cells.append([row["cell"], paper, ours, gap, entry.status, row["contradiction"] or row["cause"]])
    headings = ("cell", "paper", "ours", "difference", "status", "cause")
    return FittedTable(f"{len(entries)} rows", headings, cells)
