"""Do solutions exist for all time? Global existence proofs, and blow-up shown on states that are equal in all nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from rdgraph.decide import BOTH, NEGATIVE, NONNEGATIVE, NONPOSITIVE, POSITIVE, UNKNOWN, ZERO, Domain
from rdgraph.lipschitz import one_sided
from rdgraph.normal import H0, Act, H, Mix, relu, sigmoid, softplus
from rdgraph.slopes import keeps_away_from_zero
from rdgraph.symbols import h, h0, public
from rdgraph.system import System
from rdgraph.wording import factored

GLOBAL, LOCAL, UNDECIDED = "global", "local", "undecided"


@dataclass(frozen=True)
class BlowUp:
    """A state, equal in all nodes, that reaches infinity: from which h0, and when (None if not integrated).

    `way` is +1 or -1; without a closed condition every h0 far enough on that side blows up.
    """

    way: int
    condition: sp.Basic | None = None
    time: sp.Expr | None = None

    def __str__(self) -> str:
        far = "large enough" if self.way > 0 else "negative enough"
        when = "in finite time" if self.time is None else f"at t = {self.time}"
        return f"from {self.condition if self.condition is not None else 'h0 ' + far}: blows up {when}"


@dataclass(frozen=True)
class Existence:
    """global, local (can blow up) or undecided, with the reason."""

    status: str
    reason: str
    blow_ups: tuple[BlowUp, ...] = ()


@lru_cache(maxsize=256)
def existence(system: System) -> Existence:
    """Whether every solution lives for all time.

    >>> from rdgraph.parse import parse
    >>> existence(parse("F")).blow_ups[0].time
    log(1 - 1/h0)/beta
    >>> existence(parse("AC")).status
    'global'
    """
    trouble = _not_locally_lipschitz(system.normal)
    if trouble:
        return Existence(UNDECIDED, trouble)
    structure = system.structure
    if structure.linear:
        return Existence(GLOBAL, "the vector field is affine in H")
    if structure.is_pointwise:
        bound = one_sided(system)
        if bound.value is not None:
            return Existence(
                GLOBAL, f"one-sided Lipschitz constant {bound.value}: solutions separate and grow at most exponentially"
            )
    if _growth(system.normal) <= 1:
        return Existence(GLOBAL, "locally Lipschitz with at most linear growth")
    return _on_constants(system)


def _on_constants(system: System) -> Existence:
    """On A@1 = 1 a state equal in all nodes follows a scalar equation; its blow-up is a blow-up of the system."""
    if system.normal.has(Mix):
        return Existence(UNDECIDED, "channel mixing: neither a growth bound nor a scalar subsystem was found")
    start = sp.S.Zero if not system.normal.has(H0) else h0
    scalar = sp.expand(_drop_operators(system.normal).xreplace({H: h, H0: start}))
    if not scalar.is_polynomial(h):
        return _non_polynomial(scalar, system)
    polynomial = sp.Poly(scalar, h)
    if polynomial.degree() < 2:
        return Existence(UNDECIDED, "no growth bound was found, and states equal in all nodes do not blow up")
    if not _outgrows_start(scalar, polynomial.degree()):
        return Existence(UNDECIDED, "the source in H0 grows as fast as the state; a start H0 far out may be held back")
    domain = Domain.of(system)
    sign = domain.sign(polynomial.LC())
    ways = _ways(polynomial.degree(), sign)
    if ways is None:
        return Existence(UNDECIDED, f"the sign of {public(polynomial.LC())} is not known; assume one")
    if not ways:
        return Existence(UNDECIDED, "states equal in all nodes stay bounded; no growth bound for the others was found")
    found = tuple(_blow_up(polynomial, way, domain, autonomous=not system.normal.has(H0)) for way in ways)
    condition = "" if sign in (POSITIVE, NEGATIVE) else f", depending on the sign of {public(polynomial.LC())}"
    reason = f"on states equal in all nodes (A@1 = 1) h' = {public(factored(scalar))} reaches infinity{condition}"
    return Existence(LOCAL, reason, found)


def _outgrows_start(scalar: sp.Expr, degree: int) -> bool:
    """The solution starts at h0 itself: terms with h0 must be of lower joint degree than the leading power of h."""
    if not scalar.has(h0):
        return True
    if not scalar.is_polynomial(h, h0):
        return False
    return all(sum(powers) < degree for powers in sp.Poly(scalar, h, h0).monoms() if powers[1] > 0)


def _ways(degree: int, sign: str) -> tuple[int, ...] | None:
    """Directions (+1, -1) in which a scalar polynomial equation can blow up; None if the sign is unknown."""
    if sign == POSITIVE:
        return (1,) if degree % 2 == 0 else (1, -1)
    if sign == NEGATIVE:
        return (-1,) if degree % 2 == 0 else ()
    if sign in (BOTH, NONNEGATIVE):
        return (1, -1)
    if sign == NONPOSITIVE:
        return (-1,) if degree % 2 == 0 else ()
    return None if sign in (UNKNOWN, ZERO) else ()


def _blow_up(polynomial: sp.Poly, way: int, domain: Domain, *, autonomous: bool) -> BlowUp:
    """Condition and time: beyond the last zero the scalar solution escapes, t = integral of dh / f."""
    expression = polynomial.as_expr()
    outermost = _outermost_zero(polynomial, way, domain)
    if outermost is None or not autonomous:
        return BlowUp(way)
    condition = public(sp.Gt(h0, outermost) if way > 0 else sp.Lt(h0, outermost))
    y = sp.Dummy("y", positive=True)
    lead = way ** (polynomial.degree() + 1) * polynomial.LC()
    if domain.sign(lead) not in (POSITIVE, NONNEGATIVE):
        return BlowUp(way, condition)
    speed = sp.factor(sp.cancel(way * expression.subs(h, outermost + way * y) / lead))
    primitive = sp.expand(sp.integrate(sp.apart(1 / speed, y), y))
    end = _value_at_infinity(primitive, y)
    if end is None:
        return BlowUp(way, condition)
    remaining = _joined_logs(end - primitive.subs(y, way * (h0 - outermost)))
    return BlowUp(way, condition, public(remaining / lead))


def _value_at_infinity(primitive: sp.Expr, y: sp.Symbol) -> sp.Expr | None:
    """Limit of an integrated rational function: logarithms must balance, quotients vanish, arcus tangents saturate."""
    balance, end = sp.S.Zero, sp.S.Zero
    for term in sp.Add.make_args(primitive):
        factor, core = term.as_independent(y, as_Add=False)
        argument = core.args[0] if core.args else core
        if isinstance(core, sp.log) and argument.is_polynomial(y):
            polynomial = sp.Poly(argument, y)
            balance += factor * polynomial.degree()
            end += factor * sp.log(polynomial.LC())
        elif isinstance(core, sp.atan) and argument.is_polynomial(y) and sp.Poly(argument, y).LC().is_positive:
            end += factor * sp.pi / 2
        elif core.is_rational_function(y) and sp.degree(sp.denom(core), y) > sp.degree(sp.numer(core), y):
            continue
        else:
            return None
    return end if sp.simplify(balance) == 0 else None


def _joined_logs(expression: sp.Expr) -> sp.Expr:
    """A sum of rational multiples of logarithms as one logarithm plus the rest."""
    logs, rest = [], sp.S.Zero
    for term in sp.Add.make_args(expression):
        factor, core = term.as_coeff_Mul()
        if isinstance(core, sp.log) and factor.is_Rational:
            logs.append((factor, core.args[0]))
        else:
            rest += term
    if not logs:
        return rest
    unit = sp.Rational(1, sp.ilcm(*(f.q for f, _ in logs), 1))
    inside = sp.Mul(*(argument ** (factor / unit) for factor, argument in logs))
    return sp.simplify(rest) + unit * sp.log(sp.apart(sp.simplify(inside)))


def _outermost_zero(polynomial: sp.Poly, way: int, domain: Domain) -> sp.Expr | None:
    """The largest (way = 1) or smallest (way = -1) real zero, if its place among the others can be decided."""
    zeros = [r for r in sp.roots(polynomial) if r.is_real]
    if sum(sp.roots(polynomial).values()) < polynomial.degree() or not zeros:
        return None
    best = zeros[0]
    for zero in zeros[1:]:
        sign = domain.sign(way * (zero - best))
        if sign in (POSITIVE, NONNEGATIVE):
            best = zero
        elif sign in (BOTH, UNKNOWN):
            return None
    return best


def _non_polynomial(scalar: sp.Expr, system: System) -> Existence:
    """exp growth is the one non-polynomial blow-up that is recognised."""
    domain = Domain.of(system)
    for term in sp.Add.make_args(scalar):
        factor, core = term.as_independent(h, as_Add=False)
        if isinstance(core, sp.exp) and domain.sign(factor) == POSITIVE:
            rising = domain.sign(sp.expand(core.args[0]).coeff(h)) == POSITIVE
            if rising and all(_growth_scalar(o) <= 1 for o in sp.Add.make_args(scalar) if o != term):
                reason = f"on states equal in all nodes {public(term)} outgrows every linear term"
                return Existence(LOCAL, reason, (BlowUp(1),))
    return Existence(
        UNDECIDED,
        "tried: one-sided Lipschitz constant, linear growth, scalar blow-up of polynomial and exponential type",
    )


def _growth_scalar(expression: sp.Expr) -> float:
    """Growth of a term along h, with h0 as large as h."""
    return _growth(expression.xreplace({h: H, h0: H}))


def _drop_operators(expression: sp.Expr) -> sp.Expr:
    """Every Act removed: what the operators do to constants when A@1 = 1."""
    return expression.replace(lambda e: isinstance(e, Act), lambda e: _drop_operators(e.inner))


def _growth(expression: sp.Expr) -> float:
    """Degree of growth in H; infinite where none is known."""
    if not expression.has(H) or expression.func in (sp.tanh, sigmoid, sp.sin, sp.cos):
        return 0
    if expression == H:
        return 1
    match expression:
        case Act() | Mix():
            return _growth(expression.inner)
        case sp.Add():
            return max(_growth(a) for a in expression.args)
        case sp.Mul():
            return _quotient_growth(expression)
        case sp.Pow() if expression.exp.is_number and expression.exp.is_positive:
            return _growth(expression.base) * float(expression.exp)
    if expression.func in (relu, softplus, sp.Abs):
        return _growth(expression.args[0])
    if isinstance(expression, sp.Pow) and expression.exp.is_negative and keeps_away_from_zero(expression.base):
        return 0
    return float("inf")


def _quotient_growth(product: sp.Mul) -> float:
    """Rational functions of single entries count numerator against denominator."""
    top, bottom = sp.fraction(product)
    if bottom.has(H) and not product.has(Act, Mix) and top.is_polynomial(H) and bottom.is_polynomial(H):
        return float(max(0, sp.degree(top, H) - sp.degree(bottom, H)))
    return sum(_growth(a) for a in product.args)


def _not_locally_lipschitz(expression: sp.Expr) -> str | None:
    """Square roots and poles of the state spoil uniqueness or existence before any question of growth."""
    for power in expression.atoms(sp.Pow):
        if not power.base.has(H, H0):
            continue
        if not power.exp.is_Integer:
            return f"sqrt({public(power.base)}) is not locally Lipschitz at 0 and undefined below"
        if power.exp.is_negative and not keeps_away_from_zero(power.base):
            return f"1/({public(power.base)}) can be singular"
    return None
