"""Graphs, systems and values for the tests of filters."""

from __future__ import annotations

from functools import cache
from typing import Any

import mpmath
import networkx as nx
import numpy as np
import sympy as sp

from rdgraph.graphs.normalisation import dense_operator
from rdgraph.language.tree import Kind
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.system import System
from rdgraph.theory.equality import dense_oracle as dense

LAM, END, TAU = sp.symbols("lam T tau")
CHANNELS = 2


GRAPHS: dict[str, nx.Graph] = {
    "path": nx.path_graph(7),
    "ring": nx.cycle_graph(6),
    "complete": nx.complete_graph(5),
    "star": nx.star_graph(5),
    "grid": nx.grid_2d_graph(3, 3),
    "tree": nx.random_labeled_tree(9, seed=4),
    "bipartite": nx.complete_bipartite_graph(2, 4),
    "random": nx.gnp_random_graph(9, 0.35, seed=11),
}
LINEAR = [name for name, s in catalogue.single.items() if s.structure.is_polynomial_in_operator]
VALUES = {"alpha": 0.7, "beta": 1.3, "omega": 0.9, "w": 0.6}


@cache
def operator(graph: str) -> np.ndarray:
    return dense_operator(nx.to_numpy_array(GRAPHS[graph]), "symmetric")


def dense_generators(system: System, A: np.ndarray, values: dict[str, Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """(G, S) of H' = G H + S H0 per channel, column by column from the dense interpreter on unit vectors."""
    n = len(A)
    answer = np.zeros((2, CHANNELS, n, n))
    for j in range(n):
        unit, zero = np.zeros((n, CHANNELS)), np.zeros((n, CHANNELS))
        unit[j] = 1.0
        for which, state in enumerate([(unit, zero), (zero, unit)]):
            out = dense.evaluate(system.expression, {"A": A, "H": state[0], "H0": state[1], **values})
            answer[which, :, :, j] = np.broadcast_to(out, (n, CHANNELS)).T
    return [(answer[0, c], answer[1, c]) for c in range(CHANNELS)]


def per_channel(system: System, values: dict[str, Any], channel: int) -> dict[str, float]:
    kinds = system.coefficients
    return {n: float(v[channel] if kinds[n] is Kind.CHANNEL else v) for n, v in values.items()}


def gains(expression: sp.Expr, eigenvalues: np.ndarray, values: dict[str, float], **more: float) -> np.ndarray:
    """A symbolic response at the eigenvalues, with 150 digits and at a distance of 1e-60."""
    names = sorted({x.name for x in expression.free_symbols} - {"lam"})
    known = {**values, **more}
    function = sp.lambdify([LAM, *(sp.Symbol(n) for n in names)], expression, modules="mpmath")
    with mpmath.workdps(150):
        return np.array(
            [
                float(function(mpmath.mpf(float(x)) + mpmath.mpf("1e-60"), *(mpmath.mpf(known[n]) for n in names)))
                for x in eigenvalues
            ]
        )


def draw_values(system: System, seed: int) -> dict[str, Any]:
    """Coefficients of the assumed signs; relations between them are met or the example is dropped."""
    generator = np.random.default_rng(seed)
    values: dict[str, Any] = {}
    for name, kind in system.coefficients.items():
        shape = (CHANNELS,) if kind is Kind.CHANNEL else ()
        sign = system.assumptions.sign(name)
        flip = generator.choice([-1.0, 1.0], shape) if sign == "real" else 1.0
        values[name] = generator.uniform(0.1, 1.5, shape) * (-1 if sign in ("negative", "nonpositive") else flip)
    return values


def unit_of_time(system: System, A: np.ndarray, values: dict[str, Any]) -> float:
    """A time over which the system does something, but not too much: a round number near 1/|G|."""
    size = max(np.abs(X).sum(axis=1).max() for pair in dense_generators(system, A, values) for X in pair)
    return float(f"{1 / max(size, 0.1):.2g}")
