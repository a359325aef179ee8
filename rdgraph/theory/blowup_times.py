"""The time a scalar equation takes to infinity, t = integral of dx/f(x) from the start on, for rational f.

Partial fractions are integrated by hand (logarithms, inverse powers, arcus tangents), so that the value at infinity is
known. The primitive is differentiated, the time compared with quadrature; a formula that fails is not returned.
"""

from __future__ import annotations

from dataclasses import dataclass

import mpmath
import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from rdgraph.decisions.domain import Domain
from rdgraph.decisions.regions import strict_sign
from rdgraph.errors import Undecided

#: Distances from the thresholds at which a formula is compared with quadrature, and how closely.
DISTANCES = (sp.Rational(1, 4), sp.S.One, sp.Integer(3))
TOLERANCE = 1e-8


def escape_time(
    rate: sp.Expr, x: sp.Symbol, start: sp.Symbol, thresholds: tuple[sp.Expr, ...], domain: Domain
) -> sp.Expr | None:
    """The time from x = start to infinity for x' = rate > 0 beyond the thresholds; None where it is not found.

    Raises `Split` where the formula depends on the coefficients.

    >>> x, s, a = sp.Symbol("x", real=True), sp.Symbol("s", real=True), sp.Symbol("a", positive=True)
    >>> escape_time(a * x**3, x, s, (sp.S.Zero,), Domain())
    1/(2*a*s**2)
    """
    if not rate.is_rational_function(x):
        return None
    try:
        lead = _leading(rate, x)
        primitive = _primitive(sp.apart(sp.cancel(lead / rate), x), x, domain)
    except (Undecided, BasePolynomialError):
        return None
    if primitive is None:
        return None
    time = primitive.remaining(x, start) / lead
    return time if _agrees(time, primitive.expression / lead, rate, x, start, thresholds, domain) else None


@dataclass(frozen=True)
class _Primitive:
    """sum of factor * log(argument), plus a rest that tends to `end`; together the logarithms tend to zero."""

    logs: tuple[tuple[sp.Expr, sp.Expr], ...] = ()
    rest: sp.Expr = sp.S.Zero
    end: sp.Expr = sp.S.Zero

    def __add__(self, other: _Primitive) -> _Primitive:
        return _Primitive(self.logs + other.logs, self.rest + other.rest, self.end + other.end)

    @property
    def expression(self) -> sp.Expr:
        return self.rest + sp.Add(*(factor * sp.log(argument) for factor, argument in self.logs))

    def remaining(self, x: sp.Symbol, start: sp.Symbol) -> sp.Expr:
        """The value at infinity less the value at the start, logarithms joined."""
        rest = sp.factor_terms(self.end - self.rest.subs(x, start))
        return rest + sp.Add(*_joined([(-factor, argument.subs(x, start)) for factor, argument in self.logs]))


def _leading(rate: sp.Expr, x: sp.Symbol) -> sp.Expr:
    top, bottom = sp.fraction(sp.cancel(rate))
    return sp.cancel(sp.Poly(top, x).LC() / sp.Poly(bottom, x).LC())


def _primitive(sum_of_fractions: sp.Expr, x: sp.Symbol, domain: Domain) -> _Primitive | None:
    """A primitive whose logarithms are of monic polynomials; they must balance at infinity."""
    total = _Primitive()
    for term in sp.Add.make_args(sum_of_fractions):
        piece = _piece(term, x, domain)
        if piece is None:
            return None
        total += piece
    balance = sp.Add(*(factor * sp.degree(argument, x) for factor, argument in total.logs if argument.is_polynomial(x)))
    return total if sp.cancel(balance) == 0 else None


def _piece(term: sp.Expr, x: sp.Symbol, domain: Domain) -> _Primitive | None:
    """Primitive of one partial fraction: of a power of a linear factor, or of a quadratic one."""
    top, bottom = sp.fraction(sp.together(term))
    if not bottom.has(x):
        return None
    constant, factors = sp.Poly(bottom, x).factor_list()
    if len(factors) != 1:
        return None
    factor, power = factors[0]
    scale = sp.sympify(constant) * factor.LC() ** power
    if strict_sign(domain, scale) == 0:
        return None
    q = sp.Poly({m: sp.cancel(c / factor.LC()) for m, c in factor.terms()}, x)
    above = sp.Poly(sp.expand(top), x)
    if q.degree() == 1 and above.degree() <= 0:
        weight = sp.cancel(above.as_expr() / scale)
        if power == 1:
            return _Primitive(((weight, q.as_expr()),))
        return _Primitive(rest=weight * q.as_expr() ** (1 - power) / (1 - power))
    if q.degree() == 2 and power == 1 and above.degree() <= 1:
        return _over_quadratic(sp.cancel(above.nth(1) / scale), sp.cancel(above.nth(0) / scale), q, x, domain)
    return None


