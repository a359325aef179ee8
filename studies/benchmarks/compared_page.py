"""docs/compared.md from the measured numbers: `python -m studies.benchmarks.compared_page`."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from gread.settings.model_records import models
from gread.settings.presets import authors_cells
from studies.benchmarks.accuracy import difference, verdict
from studies.benchmarks.compared import SETS
from studies.runs.boundary import run_program

DOCS = Path(__file__).resolve().parents[2] / "docs"
TABLE = f"|---|{'---:|' * len(SETS)}"
#: Points of difference from which on a cell is an outlier.
FAR = 5.0
HEAD = """# The compared networks

Test accuracy in percent, mean over the ten public splits, one seed each: ours, and in brackets what the GREAD paper
prints for the same row. **Bold**: the difference exceeds two of its standard errors. *Italic*: nobody published
settings for the cell, and ours were chosen on the validation nodes, with halving, from a small grid or among what is
published for other data sets; such a cell is underspecified, whatever it says. Diagonal and general sheaves are not
among the compared rows and were measured on some sets. Numbers and settings of every cell in
[compared.json](compared.json), those of the reactions, with the paper's settings, in [accuracy.json](accuracy.json);
this page by `python -m studies.benchmarks.compared_page`.
"""


def status(row: dict[str, Any]) -> str:
    """agrees, above, below, underspecified, or "" where nothing was published.

    >>> status({"published": None})
    ''
    """
    if row["published"] is None:
        return ""
    gap, error = difference(row["mean"], row["std"], len(row["each"]), row["published"], row["published_std"])
    found = verdict(gap, error)
    return "underspecified" if row["tried"] > 1 and found != "agrees" else found


def cell(row: dict[str, Any] | None) -> str:
    """One cell of the table."""
    if row is None:
        return ""
    text = f"{row['mean']:.1f}" + (f" ({row['published']:.1f})" if row["published"] is not None else "")
    if row["tried"] > 1:
        text = f"*{text}*"
    return f"**{text}**" if status(row) in ("above", "below") else text


def page(
    found: dict[str, Any],
    reactions: Sequence[dict[str, Any]] = (),
    notes: Sequence[dict[str, str]] = (),
    epochs: dict[str, Any] | None = None,
) -> str:
    """The page as Markdown: all cells, those of the reactions, what they come to, outliers, costs."""
    rows = {(row["model"], row["dataset"]): row for row in found["rows"]}
    names = [name for name in models if any((name, dataset) in rows for dataset in SETS)]
    lines = [HEAD, f"`{found['command']}` on {_where(found)}.", "", f"| | {' | '.join(SETS)} |", TABLE]
    lines += [f"| {models[name].title} | {' | '.join(cell(rows.get((name, d))) for d in SETS)} |" for name in names]
    own = {(row["reaction"], row["dataset"]): _as_cell(row) for row in reactions}
    lines += [f"| GREAD-{name} | {' | '.join(cell(own.get((name, d))) for d in SETS)} |" for name in _names(reactions)]
    every = [*found["rows"], *own.values()]
    lines += ["", *summary(every), "", *outliers(every, notes)]
    return "\n".join([*lines, "", *costs(found["rows"], epochs)]) + "\n"


def _names(reactions: Iterable[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["reaction"] for row in reactions))


def _as_cell(row: dict[str, Any]) -> dict[str, Any]:
    """A cell of docs/accuracy.json as one of this table."""
    named = {"model": f"GREAD-{row['reaction']}", "published": row["paper"], "published_std": row["paper_std"]}
    return row | named | {"each": [row["mean"]] * row["splits"], "tried": 1}


def _where(part: dict[str, Any]) -> str:
    return ", ".join(f"{k} {v}" for k, v in part["environment"].items())


def outliers(rows: Sequence[dict[str, Any]], notes: Sequence[dict[str, str]]) -> list[str]:
    """The cells that differ from what was published by more than `FAR` points, with what is known of the cause."""
    far = [row for row in rows if status(row) not in ("", "agrees") and abs(row["mean"] - row["published"]) > FAR]
    lines = [f"## Cells that differ by more than {FAR:g} points", ""]
    lines += ["| network | data set | ours | published | status | cause |", "|---|---|---:|---:|---|---|"]
    for row in sorted(far, key=lambda row: -abs(row["mean"] - row["published"])):
        name = models[row["model"]].title if row["model"] in models else row["model"]
        numbers = f"{row['mean']:.1f} | {row['published']:.1f}"
        lines.append(f"| {name} | {row['dataset']} | {numbers} | {status(row)} | {cause(row, notes)} |")
    return [*lines, "", *(f"{number}. {note['note']}" for number, note in enumerate(notes, 1))]


def cause(row: dict[str, Any], notes: Sequence[dict[str, str]]) -> str:
    """What is known of why a cell differs."""
    for number, note in enumerate(notes, 1):
        if row["model"] in note["network"].split() and row["dataset"] in note["sets"].split():
            return f"{note['cause']} ({number})"
    parts = []
    if row.get("diverged"):
        parts.append(f"as printed, {row['diverged']} of {row['splits']} trainings diverge")
    for found in authors_cells():
        asked = found.beta == "free" and not found.row_features and not found.tanh
        if asked and (f"GREAD-{found.reaction}", found.dataset) == (row["model"], row["dataset"]):
            parts.append(f"the authors' code has {found.mean:.1f} ± {found.std:.1f} on {len(found.splits)} splits")
    return "; ".join(parts) or ("settings were not published" if row["tried"] > 1 else "not explained")


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """How many cells agree, and by how much all differ from what was published."""
    compared = [row for row in rows if row["published"] is not None]
    if not compared:
        return ["Nothing was published for these rows."]
    counts = [status(row) for row in compared]
    words = ", ".join(f"{counts.count(word)} {word}" for word in ("agrees", "above", "below", "underspecified"))
    mean = fmean(abs(row["mean"] - row["published"]) for row in compared)
    return [
        f"{len(compared)} of {len(rows)} cells have a published number: {words}; mean absolute difference {mean:.2f}."
    ]


def costs(rows: list[dict[str, Any]], epochs: dict[str, Any] | None = None) -> list[str]:
    """What training costs by network: an epoch of ten splits of Cora alone on the card, and all cells together."""
    each = {row["model"]: row["milliseconds"] for row in (epochs or {"epochs": []})["epochs"]}
    names = [name for name in models if any(row["model"] == name for row in rows)]
    lines = [
        "## Costs",
        "",
        "Seconds are those of all cells and configurations, several processes beside each other on the",
    ]
    lines += ["card. An epoch is that of ten splits of Cora as one batch, step and evaluation, alone on the card"]
    lines += [f"(`{epochs['command']}` on {_where(epochs)})." if epochs else "(not measured).", ""]
    lines += [
        "| network | parameters on cora | ms per epoch | seconds | configurations tried |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in names:
        own = [row for row in rows if row["model"] == name]
        cora = next((f"{row['parameters']:,}" for row in own if row["dataset"] == "cora"), "")
        seconds, tried = sum(row["seconds"] for row in own), sum(row["tried"] for row in own)
        epoch = f"{each[name]:.2f}" if name in each else ""
        lines.append(f"| {models[name].title} | {cora} | {epoch} | {seconds:.1f} | {tried} |")
    return lines


def main() -> None:
    found, accuracy, epochs = (
        json.loads((DOCS / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("compared", "accuracy", "model_speed")
    )
    notes = list(csv.DictReader((DOCS / "compared_notes.csv").read_text(encoding="utf-8").splitlines()))
    text = page(found, accuracy["paper"]["rows"], notes, epochs)
    (DOCS / "compared.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
