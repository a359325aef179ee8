"""A graph as a user has it: two csv files."""

from __future__ import annotations

from pathlib import Path

from gread.datasets.embedded import karate


def club_files(folder: Path) -> tuple[Path, Path]:
    """The karate club as the edges e.csv and the nodes club.csv, without splits."""
    edges, nodes = folder / "e.csv", folder / "club.csv"
    data = karate()
    pairs = data.graph.edge_index.T.tolist()
    edges.write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in pairs))
    rows = (f"{k},{'ab'[c]},{k % 3},{k % 5}\n" for k, c in enumerate(data.y.tolist()))
    nodes.write_text("id,label,u,v\n" + "".join(rows))
    return edges, nodes