def _over_quadratic(m: sp.Expr, n: sp.Expr, q: sp.Poly, x: sp.Symbol, domain: Domain) -> _Primitive:
    """Of (m x + n)/q with q = x^2 + b x + c: m/2 log(q), and a term that depends on the sign of the discriminant."""
    b, c = q.nth(1), q.nth(0)
    discriminant = sp.cancel(b**2 - 4 * c)
    logs = ((m / 2, q.as_expr()),) if m != 0 else ()
    rest = sp.cancel(n - m * b / 2)
    if rest == 0:
        return _Primitive(logs)
    sign = strict_sign(domain, discriminant)
    if sign == 0:
        return _Primitive(logs, -2 * rest / (2 * x + b))
    root = sp.sqrt(sp.factor(sign * discriminant))
    if sign > 0:
        return _Primitive((*logs, (rest / root, (2 * x + b - root) / (2 * x + b + root))))
    return _Primitive(logs, 2 * rest / root * sp.atan((2 * x + b) / root), sp.pi * rest / root)


def _joined(logs: list[tuple[sp.Expr, sp.Expr]]) -> list[sp.Expr]:
    """Logarithms of rational functions whose factors are rational multiples of one another as one logarithm."""
    groups: list[tuple[sp.Expr, list[tuple[sp.Rational, sp.Expr]]]] = []
    for factor, argument in logs:
        for unit, members in groups:
            ratio = sp.cancel(factor / unit)
            if ratio.is_Rational and argument.is_rational_function():
                members.append((ratio, argument))
                break
        else:
            groups.append((factor, [(sp.S.One, argument)]))
    return [_one_log(unit, members) for unit, members in groups]


def _one_log(unit: sp.Expr, members: list[tuple[sp.Rational, sp.Expr]]) -> sp.Expr:
    """The shorter of unit log(inside) and -unit log(1/inside)."""
    share = sp.Rational(1, sp.ilcm(*(factor.q for factor, _ in members), 1))
    inside = sp.Mul(*(argument ** (factor / share) for factor, argument in members))
    forms = [(unit * share, inside), (-unit * share, 1 / inside)]
    if inside.is_rational_function():
        forms = [(factor, _short(argument)) for factor, argument in forms]
    return min((factor * sp.log(argument) for factor, argument in forms), key=lambda e: (e.count_ops(), str(e)))


def with_short_logs(expression: sp.Expr) -> sp.Expr:
    """The arguments of logarithms in lowest terms."""
    return expression.replace(sp.log, lambda a: sp.log(_short(a) if a.is_rational_function() else a))


def _short(fraction: sp.Expr) -> sp.Expr:
    whole = sp.factor(sp.cancel(fraction))
    return sp.apart(whole) if len(whole.free_symbols) == 1 else whole


def _agrees(
    time: sp.Expr, primitive: sp.Expr, rate: sp.Expr, x: sp.Symbol, start: sp.Symbol, thresholds: tuple[sp.Expr, ...],
    domain: Domain,
) -> bool:  # fmt: skip
    """Derivative of the primitive, sign, and comparison with quadrature at starts of several distances."""
    checked = 0
    for distance in DISTANCES:
        beyond = [sp.Gt(start, z + distance, evaluate=False) for z in thresholds] or [sp.Gt(start, distance - 1)]
        point = domain.point(*beyond)
        if point is None:
            continue
        values = {k: sp.N(v, 30) for k, v in _filled(point, rate, start).items() if k != x}
        claimed, speed = sp.N(time.xreplace(values), 30), rate.xreplace(values)
        slope = sp.N((sp.diff(primitive, x).xreplace(values) * speed).xreplace({x: values[start]}), 30)
        measured = _quadrature(speed, x, float(values[start]))
        if not claimed.is_real or not claimed > 0 or abs(claimed - measured) > TOLERANCE * abs(measured):
            return False
        if abs(slope - 1) > TOLERANCE**2:
            return False
        checked += 1
    return checked > 0


def _filled(point: dict[sp.Basic, sp.Expr], rate: sp.Expr, start: sp.Symbol) -> dict[sp.Basic, sp.Expr]:
    """A point with values for the letters that no condition mentions."""
    return {k: sp.Integer(-1 if k.is_nonpositive else 1) for k in rate.free_symbols | {start}} | point


def _quadrature(rate: sp.Expr, x: sp.Symbol, begin: float) -> float:
    """The integral of dx/rate from `begin` to infinity, over v in (0, 1] with x = begin + reach (1 - v)/v."""
    speed = sp.lambdify(x, sp.N(rate), modules="math")  # functions of numbers alone, as sigmoid(0), become numbers
    reach = abs(begin) + 1.0

    def integrand(v: float) -> float:
        return reach / (v * v * speed(begin + reach * (1 - v) / v))

    return float(mpmath.fp.quad(integrand, [0, 0.5, 1]))
