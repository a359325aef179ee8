"""Boxes between zeros without closed form: numbers on the safe side of them, from the signs of the field on the line.

A field r(h) + c_0 h + c_1 A h + ... with c_k >= 0 for k >= 1 keeps [l, u] on row-stochastic A where its value on equal
entries is >= 0 at l and <= 0 at u: an average of entries in [l, u] is at least l, and at most u. On any field these two
are needed, since a state that is equal in all nodes stays so.
"""

from __future__ import annotations

import sympy as sp

from rdgraph.decisions.domain import NEGATIVE, POSITIVE, Domain
from rdgraph.decisions.judge import rest_on_enclosures
from rdgraph.decisions.line_zeros import LineZero, LineZeros, line_zeros
from rdgraph.errors import Undecided
from rdgraph.syntax.answer_symbols import R, h
from rdgraph.theory.box_faces import STOCHASTIC, Faces, LocalField
from rdgraph.theory.box_values import Box
from rdgraph.theory.several_fields.rectangles import NO_ISOLATED_NODES

#: Decimals of faces that lie beside a zero.
DECIMALS = 6


def line_box(field: LocalField, domain: Domain) -> Box | None:
    """A box of a field whose zeros on equal entries are numbers, or the proof that there is none.

    >>> from rdgraph.systems.parser import parse
    >>> system = parse("-alpha*L@H + H - tanh(2*H)")
    >>> box = line_box(LocalField.of(system), system.domain)
    >>> float(box.lower), float(box.upper)
    (-0.957504, 0.957504)
    """
    rate = None if field.has_source or field.varying else _numeric(field.uniform(h, sp.S.Zero), domain)
    if rate is None:
        return None
    try:
        found = line_zeros(rate, h)
    except (Undecided, sp.PolynomialError, NotImplementedError):
        return None
    if not found.is_complete or None in found.signs:
        return None
    rest_on_enclosures()
    if not any(_comes_down(found, i) for i in range(len(found.zeros))):
        return _left(found)
    box = _kept(found) if _is_cooperative(field, domain) else None
    smooth = box is not None and Faces(field, domain, STOCHASTIC).is_lipschitz(box.lower, box.upper)
    return box if smooth else None


def _numeric(rate: sp.Expr, domain: Domain) -> sp.Expr | None:
    """The rate up to a positive factor, if no letter but h is left."""
    numbers = []
    for factor in sp.Mul.make_args(sp.factor_terms(rate)):
        if factor.free_symbols <= {h}:
            numbers.append(factor)
        elif factor.has(h) or domain.sign(factor) not in (POSITIVE, NEGATIVE):
            return None
        else:
            numbers.append(sp.S.One if domain.sign(factor) is POSITIVE else sp.S.NegativeOne)
    product = sp.Mul(*numbers)
    return product if product.has(h) else None


def _comes_down(found: LineZeros, index: int) -> bool:
    """Whether the rate is positive before a zero and negative after it."""
    return found.signs[index] == 1 and found.signs[index + 1] == -1


def _left(found: LineZeros) -> Box | None:
    """No l < u with a rate >= 0 at l and <= 0 at u: first it is negative, then positive, with at most one zero."""
    if len(found.zeros) > 1 or (found.zeros and found.signs != (-1, 1)):
        return None
    where = "but the point at which the rate vanishes " if found.zeros else ""
    reason = f"leaves every box {where}on states equal in all nodes (A@1 = 1), by the signs of the rate"
    return Box(None, None, reason, is_proved=True)


def _is_cooperative(field: LocalField, domain: Domain) -> bool:
    """The field is affine in averages of the entries themselves, with coefficients that are never negative."""
    for average in field.averages:
        slope = sp.diff(field.speed, average.letter)
        if average.inner != h or not average.affine or slope.has(h) or not domain.sign(slope).is_nonnegative:
            return False
    return True


def _kept(found: LineZeros) -> Box | None:
    """From the zero before the first one that attracts to the zero after it; any R beyond it where there is none."""
    index = next(i for i in range(len(found.zeros)) if _comes_down(found, i))
    zero = found.zeros[index]
    lower = _beside(found.zeros[index - 1], 1) if index else _beside(zero, -1) - R
    upper = _beside(found.zeros[index + 1], -1) if index + 1 < len(found.zeros) else _beside(zero, 1) + R
    if not (lower.has(R) or lower < zero.lower) or not (upper.has(R) or zero.upper < upper):
        return None
    note = "between zeros of the field, on the safe side of them; without isolated nodes"
    return Box(lower, upper, note, assumes=NO_ISOLATED_NODES)


def _beside(zero: LineZero, way: int) -> sp.Expr:
    """The zero, or a decimal number on one side of it."""
    if zero.value is not None:
        return zero.value
    scale = 10**DECIMALS
    return sp.Rational(sp.ceiling(zero.upper * scale) if way > 0 else sp.floor(zero.lower * scale), scale)
