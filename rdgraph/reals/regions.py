"""Answers that depend on the coefficients: a domain is split where a question needs to know more, and joined again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from rdgraph.errors import Undecided
from rdgraph.reals import polynomials
from rdgraph.reals.domain import NEGATIVE, NONNEGATIVE, NONPOSITIVE, POSITIVE, UNKNOWN, ZERO, Domain, Sign
from rdgraph.vocabulary.functions import record_of

# ---------------------------------------------------------------------- definedness
# Where a formula is a real number: conditions on what its roots, quotients, logarithms and inverse functions see.

#: Functions of formulas, beyond those of the language, that are real for every real argument.
_EVERYWHERE = (sp.atan, sp.asinh, sp.sinh, sp.cosh, sp.erf, sp.sign, sp.Heaviside, sp.floor, sp.ceiling, sp.Piecewise)


def defining_conditions(expression: sp.Expr, *, smooth: bool = False) -> tuple[sp.Basic, ...]:
    """What must hold for an expression to be a real number, the shortest conditions first; `smooth`: no root of zero.

    A function about which nothing is known has the condition False.

    >>> a = sp.Symbol("a", real=True)
    >>> defining_conditions(sp.acos(1 / a) + sp.log(a)), defining_conditions(1 / sp.sqrt(a - 2))
    ((Ne(a, 0), a > 0, a**(-2) <= 1), (a - 2 > 0,))
    """
    found: dict[sp.Basic, None] = {}
    for power in expression.atoms(sp.Pow):
        for condition in _of_power(power.base, power.exp, smooth):
            found[condition] = None
    for call in expression.atoms(sp.Function):
        for condition in _of_call(call):
            found[condition] = None
    return tuple(sorted((c for c in found if c != sp.true), key=lambda c: (c.count_ops(), str(c))))


def _of_power(base: sp.Expr, exponent: sp.Expr, smooth: bool) -> list[sp.Basic]:
    if exponent.is_Integer:
        return [sp.Ne(base, 0, evaluate=False)] if exponent.is_negative and not base.is_nonzero else []
    strict = smooth or not exponent.is_positive
    if base.is_positive or (base.is_nonnegative and not strict):
        return []
    return [(sp.Gt if strict else sp.Ge)(base, 0, evaluate=False)]


def _of_call(call: sp.Expr) -> list[sp.Basic]:
    record = record_of(call)
    if record is not None:
        return record.domain.relations(call.args[0])
    if isinstance(call, _EVERYWHERE):
        return []
    if isinstance(call, sp.LambertW):
        return _of_lambert(*call.args)
    known = _CONDITIONS.get(call.func)
    return [sp.false] if known is None else [known(call.args[0])]


def _of_lambert(x: sp.Expr, branch: sp.Expr = sp.S.Zero) -> list[sp.Basic]:
    """The two real branches: 0 from -1/e on, -1 between -1/e and 0."""
    if branch not in (0, -1):
        return [sp.false]
    above = sp.Ge(x, -sp.exp(-1), evaluate=False)
    return [above] if branch == 0 else [above, sp.Lt(x, 0, evaluate=False)]


_CONDITIONS: dict[type, Callable[[sp.Expr], sp.Basic]] = {
    sp.log: lambda x: sp.true if x.is_positive else sp.Gt(x, 0, evaluate=False),
    sp.acos: lambda x: sp.Le(x**2, 1, evaluate=False),
    sp.asin: lambda x: sp.Le(x**2, 1, evaluate=False),
    sp.atanh: lambda x: sp.Lt(x**2, 1, evaluate=False),
    sp.acosh: lambda x: sp.Ge(x, 1, evaluate=False),
    sp.tan: lambda x: sp.Ne(sp.cos(x), 0, evaluate=False),
}


# ---------------------------------------------------------------------- regions
#: Splits that may follow one another before a question is given up.
MAX_DEPTH = 8

A = TypeVar("A")


class Split(Exception):
    """A question that has different answers on the parts of its domain; the parts cover it."""

    def __init__(self, *parts: sp.Basic) -> None:
        super().__init__(", ".join(map(str, parts)))
        self.parts = parts


def strict_sign(domain: Domain, expression: sp.Expr) -> int:
    """1, 0 or -1 where the sign is the same on the whole domain; `Split` where it is not, `Undecided` if unknown.

    >>> a = sp.Symbol("a", negative=True)
    >>> strict_sign(Domain(), a**3)
    -1
    """
    sign = _sign(domain, expression)
    if sign in _STRICT:
        return _STRICT[sign]
    if sign is UNKNOWN:
        raise Undecided(f"the sign of {expression} is not known")
    for factor in _factors(expression):
        if _sign(domain, factor) not in _STRICT:
            raise _signs(factor)
    raise _signs(expression)


def reduced(domain: Domain, expression: sp.Expr) -> sp.Expr:
    """The expression with the domain's equations put in, those that give a letter in terms of the others.

    >>> a, b = sp.symbols("a b", real=True)
    >>> reduced(Domain((sp.Eq(a - b, 0),)), a**2 - a * b + 1)
    1
    """
    for condition in domain.conditions:
        if isinstance(condition, sp.Eq):
            gap = sp.expand(condition.lhs - condition.rhs)
            for letter in sorted(gap.free_symbols & expression.free_symbols, key=str):
                slope = gap.diff(letter)
                if slope.is_number:
                    expression = sp.expand(expression.subs(letter, sp.expand(letter - gap / slope)))
                    break
    return expression


_STRICT = {POSITIVE: 1, ZERO: 0, NEGATIVE: -1}


def _sign(domain: Domain, expression: sp.Expr) -> Sign:
    """The sign on the domain; a weak sign that sympy's assumptions give is decided again under the conditions."""
    sign = domain.sign(expression)
    if sign in (NONNEGATIVE, NONPOSITIVE) and domain.conditions:
        if domain.proves(sp.Eq(expression, 0, evaluate=False)):
            return ZERO
        if domain.proves(sp.Ne(expression, 0, evaluate=False)):
            return POSITIVE if sign is NONNEGATIVE else NEGATIVE
    return sign


