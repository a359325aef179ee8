"""What tests of several packages draw: networks with equations of every kind, every method and adjacency; numbers."""

from __future__ import annotations

from random import Random
from typing import Any

import torch

from rdgraph.vocabulary.methods import FIXED

OPERATORS = ("", "A@", "L@", "A@A@", "A@L@", "A@A@A@", "L@L@L@", "A@A@A@A@")
COEFFICIENTS = ("beta", "gamma", "mu", "0.5", "-0.3", "2/3*kappa", "beta*gamma", "tanh(delta)")
FIELDS = ("H", "H0", "(H0 - H)", "(H - 2*H0)")
REACTIONS = (
    "beta*tanh(A@H)", "0.4*relu(H)", "-gamma*H**3", "beta*H*(1 - H)", "tanh(2*H) - H", "0.2*sin(A@A@H)",
    "beta*sigmoid(H0)*H", "0.3*H@W", "-abs(H)*H", "0.5*M*H0", "0.1*softplus(H - 1)*(A@H0)",
)  # fmt: skip
#: Reactions with a flow in closed form, for the splitting.
CLOSED = ("-alpha*L@H + beta*H*(1 - H)", "-alpha*L@H + beta*H - beta*H**3", "alpha*A@H - alpha*H + beta*H*H*(1 - H)")


def random_numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Normal numbers, alike on every device: they are drawn on the CPU."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def random_networks(count: int, seed: int) -> list[dict[str, Any]]:
    """Settings of small networks, alike for the same seed; two in three are linear.

    >>> [n["method"] for n in random_networks(4, 0)] == [n["method"] for n in random_networks(9, 0)][:4]
    True
    """
    draw = Random(seed)
    return [_network(draw) for _ in range(count)]


def _network(draw: Random) -> dict[str, Any]:
    adjacency = draw.choice(("original", "soft", "live"))
    is_linear = draw.random() < 0.67
    methods = [*FIXED]
    if adjacency != "live":
        methods += ["dopri5", "imex", *(["exact"] * 4 if is_linear else ["strang"] * 3)]
    method = draw.choice(methods)
    equation = draw.choice(CLOSED) if method == "strang" else _equation(draw, is_linear)
    return {
        "reaction": equation,
        "method": method,
        "step": draw.choice((0.25, 0.5, 1.0)) if method in (*FIXED, "strang", "imex") else None,
        "time": draw.choice((0.7, 1.0, 2.3)),
        "adjacency": adjacency,
        # Without a normalisation L = D - A and A do not commute: no polynomial, and so no closed form.
        "normalisation": draw.choice(("symmetric", "row", "column", *(("none",) if method != "exact" else ()))),
        "self_loops": draw.choice((0.0, 1.0)),
        "beta": "scalar" if method == "strang" else draw.choice(("scalar", "channel")),
        "hidden": 8,
        "attention_dim": 8,
    }


def _equation(draw: Random, is_linear: bool) -> str:
    terms = [f"{draw.choice(COEFFICIENTS)}*{draw.choice(OPERATORS)}{draw.choice(FIELDS)}" for _ in range(2)]
    if not is_linear:
        terms[draw.randrange(2)] = draw.choice(REACTIONS)
    return " + ".join(["-alpha*L@H", *terms])
