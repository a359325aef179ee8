"""`StepLimit`, the answer about a step, and quotients by cases, of which limits are made."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from rdgraph.answers import Answer, Status, certainty
from rdgraph.language.answer_symbols import public
from rdgraph.reals.branches import branches
from rdgraph.reals.condition_words import in_words
from rdgraph.reals.domain import Domain
from rdgraph.reals.line_extents import in_decimals, is_decimal, round_up

REAL_SPECTRUM = "the graph is undirected (real spectrum)"


@dataclass(frozen=True, repr=False)
class StepLimit(Answer):
    """The largest step, None where none is known; the reason says what is kept.

    `keeps` is "stability" (linear systems, proved), "box" (Euler and Heun, proved for states inside), "linearised"
    (stability near constant states only), "slopes" (every mode that the linearised flow damps is damped, at every
    state), "equal slopes" (the same at every state that is the same in all nodes, and at no other) or "distances" (two
    runs separate in one step at most by the stability polynomial at step * `rate`, 1 + step * rate for Euler).
    `assumes` is what the graph must be like beyond its normalisation. `directed` is a step, for linear systems, at
    which on directed graphs too no eigenvalue of the step's matrix is larger than 1 in modulus. `is_sharp` says that
    coefficients and a state were found where a step larger by a hundredth leaves the box, or that states come as near
    as one likes to a damped mode that larger steps amplify.
    """

    value: sp.Expr | None
    reason: str
    keeps: str = ""
    assumes: str = ""
    directed: sp.Expr | None = None
    is_sharp: bool = False
    rate: sp.Expr | None = None

    @property
    def status(self) -> Status:
        """proved where there is a limit: up to it, what the reason says is kept."""
        return Status.UNDECIDED if self.value is None else certainty(self.reason)

    @property
    def headline(self) -> str:
        return "any step" if self.value == sp.oo else f"step <= {in_words(self.value, -1)}"


def decimal(limit: sp.Expr) -> sp.Expr:
    """A rational number or oo as it is, another one in 15 digits."""
    return limit if limit.is_Rational or limit == sp.oo else sp.Float(sp.N(limit, 15), 15)


def shown(limit: sp.Expr) -> sp.Expr:
    """A limit in plain letters, bounds as decimal numbers."""
    return in_decimals(public(limit))


def divide(top: sp.Expr, bottom: sp.Expr, domain: Domain) -> sp.Expr:
    """top / bottom branch by branch; where the bottom is zero there is no limit."""
    pieces: list[tuple[sp.Expr, sp.Basic]] = []
    for value, conditions in branches(bottom) if isinstance(bottom, sp.Piecewise) else ((bottom, (sp.true,)),):
        pieces += _quotient(top, value, conditions[-1], domain.where(*conditions[:-1]))
    return pieces[0][0] if pieces[0][1] == sp.true else sp.Piecewise(*pieces)


def _quotient(top: sp.Expr, bottom: sp.Expr, condition: sp.Basic, domain: Domain) -> list[tuple[sp.Expr, sp.Basic]]:
    if bottom == 0:
        return [(sp.oo, condition)]
    if isinstance(bottom, sp.Max):
        bottom = sp.Max(*(part for part in bottom.args if part != 0))
    is_short = top.is_Rational and bottom.is_rational_function() and not is_decimal(bottom)
    value = sp.cancel(top / bottom) if is_short else _decimal_quotient(top, bottom)
    # a branch is compared only where its own condition holds: elsewhere it need not be a real number
    positive = sp.Or(*(sp.And(*where, rate > 0) for part in sp.Max.make_args(bottom) for rate, where in branches(part)))
    if domain.where(condition).proves(positive) is True:
        return [(value, condition)]
    strict = {sp.Ge: sp.Gt, sp.Le: sp.Lt}.get(type(condition))
    if strict is not None and domain.where(strict(*condition.args)).proves(positive) is True:
        return [(value, strict(*condition.args)), (sp.oo, condition)]
    return [(value, sp.And(condition, positive)), (sp.oo, condition)]


def _decimal_quotient(top: sp.Expr, bottom: sp.Expr) -> sp.Expr:
    """top / bottom where a bound stands below: a number in front is rounded down to a few digits.

    >>> _decimal_quotient(sp.Integer(2), sp.Rational(11997, 10000) * sp.Symbol("b"))
    1.667/b
    """
    factor, rest = bottom.as_coeff_Mul()
    if not (top.is_Rational or top.is_Float) or not is_decimal(factor) or factor < 0:
        return top / in_decimals(bottom)
    return in_decimals(-round_up(-sp.Rational(top) / factor)) / in_decimals(rest)