def _signs(expression: sp.Expr) -> Split:
    return Split(*(relation(expression, 0, evaluate=False) for relation in (sp.Gt, sp.Eq, sp.Lt)))


def _factors(expression: sp.Expr) -> list[sp.Expr]:
    """Numerator and denominator in factors, each with a positive leading number; roots and the like stay whole."""
    if not expression.is_rational_function(*expression.free_symbols):
        return [expression]
    try:
        bases = [base for part in polynomials.reduced(expression) for base, _ in polynomials.factors(part)]
    except BasePolynomialError:
        return [expression]
    return [-b if b.could_extract_minus_sign() else b for b in bases]


def cases(domain: Domain, question: Callable[[Domain], A], depth: int = 0) -> list[tuple[sp.Basic, A]]:
    """The answers to a question with the conditions under which they hold; equal answers are joined.

    `question` raises `Split` where its answer differs on parts of the domain it was given.

    >>> a = sp.Symbol("a", real=True)
    >>> cases(Domain(), lambda domain: abs(strict_sign(domain, a)))
    [(Ne(a, 0), 1), (Eq(a, 0), 0)]
    """
    try:
        return [(sp.true, question(domain))]
    except Split as split:
        if depth == MAX_DEPTH:
            raise Undecided("the answer depends on too many conditions on the coefficients") from None
        parts = split.parts
    held: dict[tuple[sp.Basic, A], list[sp.Basic]] = {}
    empty = []
    for part in parts:
        inside = domain.where(part)
        if inside.is_empty():
            empty.append(part)
            continue
        for condition, answer in cases(inside, question, depth + 1):
            held.setdefault((condition, answer), []).append(part)
    return [
        (sp.And(_union(owners, parts, empty), condition, evaluate=False) if condition != sp.true
         else _union(owners, parts, empty), answer)
        for (condition, answer), owners in held.items()
    ]  # fmt: skip


def _union(chosen: list[sp.Basic], parts: tuple[sp.Basic, ...], empty: list[sp.Basic]) -> sp.Basic:
    """The union of parts as one condition."""
    if len(chosen) + len(empty) == len(parts):
        return sp.true
    if len(chosen) == 1:
        return chosen[0]
    kinds = {type(part) for part in chosen}
    joined = {
        frozenset({sp.Gt, sp.Eq}): sp.Ge, frozenset({sp.Lt, sp.Eq}): sp.Le, frozenset({sp.Gt, sp.Lt}): sp.Ne,
    }.get(frozenset(kinds))  # fmt: skip
    if joined is not None and len(chosen) == 2:
        return joined(chosen[0].lhs, chosen[0].rhs, evaluate=False)
    return sp.Or(*chosen)
