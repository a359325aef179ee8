"""What the modes of a linear system do as t -> infinity: growth rate, power of t, and the factor in front.

On an eigenvector of L the system is h' = p h + q h0, so h(t)/h0 = e^{tp} + q (e^{tp} - 1)/p. A Runge-Kutta method with
step tau has R(tau p)^(t/tau) in the place of e^{tp}, source included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.methods.registry import is_exact_flow
from rdgraph.methods.runge_kutta import z
from rdgraph.methods.tableaux import tableau
from rdgraph.syntax.answer_symbols import public
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System

#: Rates below this part of the largest one count as zero.
ZERO_RATE = 1e-9

Symbols = Callable[[np.ndarray, Mapping[str, Any]], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class ModeGrowth:
    """h(t)/h0 ~ factor * t^power * e^{rate t}, each an array over modes (and members or channels)."""

    rate: np.ndarray
    power: np.ndarray
    factor: np.ndarray

    def compare(self, other: ModeGrowth) -> np.ndarray:
        """Sign of which one wins in the end: by rate, then by power."""
        gap = self.rate - other.rate
        near = np.isclose(self.rate, other.rate, rtol=ZERO_RATE, atol=ZERO_RATE)
        return np.where(near, np.sign(self.power - other.power), np.sign(gap))

    def largest(self, chosen: np.ndarray) -> ModeGrowth:
        """The strongest growth among the chosen modes, over axis 0; rate -inf where none is chosen."""
        rate = np.where(chosen, self.rate, -np.inf)
        top = rate.max(axis=0)
        near = chosen & (self.rate >= top - ZERO_RATE * (1 + np.abs(np.where(np.isfinite(top), top, 0.0))))
        power = np.where(near, self.power, 0).max(axis=0)
        factor = np.where(near & (self.power == power), np.abs(self.factor), 0.0).max(axis=0)
        return ModeGrowth(top, power, factor)


def check_symbol(system: System | str, op: Operator) -> None:
    """Whether H' = p(L) H holds on this operator: always with L = I - A; with L = D - A where A itself is not used."""
    system = parse(system)
    if op.degree is not None and "A" in system.letters:
        raise NotApplicable(
            f"expected a normalised operator, since {system.text} contains A, which does not commute with L = D - A; "
            "use symmetric, row or column"
        )


def make_symbols(system: System | str) -> Symbols:
    """A function of (lam, coefficients) that gives p and q, broadcast against each other.

    >>> p, q = make_symbols("ST")(np.array([0.0, 1.0]), {"alpha": 2.0, "beta": 0.5})
    >>> p + 0.0, q
    (array([ 0., -2.]), array([0.5, 0.5]))
    """
    system = parse(system)
    names = tuple(system.coefficients)
    letters = [sp.Symbol(name) for name in ("lam", *names)]
    functions = [sp.lambdify(letters, public(p), "numpy") for p in (system.generator_symbol, system.source_symbol)]

    def symbols(lam: np.ndarray, coefficients: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        missing = [name for name in names if name not in coefficients]
        if missing:
            raise InvalidArgument(f"expected a value for every coefficient, got none for {', '.join(missing)}; add it")
        values = [np.asarray(coefficients[name], dtype=float) for name in names]
        shape = np.broadcast_shapes(lam.shape, *(v.shape for v in values))
        p, q = (np.broadcast_to(np.asarray(f(lam, *values), dtype=float), shape) for f in functions)
        return p, q

    return symbols


def growth(p: np.ndarray, q: np.ndarray, method: str = "exact", step: float | None = None) -> ModeGrowth:
    """Growth of modes with generator p and source q under the exact flow or a Runge-Kutta method with a step.

    >>> g = growth(np.array([-2.0, 0.0, 1.0, -2.0]), np.array([0.0, 3.0, 1.0, 1.0]))
    >>> g.rate, g.power, g.factor
    (array([-2.,  0.,  1.,  0.]), array([0., 1., 0., 0.]), array([1. , 3. , 2. , 0.5]))
    >>> growth(np.array([-3.0]), np.array([0.0]), "euler", 1.0).rate  # |1 - 3| = 2 a step
    array([0.69314718])
    """
    small = ZERO_RATE * (1 + np.abs(p).max(initial=0.0))
    rate = np.where(np.abs(p) <= small, 0.0, p)
    if not is_exact_flow(method):
        if step is None or not step > 0:
            raise InvalidArgument(f"expected a step > 0 for {method}, got {step}")
        stability = sp.lambdify(z, tableau(method).stability, "numpy")
        size = np.abs(np.broadcast_to(np.asarray(stability(step * rate), dtype=float), rate.shape))
        rate = np.log(np.maximum(size, np.finfo(float).tiny)) / step
        rate = np.where(np.abs(rate) <= small, 0.0, rate)
    still, forced = np.abs(p) <= small, np.abs(q) > small
    ratio = np.divide(q, p, out=np.zeros(p.shape), where=~still)
    kept = np.abs(1 + ratio) > ZERO_RATE  # else the source cancels the growing part and the mode stays as it is
    settled = (rate < 0) & forced
    linear = still & forced
    factor = np.where(linear, q, np.where(settled, -ratio, np.where((rate > 0) & kept, 1 + ratio, 1.0)))
    return ModeGrowth(np.where(settled | ((rate > 0) & ~kept), 0.0, rate), np.where(linear, 1.0, 0.0), factor)
