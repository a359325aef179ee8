"""The largest step of several linear fields with numbers for coefficients: guessed by floats, then proved.

A guess comes from eigenvalues at many lam; that a step just below it is stable, and one just above it is not, is
decided exactly (`joint_spectra`). Where every ray of the left half-plane leaves the method's region of stability once
and for good, all smaller steps are stable too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy as sp

from rdgraph.errors import Undecided
from rdgraph.methods.runge_kutta import Tableau, z
from rdgraph.syntax.answer_symbols import lam
from rdgraph.theory.joint_spectra import Block, blocks
from rdgraph.theory.ray_stability import imaginary_limit, leaves_once

#: How far, in parts, a step that is proved unstable lies above one that is proved stable.
WIDTH = sp.Rational(1, 10**9)
#: Largest denominator of a limit that is tried as an exact one.
_DENOMINATOR = 10**4
#: Values of lam at which eigenvalues are looked up, and how often the surroundings of the worst are looked at closer.
_POINTS, _ZOOMS = 401, 6
#: Below this size, or beyond its inverse, a guess is not believed.
_TINY = 1e-8
#: Of the bisection along rays.
_HALVINGS, _ROUNDING = 60, 1e-14


@dataclass(frozen=True)
class JointLimit:
    """The largest step: exact, or proved to be stable while one larger by `WIDTH` is not."""

    value: sp.Expr
    is_exact: bool
    grows: bool
    why: str = ""


def joint_limit(P: sp.Matrix, method: Tableau) -> JointLimit:
    """The largest step at which no mode that the flow damps, or leaves oscillating, is amplified at any lam in [0, 2].

    Args:
        P: the matrix symbol, rational polynomials in lam.
        method: with a region of stability that rays leave once.

    Returns:
        The limit; 0 where no step will do and oo where every step does.

    Raises:
        Undecided: neither was proved.

    >>> from rdgraph.methods.tableaux import methods
    >>> joint_limit(sp.Matrix([[0, 1], [-1 - lam, -sp.Rational(1, 2)]]), methods["euler"]).value
    1/6
    """
    if not leaves_once(method.stability):
        raise Undecided(f"rays enter the region of stability of {method.name} again")
    parts = blocks(P)
    grows = any(block.growing() is not None for block in parts)
    for block in parts:
        if (place := _oscillating(block)) is not None and imaginary_limit(method) == 0:
            why = (
                f"{method.name} amplifies every oscillation that the flow does not damp, as it does near lam = {place}"
            )
            return JointLimit(sp.S.Zero, True, grows, why)
    limits = [_block_limit(block, method) for block in parts if block.is_damping()]
    if not limits:
        return JointLimit(sp.oo, True, grows, "the flow damps no mode")
    value, exact = min(limits, key=lambda pair: float(pair[0]))
    return JointLimit(value, exact, grows)


def _oscillating(block: Block) -> Any | None:
    """A lam at which a mode oscillates for ever, or modes come as near to that as one likes while they are damped."""
    if block.size != 2:
        return None
    trace, product = block.rows[0][0] + block.rows[1][1], block.crossings[0]
    for point in block.points():
        if trace.degree() < 0 and product(point) > 0:
            return point
    return _crossing(trace, product) if trace.degree() > 0 else None


def _crossing(trace: Any, product: Any) -> Any | None:
    """A lam in [0, 2] where the trace vanishes, damped on one side at least, and the determinant is positive."""
    coefficients = [[sp.Rational(int(c.p), int(c.q)) for c in reversed(x.coeffs())] for x in (trace, product)]
    own, other = (sp.Poly(c, lam) if c else sp.Poly(0, lam) for c in coefficients)
    for root in sorted(set(sp.real_roots(own))):
        if 0 <= root <= 2 and sp.N(other.as_expr().subs(lam, root), 30) > sp.Rational(1, 10**20):
            near = [sp.N(own.as_expr().subs(lam, root + side / 10**6), 30) for side in (-1, 1) if 0 <= root + side <= 2]
            if any(x < 0 for x in near) or (root in (0, 2) and _damped_inside(own, root)):
                return root
    return None


def _damped_inside(trace: sp.Poly, root: sp.Expr) -> bool:
    inside = root + (sp.Rational(1, 10**6) if root == 0 else -sp.Rational(1, 10**6))
    return bool(sp.N(trace.as_expr().subs(lam, inside), 30) < 0)


def _block_limit(block: Block, method: Tableau) -> tuple[sp.Expr, bool]:
    """The limit of one block, and whether it is exact."""
    guess, place = _guess(block, method)
    if not _TINY < guess < 1 / _TINY:
        raise Undecided(f"no step was found; eigenvalues ask for one near {guess:.3g}")
    simple = sp.Rational(Fraction(guess).limit_denominator(_DENOMINATOR))
    point = sp.Rational(Fraction(place).limit_denominator(1000))
    if block.touches(method, simple, point) and block.amplified(method, simple) is None:
        return simple, True
    for slack in (float(WIDTH) / 3, 1e-7, 1e-5):
        low, high = (sp.Rational(Fraction(guess * (1 + side * slack))) for side in (-1, 1))
        if block.amplified(method, low) is None and block.amplified(method, high) is not None:
            return _bisected(block, method, low, high), False
    raise Undecided(f"the largest step near {guess:.6g} was not proved")


def _bisected(block: Block, method: Tableau, low: sp.Rational, high: sp.Rational) -> sp.Expr:
    """A stable step, less than `WIDTH` below an unstable one, rounded down to a float."""
    while high > low * (1 + WIDTH / 2):
        middle = sp.Rational(Fraction(float((low + high) / 2)))
        low, high = (middle, high) if block.amplified(method, middle) is None else (low, middle)
    below = float(low)
    return sp.Float(below if Fraction(below) <= Fraction(int(low.p), int(low.q)) else math.nextafter(below, 0), 15)


def _guess(block: Block, method: Tableau) -> tuple[float, float]:
    """The smallest limit of an eigenvalue, and its lam, in floats."""
    import numpy as np

    weights = [float(c) for c in sp.Poly(method.stability, z).all_coeffs()]
    low, high, best = 0.0, 2.0, (np.inf, 0.0)
    for _ in range(_ZOOMS):
        grid = np.linspace(low, high, _POINTS)
        entries = [[_on_grid(entry, grid) for entry in row] for row in block.rows]
        values = np.linalg.eigvals(np.array(entries).transpose(2, 0, 1))
        found = _ray_limits(weights, values).min(-1)
        k = int(np.argmin(found))
        best = min(best, (float(found[k]), float(grid[k])))
        width = (high - low) / (_POINTS - 1)
        low, high = max(0.0, grid[k] - 2 * width), min(2.0, grid[k] + 2 * width)
    return best


def _on_grid(polynomial: Any, grid: Any) -> Any:
    import numpy as np

    descending = [float(sp.Rational(int(c.p), int(c.q))) for c in reversed(polynomial.coeffs())]
    return np.polyval(descending or [0.0], grid)


def _ray_limits(weights: list[float], values: Any) -> Any:
    """The steps at which |R(step*value)| exceeds 1, by bisection; infinite for eigenvalues that grow or are zero."""
    import numpy as np

    size = np.abs(values)
    counts = (size > 1e-12) & (values.real <= 1e-9 * size)
    inverse = 1 / np.where(counts, size, 1.0)
    low, high = np.zeros(values.shape), 64 * inverse
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        stable = np.abs(np.polyval(weights, middle * values)) <= 1 + _ROUNDING
        low, high = np.where(stable, middle, low), np.where(stable, high, middle)
    return np.where(counts, low, np.inf)
