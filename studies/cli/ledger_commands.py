"""`rdgraph ledger`: every published number and claim with a status, as a tally, table, csv, json or page."""

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
ledger_app = typer.Typer(invoke_without_command=True)


@dataclass(frozen=True)
class LedgerFiles:
    """The sources of the ledger (a folder of results files, files of other people) and its options for rows."""

    folder: Path | None
    added: tuple[Path, ...]
    as_json: bool = False
    others: tuple[str, ...] = ()

    def entries(self) -> list[LedgerEntry]:
        require("the ledger", "gread")
        if self.folder is not None and not self.folder.is_dir():
            raise InvalidArgument(f"there is no folder {self.folder}; name the folder of the results files")
        with StatusLine("reading the ledger", shown=True):
            from studies.ledger.assessment import make_ledger
            from studies.ledger.other_people import read_added

            return make_ledger(self.folder, [one for path in self.added for one in read_added(path)])


@ledger_app.callback()
def ledger_command(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with the tally and the rows.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the rows as csv.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the page of the documentation.")] = False,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help='Rows of this status, such as "not reproduced".')
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", metavar="T", help="Rows of table T: 8, 20, ..., claims.")
    ] = None,
    page: Annotated[Path | None, typer.Option("--page", metavar="FILE", help="Write an HTML page.")] = None,
    add: Annotated[
        list[Path] | None,
        typer.Option(
            "--add",
            metavar="FILE",
            help="Add measurements of others: csv or json with cell, value, who, command[, std, splits].",
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results", metavar="FOLDER", help="Folder of the results files.  [default: that of the package]"
        ),
    ] = None,
) -> None:
    """Compare every published number and claim with ours.

    Without options, prints how many are reproduced; --table and --status list the rows.

    Example: rdgraph ledger --table 8 --status "not reproduced"
    """
    given = {"--csv": as_csv, "--markdown": as_markdown, "--status": status, "--table": table, "--page": page}
    files = LedgerFiles(results, tuple(add or ()), as_json, tuple(name for name, value in given.items() if value))
    context.obj = files
    if context.invoked_subcommand is not None:
        return
    if as_json + as_csv + as_markdown > 1:
        raise InvalidArgument("--json, --csv and --markdown exclude each other; give one of them")
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
        console.print(ledger_forms.answer(every), markup=False, highlight=False)
        console.print(tally_table(every) if status is None and table is None else rows_table(chosen))


@ledger_app.command("show")
def show_command(
    context: typer.Context,
    cell: Annotated[str, typer.Argument(metavar="CELL", help="A cell such as T8/GREAD-BS/cora, T7/MLP/rank or M1.4.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the row as one JSON object.")] = False,
) -> None:
    """Show one published number: ours, settings, command and hash."""
    files = context.obj
    if not isinstance(files, LedgerFiles):
        raise InvalidArgument("run this command as `rdgraph ledger show`")
    if files.others:
        raise InvalidArgument(f"`show` takes one cell, so {files.others[0]} has no effect; leave it out")
    entries = {entry.printed.cell: entry for entry in files.entries()}
    from studies.ledger.ledger_forms import known_of
    from studies.ledger.other_people import find_cell

    entry = entries[find_cell(cell, entries)]
    if as_json or files.as_json:
        sys.stdout.write(json.dumps(entry.row(), indent=1, ensure_ascii=False) + "\n")
        return
    for heading, text in known_of(entry):
        say(console, f"{heading}: {text}", wrap=True)


def tally_table(entries: Sequence[LedgerEntry]) -> FittedTable:
    """Table of the number of rows by table and status."""
    from studies.ledger.entry import status_tally
    from studies.ledger.ledger_forms import table_names

    total = status_tally(entries)
    rows: list[list[str | Text]] = []
    for name in table_names(entries):
        tally = status_tally(entry for entry in entries if entry.printed.table == name)
        rows.append([name, *(str(tally.get(status, "")) for status in total)])
    rows.append([Text(cell, style="bold") for cell in ("all", *map(str, total.values()))])
    headings = ["table", *(status.replace(" ", "\n") for status in total)]
    return FittedTable("rdgraph ledger --table T --status S lists rows", headings, rows)


def rows_table(entries: Sequence[LedgerEntry]) -> FittedTable:
    """Table of rows with their numbers."""
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
