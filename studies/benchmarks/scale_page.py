"""docs/scale.md from the measured numbers: `python -m studies.benchmarks.scale_page`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from studies.runs.boundary import run_program

DOCS = Path(__file__).resolve().parents[2] / "docs"
SOURCE = DOCS / "scale.json"
HEAD = """# Scale

How a search grows with the machines it is given: `rdgraph search --engine ray`
([search](searching.md#on-many-machines)). Numbers in [scale.json](scale.json), this page by
`python -m studies.benchmarks.scale_page`.

## Measured

The same search (GCN with 16 channels on the digits, rounds of two trials on two splits, 40 epochs) in one process, and
on Ray with one and two workers of one thread each. The results are compared to the bit before a row is written.
"""
MODEL = """## A model of many cards

**Not measured.** One round of the paper's search is 50 trials on 10 splits, and a cell has 10 rounds. A round on one
H200 takes what [training_speed.json](training_speed.json) says of the set: texas as one sweep of one shape, cora and
pubmed with the settings of the authors' code. The driver draws the trials of a round, hands them to Ray and writes down
what became of them; that was measured above, as time of its processor. With G cards a search of R rounds takes

    max(ceil(R/min(G, R))*card, R*driver)

seconds. Left out: starting Ray and its workers, the first compilation on every card, sending the data to every machine
once, halving (which makes rounds shorter, and the driver's share larger), and rounds of unequal length.
"""
TAIL = """Bottleneck: `cards` where more of them would help, `rounds` where there are more cards than rounds (a round is
trained on one card, so smaller rounds, `--round`, help), `driver` where the process that draws and tells is the slowest
part (several searches at once, each with its own driver, help).
"""


def page(found: dict[str, Any]) -> str:
    """The page as Markdown."""
    where = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found["environment"].items())
    lines = [HEAD, f'`{found["command"]}` on {where}; {found["trials"]} trials. "Load before" counts the processes ']
    lines[-1] += "that wanted a processor when it began: with more of them than processors, ratios say little."
    lines += [
        "",
        "| engine | workers | seconds | trainings per second | ratio to one Ray worker |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['engine']} | {row['workers']} | {row['seconds']:.1f} | {row['trainings_per_second']:.2f} | "
        f"{row['ratio']:.2f} |"
        for row in found["throughput"]
    ]
    driver = found["driver_seconds_per_round"]
    each = "; ".join(
        f"{name} {seconds:.2f} s, in which a driver hands out {seconds / driver:.0f} others"
        for name, seconds in found["card_seconds_per_round"].items()
    )
    lines += ["", f"The driver takes {driver:.3f} s of its processor for a round of 50 trials on 10 splits.", "", MODEL]
    lines += [f"A round on one card: {each}.", ""]
    lines += [
        "| set | what | cards | seconds | trainings per second | speed-up | bottleneck |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    lines += [
        f"| {row['set']} | {row['what']} | {row['cards']} | {row['seconds']:.1f} | {row['trainings_per_second']:.0f} | "
        f"{row['speedup']:.1f} | {row['bottleneck']} |"
        for row in found["model"]
    ]
    return "\n".join([*lines, "", TAIL])


def main() -> None:
    found = json.loads(SOURCE.read_text(encoding="utf-8"))
    (DOCS / "scale.md").write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
