"""Phase diagrams of nonlinear reactions over two coefficients: what constant states the flow goes to, and simulations.

f = r(H) + c_0 H + c_1 A@H + ... with c_k >= 0 for k >= 1 is cooperative where A has entries >= 0: with A@1 = 1 every
entry stays between the solutions of h' = r(h) + sum_k c_k h from the least and from the largest entry of the start. The
zeros of this rate are all found and its signs proved (`rdgraph.patterns.line_states`), so that the prediction holds for
every start in the interval:

    settles at z          both go to the constant state z,
    depends on the start  they go to different places,
    grows without bound   both go to infinity, which takes for ever,
    blows up              both reach infinity in finite time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp
import torch

from rdgraph.decisions.domain import Domain
from rdgraph.errors import InvalidArgument, NotApplicable, Undecided
from rdgraph.graphs.operator import Operator
from rdgraph.patterns.line_states import line_states
from rdgraph.syntax.answer_symbols import h
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.growth_at_infinity import Trend, growth

BLOWS_UP, GROWS, DEPENDS, AGREES, OPEN = (
    "blows up", "grows without bound", "depends on the start", "agrees on a mean", "not predicted",
)  # fmt: skip
#: More different scalar equations than this are not solved.
MAX_EQUATIONS = 1_000
#: Digits of numbers that are put into an equation.
DIGITS = 12


def settles_at(place: float) -> str:
    """The class of members whose entries all go to one constant state."""
    return f"settles at {place:.4g}"


@dataclass(frozen=True)
class Fate:
    """What a scalar equation does from the ends of an interval: the class, its goal, and all constant states."""

    name: str
    goal: float = float("nan")
    states: tuple[float, ...] = ()


def reaction_fates(
    system: System | str,
    op: Operator,
    names: tuple[str, str],
    alphas: np.ndarray,
    betas: np.ndarray,
    coefficients: Mapping[str, float],
    start: tuple[float, float],
) -> list[list[Fate]]:
    """The fates (ny, nx) of starts with all entries in an interval, proved by comparison with two scalar equations.

    Args:
        system: a `System`, a name of the catalogue, or a line of text; one field, without H0.
        op: an operator with A@1 = 1 and entries >= 0.
        names: the two coefficients.
        alphas: (nx,) values of the first one.
        betas: (ny,) values of the second one.
        coefficients: numbers for the others.
        start: the interval of the entries of the start.

    Returns:
        One row for every value of the second coefficient.

    Raises:
        NotApplicable: for a system of another form, or an operator that does not keep constants.

    Example:
        >>> import rdgraph as rd
        >>> op = rd.generators.ring(5).operator("row", dtype=torch.float64)
        >>> fates = reaction_fates("F", op, ("alpha", "beta"), np.ones(1), np.array([-1.0, 1.0]), {}, (0.1, 0.9))
        >>> [row[0].name for row in fates]
        ['settles at 0', 'settles at 1']
    """
    system = parse(system)
    system.require_single()
    structure = system.structure
    if structure.coupled != 0 or structure.has_source:
        raise NotApplicable(
            "expected a polynomial in A plus a reaction in every entry, without H0, for a phase diagram"
        )
    _check_operator(op)
    letters = {name: system.algebra.symbols[name] for name in system.coefficients}
    rate = structure.scalar_field(h, sp.S.Zero)
    averages = [c for k, c in structure.generator.items() if k > 0]
    fixed = {letters[n]: _number(v) for n, v in coefficients.items()}
    fates = []
    for beta in betas:
        row = []
        for alpha in alphas:
            values = {**fixed, letters[names[0]]: _number(alpha), letters[names[1]]: _number(beta)}
            if any(sp.sympify(c.xreplace(values)) < 0 for c in averages):
                row.append(Fate(OPEN))
            else:
                number, shape = sp.factor_terms(sp.expand(rate.xreplace(values))).as_coeff_Mul()
                row.append(_fate(sp.sign(number) * shape, start))
        fates.append(row)
    return fates


def _number(value: Any) -> sp.Rational:
    return sp.Rational(f"{float(value):.{DIGITS}g}")


def _check_operator(op: Operator) -> None:
    ones = torch.ones(op.num_nodes, 1, dtype=op.dtype, device=op.device)
    kept = torch.allclose(op @ ones, ones, atol=1e-9)
    if not kept or bool((op.weights < 0).any()):
        raise NotApplicable(
            "expected an operator with A@1 = 1 and entries >= 0, got another one; take the row normalisation of a "
            "graph without isolated nodes, or a regular graph"
        )


@lru_cache(maxsize=MAX_EQUATIONS)
def _fate(rate: sp.Expr, start: tuple[float, float]) -> Fate:
    """Where the solutions of h' = rate from both ends of an interval go."""
    if rate == 0:
        return Fate(AGREES)
    found = line_states(rate, h)
    if not found.is_complete:
        raise Undecided(f"the constant states of h' = {rate} are not all known; {found.note}")
    places = tuple(float(state.point[h]) for state in found.states)
    ends = {_goal(rate, end, places) for end in start}
    if len(ends) > 1:
        return Fate(DEPENDS, states=places)
    goal = ends.pop()
    if np.isfinite(goal):
        return Fate(settles_at(goal), goal, places)
    way = 1 if goal > 0 else -1
    escapes = growth(rate, h, way, Domain()).trend is Trend.ESCAPING
    return Fate(BLOWS_UP if escapes else GROWS, goal, places)


def _goal(rate: sp.Expr, begin: float, places: tuple[float, ...]) -> float:
    """The next zero in the direction of the rate; infinite without one."""
    speed = float(sp.N(rate.xreplace({h: _number(begin)}), 30))
    if speed == 0 or any(abs(begin - z) < 1e-12 * (1 + abs(z)) for z in places):
        return begin
    ahead = [z for z in places if (z - begin) * speed > 0]
    return min(ahead, key=lambda z: abs(z - begin)) if ahead else float(np.copysign(np.inf, speed))


def check_start(start: tuple[float, float]) -> tuple[float, float]:
    """Two finite numbers, the smaller one first."""
    lower, upper = (float(end) for end in start)
    if not (np.isfinite([lower, upper]).all() and lower < upper):
        raise InvalidArgument(f"expected an interval of finite numbers for the start, got {start}; give (0.1, 0.9)")
    return lower, upper
