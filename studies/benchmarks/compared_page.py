"""docs/compared.md from the measured numbers: `python -m studies.benchmarks.compared_page`."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

from gread.settings.model_records import models
from studies.benchmarks.accuracy import difference, verdict
from studies.benchmarks.compared import SETS

DOCS = Path(__file__).resolve().parents[2] / "docs"
SOURCE = DOCS / "compared.json"
HEAD = """# The compared networks

Test accuracy in percent, mean over the ten public splits, one seed each: ours, and in brackets what the GREAD paper
prints for the same row. **Bold**: the difference exceeds two of its standard errors. *Italic*: nobody published
settings for the cell, and ours were chosen on the validation nodes from a small grid, with halving; such a cell is
underspecified, whatever it says. Numbers and settings of every cell in [compared.json](compared.json), this page by
`python -m studies.benchmarks.compared_page`.
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


def page(found: dict[str, Any]) -> str:
    """The page as Markdown."""
    rows = {(row["model"], row["dataset"]): row for row in found["rows"]}
    names = [name for name in models if any((name, dataset) in rows for dataset in SETS)]
    where = ", ".join(f"{k} {v}" for k, v in found["environment"].items())
    lines = [HEAD, f"`{found['command']}` on {where}.", "", f"| | {' | '.join(SETS)} |", f"|---|{'---:|' * len(SETS)}"]
    lines += [f"| {models[name].title} | {' | '.join(cell(rows.get((name, d))) for d in SETS)} |" for name in names]
    return "\n".join([*lines, "", *summary(found["rows"]), "", *costs(found["rows"])]) + "\n"


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


def costs(rows: list[dict[str, Any]]) -> list[str]:
    """Seconds of training by network, all cells and configurations together."""
    names = [name for name in models if any(row["model"] == name for row in rows)]
    lines = ["| network | parameters on cora | seconds | configurations tried |", "|---|---:|---:|---:|"]
    for name in names:
        own = [row for row in rows if row["model"] == name]
        cora = next((f"{row['parameters']:,}" for row in own if row["dataset"] == "cora"), "")
        seconds, tried = sum(row["seconds"] for row in own), sum(row["tried"] for row in own)
        lines.append(f"| {models[name].title} | {cora} | {seconds:.1f} | {tried} |")
    return lines


def main() -> None:
    found = json.loads(SOURCE.read_text(encoding="utf-8"))
    (DOCS / "compared.md").write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
