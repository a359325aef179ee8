"""`rdgraph presets`: the published settings, as a table with their sources, and each as toml."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rdgraph.errors import UnknownName
from studies.runs.boundary import say

if TYPE_CHECKING:
    from gread.settings.presets import Preset

#: Columns of the table: heading, and the setting below it.
COLUMNS = {
    "name": "name", "adjacency": "adjacency", "method": "method", "T": "time", "step": "step", "d": "hidden",
    "rate": "learning_rate", "decay": "weight_decay", "in": "input_dropout", "drop": "dropout",
}  # fmt: skip
#: The table is never squeezed into fewer columns than this.
NARROWEST = 92

console = Console()
presets_app = typer.Typer(help="Published settings: list them, show one as toml.", invoke_without_command=True)


@presets_app.callback()
def presets_command(
    context: typer.Context,
    reaction: Annotated[str | None, typer.Option("--reaction", help="Of this reaction only, such as BS.")] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", help="For this data set only, such as cora.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list instead of the table.")] = False,
) -> None:
    """List the published settings and where they come from; `rdgraph presets show NAME` prints one as toml."""
    if context.invoked_subcommand is not None:
        return
    from gread.datasets.sources import canonical
    from gread.settings.presets import presets

    every = presets()
    if reaction is not None and reaction not in {p.reaction for p in every}:
        raise UnknownName("reaction with presets", reaction, {p.reaction for p in every})
    name = None if dataset is None else canonical(dataset)
    names = {p.dataset for p in every}
    if name is not None and name not in names:
        raise UnknownName("data set with presets", str(dataset), names)
    rows = [preset_row(p) for p in every if reaction in (None, p.reaction) and name in (None, p.dataset)]
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return
    table = Table(box=box.SIMPLE_HEAD, title=f"{len(rows)} presets", title_justify="left", padding=0, pad_edge=False)
    for heading, column in COLUMNS.items():
        is_text = isinstance(rows[0][column], str) if rows else True
        table.add_column(heading, justify="left" if is_text else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(escape(_shown(row[column])) for column in COLUMNS.values()))
    Console(width=max(console.width, NARROWEST)).print(table)
    sources = {f"{row['name'].rpartition('/')[0]}: {row['source']}": None for row in rows}
    for text in (*sources, "rdgraph train --dataset NAME --reaction R --preset paper|authors takes one"):
        say(console, text)


@presets_app.command("show")
def show_command(name: Annotated[str, typer.Argument(help="A name such as paper/BS/cora.")]) -> None:
    """Print one preset as toml, to be edited and given to `rdgraph train --preset FILE.toml`."""
    from gread.settings.presets import presets

    known = {p.name: p for p in presets()}
    if name not in known:
        raise UnknownName("preset", name, known)
    found = known[name]
    sys.stdout.write(f"# {found.name}\n# {found.source}\n{found.config.toml()}")


def preset_row(preset: Preset) -> dict[str, Any]:
    """A preset as one flat row: name, reaction, data set, every setting, source."""
    parts = (dataclasses.asdict(part) for part in (preset.config.model, preset.config.training))
    every = {k: v for part in parts for k, v in part.items()}
    return {"name": preset.name, "reaction": preset.reaction, "dataset": preset.dataset, **every,
            "source": preset.source}  # fmt: skip


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
