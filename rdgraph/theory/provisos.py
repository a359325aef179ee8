"""Boxes that are kept in a region of the coefficients: inequalities at the corners as conditions on the letters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import sympy as sp

from rdgraph.decisions.definedness import defining_conditions
from rdgraph.decisions.domain import NEGATIVE, POSITIVE, Domain
from rdgraph.errors import Undecided
from rdgraph.syntax.answer_symbols import R, h, h0, s
from rdgraph.theory.box_faces import Faces, Interval

#: Longer conditions tell a reader nothing.
MAX_OPERATIONS = 60


@dataclass(frozen=True)
class Proviso:
    """A box that is kept where a condition on the coefficients (and on the largest row sum s) holds."""

    box: Interval
    where: sp.Basic


def weakest(faces: Faces, candidates: Sequence[sp.Expr]) -> Proviso | None:
    """The box between two candidates whose condition is the weakest, as far as they compare, else the shortest.

    >>> from rdgraph.theory.box_faces import STOCHASTIC, LocalField
    >>> from rdgraph.systems.parser import parse
    >>> system = parse("-alpha*L@H + beta*L@H")
    >>> weakest(Faces(LocalField.of(system), system.domain, STOCHASTIC), [-R, R]).where
    alpha - beta >= 0
    """
    found = [
        proviso for lower in candidates for upper in candidates
        if lower != upper and (proviso := _proviso(faces, lower, upper)) is not None
    ]  # fmt: skip
    wide, best = faces.domain.where(*faces.rows.conditions), None
    for rival in sorted(found, key=lambda p: p.where.count_ops()):
        if best is None or (_implies(best, rival, wide) and not _implies(rival, best, wide)):
            best = rival
    return best


def _implies(first: Proviso, second: Proviso, domain: Domain) -> bool:
    return domain.where(first.where).proves(second.where) is True


def _cleared(condition: sp.Basic, domain: Domain) -> list[sp.Basic]:
    """A comparison with zero as one between polynomials, which does not hold where a denominator vanishes."""
    bottom = sp.denom(sp.together(condition.lhs))
    if condition.rhs != 0 or domain.sign(bottom) in (POSITIVE, NEGATIVE):
        return [condition]
    cleared = condition.func(domain.cleared(condition.lhs), 0, evaluate=False)
    return [cleared] if isinstance(condition, sp.Gt | sp.Lt) else [cleared, sp.Ne(bottom, 0)]


def _proviso(faces: Faces, lower: sp.Expr, upper: sp.Expr) -> Proviso | None:
    wide = faces.domain.where(*faces.rows.conditions)
    try:
        needed = list(dict.fromkeys(_needed(faces, lower, upper, wide)))
    except Undecided:
        return None
    open_ones: list[sp.Basic] = []
    for condition in needed:
        if wide.where(*open_ones).proves(condition) is not True:
            open_ones.append(condition)
    for condition in tuple(open_ones):  # a later one can say more than one before it
        others = [c for c in open_ones if c != condition]
        if wide.where(*others).proves(condition) is True:
            open_ones = others
    open_ones = [part for c in open_ones for part in _cleared(c, wide)]
    where = sp.And(*open_ones, evaluate=False) if len(open_ones) > 1 else sp.And(*open_ones)
    if where.count_ops() > MAX_OPERATIONS or where.has(R) or where.free_symbols & faces.field.varying:
        return None
    irregular = [sp.Gt(s, 1)] if faces.rows.conditions else []
    strict = {sp.Ge: sp.Gt, sp.Le: sp.Lt}
    inner = [strict.get(type(c), type(c))(c.lhs, c.rhs, evaluate=False) for c in open_ones]
    if wide.point(*inner, *irregular) is None:
        return None  # a region without an interior says nothing
    inside = Faces(faces.field, faces.domain.where(*open_ones), faces.rows, faces.start)
    return Proviso((lower, upper), where) if inside.is_lipschitz(lower, upper) else None


def _needed(faces: Faces, lower: sp.Expr, upper: sp.Expr, wide: Domain) -> Iterator[sp.Basic]:
    """What must hold for the ends to be real numbers in their order, and for no corner to move outwards."""
    yield from dict.fromkeys([*defining_conditions(lower), *defining_conditions(upper)])
    yield sp.Gt(_stripped(upper - lower, wide), 0, evaluate=False)
    if faces.start is not None:
        yield sp.Ge(_stripped(upper - faces.start[1], wide), 0, evaluate=False)
        yield sp.Ge(_stripped(faces.start[0] - lower, wide), 0, evaluate=False)
    for face, inward in ((lower, 1), (upper, -1)):
        speed = inward * faces.field.speed.xreplace({h: face})
        for value in _corner_values(faces, speed, (lower, upper)):
            yield sp.Ge(_stripped(value, wide), 0, evaluate=False)


def _corner_values(faces: Faces, speed: sp.Expr, box: Interval) -> Iterator[sp.Expr]:
    """The speed at the corners as functions of the coefficients alone; Undecided where other letters remain."""
    allowed = set(faces.rows.conditions)
    for value, facts in faces.corners(speed, box):
        ends: Iterable[sp.Expr] = (value,)
        if value.has(h0) and faces.start is not None and sp.diff(value, h0, 2) == 0:
            ends = [value.xreplace({h0: end}) for end in faces.start]
        elif set(facts) - allowed:
            raise Undecided("the speed depends on more than the coefficients")
        yield from ends


def _stripped(value: sp.Expr, domain: Domain) -> sp.Expr:
    """The value without its positive factors, R among them; a root alone has the sign of what is under it."""
    parts = sp.Mul.make_args(sp.factor(value) if value.is_rational_function() else value)
    kept = [f for f in parts if domain.sign(f) is not POSITIVE]
    if len(kept) == 1 and isinstance(kept[0], sp.Pow) and kept[0].exp == sp.S.Half:
        kept = [kept[0].base]
    return sp.expand(sp.Mul(*kept))
