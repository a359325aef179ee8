"""Proofs that f determines the value of a formula in the coefficients.

f determines its readings. A formula is determined if it is a linear combination of readings, or if it is proved that no
two admissible points with equal readings give it different values.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from rdgraph.errors import Undecided
from rdgraph.reals.budget import limited
from rdgraph.reals.judge import Possibility, Ruling, possible
from rdgraph.theory.identifiability.entries import KINKED, FieldEntries, Point, balls, certain_rank
from rdgraph.vocabulary.functions import REALS, Span, at_zero, record_of

# ---------------------------------------------------------------------- readings
# Readings: closed formulas in the coefficients that f determines, since they are values or derivatives of f.
#
# If f is a polynomial in the state, the readings are its coefficients; if it is smooth at zero, Taylor coefficients
# along lines through zero; else values at a few states.

#: Number of derivatives at zero, the size of a formula above which it is 3, and most readings.
ORDER = 6
SMALL = 20
MAX_READINGS = 40


def readings(entries: FieldEntries) -> tuple[sp.Expr, ...]:
    """Formulas in the parameters, the simplest first, without numerical multiples of others."""
    formulas: dict[sp.Expr, None] = {}
    for value in entries.values:
        for start in _with_masks(value, entries.states):
            for reading in _read(start, [x for x in entries.states if x in start.free_symbols]):
                formula = primitive(at_zero(reading))
                if formula.free_symbols:
                    formulas.setdefault(formula)
    return tuple(sorted(formulas, key=lambda e: (e.count_ops(), str(e)))[:MAX_READINGS])


def primitive(expression: sp.Expr) -> sp.Expr:
    """An expression without added numbers, numerical factors and sign.

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


def _read(value: sp.Expr, states: list[sp.Symbol]) -> Iterator[sp.Expr]:
    if not states:
        yield value
    elif value.is_polynomial(*states):
        yield from sp.Poly(sp.expand(value), *states).coeffs()
    else:
        for direction in _directions(states):
            yield from _along(value, direction)


def _directions(states: list[sp.Symbol]) -> Iterator[dict[sp.Symbol, int]]:
    """Directions of single entries on the first branch of the tree, and two directions in which all entries change."""
    for x in states:
        if "1" not in x.name.partition(",")[0] or len(states) <= 4:
            yield {y: int(y == x) for y in states}
    generator = random.Random(2)
    for _ in range(2 if len(states) > 1 else 0):
        yield {x: generator.choice((1, 2, 3, 5, -1, -2)) for x in states}


def _along(value: sp.Expr, direction: dict[sp.Symbol, int]) -> Iterator[sp.Expr]:
    """Taylor coefficients at zero along a line, or values where these do not exist."""
    s = sp.Dummy("s", real=True)
    line = value.xreplace({x: k * s for x, k in direction.items()})
    bent = any(atom.has(s) for atom in line.atoms(*KINKED))
    start = line.xreplace({s: sp.S.Zero})
    if bent or not _is_finite(start):
        for point in (1, -1, 2, 4):
            reading = line.xreplace({s: sp.Integer(point)})
            if _is_finite(reading) and reading.is_real is not False:
                yield reading
        return
    for _ in range(ORDER if line.count_ops() <= SMALL else 3):
        if not _is_finite(start):
            return
        yield start
        line = sp.diff(line, s)
        start = line.xreplace({s: sp.S.Zero})


def _is_finite(expression: sp.Expr) -> bool:
    return not expression.has(sp.nan, sp.zoo, sp.oo, -sp.oo)


# ---------------------------------------------------------------------- certainty
#: Limits of a proof: parameters, seconds, readings in addition to the rank, and the size of a minor.
MAX_PARAMETERS = 7
SECONDS = 1.0
FURTHER = 3
MAX_MINOR = 6


