"""Invariant boxes: intervals [l, u] such that a state with all entries inside stays inside.

Candidates for the faces are zeros of the field on states that are the same in all nodes, zero, and multiples of a free
radius R; a box is given only if the judge proves, for all admissible coefficients and all averages over neighbours,
that entries on its faces do not leave (`rdgraph.theory.box_faces`). Where none of them is kept, a box is sought that is
large enough for the damping (`rdgraph.theory.face_search`), then a proof that every box is left
(`rdgraph.theory.escapes`), then a region of the coefficients where a box is kept (`rdgraph.theory.face_search`).
Row-stochastic A: averages of entries in [l, u] stay there; a node without edges has the average 0 instead, which is a
second question wherever 0 is outside the box. Symmetric A: row sums reach s = max_i sum_j A_ij (s = 1 on regular graphs
only), and the box must grow with s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import sympy as sp

from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.answer_symbols import R, h, public
from rdgraph.reals.budget import limited, within_budget
from rdgraph.reals.domain import NEGATIVE, POSITIVE, Domain
from rdgraph.reals.judge import BOUNDED, remembered, rest_on_enclosures, watched
from rdgraph.reals.line_extents import in_decimals
from rdgraph.reals.zeros import LineZero, LineZeros, line_zeros
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.box_faces import STOCHASTIC, STRETCHED, SUBSTOCHASTIC, Box, Faces, Interval, LocalField, no_box
from rdgraph.theory.escapes import Escape, Escapes
from rdgraph.theory.face_search import FaceSearch
from rdgraph.theory.several_fields.rectangles import NO_ISOLATED_NODES, Rectangle, rectangle
from rdgraph.vocabulary.normalisations import find_normalisation, records

# ---------------------------------------------------------------------- line boxes
# Boxes between zeros without closed form: numbers on the safe side of them, from the signs of the field on the line.
#
# A field r(h) + c_0 h + c_1 A h + ... with c_k >= 0 for k >= 1 keeps [l, u] on row-stochastic A where its value on
# equal entries is >= 0 at l and <= 0 at u: an average of entries in [l, u] is at least l, and at most u. On any field
# these two are needed, since a state that is equal in all nodes stays so.

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
        return _every_interval_is_left(found)
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


def _every_interval_is_left(found: LineZeros) -> Box | None:
    """No l < u with a rate >= 0 at l and <= 0 at u: first it is negative, then positive, with at most one zero."""
    if len(found.zeros) > 1 or (found.zeros and found.signs != (-1, 1)):
        return None
    where = "but the point at which the rate vanishes " if found.zeros else ""
    reason = f"leaves every box {where}on states equal in all nodes (A@1 = 1), by the signs of the rate"
    return Box(None, None, reason, is_left=True)


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


# ---------------------------------------------------------------------- invariant boxes
#: Seconds spent on all candidates.
SEARCH_SECONDS = 2.6

__all__ = ["Box", "check_averages", "invariant_box", "kept_box", "raw_box", "single_box"]


@reads_system
def invariant_box(
    system: System, normalisation: str = "symmetric", bounds: Mapping[str, Any] | None = None
) -> Box | Rectangle:
    """The box between the outermost zeros of the reaction, or one of any size R where any size is kept.

    The row box is for graphs in which no node is without incoming edges where `assumes` says so; what holds with such
    nodes is `with_isolated`. Directed and weighted graphs are included.

    Args:
        system: a system, or a text or name that `parse` reads.
        normalisation: of the operator A; one whose rows average, such as row or symmetric. For several fields any.
        bounds: intervals by field to be decided about, as in {"u": (0, 1), "v": (0, "oo")}; without them a box is
            sought.

    Returns:
        The faces l and u with H(t) in [l, u] for all t where H(0) is, the region of the coefficients where that holds
        (`where`), or, with `is_left`, a proof that every box is left; else a reason that says what was tried. For
        several fields, and where bounds are given, a `Rectangle`: its status is proved, refuted by a point or
        undecided, and `nonnegative` says whether densities stay non-negative.

    Raises:
        NotApplicable: the rows of the normalisation are no averages.
        InvalidArgument: bounds that are no intervals.

    >>> import rdgraph as rd
    >>> box = rd.invariant_box(rd.parse("F"), "row")
    >>> box.lower, box.upper
    (0, 1)
    >>> rd.invariant_box(rd.parse("F")).upper
    (alpha*s - alpha + beta)/beta
    >>> rd.invariant_box(rd.parse("-L@H + (H - 1)*(3 - H)"), "row").assumes
    'no node is without incoming edges'
    >>> rd.invariant_box("u' = u*(1 - u - a*v) - Du*L@u; v' = v*(1 - v - b*u) - Dv*L@v", "row").bounds
    {'u': (0, 1), 'v': (0, 1)}
    """
    if bounds is not None or not system.is_single:
        return rectangle(system, normalisation, bounds)
    return single_box(system, normalisation)


@within_budget(lambda problem: no_box(f"undecided: {problem}"))
def single_box(system: System, normalisation: str) -> Box:
    """The invariant box of a system of one field."""
    check_averages(normalisation)
    system.require_single()
    own = raw_box(system, normalisation)
    lower, upper = (None if end is None else in_decimals(public(end)) for end in (own.lower, own.upper))
    others = tuple((public(a), public(b)) for a, b in own.others)
    return replace(
        own, lower=lower, upper=upper, others=others, with_isolated=_public(own.with_isolated),
        start=_public(own.start), where=public(own.where), regular=_public(own.regular),
        regular_start=_public(own.regular_start),
    )  # fmt: skip


def check_averages(normalisation: str) -> None:
    """Raise `NotApplicable` where nothing is known of the sums over neighbours that boxes are about."""
    if not find_normalisation(normalisation).averages:
        known = " or ".join(name for name, record in records.items() if record.averages)
        raise NotApplicable(f"expected the normalisation {known}, got {normalisation!r}")


def _public(pair: Interval | None) -> Interval | None:
    return None if pair is None else (public(pair[0]), public(pair[1]))


@remembered(512)
def raw_box(system: System, normalisation: str) -> Box:
    """The box in the package's own symbols."""
    kept = kept_box(system, normalisation)
    if kept.exists:
        return kept
    with watched() as watch:
        found = _absent(system, normalisation)
    return replace(found, reason=f"{found.reason}; {BOUNDED}") if watch.bounded and found.is_decided else found


