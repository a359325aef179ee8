"""Published layers held against their formulas: `python -m studies.benchmarks.conform_table --out docs/conform.json`.

Every layer is asked on simple graphs (undirected, neither loops nor weights), and on all of them. Seconds are those of
the processor.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rdgraph as rd
from rdgraph.conformance.conformity import Conformity
from rdgraph.errors import UnknownName
from rdgraph.files import write_text
from studies.benchmarks.published_layers import PublishedLayer, drawn, our_layers, torch_geometric_layers
from studies.benchmarks.speed_rows import command, environment
from studies.runs.boundary import run_program


def table_row(published: PublishedLayer, source: str) -> dict[str, Any]:
    """What was found of one layer, on simple graphs and on all."""
    made = published.make()
    layer = drawn(made) if source == "torch-geometric" else made
    options = published.settings(layer)
    domains = ["the bound graph"] if "graph" in options else ["simple", "all"]
    row: dict[str, Any] = {
        "layer": published.name, "source": source, "formula": published.formula, "equation": published.equation,
        "note": published.note, "verdicts": {},
    }  # fmt: skip
    for domain in domains:
        began = time.process_time()
        graphs: dict[str, Any] = {} if "graph" in options else {"graphs": domain}
        found = rd.conform(layer, published.equation, **options, **graphs)
        row["verdicts"][domain] = {**_short(found), "seconds": round(time.process_time() - began, 2)}
    return row


def _short(found: Conformity) -> dict[str, Any]:
    worth = found.certificate
    return {
        "conforms": found.conforms,
        "reading": found.reading,
        "certificate": None if worth is None else str(worth),
        "proof": bool(worth is not None and worth.is_proof),
        "equation": found.equation,
        "witness": None if found.witness is None else str(found.witness),
        "hints": [str(hint) for hint in found.hints],
        "notes": list(found.notes),
    }


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/conform.json"))
    parser.add_argument("--only", default="", help="layers whose name contains this")
    given = parser.parse_args(words)
    every = [(p, "torch-geometric") for p in torch_geometric_layers()] + [(p, "ours") for p in our_layers()]
    chosen = [(published, source) for published, source in every if given.only in published.name]
    if not chosen:
        raise UnknownName("layer", given.only, [published.name for published, _ in every])
    rows = []
    for published, source in chosen:
        rows.append(row := table_row(published, source))
        for domain, verdict in row["verdicts"].items():
            word = "conforms" if verdict["conforms"] else f"differs: {'; '.join(verdict['hints'][:2])}"
            print(f"{published.name} ({published.note}) {domain}: {word} [{verdict['seconds']} s]")
    line = command("studies.benchmarks.conform_table", sys.argv[1:] if words is None else words)
    if not given.only:
        write_text(given.out, json.dumps({"command": line, "environment": environment("cpu"), "rows": rows}, indent=1))


if __name__ == "__main__":
    run_program(main)