@dataclass(frozen=True)
class Certainty:
    """The formulas that the readings of f determine; `point` is an admissible point in general position."""

    entries: FieldEntries
    point: Point

    @cached_property
    def readings(self) -> tuple[sp.Expr, ...]:
        """Readings that are not linear combinations of those before them."""
        independent: list[sp.Expr] = []
        for reading in readings(self.entries):
            if not _is_combination(reading, independent):
                independent.append(reading)
        return tuple(independent)

    def determines(self, formulas: Sequence[sp.Expr]) -> tuple[bool, sp.Expr]:
        """Whether f determines all formulas, and the expression that must not vanish for that (1 if none)."""
        if all(_is_combination(formula, self.readings) for formula in formulas):
            return True, sp.S.One
        if len(self.entries.parameters) > MAX_PARAMETERS:
            return False, sp.S.One
        twins = self._twins
        differ = sp.Or(*(sp.Ne(f, f.xreplace(twins)) for f in formulas))
        for border in dict.fromkeys((sp.S.One, self.border)):
            apart = [sp.Ne(border, 0), sp.Ne(border.xreplace(twins), 0)]
            question = [c for c in (*self._agreement, *apart, differ) if c != sp.true]
            if _judged(abstracted(question, twins)).outcome is Possibility.IMPOSSIBLE:
                return True, border
        return False, sp.S.One

    def twin(self, formulas: Sequence[sp.Expr]) -> tuple[Point, Point] | None:
        """Two admissible points, in general position, with the same readings and different values of a formula."""
        if len(self.entries.parameters) > MAX_PARAMETERS:
            return None
        twins = self._twins
        apart = [sp.Ne(self.border, 0), sp.Ne(self.border.xreplace(twins), 0)]
        differ = sp.Or(*(sp.Ne(f, f.xreplace(twins)) for f in formulas))
        point = _judged([*self._agreement, *apart, differ]).point
        if point is None:
            return None
        first = {x: point.get(x, self.point[x]) for x in self.entries.parameters}
        second = {x: point.get(twins[x], first[x]) for x in self.entries.parameters}
        return (first, second) if self._is_general(first) and self._is_general(second) else None

    def _is_general(self, point: Point) -> bool:
        """Whether the readings have as many independent derivatives at a point as in general."""
        jacobian = [[sp.diff(r, x) for x in self.entries.parameters] for r in self.readings]
        return certain_rank(balls(jacobian, point)) == certain_rank(balls(jacobian, self.point))

    @cached_property
    def _twins(self) -> dict[sp.Basic, sp.Basic]:
        """A second symbol with the same sign, for every parameter."""
        return {x: sp.Symbol(f"{x.name}'", **x._assumptions_orig) for x in self.entries.parameters}

    @cached_property
    def _agreement(self) -> list[sp.Basic]:
        """Both points are admissible and have the same readings."""
        twins = self._twins
        conditions: list[sp.Basic] = []
        for relation in self.entries.form.relations:
            parts = [relation.func(left, right) for left, right in self._sides(relation)]
            conditions += [*parts, *(part.xreplace(twins) for part in parts)]
        return conditions + [sp.Eq(r, r.xreplace(twins)) for r in self.essential]

    def _sides(self, relation: sp.Basic) -> Iterable[tuple[sp.Expr, sp.Expr]]:
        present = {FieldEntries.origin(x) for x in self.entries.parameters}
        if not {x.name for x in relation.free_symbols} <= present:
            return []
        return [(gap, sp.S.Zero) for gap in self.entries.parts(relation.lhs - relation.rhs)]

    @cached_property
    def independent(self) -> tuple[sp.Expr, ...]:
        """The simplest readings with independent derivatives, as many as there are."""
        chosen: list[sp.Expr] = []
        rows: list[list[sp.Expr]] = []
        for reading in self.readings:
            rows.append([sp.diff(reading, x) for x in self.entries.parameters])
            if certain_rank(balls(rows, self.point)) == len(rows):
                chosen.append(reading)
            else:
                rows.pop()
        return tuple(chosen)

    @cached_property
    def essential(self) -> tuple[sp.Expr, ...]:
        """The readings in a proof: independent ones, and a few that may exclude further values."""
        others = [r for r in self.readings if r not in self.independent]
        return (*self.independent, *others[:FURTHER])

    @cached_property
    def border(self) -> sp.Expr:
        """A minor of the readings' Jacobian of full rank, without factors that never vanish; 1 where there is none."""
        rows = [[sp.diff(reading, x) for x in self.entries.parameters] for reading in self.independent]
        if not 0 < len(rows) <= MAX_MINOR:
            return sp.S.One
        columns: list[int] = []
        for j in range(len(self.entries.parameters)):
            chosen = [[row[k] for k in (*columns, j)] for row in rows]
            if certain_rank(balls(chosen, self.point)) > len(columns):
                columns.append(j)
        minor = sp.Matrix([[row[k] for k in columns] for row in rows]).det()
        factors = sp.factor_list(sp.numer(sp.together(minor)))[1] if minor.free_symbols else []
        return sp.Mul(*(factor for factor, _ in factors if not factor.is_nonzero))


