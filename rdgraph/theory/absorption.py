"""Boxes [-U, U] that are kept because damping outgrows everything else: how large U must be.

On a face h = U or h = -U the outward speed is a sum of terms c U^n of the entry itself, with their sign, and of terms
that are at most m_j U^j in modulus: averages, bounded functions, sources. If N is the highest degree and
lead = -c_N - m_N > 0, the speed points inwards as soon as lead U^N exceeds the lower terms; for U >= 1 those are at
most the sum of their coefficients times U^j, j the highest degree among them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import sympy as sp

from rdgraph.decisions.domain import Domain
from rdgraph.syntax.answer_symbols import R, h, h0
from rdgraph.syntax.functions import record_of
from rdgraph.theory.box_faces import LocalField, RowSums
from rdgraph.theory.slope_bounds import largest_slope, largest_value

#: A sum of m_j U^j with m_j >= 0, by degree j.
Powers = dict[sp.Rational, sp.Expr]


class _Unbounded(Exception):
    """A term that no power of U bounds."""


@dataclass(frozen=True)
class Radius:
    """[-value, value] is kept where all of `positive` are > 0."""

    value: sp.Expr
    positive: tuple[sp.Expr, ...]


def absorbing_radius(field: LocalField, domain: Domain, rows: RowSums) -> Radius | None:
    """The size of a box that is kept from any H0 in [-R, R], where there is one.

    >>> from rdgraph.theory.box_faces import STOCHASTIC
    >>> from rdgraph.systems.parser import parse
    >>> system = parse("-2*H + sin(A@H) + alpha*cos(H)")
    >>> absorbing_radius(LocalField.of(system), system.domain, STOCHASTIC).value
    alpha/2 + 1/2
    """
    if any(x.name != "M" for x in field.varying):
        return None
    faces = [_Face(field, domain.where(*rows.conditions), rows, side) for side in (1, -1)]
    try:
        found = [face.radius() for face in faces]
    except _Unbounded:
        return None
    least = [R] if field.has_source else []
    needed = {x for radius in found for x in radius.positive}
    return Radius(sp.Max(*least, *(radius.value for radius in found)), tuple(sorted(needed, key=str)))


def _has_pieces(call: sp.Expr) -> bool:
    record = record_of(call)
    return record is not None and record.pieces is not None


@dataclass(frozen=True)
class _Face:
    """The outward speed on the face h = side * U."""

    field: LocalField
    domain: Domain
    rows: RowSums
    side: int

    def radius(self) -> Radius:
        U = sp.Dummy("U", positive=True)
        exact: Powers = defaultdict(lambda: sp.S.Zero)
        bound: Powers = defaultdict(lambda: sp.S.Zero)
        outward = sp.expand(self.side * self.field.speed.xreplace({h: self.side * U}).replace(_has_pieces, self._piece))
        for term in sp.Add.make_args(outward):
            factor, power = term.as_independent(U)
            if not factor.free_symbols & self._foreign and power.is_polynomial(U) and not power.has(sp.Add):
                exact[sp.degree(power, U) if power.has(U) else sp.S.Zero] += factor
            elif not self._helps(term):
                for degree, size in self._size(term, U, own=True).items():
                    bound[degree] += size
        return self._balance(exact, bound)

    @property
    def _foreign(self) -> set[sp.Symbol]:
        return {h0, *(a.letter for a in self.field.averages), *self.field.varying}

    def _piece(self, call: sp.Expr) -> sp.Expr:
        """A function that is linear on either side of zero, on the side where its argument is proved to lie."""
        record, argument = record_of(call), call.args[0]
        assert record is not None
        assert record.pieces is not None
        below, above = record.pieces
        sign = self.domain.sign(argument)
        return above * argument if sign.is_nonnegative else below * argument if sign.is_nonpositive else call

    def _helps(self, term: sp.Expr) -> bool:
        """Proved: a term with an exponential points inwards."""
        return term.has(sp.exp) and self.domain.sign(term).is_nonpositive

    def _balance(self, exact: Powers, bound: Powers) -> Radius:
        degrees = {d for d, c in exact.items() if c != 0} | set(bound)
        top = max(degrees, default=sp.S.Zero)
        lead = sp.expand(-exact[top] - bound[top])
        if top < 1 or self.domain.sign(lead).is_nonpositive:
            raise _Unbounded
        lower = {d: bound[d] + self._positive_part(exact[d]) for d in degrees if d < top}
        lower = {d: size for d, size in lower.items() if size != 0}
        positive = () if self.domain.proves(sp.Gt(lead, 0, evaluate=False)) is True else (lead,)
        if not lower:
            return Radius(sp.S.Zero, positive)
        ratio = sp.factor_terms(sum(lower.values(), sp.S.Zero)) / lead
        value = ratio ** (1 / (top - max(lower)))
        return Radius(value if len(lower) == 1 and min(lower) >= 0 else sp.Max(1, value), positive)

    def _positive_part(self, coefficient: sp.Expr) -> sp.Expr:
        sign = self.domain.sign(sp.expand(coefficient))
        return sp.S.Zero if sign.is_nonpositive else coefficient if sign.is_nonnegative else sp.Abs(coefficient)

    # ------------------------------------------------------------------ sizes
    def _size(self, expression: sp.Expr, U: sp.Symbol, *, own: bool) -> Powers:
        """Powers of U whose sum bounds |expression|; `own`: U is the entry itself, not a bound of another one's."""
        if expression in (U, h):
            return {sp.S.One: sp.S.One}
        if expression == h0:
            return {sp.S.Zero: R}
        for average in self.field.averages:
            if expression == average.letter:
                inner = self._size(average.inner, U, own=False)
                return {d: self.rows.highest(average.power) * size for d, size in inner.items()}
        if expression in self.field.varying:
            return {sp.S.Zero: sp.S.One}  # a mask
        if not expression.has(U, h) and not expression.free_symbols & self._foreign:
            return {sp.S.Zero: self._modulus(expression)}
        return self._composed(expression, U, own)

    def _modulus(self, expression: sp.Expr) -> sp.Expr:
        sign = self.domain.sign(expression)
        return expression if sign.is_nonnegative else -expression if sign.is_nonpositive else sp.Abs(expression)

    def _composed(self, expression: sp.Expr, U: sp.Symbol, own: bool) -> Powers:
        match expression:
            case sp.Add():
                return _total(*(self._size(a, U, own=own) for a in expression.args))
            case sp.Mul():
                product: Powers = {sp.S.Zero: sp.S.One}
                for a in expression.args:
                    product = _product(product, self._size(a, U, own=own))
                return product
            case sp.Pow(exp=sp.Integer()) if expression.exp > 0:
                return self._composed(sp.Mul(*[expression.base] * int(expression.exp), evaluate=False), U, own)
            case sp.Pow(exp=sp.Rational()):
                return self._root(expression, U, own)
        largest = largest_value(expression)
        if largest.is_finite:
            return {sp.S.Zero: largest}
        record = record_of(expression)
        if record is not None and record.is_lipschitz and record.at_zero is not None:
            inner, slope = self._size(expression.args[0], U, own=own), largest_slope(expression)
            grown = {degree: slope * size for degree, size in inner.items()}
            return _total(grown, {sp.S.Zero: sp.Abs(record.at_zero)})
        if isinstance(expression, sp.exp) and self.domain.sign(expression.args[0]).is_nonpositive:
            return {sp.S.Zero: sp.S.One}
        if isinstance(expression, sp.exp) and own:
            slope, rest = sp.diff(expression.args[0], U), expression.args[0].subs(U, 0)
            if not slope.has(U) and self.domain.sign(slope).is_nonpositive and not rest.free_symbols & self._foreign:
                return {sp.S.Zero: sp.exp(rest)}
        raise _Unbounded

    def _root(self, power: sp.Pow, U: sp.Symbol, own: bool) -> Powers:
        """(c_0 + ... + c_n U^n)^q with no c_j negative: a sum of roots, or for q < 0 what one of its terms allows."""
        x = U if power.base.has(U) else h
        if not power.base.is_polynomial(x) or power.base.free_symbols & (self._foreign - {h}):
            raise _Unbounded
        terms = {sp.Integer(m[0]): c for m, c in sp.Poly(power.base, x).terms()}
        even = x == U or all(d % 2 == 0 for d in terms)
        if not even or not all(self.domain.sign(c).is_nonnegative for c in terms.values()):
            raise _Unbounded
        if 0 < power.exp < 1:
            return {d * power.exp: c**power.exp for d, c in terms.items()}
        degree = max(terms) if own and x == U else sp.S.Zero
        least = terms.get(degree, sp.S.Zero)
        if power.exp < 0 and self.domain.proves(sp.Gt(least, 0, evaluate=False)) is True:
            return {degree * power.exp: least**power.exp}
        raise _Unbounded


def _total(*parts: Powers) -> Powers:
    total: Powers = {}
    for part in parts:
        for degree, size in part.items():
            total[degree] = total.get(degree, sp.S.Zero) + size
    return total


def _product(left: Powers, right: Powers) -> Powers:
    product: Powers = {}
    for (a, x), (b, y) in ((p, q) for p in left.items() for q in right.items()):
        product[a + b] = product.get(a + b, sp.S.Zero) + x * y
    return product
