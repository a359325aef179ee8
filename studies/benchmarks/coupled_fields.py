"""How fast the fields of several states are: one evaluation against one field with as many channels in all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

import rdgraph as rd
from rdgraph.graphs.operator import Operator
from studies.benchmarks.speed_rows import SpeedRow
from studies.benchmarks.timing import median_seconds

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