def _judged(conditions: Sequence[sp.Basic]) -> Ruling:
    try:
        return limited(SECONDS, possible, *conditions)
    except Undecided as problem:
        return Ruling(Possibility.UNKNOWN, reason=str(problem))


def _values_if_injective(call: sp.Expr) -> Span | None:
    """The values of a function that takes every value once; None for other expressions."""
    if isinstance(call, sp.log):
        return REALS
    record = record_of(call)
    return (record.range or REALS) if record is not None and record.is_injective else None


def _injective_calls(expression: sp.Basic) -> set[sp.Expr]:
    return {call for call in expression.atoms(sp.Function) if _values_if_injective(call) is not None}


def abstracted(conditions: Sequence[sp.Basic], twins: Mapping[sp.Basic, sp.Basic]) -> list[sp.Basic]:
    """Weaker conditions with symbols for functions: in range, and equal at both points where their arguments are."""
    weaker, facts = list(conditions), []
    while atom := _innermost(weaker, twins):
        values = _values_if_injective(atom) or REALS
        mirror = atom.xreplace(dict(twins))
        value, twin = (sp.Dummy(atom.func.__name__, real=True) for _ in range(2))
        together = sp.And(sp.Eq(value, twin), sp.Eq(atom.args[0], mirror.args[0]))
        facts += [sp.Or(together, sp.And(sp.Ne(value, twin), sp.Ne(atom.args[0], mirror.args[0])))]
        facts += [r for y in (value, twin) for r in values.relations(y)]
        exchange = {atom: value, mirror: twin}
        weaker = [c.xreplace(exchange) for c in weaker]
        facts = [c.xreplace(exchange) for c in facts]
    return [c for c in (*weaker, *facts) if c != sp.true]


def _innermost(conditions: Sequence[sp.Basic], twins: Mapping[sp.Basic, sp.Basic]) -> sp.Expr | None:
    """A function of parameters of the first point whose argument contains no further function."""
    atoms = {atom for c in conditions for atom in _injective_calls(c) if atom.free_symbols}
    plain = [a for a in atoms if a.free_symbols <= set(twins) and not _injective_calls(a.args[0])]
    return min(plain, key=str, default=None)


def _is_combination(formula: sp.Expr, known: Sequence[sp.Expr]) -> bool:
    """Whether a formula is a number plus multiples of the known ones."""
    vectors = [_terms(e) for e in (*known, formula)]
    monomials = sorted({m for vector in vectors for m in vector}, key=str)
    if not monomials:
        return True
    table = sp.Matrix([[vector.get(m, sp.S.Zero) for m in monomials] for vector in vectors])
    return bool(table.rank() == table[:-1, :].rank()) if known else False


def _terms(expression: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    terms: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(sp.expand(expression)):
        number, core = term.as_coeff_Mul()
        if core.free_symbols:
            terms[core] = terms.get(core, sp.S.Zero) + number
    return terms
