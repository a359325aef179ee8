"""Table 9 of the paper: degrees of the synthetic Cora, `python -m studies.homophily.degrees > docs/degrees.json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gread.datasets.synthetic import published_degrees
from studies.homophily.levels import graph_names, level_graph, level_of, settings_of_table
from studies.runs.boundary import run_program
from studies.runs.tables import MutableRow

#: The columns of the table, and what each is of the degrees of a graph.
QUANTITIES: Mapping[str, Callable[[np.ndarray], float]] = {
    "average_degree": lambda degrees: float(degrees.mean()),
    "max_degree": lambda degrees: float(degrees.max()),
    "min_degree": lambda degrees: float(degrees.min()),
}


def degree_rows(s: Mapping[str, Any]) -> list[MutableRow]:
    """For every level and column the mean over the graphs and its deviation, beside what is printed."""
    printed = {row.homophily: row for row in published_degrees()}
    rows: list[MutableRow] = []
    for level in s["levels"]:
        degrees = [np.asarray(level_graph(name).graph.degree) for name in graph_names(s) if level_of(name) == level]
        for quantity, measure in QUANTITIES.items():
            values = [measure(one) for one in degrees]
            paper = float(getattr(printed[level], quantity)) if level in printed else float("nan")
            rows.append({
                "homophily": float(level), "quantity": quantity, "mean": float(np.mean(values)),
                "std": float(np.std(values)), "graphs": len(values), "printed": paper,
            })  # fmt: skip
    return rows


def main() -> None:
    """Write the rows of the full study as json."""
    found = {"command": "python -m studies.homophily.degrees", "rows": degree_rows(settings_of_table(False))}
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    run_program(main)
