"""Responses as numbers: gains of frequencies, and the maps of a run on a given graph, without cancellation.

With H' = p H + q H0 a run multiplies a frequency by g + q (g - 1)/p, where g is exp(T p) or a product of steps. Near
p = 0 the quotient is a difference of nearly equal numbers; here it is a phi function or a geometric sum instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.methods.registry import is_exact_flow
from rdgraph.methods.runge_kutta import Tableau, z
from rdgraph.methods.tableaux import tableau
from rdgraph.syntax.answer_symbols import lam
from rdgraph.syntax.exact_numbers import exact_number
from rdgraph.systems.system import System

#: (exp(z) - 1)/z is summed as a power series below this size; the first term left out is then below rounding.
SERIES_RADIUS, SERIES_TERMS = 0.25, 13


def response_values(
    system: System, frequencies: Any, T: Any, method: str | Tableau = "exact", step: Any = None
) -> np.ndarray:
    """The response as numbers at an array of frequencies, real or complex; every coefficient must be a number.

    q (g - 1)/p is evaluated as T q phi(T p), phi(z) = (exp(z) - 1)/z, or as a geometric sum of steps: nothing cancels
    where p is as small as a rounding error.

    >>> from rdgraph.systems.parser import parse
    >>> response_values(parse("-L@H + H0"), [0.0, 1e-17], T=1, method="rk4", step=0.01)
    array([2., 2.])
    """
    p, q = _numeric_symbols(system)
    points = np.asarray(frequencies)
    rates, sources = (np.broadcast_to(sp.lambdify(lam, e, "numpy")(points), points.shape) for e in (p, q))
    return forced_gain(rates, sources, T, method, step)


def forced_gain(
    rates: np.ndarray, sources: np.ndarray, T: Any, method: str | Tableau = "exact", step: Any = None
) -> np.ndarray:
    """h(T)/h(0) of h' = p h + q h(0), for arrays of p and q that broadcast; overflow gives inf or nan.

    >>> forced_gain(np.array([-1.0, 0.0]), np.array([1.0, 2.0]), T=3)
    array([1., 7.])
    """
    end = exact_number(T, "T")
    if not end.is_number:
        raise InvalidArgument(f"expected a number T, got {T}")
    with np.errstate(over="ignore", invalid="ignore"):
        if is_exact_flow(method):
            return np.asarray(np.exp(float(end) * rates) + float(end) * sources * _phi(float(end) * rates))
        size = exact_number(step, "step")
        full = int(sp.floor(end / size))
        gain, forcing = _after_steps(tableau(method), float(size), full, rates)
        last, pushed = _after_steps(tableau(method), float(end - full * size), 1, rates)
        return np.asarray(gain * last + sources * (forcing * last + pushed))


def _phi(z: np.ndarray) -> np.ndarray:
    """(exp(z) - 1)/z, 1 at zero, real or complex; a power series near zero."""
    near = np.abs(z) < SERIES_RADIUS
    inside, outside = np.where(near, z, 0.0), np.where(near, 1.0, z)
    series = np.ones_like(inside)
    for k in range(SERIES_TERMS, 1, -1):
        series = 1 + inside / k * series
    return np.where(near, series, (np.exp(outside) - 1) / outside)


def _after_steps(weights: Tableau, size: float, steps: int, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R^n and the integral (R^n - 1)/rate after n steps, the latter as a sum of the powers of R by doubling."""
    argument = size * rates
    increment = sp.lambdify(z, sp.cancel((weights.stability - 1) / z), "numpy")(argument) * np.ones_like(argument)
    factor = 1 + argument * increment
    power, total = np.ones_like(factor), np.zeros_like(factor)
    for bit in f"{steps:b}":
        total, power = total * (1 + power), power * power
        if bit == "1":
            total, power = total + power, power * factor
    return power, size * increment * total


def run_maps(
    system: System, operator: np.ndarray, T: Any, method: str | Tableau = "exact", step: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Matrices that take H0 to the exact state at T and to the computed one, for a dense operator A (n, n).

    A need not be normal, so they say more than its eigenvalues do. Entries that overflow are not finite.

    >>> from rdgraph.systems.parser import parse
    >>> exact, computed = run_maps(parse("-L@H"), np.eye(2)[::-1], T=1, method="euler", step=0.5)
    >>> computed
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    from scipy.linalg import expm

    _numeric_symbols(system)
    end, n = exact_number(T, "T"), len(operator)
    rates, sources = (_matrix(c, operator) for c in (system.structure.generator, system.structure.source))
    zero = np.zeros_like(rates)
    with np.errstate(over="ignore", invalid="ignore"):
        flow = expm(float(end) * np.block([[rates, sources], [zero, zero]]))
        exact = flow[:n, :n] + flow[:n, n:]
        if is_exact_flow(method):
            return exact, exact
        size, weights = exact_number(step, "step"), tableau(method)
        full = int(sp.floor(end / size))
        steps = np.linalg.matrix_power(_step_matrix(weights, float(size), rates, sources), full)
        steps = _step_matrix(weights, float(end - full * size), rates, sources) @ steps
    return exact, steps[:n, :n] + steps[:n, n:]


def _step_matrix(weights: Tableau, size: float, rates: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """One step as a map of (H, H0)."""
    n = len(rates)
    increment = np.zeros_like(rates)
    for coefficient in sp.Poly(sp.cancel((weights.stability - 1) / z), z).all_coeffs():
        increment = increment @ (size * rates) + float(coefficient) * np.eye(n)
    top = [np.eye(n) + size * rates @ increment, size * increment @ sources]
    return np.block([top, [np.zeros((n, n)), np.eye(n)]])


def _matrix(coefficients: dict[int, sp.Expr], operator: np.ndarray) -> np.ndarray:
    """sum_k c_k A^k."""
    total = np.zeros_like(operator)
    for k, c in coefficients.items():
        total = total + float(c) * np.linalg.matrix_power(operator, k)
    return total


def _numeric_symbols(system: System) -> tuple[sp.Expr, sp.Expr]:
    p, q = system.generator_symbol, system.source_symbol
    letters = sorted({x.name for x in (p.free_symbols | q.free_symbols) - {lam}})
    if letters:
        raise NotApplicable(f"expected numbers for all coefficients, got the letters {', '.join(letters)}; set them")
    return p, q
