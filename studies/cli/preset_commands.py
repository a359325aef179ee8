"""`rdgraph presets`: the published settings as a table with their sources, and each as TOML."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rdgraph.errors import UnknownName
from rdgraph.status_line import StatusLine
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
errors = Console(stderr=True)
presets_app = typer.Typer(invoke_without_command=True)


@presets_app.callback()
def presets_command(
    context: typer.Context,
    model: Annotated[str | None, typer.Option("--model", metavar="NAME", help="Only this network.")] = None,
    reaction: Annotated[str | None, typer.Option("--reaction", metavar="NAME", help="Only this reaction.")] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", metavar="NAME", help="Only this data set.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list instead of the table.")] = False,
) -> None:
    """List the published settings, or print one as TOML.

    Example: rdgraph presets --reaction BS
    """
    if context.invoked_subcommand is not None:
        return
    is_overview = model is None and reaction is None and dataset is None and not as_json
    with StatusLine("reading the presets", console=errors):
        overview = _overview() if is_overview else None
        rows = [] if is_overview else [preset_row(p) for p in _chosen(model, reaction, dataset)]
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return
    if overview is not None:
        console.print(overview)
        say(console, "--reaction, --model and --dataset show the settings and their sources")
    else:
        shown = {heading: column for heading, column in COLUMNS.items() if any(column in row for row in rows)}
        cells = [[_shown(row.get(column)) for column in shown.values()] for row in rows]
        console.print(FittedTable(f"{len(rows)} presets", tuple(shown), cells))
        for text in dict.fromkeys(f"{row['name'].rpartition('/')[0]}: {row['source']}" for row in rows):
            say(console, text)
    say(console, "rdgraph presets show NAME/DATASET prints one as TOML")
    say(
        console,
        "train with one: rdgraph train --dataset NAME --reaction R --preset paper (or --model M --preset published)",
    )


def _chosen(model: str | None, reaction: str | None, dataset: str | None) -> list[Preset]:
    """The presets of a network, of a reaction and for a data set; None stands for all."""
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
    if model is not None and (network := find_model(model).name) not in {p.config.model.model for p in every}:
        raise UnknownName("network with presets", network, {p.config.model.model for p in every})
    return [
        p
        for p in every
        if reaction in (None, p.reaction) and name in (None, p.dataset) and model in (None, p.config.model.model)
    ]


def _overview() -> FittedTable:
    """Table of the presets by name, with the data sets of each; names with the same ones share a row."""
    from gread.settings.presets import preset_names

    datasets: dict[str, list[str]] = {}
    for name, _, dataset in (name.rpartition("/") for name in preset_names()):
        datasets.setdefault(name, []).append(dataset)
    rows: dict[tuple[str, str], str] = {}
    for name, of in datasets.items():
        key = name.partition("/")[0], ", ".join(of)
        rows[key] = f"{rows.get(key, '')} {name}".strip()
    cells = [[names, of] for (_, of), names in rows.items()]
    return FittedTable(f"{sum(map(len, datasets.values()))} presets", ("name", "data sets"), cells, ("bold",))


@presets_app.command("show")
def show_command(name: Annotated[str, typer.Argument(help="A name such as paper/BS/cora.")]) -> None:
    """Print a preset as TOML, for `rdgraph train --preset FILE.toml`."""
    with StatusLine(f"reading {name}", console=errors):
        from gread.settings.presets import named_preset

        preset = named_preset(name)
    sys.stdout.write(f"# {preset.name}\n# {preset.source}\n{preset.config.toml()}")


def preset_row(preset: Preset) -> dict[str, Any]:
    """A preset as one row: name, network, reaction, data set, every setting, source."""
    parts = (dataclasses.asdict(part) for part in (preset.config.model, preset.config.training))
    every = {k: v for part in parts for k, v in part.items()}
    head = {"name": preset.name, "model": preset.config.model.model, "reaction": preset.reaction}
    return {**head, "dataset": preset.dataset, **every, "source": preset.source}


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
