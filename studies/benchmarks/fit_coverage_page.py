"""docs/fit_coverage.md from the measured numbers: `python -m studies.benchmarks.fit_coverage_page`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from studies.benchmarks.fit_coverage import CASES
from studies.runs.boundary import run_program

DOCS = Path(__file__).resolve().parents[2] / "docs"
SOURCE = DOCS / "fit_coverage.json"
HEAD = """# Do the intervals hold?

How often the 95 % intervals of [`rd.fit`](inverse.md) hold the coefficients that made the data. States were simulated
from a random start, observed at {times} irregular times with normal noise of {noise:g}, at all nodes or at a fifth of
them, and the coefficients fitted from starting values that are off by a third. Numbers in
[fit_coverage.json](fit_coverage.json), this page by `python -m studies.benchmarks.fit_coverage_page`.

`{command}` on {where}.

Of {intervals:,} intervals, **{coverage:.1%}** hold the truth ({low:.1%} to {high:.1%} by Wilson's interval).

| equation | | truth | intervals | hold the truth | from | to |
|---|---|---|---:|---:|---:|---:|"""
CELLS = """
Every cell of the table is one network and one share of observed nodes; the error of a coefficient is the root of the
mean squared relative one.

| equation | network | nodes observed | data sets | coefficient | hold the truth | relative error |
|---|---|---:|---:|---|---:|---:|"""
TAIL = """
The data are as the method takes them to be: the equation is the true one, and the noise is independent, normal and of
one size. The page says nothing of data that are not."""


def page(found: dict[str, Any]) -> str:
    """The page as Markdown."""
    where = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found["environment"].items())
    whole = found["summary"]["all"]
    told = {key: found[key] for key in ("command", "times", "noise")} | whole
    lines = [HEAD.format(where=where, **told)]
    for case in CASES:
        row = found["summary"][case.name]
        truth = ", ".join(f"{name} = {value:g}" for name, value in case.truth.items())
        numbers = " | ".join(f"{row[key]:.1%}" for key in ("coverage", "low", "high"))
        lines.append(f"| {case.name} | `{case.text}` | {truth} | {row['intervals']:,} | {numbers} |")
    lines.append(CELLS)
    for key, cell in found["cells"].items():
        name, network, share = key.split()
        for letter, inside in cell["inside"].items():
            held = f"{inside / cell['repeats']:.1%} | {cell['relative_error'][letter]:.1%}"
            lines.append(f"| {name} | {network} | {float(share):.0%} | {cell['repeats']} | {letter} | {held} |")
    return "\n".join([*lines, TAIL, ""])


def main() -> None:
    """Write the page."""
    found = json.loads(SOURCE.read_text(encoding="utf-8"))
    (DOCS / "fit_coverage.md").write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
