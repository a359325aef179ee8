"""`rdgraph data`: lists, fetches and checks data sets, and compares their statistics with the paper's table."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rdgraph.errors import InvalidArgument
from rdgraph.status_line import StatusLine
from rdgraph.wording import counted
from studies.cli.fitted_table import FittedTable
from studies.cli.options import Root
from studies.runs.boundary import say

if TYPE_CHECKING:
    from studies.datasets.local_sets import LocalSets

data = typer.Typer(help="List, fetch and check data sets.", no_args_is_help=True)

console = Console()
errors = Console(stderr=True)

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Data sets.  [default: all available]")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")]


@data.command("list")
def list_command(root: Root = None, as_json: AsJson = False) -> None:
    """List the data sets: size, source and availability."""
    from studies.datasets.local_sets import LocalSets, all_names

    local = LocalSets(root)
    rows = [local.describe(name) for name in all_names()]
    if as_json:
        _print_json(rows)
        return
    shown = [
        [row["name"], f"{row['nodes']:,}", _size(row["bytes"]), row["from"], row["state"], row["title"]] for row in rows
    ]
    headings = ("name", "nodes", "size", "from", "state", "title")
    console.print(FittedTable("Data sets: gread.load_dataset(NAME)", headings, shown))
    say(console, "rdgraph data fetch NAME downloads a data set")


@data.command("fetch")
def fetch_command(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Data sets by name, or all.")],
    root: Root = None,
    offline: Annotated[bool, typer.Option("--offline", help="Download nothing; fail if a file is missing.")] = False,
) -> None:
    """Download data sets and check their sha256.

    Example: rdgraph data fetch cora citeseer
    """
    from studies.datasets.local_sets import LocalSets, all_names

    local = LocalSets(root)
    for name in all_names() if names == ["all"] else [local.named(name) for name in names]:
        files = local.fetch(name, offline=offline)
        say(console, f"{name}: {files} files available" if files else f"{name}: needs no files")


@data.command("table")
def table_command(
    names: Names = None,
    root: Root = None,
    as_json: AsJson = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print markdown tables.")] = False,
) -> None:
    """Compare statistics of data sets with the paper's, with reasons.

    Example: rdgraph data table karate digits
    """
    from gread.datasets.published_comparison import compare
    from studies.cli.data_pages import markdown_page, rich_page, sections, summary
    from studies.datasets.local_sets import LocalSets

    local = LocalSets(root)
    chosen, missing = _available(local, names)
    with StatusLine("counting", console=errors) as status:
        twins = {name: local.twins(name) for name in status.track(chosen, "data set")}
        facts = [local.facts(name) for name in chosen]
        compared = {f.name: compare(f, local.facts_or_none) for f in facts}
    if as_json:
        rows = [
            {**f.to_dict(), "twins": twins[f.name].to_dict(), "paper": [c.to_dict() for c in compared[f.name]]}
            for f in facts
        ]
        _print_json({"sets": rows, "not_is_available": missing})
        return
    every = [c for rows in compared.values() for c in rows]
    notes = [*([summary(every)] if every else []), *_missing_note(missing)]
    parts = sections(facts, twins, compared)
    if as_markdown:
        say(console, markdown_page(parts, notes))
    else:
        console.print(rich_page(parts, notes))


@data.command("check")
def check_command(names: Names = None, root: Root = None, as_json: AsJson = False) -> None:
    """Check data sets: sha256, sizes, oddities; exits with 1 on a failure."""
    from studies.datasets.local_checks import BAD, check
    from studies.datasets.local_sets import LocalSets

    local = LocalSets(root)
    chosen, missing = _available(local, names)
    with StatusLine("checking", console=errors) as status:
        checks = [c for name in status.track(chosen, "data set") for c in check(local, name)]
    bad = [c for c in checks if c.status == BAD]
    if as_json:
        _print_json({"checks": [c.to_dict() for c in checks], "bad": len(bad), "not_is_available": missing})
    else:
        rows = [[c.name, c.what, c.status, c.text] for c in checks]
        console.print(FittedTable("Checks", ("set", "check", "status", "result"), rows))
        checked = f"{counted(len(chosen), 'data set')} checked, {counted(len(bad), 'check')} failed"
        for note in (checked, *_missing_note(missing)):
            say(console, note)
    if bad:
        raise typer.Exit(1)


def _available(local: LocalSets, names: list[str] | None) -> tuple[list[str], list[str]]:
    """The available and the missing sets among those chosen; a set given by name must be available."""
    from studies.datasets.local_sets import all_names

    chosen = list(dict.fromkeys(local.named(name) for name in names)) if names else list(all_names())
    missing = [name for name in chosen if not local.is_available(name)]
    if names and missing:
        raise InvalidArgument(
            f"{', '.join(missing)} has not been downloaded; run rdgraph data fetch {' '.join(missing)}"
        )
    return [name for name in chosen if name not in missing], missing


def _missing_note(missing: list[str]) -> list[str]:
    return [f"not available: {', '.join(missing)}; rdgraph data fetch NAME downloads them"] if missing else []


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.0f} kB" if count else "-"


def _print_json(value: object) -> None:
    sys.stdout.write(json.dumps(value, indent=2) + "\n")
