"""How fast the fields of several states are: one evaluation against one field with as many channels in all.

`python -m studies.benchmarks.coupled_fields --device cuda --out docs/several_fields.json` measures these rows alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch

import rdgraph as rd
from rdgraph.graphs.operator import Operator
from studies.benchmarks.sample_operators import random_operator
from studies.benchmarks.speed_rows import SpeedRow, environment
from studies.benchmarks.timing import median_seconds
from studies.runs.boundary import run_program

#: Systems of two fields, with numbers for their coefficients.
COUPLED = {
    "Schnakenberg": (
        "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v",
        {"a": 0.1, "b": 0.9, "Du": 0.01, "Dv": 1.0},
    ),
    "two linear fields": (
        "u' = -Du*L@u + a*v; v' = -Dv*L@v - b*u",
        {"a": 0.1, "b": 0.9, "Du": 0.01, "Dv": 1.0},
    ),
    "GraphCON with tanh": ("H'' = -gamma*H - alpha*H' + tanh(A@H)", {"alpha": 1.0, "gamma": 1.0}),
}
#: One field with one product and one nonlinear term.
SINGLE = ("-alpha*L@H + beta*H*(1 - H**2)", {"alpha": 1.0, "beta": 0.5})


def coupled_rows(op: Operator, device: str, size: str) -> Iterator[SpeedRow]:
    """Two fields of 32 channels against one field of 64, on one operator."""
    x = torch.randn(op.num_nodes, 64, device=device)
    single = rd.lower(SINGLE[0], op, SINGLE[1]).prepared()
    with torch.no_grad():
        for name, (text, values) in COUPLED.items():
            field = rd.lower(text, op, values).prepared()
            rounds = [
                [median_seconds(partial(one, 0.0, x), device, seconds=0.3) for one in (field, single)] for _ in range(3)
            ]
            own, peer = (min(times) for times in zip(*rounds, strict=True))
            what = f"{name}, {size}, two fields of 32 channels"
            target = "<= 1.1" if device == "cuda" else ""
            yield SpeedRow.against(
                "fields", what, own, f"Allen-Cahn, 64 channels, {peer * 1e3:.2f} ms", own / peer, target
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="write the numbers to this json file")
    options = parser.parse_args()
    nodes, entries = (10**6, 2 * 10**7) if options.device == "cuda" else (10**4, 2 * 10**5)
    torch.manual_seed(0)
    operator = random_operator(nodes, entries, options.device)
    rows = list(coupled_rows(operator, options.device, f"{nodes} nodes, {operator.num_edges} entries"))
    for row in rows:
        print(f"{row.what}: {row.seconds * 1e3:.3f} ms, {row.ratio:.2f} of {row.peer} {row.target}")
    if options.out:
        command = f"python -m studies.benchmarks.coupled_fields --device {options.device} --out {options.out.name}"
        found = {"command": command, "environment": environment(options.device), "rows": [asdict(row) for row in rows]}
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
