"""Readings: closed formulas in the coefficients that f reveals, because they are values or derivatives of f.

Where f is a polynomial in the state the readings are its coefficients; where it is smooth at zero, Taylor coefficients
along lines through zero; else values at a few states.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import sympy as sp

from rdgraph.identifiability.entries import FieldEntries
from rdgraph.identifiability.form import KINKED
from rdgraph.syntax.functions import at_zero

#: Derivatives that are taken at zero, and the size of a formula above which only the third is.
ORDER = 6
SMALL = 20
MAX_READINGS = 40


def readings(entries: FieldEntries) -> tuple[sp.Expr, ...]:
    """Formulas in the parameters, the simplest first; no two are multiples of each other by a number."""
    found: dict[sp.Expr, None] = {}
    for value in entries.values:
        for start in _with_masks(value, entries.states):
            for reading in _read(start, _present(start, entries.states)):
                formula = primitive(at_zero(reading))
                if formula.free_symbols:
                    found.setdefault(formula)
    return tuple(sorted(found, key=lambda e: (e.count_ops(), str(e)))[:MAX_READINGS])


def primitive(expression: sp.Expr) -> sp.Expr:
    """What is left of an expression without added numbers, numerical factors and its sign.

    >>> a, b = sp.symbols("a b")
    >>> primitive(3 - 2 * a + 4 * b), primitive(b - a / 2)
    (a - 2*b, a - 2*b)
    """
    letters = expression.free_symbols
    fraction = expression.is_rational_function(*letters) and not expression.is_polynomial(*letters)
    whole = sp.expand(sp.cancel(expression) if fraction else expression)
    varying = sp.Add(*(term for term in sp.Add.make_args(whole) if term.free_symbols))
    parts = sp.Mul.make_args(sp.factor_terms(varying))
    rest = sp.Mul(*(part for part in parts if part.free_symbols)).as_content_primitive()[1]
    rest = sp.expand(rest)
    first = min(sp.Add.make_args(rest), key=lambda term: str(term.as_coeff_Mul()[1]))
    return sp.expand(-rest) if first.as_coeff_Mul()[0] < 0 else rest


def _with_masks(value: sp.Expr, states: Sequence[sp.Symbol]) -> Iterator[sp.Expr]:
    """The value with every mask on, and with every mask off."""
    masks = [x for x in states if FieldEntries.origin(x) == "M"]
    for choice in (sp.S.One, sp.S.Zero) if masks else (sp.S.One,):
        yield value.xreplace(dict.fromkeys(masks, choice))


def _present(value: sp.Expr, states: Sequence[sp.Symbol]) -> list[sp.Symbol]:
    return [x for x in states if x in value.free_symbols]


def _read(value: sp.Expr, states: list[sp.Symbol]) -> Iterator[sp.Expr]:
    if not states:
        yield value
    elif value.is_polynomial(*states):
        yield from sp.Poly(sp.expand(value), *states).coeffs()
    else:
        for direction in _directions(states):
            yield from _along(value, direction)


def _directions(states: list[sp.Symbol]) -> Iterator[dict[sp.Symbol, int]]:
    """Single entries, on the first branch of the tree, and two directions in which all of them change."""
    for x in states:
        if "1" not in x.name.partition(",")[0] or len(states) <= 4:
            yield {y: int(y == x) for y in states}
    generator = random.Random(2)
    for _ in range(2 if len(states) > 1 else 0):
        yield {x: generator.choice((1, 2, 3, 5, -1, -2)) for x in states}


def _along(value: sp.Expr, direction: dict[sp.Symbol, int]) -> Iterator[sp.Expr]:
    """Taylor coefficients at zero on a line, or values where there are none."""
    s = sp.Dummy("s", real=True)
    line = value.xreplace({x: k * s for x, k in direction.items()})
    bent = any(atom.has(s) for atom in line.atoms(*KINKED))
    start = line.xreplace({s: sp.S.Zero})
    if bent or not _is_finite(start):
        for place in (1, -1, 2, 4):
            found = line.xreplace({s: sp.Integer(place)})
            if _is_finite(found) and found.is_real is not False:
                yield found
        return
    for _ in range(ORDER if line.count_ops() <= SMALL else 3):
        if not _is_finite(start):
            return
        yield start
        line = sp.diff(line, s)
        start = line.xreplace({s: sp.S.Zero})


def _is_finite(expression: sp.Expr) -> bool:
    return not expression.has(sp.nan, sp.zoo, sp.oo, -sp.oo)
