"""Closed-form flows of entrywise reactions h' = r(h), derived and then checked by differentiation.

Bernoulli reactions a h + b h^m (Fisher m = 2, Allen-Cahn m = 3) become linear in h^(1-m); if a can be 0, the limit
a = 0 is a separate branch. Reactions k h^2 (1 - h) (Zeldovich) lead to y + ln|y| = y0 + ln|y0| - k t with y = (1-h)/h,
that is to Lambert's W.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from rdgraph.answers import Answer, Status, shown
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.answer_symbols import h, h0, public
from rdgraph.reals.condition_words import factored
from rdgraph.reals.domain import NEGATIVE, POSITIVE, ZERO, Domain
from rdgraph.reals.judge import remembered
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System

t = sp.Symbol("t", nonnegative=True)


@dataclass(frozen=True, repr=False)
class ReactionFlow(Answer):
    """h(t) from h(0) = h0; `branches` lists (condition, expression); `rate` is r(h).

    The first branch whose condition holds is the flow for as long as `valid` holds; after that the solution has blown
    up and the formulas are meaningless.
    """

    rate: sp.Expr
    branches: tuple[tuple[sp.Basic, sp.Expr], ...]
    valid: sp.Basic = sp.true

    @property
    def value(self) -> sp.Expr:
        """The flow as one expression."""
        return self.expression

    @property
    def status(self) -> Status:
        """proved: every formula is checked in its equation."""
        return Status.PROVED

    @property
    def reason(self) -> str:
        """The check of the closed form: it satisfies the differential equation and the initial condition."""
        return f"differentiated, it satisfies h' = {self.rate} with h(0) = h0"

    @property
    def conditions(self) -> tuple[sp.Basic, ...]:
        """The condition for as long as which the solution exists."""
        return () if self.valid == sp.true else (self.valid,)

    @property
    def headline(self) -> str:
        return f"h(t) = {shown(self.expression)}"

    @property
    def expression(self) -> sp.Expr:
        """The flow as one expression: a Piecewise where there are several branches."""
        return sp.Piecewise(*((e, c) for c, e in self.branches)) if len(self.branches) > 1 else self.branches[0][1]


@dataclass(frozen=True)
class _Branch:
    """A formula for h' = rate, its condition, and the condition that the solution has not blown up yet."""

    condition: sp.Basic
    rate: sp.Expr
    formula: sp.Expr
    valid: sp.Basic = sp.true

    def check(self) -> None:
        """Raise Undecided unless the formula satisfies the equation and starts at h0."""
        if self.formula == 0:
            return
        residual = sp.diff(self.formula, t) - self.rate.subs(h, self.formula)
        if sp.simplify(residual) != 0:
            raise Undecided(f"the derived flow {self.formula} is not shown to satisfy its equation")
        if not self.formula.has(sp.LambertW) and sp.simplify(self.formula.subs(t, 0) - h0) != 0:
            raise Undecided(f"the derived flow {self.formula} is not shown to start at h0")


@reads_system
@remembered(maxsize=256)
def reaction_flow(system: System) -> ReactionFlow:
    """Flow of the reaction alone: f on states equal in all nodes, where diffusion vanishes.

    Args:
        system: whose reaction is a*h + b*h**m or k*h**2*(1 - h).

    Returns:
        h(t) from h0, by conditions on the coefficients, and for how long it is valid.

    Raises:
        NotApplicable: a reaction without a closed flow.
        Undecided: a flow that is not shown to satisfy its equation.

    >>> import rdgraph as rd
    >>> flow = rd.theory.reaction_flow(rd.parse("F"))
    >>> flow.expression, flow.valid
    (h0*exp(beta*t)/(h0*exp(beta*t) - h0 + 1), h0*(exp(beta*t) - 1) + 1 > 0)
    >>> rd.theory.reaction_flow(rd.parse("(alpha - beta)*H - H**2")).branches[0]
    (Eq(alpha - beta, 0), h0/(h0*t + 1))
    """
    rate = closed_rate(system)
    powers = {m[0]: c for m, c in sp.Poly(rate, h).terms() if c != 0}
    branches = _bernoulli(powers, system.domain) if _is_bernoulli(powers) else _lambert(powers[2])
    for branch in branches:
        branch.check()
    return ReactionFlow(
        public(rate), tuple((public(b.condition), public(b.formula)) for b in branches), public(_valid(branches))
    )


