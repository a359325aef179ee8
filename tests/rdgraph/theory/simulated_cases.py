"""Systems with invariant boxes and numbers for their coefficients, for tests that hold claims in simulation."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import sympy as sp

import rdgraph as rd
from rdgraph.systems.system import System


def at(expression: sp.Expr, values: dict[str, float]) -> float:
    letters = sorted(expression.free_symbols, key=str)
    return float(sp.lambdify(letters, expression, modules="mpmath")(*(values[x.name] for x in letters)))


BOXES: dict[str, tuple[str, tuple[str, ...]]] = {
    "F": ("F", ()), "AC": ("AC", ()), "Z": ("Z", ()),
    "F, beta<0": ("F", ("beta<0",)), "AC, beta<0": ("AC", ("beta<0",)), "Z, beta<0": ("Z", ("beta<0",)),
    "Nagumo": ("Nagumo", ()), "diffusion": ("diffusion", ()), "APPNP": ("APPNP", ()),
    "FB": ("FB", ("beta <= alpha",)), "shifted": ("-alpha*L@H + beta*(H - 1)*(3 - H)", ()),
    "two hops": ("-(alpha + gamma)*H + alpha*A@H + gamma*A@A@H + beta*H*(1 - H)", ()),
    "damped": ("-alpha*L@H - beta*H**3", ()), "FB-released": ("FB-released", ()),
    "cubic": ("-alpha*L@H - beta*(H - 1)*(H + 2)*H", ()), "constant": ("-alpha*L@H + beta - gamma*H", ()),
    "leaking": ("-alpha*H + beta*A@H", ("beta <= alpha",)),
}  # fmt: skip


def coefficients_of(system: System, generator: np.random.Generator) -> dict[str, float]:
    values = {}
    for name in system.coefficients:
        size = float(generator.uniform(0.2, 2.0))
        values[name] = -size if system.assumptions.sign(name) == "negative" else size
    if system.name == "Nagumo":
        values["a"] /= 2.1
    for relation in system.assumptions.relations:
        if str(relation) == "beta <= alpha":
            values["beta"] = values["alpha"] * float(generator.uniform(0, 1))
    return values


@cache
def box_of(name: str, normalisation: str) -> Any:
    text, assume = BOXES[name]
    return rd.invariant_box(rd.parse(text, assume=assume), normalisation)
