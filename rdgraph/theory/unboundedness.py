"""Slopes that grow without bound: proofs that no Lipschitz constant exists.

At a state equal to h in all nodes of a regular graph the Jacobian is a polynomial sum_k C_k(h) A^k. Constant vectors,
and on bipartite graphs alternating ones, are its eigenvectors, with the values sum C_k and sum (-1)^k C_k; an isolated
node has the slope in its own entry. Norms are at least the modulus of an eigenvalue, logarithmic norms its real part:
where one of these grows to infinity with h there is no constant.
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from rdgraph.algebra.normal_form import H
from rdgraph.decisions.domain import Domain
from rdgraph.decisions.regions import strict_sign
from rdgraph.errors import NotApplicable
from rdgraph.syntax.answer_symbols import h, h0
from rdgraph.systems.system import System
from rdgraph.theory.box_faces import LocalField
from rdgraph.theory.slope_bounds import is_kinked, sup_magnitude


def is_unbounded(system: System, domain: Domain, *, one_sided: bool) -> bool:
    """Proved: the slopes have no bound, from above if `one_sided`; `Split` where the coefficients decide.

    >>> from rdgraph.systems.parser import parse
    >>> system = parse("-alpha*L@H + beta*H*(A@H)")
    >>> is_unbounded(system, system.domain, one_sided=True)
    True
    >>> is_unbounded(parse("tanh(A@H)"), Domain(), one_sided=False)
    False
    """
    try:
        field = LocalField.of(system)
    except NotApplicable:
        return False
    return any(_grows(value, domain, one_sided) for value in _eigenvalues(field))


def _eigenvalues(field: LocalField) -> Iterator[sp.Expr]:
    """Eigenvalues of Jacobians as functions of the entry h, for coefficients that are the same in all nodes."""
    masked = {x: sp.S.One for x in field.varying if x.name == "M"}
    seen = {a.letter: a.inner for a in field.averages}
    if any(is_kinked(call, seen) for call in field.speed.atoms(sp.Function)):
        return  # no Jacobian at states that are the same in all nodes
    own = sp.diff(field.speed, h)
    slopes = [(a.power, sp.diff(field.speed, a.letter).xreplace(seen) * sp.diff(a.inner, h)) for a in field.averages]
    for sign in (1, -1):
        total = own.xreplace(seen) + sum((sign**k * slope for k, slope in slopes), sp.S.Zero)
        yield sp.expand(total.xreplace(masked))
    yield sp.expand(own.xreplace(dict.fromkeys(seen, sp.S.Zero)).xreplace(masked))


def _grows(value: sp.Expr, domain: Domain, one_sided: bool) -> bool:
    """Proved: the value, or its modulus, tends to infinity on one side."""
    if value.has(h0):
        return False
    terms = sp.Add.make_args(value)
    exponentials = [t for t in terms if _exponent(t) is not None]
    rest = [t for t in terms if t not in exponentials]
    powers = sp.Add(*(t for t in rest if t.is_polynomial(h)))
    bounded = sp.Add(*(t for t in rest if not t.is_polynomial(h)))
    if sup_magnitude(bounded.xreplace({h: H}), local=False).has(sp.oo):
        return False
    if exponentials:
        return _exponentials_grow(exponentials, domain, one_sided)
    polynomial = sp.Poly(powers, h) if powers.has(h) else None
    while polynomial is not None and polynomial.degree() > 0:
        sign = strict_sign(domain, polynomial.LC())
        if sign:
            return not one_sided or sign > 0 or polynomial.degree() % 2 == 1
        polynomial = polynomial - sp.Poly(polynomial.LC() * h ** polynomial.degree(), h)
    return False


def _exponent(term: sp.Expr) -> sp.Expr | None:
    """The argument of c exp(a h + b), c free of h."""
    _, rest = term.as_independent(h)
    linear = isinstance(rest, sp.exp) and rest.args[0].is_polynomial(h) and sp.degree(rest.args[0], h) == 1
    return rest.args[0] if linear else None


def _exponentials_grow(terms: list[sp.Expr], domain: Domain, one_sided: bool) -> bool:
    """Proved: exponentials of one sign that all grow on the same side."""
    sides = {strict_sign(domain, sp.diff(_exponent(t), h)) for t in terms}
    signs = {strict_sign(domain, t.as_independent(h)[0]) for t in terms}
    return len(sides) == 1 and 0 not in sides and (signs == {1} or (signs == {-1} and not one_sided))
