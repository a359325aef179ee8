"""Parts of docs/performance.md: searches, many equations, and graphs of millions of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

EQUATIONS_NOTE = (
    "Different equations, each trained on ten splits for 200 epochs by `gread.discovery`, in a process of its own "
    "whose clock runs from its start: imports, kernels compiled anew, reading, set-up, recording and all epochs are "
    "counted."
)
SEARCH_NOTE = (
    "Trials of the paper's space on ten splits, trained as a search trains them: whole trainings of 200 epochs a "
    "second, planning, set-up and recording counted, kernels compiled before. Where fewer epochs were run, all of it "
    "counts in proportion, so that the rate is a lower bound. Alone: what a sample of these members reaches when each "
    "fills the card with its like."
)
PRINTED_NOTE = (
    "All seven reactions with the paper's settings on the ten splits of its nine data sets, kernels compiled before "
    "(that took {compiling:.0f} s). Running: epochs that were not hidden behind set-up and recording of others."
)
LARGE_NOTE = (
    "One network on a random graph with communities and a power law of degrees; an epoch is a training step and an "
    "evaluation. Before the first epoch: sorting the edges, the data set, the ensemble. Products: the degree of the "
    "polynomial, or the evaluations of all steps. In brackets, what PYTORCH_CUDA_ALLOC_CONF was set to for a row, in a "
    "process of its own."
)


def search_part(found: dict[str, Any]) -> list[str]:
    """A table of searches, and what the whole search of the paper would take; nothing where none was measured."""
    rows = {name: row for name, row in found.items() if name != "paper"}
    if not rows:
        return []
    lines = ["## Searching", "", SEARCH_NOTE, ""]
    lines += ["| data set | methods | trainings | shapes | a second | target | met | alone | share | target | met |"]
    lines += ["|---|---|---:|---:|---:|---:|---|---:|---:|---:|---|"]
    for name, row in rows.items():
        rate, share = row["rate"], row["share"]
        alone = [""] * 4
        if share is not None:
            met = "yes" if share >= row["target_share"] else "no"
            alone = [f"{row['rate_alone']:.3g}", f"{share:.0%}", f"{row['target_share']:.0%}", met]
        cells = [
            name,
            ", ".join(row["methods"]),
            str(row["search"]["trainings"]),
            str(row["search"]["shapes"]),
            f"{rate:.3g}",
        ]
        cells += _target(row["target"], None if row["target"] is None else rate >= row["target"])
        lines.append(f"| {' | '.join([*cells, *alone])} |")
    lines += ["", *(f"- {name}: `{row['command']}` on {_where(row)}." for name, row in rows.items()), ""]
    if paper := found.get("paper"):
        others = [name for name in paper["seconds_per_training"] if name not in paper["measured"]]
        rest = f" The rates of {', '.join(others)} are reckoned from these by their size." if others else ""
        lines += [
            f"The {paper['trainings']:,} trainings of the paper's search would take {paper['hours']:.1f} hours at "
            f"these rates, {paper['hours_with_halving']:.1f} with halving (target {paper['target']:g}).{rest}", "",
        ]  # fmt: skip
    return lines


def printed_part(found: dict[str, Any]) -> list[str]:
    """Where the seconds of the paper's table go, set by set; nothing where they were not measured."""
    if not found:
        return []
    names = ("loading", "planning", "setup", "recording", "running", "seconds")
    lines = ["## The paper's table", "", PRINTED_NOTE.format(compiling=found["compiling"]), ""]
    lines += ["| data set | reading data | planning | set-up | recording | running | seconds |", "|---|" + "---:|" * 6]
    lines += [f"| {row['dataset']} | {' | '.join(f'{row[name]:.1f}' for name in names)} |" for row in found["rows"]]
    met = "" if found["seconds"] <= found["target"] else "not "
    return [
        *lines, "", f"{found['trainings']} trainings in {found['seconds']:.1f} s; the target of {found['target']:g} s "
        f"is {met}met. `{found['command']}` on {_where(found)}{found.get('note', '')}.", "",
    ]  # fmt: skip


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
            name += f" ({row['allocator']})" if row.get("allocator") else ""
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
