"""Closed-form borders in a plane of two coefficients: where the fastest mode of a graph neither grows nor decays, and
where it ties with the kernel of L."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import sympy as sp

from analysis.verdicts.asymptotics import growth
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.methods.registry import is_exact_flow
from rdgraph.methods.runge_kutta import z
from rdgraph.methods.tableaux import tableau
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.filters import symbol

POINTS = 801

Window = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Border:
    """The line p(lam) = level of one eigenvalue, drawn where no other mode grows.

    Attributes:
        formula: the line as an equation in the two coefficients and lam.
        lam: the eigenvalue.
        level: 0 for the flow; Runge-Kutta methods add the ends of their stability.
        x: (m,) values of the first coefficient on it, NaN where it is no border or outside the window.
        y: (m,) values of the second one.

    Example:
        See `stability_borders`.
    """

    formula: sp.Eq
    lam: float
    level: float
    x: np.ndarray
    y: np.ndarray

    def __str__(self) -> str:
        return f"{self.formula.lhs} = {self.formula.rhs} at lam = {self.lam:.6g}"


def stability_borders(
    system: System | str,
    lams: np.ndarray,
    names: tuple[str, str],
    window: Window,
    coefficients: Mapping[str, float],
    method: str = "exact",
    step: float | None = None,
) -> list[Border]:
    """Borders between decay and growth of the modes `lams` (k,) in the plane of the two coefficients `names`.

    p must be affine in both, p = a + b x + c y with a, b, c functions of lam, so that every mode gives one line.

    Args:
        system: a `System`, a name of the catalogue, or a line of text.
        lams: (k,) eigenvalues of L.
        names: the two coefficients.
        window: their least and largest values.
        coefficients: numbers for the other coefficients.
        method: "exact" for the flow, or a Runge-Kutta method.
        step: its step.

    Returns:
        The borders inside the window.

    Raises:
        NotApplicable: for a system without a symbol, or whose symbol is not affine in the two.
        InvalidArgument: for a Runge-Kutta method without a step.

    Example:
        >>> window = ((0.0, 1.0), (0.0, 2.0))
        >>> for b in stability_borders("BS", np.array([0.5, 2.0]), ("alpha", "beta"), window, {}): print(b)
        beta = -alpha/(lam - 1) at lam = 0.5
    """
    system = parse(system)
    plane = _Plane.of(system, names, coefficients)
    return _lines(plane, _distinct(lams), window, _levels(method, step), lambda p: growth(p, 0 * p, method, step).rate)


def roughness_borders(
    system: System | str, lams: np.ndarray, names: tuple[str, str], window: Window, coefficients: Mapping[str, float]
) -> list[Border]:
    """Where the flow's fastest mode of `lams` grows as fast as the kernel of L, p(lam) = p(0); for systems without H0.

    On one side the normalised energy tends to zero, on the other it keeps a positive limit.

    Args:
        system: a `System`, a name of the catalogue, or a line of text.
        lams: (k,) eigenvalues of L.
        names: the two coefficients.
        window: their least and largest values.
        coefficients: numbers for the other coefficients.

    Returns:
        The borders inside the window; none for a system with H0.

    Raises:
        NotApplicable: for a system without a symbol, or whose symbol is not affine in the two.

    Example:
        >>> window = ((0.0, 1.0), (0.0, 2.0))
        >>> for b in roughness_borders("FB*", np.array([0.5, 2.0]), ("alpha", "beta"), window, {}): print(b)
        beta = alpha at lam = 0.5
    """
    system = parse(system)
    if system.source_symbol != 0:
        return []
    return _lines(_Plane.of(system, names, coefficients, relative=True), _distinct(lams), window, [0.0], lambda p: p)


def _lines(
    plane: _Plane, lams: np.ndarray, window: Window, levels: list[float], make_rate: Callable[[np.ndarray], np.ndarray]
) -> list[Border]:
    """Lines p = level of the modes, where no mode has a positive rate."""
    found: list[Border] = []
    seen: set[tuple[float, ...]] = set()
    for lam in lams:
        for level in levels:
            line = plane.line(float(lam), level, window)
            if line is None or (ends := _ends(*line)) in seen:  # FB: one line for all modes
                continue
            seen.add(ends)
            x, y = line
            rate = make_rate(plane.value(lams[:, None], x, y)).max(axis=0)
            inside = (y >= window[1][0]) & (y <= window[1][1]) & (x >= window[0][0]) & (x <= window[0][1])
            drawn = inside & (rate <= 1e-7)
            if drawn.sum() > 1:  # a point alone is where lines of all modes cross
                shown = (np.where(drawn, values, np.nan) for values in (x, y))
                found.append(Border(plane.formula(level), float(lam), level, *shown))
    return found


@dataclass(frozen=True, eq=False)
class _Plane:
    """p = a(lam) + b(lam) x + c(lam) y, or p(lam) - p(0) of that form."""

    names: tuple[str, str]
    parts: tuple[sp.Expr, sp.Expr, sp.Expr]

    @classmethod
    def of(
        cls, system: System, names: tuple[str, str], coefficients: Mapping[str, float], relative: bool = False
    ) -> _Plane:
        system.require_single()
        x, y = (sp.Symbol(name) for name in names)
        p = sp.expand(symbol(system).subs({sp.Symbol(k): sp.Rational(repr(float(v))) for k, v in coefficients.items()}))
        p = sp.expand(p - p.subs(sp.Symbol("lam"), 0)) if relative else p
        parts = (p.subs({x: 0, y: 0}), sp.diff(p, x), sp.diff(p, y))
        if any(part.free_symbols - {sp.Symbol("lam")} for part in parts[1:]):
            raise NotApplicable(
                f"expected a symbol that is affine in {names[0]} and {names[1]}, got {p}; sweep other coefficients"
            )
        return cls(names, tuple(sp.factor(part) for part in parts))

    def value(self, lam: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        a, b, c = (np.asarray(sp.lambdify(sp.Symbol("lam"), part, "numpy")(lam), dtype=float) for part in self.parts)
        return np.asarray(a + b * x + c * y)

    def line(self, lam: float, level: float, window: Window) -> tuple[np.ndarray, np.ndarray] | None:
        """Points of p = level, or None where p does not depend on either coefficient."""
        a, b, c = (float(part.subs(sp.Symbol("lam"), lam)) for part in self.parts)
        if max(abs(b), abs(c)) <= 1e-12:
            return None
        if abs(c) >= abs(b):
            x = np.linspace(*window[0], POINTS)
            return x, (level - a - b * x) / c
        y = np.linspace(*window[1], POINTS)
        return (level - a - c * y) / b, y

    def formula(self, level: float) -> sp.Eq:
        a, b, c = self.parts
        x, y = (sp.Symbol(name) for name in self.names)
        height = sp.nsimplify(level) if float(level).is_integer() else sp.Float(level, 8)
        if c != 0:
            return sp.Eq(y, sp.factor((height - a - b * x) / c), evaluate=False)
        return sp.Eq(x, sp.factor((height - a) / b), evaluate=False)


def _distinct(lams: np.ndarray) -> np.ndarray:
    ordered = np.sort(lams)
    return ordered[np.concatenate([[True], np.diff(ordered) > 1e-9])] if len(ordered) else ordered


def _ends(x: np.ndarray, y: np.ndarray) -> tuple[float, ...]:
    return tuple(round(float(value), 9) for value in (x[0], y[0], x[-1], y[-1]))


def _levels(method: str, step: float | None) -> list[float]:
    """Values of p at which a mode neither grows nor decays: |R(step p)| = 1."""
    if is_exact_flow(method):
        return [0.0]
    if step is None:
        raise InvalidArgument(f"expected a step for {method}, got none")
    stability = tableau(method).stability
    roots = {float(r) for side in (1, -1) for r in sp.Poly(stability - side, z).nroots(n=15) if abs(sp.im(r)) < 1e-12}
    return sorted((0.0 if abs(r) < 1e-12 else r / step for r in roots), reverse=True)
