"""Closed-form flows of entrywise reactions h' = r(h), derived and then checked by differentiation.

Bernoulli reactions a h + b h^m (Fisher m = 2, Allen-Cahn m = 3) become linear in h^(1-m). Reactions k h^2 (1 - h)
(Zeldovich) lead to y + ln|y| = y0 + ln|y0| - k t with y = (1-h)/h, that is to Lambert's W.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.symbols import h, h0, public
from rdgraph.system import System

t = sp.Symbol("t", nonnegative=True)


@dataclass(frozen=True)
class ReactionFlow:
    """h(t) from h(0) = h0; `branches` lists (condition, expression); `rate` is r(h)."""

    rate: sp.Expr
    branches: tuple[tuple[sp.Basic, sp.Expr], ...]

    @property
    def expression(self) -> sp.Expr:
        return sp.Piecewise(*((e, c) for c, e in self.branches)) if len(self.branches) > 1 else self.branches[0][1]


@lru_cache(maxsize=256)
def reaction_flow(system: System) -> ReactionFlow:
    """Flow of the reaction alone: f on states equal in all nodes, where diffusion rests.

    >>> from rdgraph.parse import parse
    >>> reaction_flow(parse("F")).expression
    h0*exp(beta*t)/(h0*exp(beta*t) - h0 + 1)
    """
    structure = system.structure
    if structure.coupled != 0 or structure.has_source:
        raise NotApplicable(f"no closed flow: {'; '.join(structure.obstacles) or 'the source couples to H0'}")
    rate = sp.expand(structure.scalar_field(h, sp.S.Zero))
    if not rate.is_polynomial(h) or rate.subs(h, 0) != 0:
        raise NotApplicable(f"no closed flow for h' = {public(rate)}; known: a*h + b*h**m and k*h**2*(1 - h)")
    powers = {m[0]: c for m, c in sp.Poly(rate, h).terms() if c != 0}
    if set(powers) <= {1} or (len(powers) == 2 and 1 in powers):
        branches = _bernoulli(powers)
    elif set(powers) == {2, 3} and sp.expand(powers[2] + powers[3]) == 0:
        branches = _lambert(powers[2])
    else:
        raise NotApplicable(
            f"no closed flow for h' = {public(sp.factor(rate))}; known: a*h + b*h**m and k*h**2*(1 - h)"
        )
    flow = ReactionFlow(public(rate), tuple((public(c), public(e)) for c, e in branches))
    _check(rate, [e for _, e in branches])
    return flow


def _bernoulli(powers: dict[int, sp.Expr]) -> list[tuple[sp.Basic, sp.Expr]]:
    a = powers.get(1, sp.S.Zero)
    higher = [m for m in powers if m > 1]
    if not higher:
        return [(sp.true, h0 * sp.exp(a * t))]
    m, b = higher[0], powers[higher[0]]
    growth = sp.exp((m - 1) * a * t)
    inside = sp.simplify(1 + b / a * h0 ** (m - 1) * (1 - growth))
    if m == 2:
        return [(sp.true, sp.cancel(h0 * sp.exp(a * t) / inside))]
    return [(sp.true, h0 * sp.exp(a * t) / inside ** sp.Rational(1, m - 1))]


def _lambert(k: sp.Expr) -> list[tuple[sp.Basic, sp.Expr]]:
    y0 = (1 - h0) / h0
    argument = y0 * sp.exp(y0 - k * t)
    return [
        (sp.Eq(h0, 0), sp.S.Zero),
        (sp.Gt(h0, 0), 1 / (1 + sp.LambertW(argument))),
        (sp.true, 1 / (1 + sp.LambertW(argument, -1))),
    ]


def _check(rate: sp.Expr, formulas: list[sp.Expr]) -> None:
    """Differentiate: every formula must satisfy the equation and start at h0."""
    for formula in formulas:
        if formula == 0:
            continue
        residual = sp.diff(formula, t) - rate.subs(h, formula)
        if sp.simplify(residual) != 0:
            raise NotApplicable(f"the derived flow {formula} does not satisfy its equation")
        if not formula.has(sp.LambertW) and sp.simplify(formula.subs(t, 0) - h0) != 0:
            raise NotApplicable(f"the derived flow {formula} does not start at h0")
