"""Ranks that are certain from below: pivots of Gaussian elimination that ball arithmetic tells from zero."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import sympy as sp

from rdgraph.decisions.enclosure import NotEnclosed, enclose
from rdgraph.identifiability.form import ExaminedForm

#: Bits of the balls; what is smaller than 2**-ZERO_BITS counts as a zero that was measured.
BITS = 320
ZERO_BITS = 160

Point = dict[sp.Basic, sp.Expr]


def certain_rank(rows: Sequence[Sequence[Any]]) -> int:
    """A lower bound of the rank of a matrix of balls: the number of pivots that differ from zero for certain.

    >>> from flint import arb
    >>> third = arb(1) / 3
    >>> certain_rank([[third, 1], [1, 3]]), certain_rank([[third, 1], [1, arb(2)]])
    (1, 2)
    """
    from flint import arb, ctx

    left = [[arb(entry) for entry in row] for row in rows]
    rank = 0
    with ctx.workprec(BITS):
        while left and left[0]:
            size, i, j = max(
                (float(entry.abs_lower()), i, j) for i, row in enumerate(left) for j, entry in enumerate(row)
            )
            if size <= 2.0**-ZERO_BITS:
                break
            pivot = left.pop(i)
            left = [_eliminated(row, pivot, j) for row in left]
            rank += 1
    return rank


def _eliminated(row: list[Any], pivot: list[Any], column: int) -> list[Any]:
    """A row minus the multiple of the pivot's that clears a column, without that column."""
    factor = row[column] / pivot[column]
    return [entry - factor * pivot[k] for k, entry in enumerate(row) if k != column]


def balls(rows: Sequence[Sequence[sp.Expr]], point: Point) -> list[list[Any]]:
    """The matrix at a point; rows that are not finite real numbers there are left out."""
    found = []
    for row in rows:
        try:
            found.append([enclose(sp.sympify(entry).xreplace(point), BITS) for entry in row])
        except NotEnclosed:
            continue
    return found


def admissible_points(form: ExaminedForm, parameters: Sequence[sp.Symbol], count: int) -> Iterator[Point]:
    """Rational values of the parameters that the assumptions allow, drawn from a fixed seed.

    Parameters are entries of letters, such as b[0]; a relation between letters has to hold for every entry of them.
    """
    generator = random.Random(0)
    for _ in range(200 * count):
        values = {x: _value(x, generator) for x in parameters}
        letters = {name: [v for x, v in values.items() if str(x).partition("[")[0] == name] for name in form.kinds}
        if all(_allowed(relation, letters, generator) for relation in form.relations):
            yield dict(values)
            count -= 1
        if count == 0:
            return


def _value(parameter: sp.Symbol, generator: random.Random) -> sp.Rational:
    size = sp.Rational(generator.randint(20, 200), generator.choice((61, 97, 211)))
    negative = parameter.is_nonpositive or (not parameter.is_nonnegative and generator.random() < 0.5)
    return -size if negative else size


def _allowed(relation: sp.Basic, letters: dict[str, list[sp.Expr]], generator: random.Random) -> bool:
    """Whether a relation holds; a letter without entries takes any value, since nothing depends on it."""
    entries = max((len(letters.get(x.name, [])) for x in relation.free_symbols), default=1)
    for k in range(max(entries, 1)):
        point = {
            x: own[k % len(own)] if (own := letters.get(x.name)) else _value(x, generator)
            for x in relation.free_symbols
        }
        if relation.xreplace(point) != sp.true:
            return False
    return True


def sample_states(states: Sequence[sp.Symbol], count: int) -> Iterator[Point]:
    """Rational states of both signs and several sizes, from a fixed seed; masks are 0 or 1."""
    generator = random.Random(1)
    for _ in range(count):
        scale = generator.choice((1, 1, 2, 4))
        yield {
            x: sp.Integer(generator.randint(0, 1))
            if x.name.startswith("M[")
            else sp.Rational(generator.randint(-60, 60) * scale, 37)
            for x in states
        }
