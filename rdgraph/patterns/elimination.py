"""Closed forms of the solutions of rational equations with letters as coefficients, by elimination.

Every equation is factored and each choice of factors solved for itself: a letter that an equation is linear in is put
into the others, and the last letter solves a linear or quadratic equation. The forms are proposals: what holds where a
coefficient vanishes may be missing, so they are to be put in, and others to be excluded.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import sympy as sp

from rdgraph.decisions import polynomials

#: Choices of factors that are looked at.
MAX_CHOICES = 64

Proposal = dict[sp.Symbol, sp.Expr]


def proposals(equations: Sequence[sp.Expr], letters: Sequence[sp.Symbol]) -> Iterator[Proposal]:
    """Solutions of equations = 0 in closed form; letters that have no value in one are free in it.

    >>> u, v, a, b = sp.symbols("u v a b")
    >>> list(proposals([a - u + u**2 * v, b - u**2 * v], [u, v]))
    [{v: b/(a + b)**2, u: a + b}]
    """
    factored = []
    for equation in equations:
        top = sp.fraction(sp.together(equation))[0]
        if sp.expand(top) == 0:
            continue
        bases = [base for base, _ in polynomials.factors(top) if base.free_symbols & set(letters)]
        if not bases:
            return
        factored.append(bases)
    for choice in itertools.islice(itertools.product(*factored), MAX_CHOICES):
        yield from _solved(list(dict.fromkeys(choice)), list(letters))


def _solved(equations: list[sp.Expr], letters: list[sp.Symbol]) -> Iterator[Proposal]:
    """One equation solved for one letter, and put into the others."""
    if not equations:
        yield {}
        return
    step = _step(equations, letters)
    if step is None:
        return
    equation, letter, values = step
    others = [e for e in equations if e is not equation]
    for value in values:
        rest = [e.xreplace({letter: value}) for e in others]
        for found in proposals(rest, [x for x in letters if x != letter]):
            yield {
                letter: sp.factor(value.xreplace(found)) if _is_rational(value, found) else value.xreplace(found),
                **found,
            }


def _is_rational(value: sp.Expr, found: Proposal) -> bool:
    return value.xreplace(found).is_rational_function()


def _step(
    equations: Sequence[sp.Expr], letters: Sequence[sp.Symbol]
) -> tuple[sp.Expr, sp.Symbol, list[sp.Expr]] | None:
    """The simplest equation to solve for a letter, and the values of the letter."""
    best = None
    for equation in equations:
        present = [x for x in letters if equation.has(x)]
        for letter in present:
            if not equation.is_polynomial(letter):
                continue
            polynomial = sp.Poly(equation, letter)
            degree, lead = polynomial.degree(), polynomial.LC()
            if degree == 1 or (degree == 2 and len(present) == 1):
                key = (degree, len(lead.free_symbols & set(letters)) > 0, sp.count_ops(equation), str(letter))
                if best is None or key < best[0]:
                    best = (key, equation, letter, polynomial)
    if best is None:
        return None
    _, equation, letter, polynomial = best
    return equation, letter, _values(polynomial)


def _values(polynomial: sp.Poly) -> list[sp.Expr]:
    if polynomial.degree() == 1:
        a, b = polynomial.all_coeffs()
        return [sp.factor(-b / a)]
    a, b, c = polynomial.all_coeffs()
    root = sp.sqrt(sp.factor(b**2 - 4 * a * c))
    return [(-b + sign * root) / (2 * a) for sign in (1, -1)]
