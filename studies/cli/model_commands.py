"""`rdgraph models`: the networks that can be trained by name, as a table, JSON or a page."""

from __future__ import annotations

import csv
import io
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rdgraph.files import write_text
from rdgraph.status_line import StatusLine
from studies.cli.fitted_table import RecordList
from studies.runs.boundary import say
from studies.runs.libraries import require

if TYPE_CHECKING:
    from gread.settings.model_records import ModelRecord

#: The size of the largest component of Cora, which the published splits use.
CORA = {"nodes": 2485, "features": 1433, "classes": 7}
#: Nodes of the ring graphs on which parameters are counted.
RINGS = (8, 10)
HEADINGS = ("name", "network", "family", "update rule", "source", "parameters on Cora", "row in the GREAD paper")

console = Console()
errors = Console(stderr=True)


def models_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list instead of the table.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the page docs/reference/models.md.")] = False,
) -> None:
    """List the networks that can be trained, with their sources."""
    require("a network", "gread")
    with StatusLine("reading the networks", console=errors):
        rows = model_rows()
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
        return
    if as_markdown:
        sys.stdout.write(models_page(rows))
        return
    console.print(RecordList(f"{len(rows)} networks", HEADINGS, [cells(row) for row in rows], ("bold",)))
    say(
        console,
        "train one: rdgraph train --dataset NAME --model M; compare: rdgraph compare --dataset NAME --models M,N",
    )


def model_rows() -> list[dict[str, Any]]:
    """Rows of all networks, sorted by family; only modules of networks that the file lacks are loaded."""
    from gread.settings.model_records import FAMILIES, PLACES, models

    known = known_rows()
    rows = [row for module in PLACES for row in known.get(module) or built_rows(module)]
    rows += [model_row(record) for record in models.added.values()]
    return sorted(rows, key=lambda row: FAMILIES.index(row["family"]))


def built_rows(module: str) -> list[dict[str, Any]]:
    """Rows of the networks of a module, from their records."""
    return [model_row(record) for record in import_module(module).RECORDS]


def model_row(record: ModelRecord) -> dict[str, Any]:
    """A network as a row, with the number of parameters of its defaults on a graph of Cora's size."""
    return {
        "name": record.name, "title": record.title, "family": record.family, "rule": record.rule,
        "source": record.source, "parameters": cora_parameters(record),
        "published": record.published,
    }  # fmt: skip


def known_rows() -> dict[str, list[dict[str, Any]]]:
    """Rows of the networks of this package by module, from their file.

    >>> known_rows()["gread.zoo.classical_networks"][0]["parameters"] == 1433 * 64 + 64 + 64 * 7 + 7
    True
    """
    from gread.settings.model_records import printed_rows

    rows: dict[str, list[dict[str, Any]]] = {}
    for row in printed_rows():
        known = {name: text for name, text in row.items() if name != "place"}
        rows.setdefault(row["place"], []).append({**known, "parameters": int(row["parameters"])})
    return rows


def networks_file() -> str:
    """Text of the file of the networks of this package, with its parameters counted, as this module writes it."""
    from gread.settings.model_records import PLACES

    rows = [{"place": module, **row} for module in PLACES for row in built_rows(module)]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def cora_parameters(record: ModelRecord) -> int:
    """Number of parameters of a network's defaults on Cora, extrapolated from two small rings.

    >>> from gread.settings.model_records import find_model
    >>> cora_parameters(find_model("gcn")) == 1433 * 64 + 64 + 64 * 7 + 7
    True
    """
    from gread.models.batched_model import count_parameters
    from rdgraph.graphs.generators import ring

    sizes = {"features": CORA["features"], "classes": CORA["classes"]}
    few, more = (count_parameters(record.settings(), ring(n), **sizes) for n in RINGS)
    each = (more - few) // (RINGS[1] - RINGS[0])
    return few + each * (CORA["nodes"] - RINGS[0])


def cells(row: dict[str, Any]) -> list[str]:
    """The texts of a row, in the order of the headings."""
    return [f"{value:,}" if isinstance(value, int) else str(value) for value in row.values()]


def models_page(rows: list[dict[str, Any]]) -> str:
    """Text of docs/reference/models.md."""
    lines = [
        "# Networks by name", "",
        "Networks that can be trained by name, all by the same engine with the same protocol: `rdgraph train --model "
        "NAME`, `rdgraph compare --models NAME,NAME`, `GNNClassifier(model=NAME)` and `gread.Config.of(NAME)` accept "
        "them. `find_model(NAME).settings` of `gread.models` documents the settings of each.", "",
        "In the rules A is the normalised adjacency, S attention over the edges, P the mean over neighbours (in "
        "`blend` positions), o the entrywise product, H_0 and H0 the encoded input; other capital letters are learned "
        "matrices, b and c biases. H' is the state after a layer, but in rows with H'' a derivative by time.", "",
        f"Parameters are counted with default settings on Cora, which has {CORA['features']:,} features. The sources "
        "have [titles](literature.md); `register_model` adds a network. This page: `rdgraph models --markdown`.", "",
        f"| {' | '.join(HEADINGS)} |", "|---|---|---|---|---|---:|---|",
    ]  # fmt: skip
    for row in rows:
        name, title, family, rule, *rest = (cell.replace("|", "\\|") for cell in cells(row))
        lines.append(f"| {' | '.join([f'`{name}`', title, family, f'`{rule}`', *rest])} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    from gread.settings.model_records import NETWORKS

    write_text(Path(str(NETWORKS)), networks_file())
