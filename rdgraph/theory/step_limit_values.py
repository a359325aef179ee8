"""`StepLimit`, the answer about a step, and quotients by cases, of which limits are made."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from rdgraph.decisions.domain import Domain
from rdgraph.decisions.line_extents import in_decimals, is_decimal
from rdgraph.syntax.answer_symbols import public

REAL_SPECTRUM = "the graph is undirected (real spectrum)"


@dataclass(frozen=True)
class StepLimit:
    """The largest step, None where none is known; `means` says what is kept.

    `keeps` is "stability" (linear systems, proved), "box" (Euler and Heun, proved for states inside), "linearised"
    (stability near constant states only), "slopes" (every mode that the linearised flow damps is damped, at every
    state), "equal slopes" (the same at every state that is the same in all nodes, and at no other) or "distances" (two
    runs separate in one step at most by the stability polynomial at step * `rate`, 1 + step * rate for Euler).
    `assumes` is what the graph must be like beyond its normalisation. `directed` is a step, for linear systems, at
    which on directed graphs too no eigenvalue of the step's matrix is larger than 1 in modulus. `sharp` says that
    coefficients and a state were found where a step larger by a hundredth leaves the box, or that states come as near
    as one likes to a damped mode that larger steps amplify.
    """

    value: sp.Expr | None
    means: str
    keeps: str = ""
    assumes: str = ""
    directed: sp.Expr | None = None
    sharp: bool = False
    rate: sp.Expr | None = None


def decimal(limit: sp.Expr) -> sp.Expr:
    """A rational number or oo as it is, another one in 15 digits."""
    return limit if limit.is_Rational or limit == sp.oo else sp.Float(sp.N(limit, 15), 15)


def shown(limit: sp.Expr) -> sp.Expr:
    """A limit in plain letters, bounds as decimal numbers."""
    return in_decimals(public(limit))


def divide(top: sp.Expr, bottom: sp.Expr, domain: Domain) -> sp.Expr:
    """top / bottom branch by branch; where the bottom is zero there is no limit."""
    pieces: list[tuple[sp.Expr, sp.Basic]] = []
    before: tuple[sp.Basic, ...] = ()
    for value, condition in bottom.args if isinstance(bottom, sp.Piecewise) else ((bottom, sp.true),):
        pieces += _quotient(top, value, condition, domain.where(*before))
        before += (sp.Not(condition),)
    return pieces[0][0] if pieces[0][1] == sp.true else sp.Piecewise(*pieces)


def _quotient(top: sp.Expr, bottom: sp.Expr, condition: sp.Basic, domain: Domain) -> list[tuple[sp.Expr, sp.Basic]]:
    if bottom == 0:
        return [(sp.oo, condition)]
    if isinstance(bottom, sp.Max):
        bottom = sp.Max(*(part for part in bottom.args if part != 0))
    is_short = top.is_Rational and bottom.is_rational_function() and not is_decimal(bottom)
    value = sp.cancel(top / bottom) if is_short else top / in_decimals(bottom)
    positive = sp.Gt(bottom, 0)
    if domain.where(condition).proves(positive) is True:
        return [(value, condition)]
    strict = {sp.Ge: sp.Gt, sp.Le: sp.Lt}.get(type(condition))
    if strict is not None and domain.where(strict(*condition.args)).proves(positive) is True:
        return [(value, strict(*condition.args)), (sp.oo, condition)]
    return [(value, sp.And(condition, positive)), (sp.oo, condition)]
