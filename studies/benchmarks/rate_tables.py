"""Parts of docs/performance.md: how many equations a minute are trained, and epochs on graphs of millions of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

EQUATIONS_NOTE = (
    "Different equations, each trained on ten splits for 200 epochs by `gread.discovery`, in a process of its own "
    "whose clock runs from its start: imports, kernels compiled anew, reading, set-up, recording and all epochs are "
    "counted."
)
LARGE_NOTE = (
    "One network on a random graph with communities and a power law of degrees; an epoch is a training step and an "
    "evaluation. Before the first epoch: sorting the edges, the data set, the ensemble. Products: the degree of the "
    "polynomial, or the evaluations of all steps. A network without an accuracy diverged; its epochs cost the same."
)


def equations_part(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A table of rates, with the command of every row."""
    lines = ["## Many different equations", "", EQUATIONS_NOTE, ""]
    lines += [
        "| data set | equations | number | seconds | a minute | target | met |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        cells = [row["dataset"], row["kind"], f"{row['equations']}", f"{row['seconds']:.1f}", f"{row['rate']:.0f}"]
        lines.append(f"| {' | '.join([*cells, *_target(row['target'], row['met'])])} |")
    said = [
        f"{row['dataset']}, {row['kind']}: `{row['command']}` on {_where(row)}{row.get('note', '')}." for row in rows
    ]
    return [*lines, "", *(f"- {line}" for line in said), ""]


def large_part(found: dict[str, Any]) -> list[str]:
    """A table for every size of graph."""
    lines = ["## Graphs of millions of nodes", "", LARGE_NOTE, ""]
    for size, part in found.items():
        lines += [f"### {size}", "", f"`{part['command']}` on {_where(part)}.", ""]
        lines += ["| network | ms per epoch | GiB | products | seconds before | target | met |"]
        lines += ["|---|---:|---:|---:|---:|---:|---|"]
        for row in part["rows"]:
            limit = part["target_before"]
            limit = limit if row["graph_seconds"] else None  # a peer reads no graph of ours
            name = row["what"] if row["val_accuracy"] != 0 else f"{row['what']}, diverged"
            cells = [name, f"{row['ms_per_epoch']:.0f}", f"{row['gib']:.1f}", str(row["products"])]
            met = None if limit is None else row["seconds_before"] <= limit
            cells += [f"{row['seconds_before']:.1f}", *_target(limit, met)]
            lines.append(f"| {' | '.join(cells)} |")
        lines += [f"| {name} | {why} |  |  |  |  |  |" for name, why in part["failed"].items()]
        lines += [""]
    return lines


def _target(target: float | None, met: bool | None) -> list[str]:
    return ["" if target is None else f"{target:g}", "" if met is None else "yes" if met else "no"]


def _where(part: dict[str, Any]) -> str:
    return ", ".join(f"{k} {v}" for k, v in part["environment"].items())
