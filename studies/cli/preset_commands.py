"""`rdgraph presets`: the published settings, as a table with their sources, and each as toml."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rdgraph.errors import UnknownName
from studies.cli.fitted_table import FittedTable
from studies.runs.boundary import say

if TYPE_CHECKING:
    from gread.settings.presets import Preset

#: Columns of the table: heading, and the setting below it.
COLUMNS = {
    "name": "name", "adjacency": "adjacency", "method": "method", "T": "time", "step": "step",
    "layers": "layers", "d": "hidden",
    "rate": "learning_rate", "decay": "weight_decay", "in": "input_dropout", "drop": "dropout",
}  # fmt: skip

console = Console()
presets_app = typer.Typer(help="Published settings: list them, show one as toml.", invoke_without_command=True)


@presets_app.callback()
def presets_command(
    context: typer.Context,
    model: Annotated[str | None, typer.Option("--model", help="Of this network only, such as gcn.")] = None,
    reaction: Annotated[str | None, typer.Option("--reaction", help="Of this reaction only, such as BS.")] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", help="For this data set only, such as cora.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list instead of the table.")] = False,
) -> None:
    """List the published settings and where they come from; `rdgraph presets show NAME` prints one as toml."""
    if context.invoked_subcommand is not None:
        return
    from gread.datasets.sources import canonical
    from gread.settings.model_records import find_model
    from gread.settings.presets import presets

    every = presets()
    reactions = {p.reaction for p in every if p.reaction}
    if reaction is not None and reaction not in reactions:
        raise UnknownName("reaction with presets", reaction, reactions)
    name = None if dataset is None else canonical(dataset)
    names = {p.dataset for p in every}
    if name is not None and name not in names:
        raise UnknownName("data set with presets", str(dataset), names)
    if model is not None and (found := find_model(model).name) not in {p.config.model.model for p in every}:
        raise UnknownName("network with presets", found, {p.config.model.model for p in every})
    rows = [
        preset_row(p)
        for p in every
        if reaction in (None, p.reaction) and name in (None, p.dataset) and model in (None, p.config.model.model)
    ]
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return
    shown = {heading: column for heading, column in COLUMNS.items() if any(column in row for row in rows)}
    cells = [[_shown(row.get(column)) for column in shown.values()] for row in rows]
    console.print(FittedTable(f"{len(rows)} presets", tuple(shown), cells))
    sources = {f"{row['name'].rpartition('/')[0]}: {row['source']}": None for row in rows}
    for text in (
        *sources,
        "rdgraph train --dataset NAME takes one: --reaction R --preset paper|authors, --model M --preset published",
    ):
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
    """A preset as one flat row: name, network, reaction, data set, every setting, source."""
    parts = (dataclasses.asdict(part) for part in (preset.config.model, preset.config.training))
    every = {k: v for part in parts for k, v in part.items()}
    head = {"name": preset.name, "model": preset.config.model.model, "reaction": preset.reaction}
    return {**head, "dataset": preset.dataset, **every, "source": preset.source}


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
