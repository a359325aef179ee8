"""One-parameter families of coefficients: the line of a ratio, cut into cells by exact root isolation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import sympy as sp

from rdgraph.decisions.enclosure import sign_of, touches_zero
from rdgraph.errors import Undecided


@dataclass(frozen=True)
class Cell:
    """A piece of the one-parameter space: an open interval, or a point where lower == upper."""

    lower: sp.Expr
    upper: sp.Expr
    sample: sp.Expr

    @property
    def is_point(self) -> bool:
        return bool(self.lower == self.upper)


@dataclass(frozen=True)
class Line:
    """A family of expressions that depends on one ratio r only, up to positive factors."""

    ratio: sp.Dummy
    numerator: sp.Symbol
    denominator: sp.Expr
    lower: sp.Expr
    upper: sp.Expr
    lower_open: bool
    upper_open: bool

    def reduce(self, expression: sp.Expr) -> sp.Expr:
        """The expression on the line, its positive factor dropped."""
        if self.denominator == 1:
            return expression.xreplace({self.numerator: self.ratio})
        base = next(iter(self.denominator.free_symbols))
        sign = sp.Integer(1 if self.denominator == base else -1)
        return sp.cancel(expression.xreplace({self.numerator: self.ratio, base: sign}))

    def cells(self, expressions: Iterable[sp.Expr]) -> list[Cell]:
        """Pieces on which none of the expressions changes sign, from low to high ratio."""
        if self.lower == self.upper:
            return [Cell(self.lower, self.lower, self.lower)]
        r = self.ratio
        points: set[sp.Expr] = set()
        for expression in expressions:
            for polynomial in _boundary_polynomials(expression, r):
                points |= set(isolated_roots(polynomial))
        inside = sorted((x for x in points if self.lower < x < self.upper), key=_precise)
        edges = [self.lower, *inside, self.upper]
        cells: list[Cell] = []
        if not self.lower_open:
            cells.append(Cell(self.lower, self.lower, self.lower))
        for left, right in itertools.pairwise(edges):
            cells.append(Cell(left, right, _between(left, right)))
            if right != self.upper or not self.upper_open:
                cells.append(Cell(right, right, right))
        return cells

    def condition(self, first: Cell, last: Cell) -> sp.Basic:
        """The stretch from one cell to another as a condition on the coefficients."""
        parts = []
        x, unit = self.numerator, self.denominator
        if first.lower != self.lower or not (self.lower_open or first.is_point):
            bound = first.lower * unit
            parts.append(sp.Ge(x, bound) if first.is_point else sp.Gt(x, bound))
        if last.upper != self.upper or not (self.upper_open or last.is_point):
            bound = last.upper * unit
            parts.append(sp.Le(x, bound) if last.is_point else sp.Lt(x, bound))
        if first.is_point and first.lower == last.upper and self.lower != self.upper:
            return sp.Eq(x, first.lower * unit, evaluate=False)
        return sp.And(*parts, evaluate=False) if len(parts) > 1 else (parts[0] if parts else sp.true)


def isolated_roots(polynomial: sp.Poly) -> list[sp.Expr]:
    """Real roots, exactly; Undecided where sympy cannot isolate them, or they hang on a function that is learned."""
    try:
        found: list[sp.Expr] = sp.real_roots(polynomial)
    except NotImplementedError:
        found = [sp.nan]
    if not all(root.is_number and root != sp.nan for root in found):
        raise Undecided(f"cannot isolate the zeros of {polynomial.as_expr()}")
    return found


def _boundary_polynomials(expression: sp.Expr, r: sp.Symbol) -> Iterable[sp.Poly]:
    """Polynomials whose real roots include every sign change of the expression (square roots are eliminated)."""
    for part in sp.fraction(sp.together(expression)):
        current = sp.expand(part)
        for root in sorted(current.atoms(sp.Pow), key=lambda p: -p.count_ops()):
            if root.exp == sp.S.Half:
                y = sp.Dummy("y")
                if root.has(r):
                    yield from _boundary_polynomials(root.base, r)
                current = _without_root(sp.expand(current.xreplace({root: y})), y, root.base)
        if current.has(r):
            numerator = sp.numer(sp.together(current))
            if not numerator.is_polynomial(r):
                raise Undecided(f"cannot isolate the zeros of {expression}")
            yield sp.Poly(numerator, r)


def _without_root(expression: sp.Expr, y: sp.Symbol, square: sp.Expr) -> sp.Expr:
    """A polynomial that vanishes wherever even + odd y does, with y = sqrt(square): even^2 - odd^2 square."""
    even, odd = sp.S.Zero, sp.S.Zero
    for (power,), c in sp.Poly(expression, y).terms():
        even, odd = (even, odd + c * square ** (power // 2)) if power % 2 else (even + c * square ** (power // 2), odd)
    return even if odd == 0 else sp.expand(even**2 - odd**2 * square)


def piecewise(line: Line, cells: list[Cell], best: list[set[int]], value: Callable[[int], sp.Expr]) -> sp.Expr:
    """Join neighbouring cells that share a maximiser; points join either side unless their formula is their own."""
    stretches: list[tuple[int, int, set[int]]] = []
    for i, winners in enumerate(best):
        if stretches and stretches[-1][2] & winners:
            first, _, common = stretches[-1]
            stretches[-1] = (first, i, common & winners)
        else:
            stretches.append((i, i, set(winners)))
    pieces: list[tuple[sp.Expr, sp.Basic]] = []
    for k, (start, stop, winners) in enumerate(stretches):
        edge = cells[stop].upper * line.denominator
        condition = (sp.Le if cells[stop].is_point else sp.Lt)(line.numerator, edge)
        if start == stop and cells[start].is_point:
            condition = sp.Eq(line.numerator, edge)
        pieces.append((value(min(winners)), sp.true if k == len(stretches) - 1 else condition))
    return sp.Piecewise(*pieces)


def sample_sign(value: sp.Expr) -> int | None:
    """Sign of a number; None where it is not a finite real one.

    Numbers that agree with zero to the last digit of the finest enclosure count as zero.
    """
    sign = sign_of(value)
    return 0 if sign is None and touches_zero(value) else sign


def _between(left: sp.Expr, right: sp.Expr) -> sp.Expr:
    """A simple rational strictly between two real numbers."""
    if left == -sp.oo and right == sp.oo:
        return sp.S.Zero
    if left == -sp.oo:
        return sp.floor(right) - 1
    if right == sp.oo:
        return sp.floor(left) + 1
    width = sp.N(right - left, 40)
    for scale in (4**k for k in range(1, 60)):
        if scale * width > 4:
            return sp.Rational(int(sp.floor(sp.N(left, 40) * scale)) + 2, scale)
    raise Undecided("two cell borders are too close to tell apart")


def _precise(value: sp.Expr) -> float:
    return float(sp.N(value, 30))