def closed_rate(system: System) -> sp.Expr:
    """The polynomial r(h) of a reaction whose flow is known in closed form; raises `NotApplicable` for any other.

    >>> from rdgraph.systems.parser import parse
    >>> closed_rate(parse("AC"))
    -beta*h**3 + beta*h
    """
    structure = system.structure
    if structure.coupled != 0 or structure.has_source:
        raise NotApplicable(f"no closed flow: {'; '.join(structure.obstacles) or 'the source couples to H0'}")
    rate = sp.expand(structure.scalar_field(h, sp.S.Zero))
    if not rate.is_polynomial(h) or rate.subs(h, 0) != 0:
        raise NotApplicable(f"no closed flow for h' = {public(rate)}; known: a*h + b*h**m and k*h**2*(1 - h)")
    powers = {m[0]: c for m, c in sp.Poly(rate, h).terms() if c != 0}
    is_lambert = set(powers) == {2, 3} and sp.expand(powers[2] + powers[3]) == 0
    if not (_is_bernoulli(powers) or is_lambert):
        raise NotApplicable(f"no closed flow for h' = {public(factored(rate))}; known: a*h + b*h**m and k*h**2*(1 - h)")
    return rate


def _is_bernoulli(powers: dict[int, sp.Expr]) -> bool:
    """Whether a reaction is a h + b h^m."""
    return len(set(powers) - {1}) <= 1


def _valid(branches: list[_Branch]) -> sp.Basic:
    """The validity of the branch that applies."""
    if len({b.valid for b in branches}) == 1:
        return branches[0].valid
    return sp.Or(*(sp.And(b.condition, *(sp.Not(o.condition) for o in branches[:i]), b.valid)
                   for i, b in enumerate(branches)))  # fmt: skip


def _bernoulli(powers: dict[int, sp.Expr], domain: Domain) -> list[_Branch]:
    """h0 exp(a t)/d^(1/n) with n = m - 1 and d = 1 - b h0^n (exp(n a t) - 1)/a, in the limit a = 0 d = 1 - n b h0^n t.

    d is monotone in t and 1 at t = 0: the solution has blown up iff d <= 0.
    """
    a = powers.get(1, sp.S.Zero)
    higher = [m for m in powers if m > 1]
    if not higher:
        return [_Branch(sp.true, a * h, h0 * sp.exp(a * t))]
    n, b = higher[0] - 1, powers[higher[0]]
    sign = domain.sign(a)
    at_rest = sp.true if sign is ZERO else sp.Eq(a, 0)
    resting = _over_root(at_rest, b * h ** (n + 1), h0, 1 - n * b * h0**n * t, n)
    if sign is ZERO:
        return [resting]
    inside = sp.simplify(1 + b / a * h0**n * (1 - sp.exp(n * a * t)))
    moving = _over_root(sp.true, a * h + b * h ** (n + 1), h0 * sp.exp(a * t), inside, n)
    return [moving] if sign in (POSITIVE, NEGATIVE) else [resting, moving]


def _over_root(condition: sp.Basic, rate: sp.Expr, top: sp.Expr, inside: sp.Expr, n: int) -> _Branch:
    formula = sp.cancel(top / inside) if n == 1 else top / inside ** sp.Rational(1, n)
    return _Branch(condition, rate, formula, sp.Gt(inside, 0))


def _lambert(k: sp.Expr) -> list[_Branch]:
    """The flow of k h^2 (1 - h); outside [0, 1] it reaches infinity at k t = 1/h0 + log(1 - 1/h0) < 0, if k < 0."""
    rate, y0 = k * h**2 * (1 - h), (1 - h0) / h0
    argument = y0 * sp.exp(y0 - k * t)
    end = sp.Piecewise((-sp.oo, sp.And(h0 >= 0, h0 <= 1)), (1 / h0 + sp.log(1 - 1 / h0), True))
    valid = sp.Gt(k * t, end)
    return [
        _Branch(sp.Eq(h0, 0), rate, sp.S.Zero, valid),
        _Branch(sp.Gt(h0, 0), rate, 1 / (1 + sp.LambertW(argument)), valid),
        _Branch(sp.true, rate, 1 / (1 + sp.LambertW(argument, -1)), valid),
    ]