@remembered(512)
def kept_box(system: System, normalisation: str) -> Box:
    """A box for all admissible coefficients in the package's own symbols; none is given without a reason."""
    with watched() as watch:
        found = _found(system, normalisation)
    return replace(found, reason=f"{found.reason}; {BOUNDED}") if watch.bounded and found.exists else found


def _found(system: System, normalisation: str) -> Box:
    try:
        field = LocalField.of(system)
    except NotApplicable as problem:
        return no_box(f"no box was derived: {problem}")
    stochastic = find_normalisation(normalisation).averages == "stochastic"
    search = FaceSearch(field, system.domain, STOCHASTIC if stochastic else STRETCHED)
    try:
        found = limited(SEARCH_SECONDS, search.best)
    except Undecided:
        found = None
    if found is not None and stochastic:
        return _with_isolated(found, search)
    if found is not None:
        remark = "s is the largest row sum of A, 1 on regular graphs only"
        return replace(found, reason=remark, with_isolated=(found.lower, found.upper))
    large = search.absorbing()
    return large if large is not None and large.exists else no_box("no box was found")


def _absent(system: System, normalisation: str) -> Box:
    """What is left to say where no box is kept for all coefficients on every graph."""
    domain, row = system.domain, find_normalisation(normalisation).averages == "stochastic"
    try:
        field = LocalField.of(system)
    except NotApplicable as problem:
        mixed = _mixed(system, domain, stars=not row)
        return no_box(f"no box was derived: {problem}") if mixed is None else mixed
    escapes = Escapes(field, domain, stars=not row)
    search = FaceSearch(field, domain, STOCHASTIC if row else STRETCHED)
    regular = None if row else kept_box(system, "row")
    ways: list[Callable[[], Box | None]] = [
        lambda: _box_of_escape(escapes.always()),
        lambda: search.conditional(escapes),
    ]
    ways += [lambda: line_box(field, domain)] if row else []
    ways.append(lambda: _box_of_escape(escapes.somewhere()))
    found = next((box for way in ways if (box := way()) is not None), None)
    if regular is None or not regular.exists:
        return no_box(search.why_not()) if found is None else found
    on_regular = f"on regular graphs with edges the row box [{public(regular.lower)}, {public(regular.upper)}] holds"
    if regular.start is not None:
        on_regular += f" for H0 in [{public(regular.start[0])}, {public(regular.start[1])}]"
    found = (
        no_box("no box was found for irregular graphs: row sums of the symmetric A exceed 1")
        if found is None
        else found
    )
    return replace(
        found, reason=f"{found.reason}; {on_regular}", regular=(regular.lower, regular.upper),
        regular_start=regular.start,
    )  # fmt: skip


def _mixed(system: System, domain: Domain, *, stars: bool) -> Box | None:
    """Systems with mixing matrices: multiples of the identity show that every box is left."""
    try:
        field = LocalField.of(system, scaled=True)
    except NotApplicable:
        return None
    return _box_of_escape(Escapes(field, domain, stars).somewhere())


def _box_of_escape(escape: Escape | None) -> Box | None:
    return None if escape is None else Box(None, None, escape.reason, is_left=True, at=escape.at)


def _with_isolated(found: Box, search: FaceSearch) -> Box:
    """The row box, and what remains of it where a node without edges sees the average 0."""
    lonely = replace(search, rows=SUBSTOCHASTIC)
    faces = lonely.faces(found.start)
    if faces.keep(found.lower, found.upper):
        others = tuple(box for box in found.others if faces.keep(*box))
        return replace(found, with_isolated=(found.lower, found.upper), others=others)
    own = lonely.best()
    remains = f"[{public(own.lower)}, {public(own.upper)}] is kept" if own is not None else "no box was found"
    return replace(
        found, assumes=NO_ISOLATED_NODES, with_isolated=(own.lower, own.upper) if own is not None else None,
        reason=f"{found.reason}; with isolated nodes {remains}",
    )  # fmt: skip
