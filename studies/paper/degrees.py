"""Graphs of the synthetic Cora by name, and their degrees.

`python -m studies.paper.degrees > studies/results/degrees.json` writes the degrees.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from gread.datasets.node_data import NodeData
from gread.datasets.synthetic import csbm, load_cora, published_degrees, synthetic_cora
from studies.paper.runner import Settings, Sheet
from studies.runs.boundary import run_program
from studies.runs.tables import MutableRow

#: Where the features come from: Cora's, or in the small mode random ones.
CORA, SAMPLE = "cora", "sample"
#: The columns of Table 9, and what each is of the degrees of a graph.
QUANTITIES: Mapping[str, Callable[[np.ndarray], float]] = {
    "average_degree": lambda degrees: float(degrees.mean()),
    "max_degree": lambda degrees: float(degrees.max()),
    "min_degree": lambda degrees: float(degrees.min()),
}


@lru_cache(maxsize=2)
def _source(kind: str) -> NodeData:
    return load_cora() if kind == CORA else csbm(n=100, classes=5, features=8, signal=2.0)


@lru_cache(maxsize=64)
def level_graph(name: str) -> NodeData:
    """The graph SOURCE:HOMOPHILY:SEED with three splits.

    >>> level_graph("sample:0.5:1").num_splits
    3
    """
    kind, level, seed = name.split(":")
    return synthetic_cora(float(level), int(seed), cora=_source(kind))


def graph_names(s: Settings) -> tuple[str, ...]:
    """Every level with every seed."""
    return tuple(f"{s['source']}:{level:g}:{seed}" for level in s["levels"] for seed in range(s["graphs"]))


def level_of(name: str) -> float:
    """The homophily of a graph.

    >>> level_of("sample:0.5:1")
    0.5
    """
    return float(name.split(":")[1])


def degree_rows(s: Settings) -> list[MutableRow]:
    """For every level and column of Table 9 the mean and standard deviation over the graphs, and the printed number."""
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
    rows = degree_rows(Sheet("homophily").settings(False))
    sys.stdout.write(json.dumps({"command": "python -m studies.paper.degrees", "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    run_program(main)
