"""Answers that depend on the coefficients: a domain is split where a question needs to know more, and joined again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from rdgraph.decisions import polynomials
from rdgraph.decisions.domain import NEGATIVE, NONNEGATIVE, NONPOSITIVE, POSITIVE, UNKNOWN, ZERO, Domain, Sign
from rdgraph.errors import Undecided

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
    """The sign on the domain; a weak one that follows from the letters is looked at again under the conditions."""
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
