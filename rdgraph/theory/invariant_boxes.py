"""Invariant boxes: intervals [l, u] such that a state with all entries inside stays inside.

Candidates for the faces are zeros of the field on states that are equal in all nodes, zero, and multiples of a free
radius R; a box is given only if it is proved, for all admissible coefficients and all averages over neighbours, that
entries on its faces do not leave (`rdgraph.theory.several_fields.rectangle_faces`). Where none is kept, a box is sought
that is large enough for the damping (`rdgraph.theory.face_search`), then a proof that every box is left
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
from rdgraph.language.answer_symbols import R, h, public, s
from rdgraph.language.normal_form import H
from rdgraph.reals.budget import limited, within_budget
from rdgraph.reals.domain import NEGATIVE, POSITIVE, Domain
from rdgraph.reals.judge import BOUNDED, remembered, rest_on_enclosures, watched
from rdgraph.reals.line_extents import in_decimals
from rdgraph.reals.zeros import LineZero, LineZeros, line_zeros
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.escapes import Escape, Escapes
from rdgraph.theory.face_search import Box, FaceSearch, no_box
from rdgraph.theory.several_fields.node_speeds import NodeSpeeds
from rdgraph.theory.several_fields.rectangle_faces import (
    AVERAGING,
    AVERAGING_OR_ALONE,
    NO_ISOLATED_NODES,
    UP_TO_S,
    Interval,
    RectangleFaces,
)
from rdgraph.theory.several_fields.rectangles import Rectangle, rectangle
from rdgraph.vocabulary.normalisations import find_normalisation, records

# ---------------------------------------------------------------------- line boxes
# Boxes between zeros without closed form: numbers on the safe side of them, from the signs of the field on the line.
#
# A field r(h) + c_0 h + c_1 A h + ... with c_k >= 0 for k >= 1 keeps [l, u] on row-stochastic A where its value on
# equal entries is >= 0 at l and <= 0 at u: an average of entries in [l, u] is at least l, and at most u. On any field
# these two are needed, since a state that is equal in all nodes stays so.

#: Decimals of faces that lie next to a zero.
DECIMALS = 6


def line_box(field: NodeSpeeds) -> Box | None:
    """A box of a field whose zeros on equal entries are numbers, or the proof that there is none.

    >>> from rdgraph.systems.parser import parse
    >>> box = line_box(NodeSpeeds.of_one(parse("-alpha*L@H + H - tanh(2*H)")))
    >>> float(box.lower), float(box.upper)
    (-0.957504, 0.957504)
    """
    domain = field.system.domain
    rate = None if field.has_source or field.varying else _numeric(field.uniform_one(h, sp.S.Zero), domain)
    if rate is None:
        return None
    try:
        zeros = line_zeros(rate, h)
    except (Undecided, sp.PolynomialError, NotImplementedError):
        return None
    if not zeros.is_complete or None in zeros.signs:
        return None
    rest_on_enclosures()
    if not any(_comes_down(zeros, i) for i in range(len(zeros.zeros))):
        return _no_invariant_interval(zeros)
    box = _between_zeros(zeros) if _is_cooperative(field, domain) else None
    smooth = box is not None and RectangleFaces(field, AVERAGING).is_lipschitz({H.name: (box.lower, box.upper)})
    return box if smooth else None


def _numeric(rate: sp.Expr, domain: Domain) -> sp.Expr | None:
    """The rate up to a positive factor, if it depends on h alone; else None."""
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


def _comes_down(zeros: LineZeros, index: int) -> bool:
    """Whether the rate is positive before a zero and negative after it."""
    return zeros.signs[index] == 1 and zeros.signs[index + 1] == -1


def _no_invariant_interval(zeros: LineZeros) -> Box | None:
    """No l < u with a rate >= 0 at l and <= 0 at u: first it is negative, then positive, with at most one zero."""
    if len(zeros.zeros) > 1 or (zeros.zeros and zeros.signs != (-1, 1)):
        return None
    where = "but the point at which the rate vanishes " if zeros.zeros else ""
    reason = f"no box {where}is invariant: states equal in all nodes (A@1 = 1) leave it, by the signs of the rate"
    return Box(None, None, reason, is_left=True)


def _is_cooperative(field: NodeSpeeds, domain: Domain) -> bool:
    """The field never falls with an average of the entries themselves, and depends on no other average."""
    slopes = {call: sp.diff(field.speed, call.letter) for call in field.calls}
    return all(call.inner == H and domain.sign(slope).is_nonnegative for call, slope in slopes.items())


def _between_zeros(zeros: LineZeros) -> Box | None:
    """The box between the zeros next to the first attracting one; any R beyond it where there is no such zero."""
    index = next(i for i in range(len(zeros.zeros)) if _comes_down(zeros, i))
    zero = zeros.zeros[index]
    lower = _safe_side(zeros.zeros[index - 1], 1) if index else _safe_side(zero, -1) - R
    upper = _safe_side(zeros.zeros[index + 1], -1) if index + 1 < len(zeros.zeros) else _safe_side(zero, 1) + R
    if not (lower.has(R) or lower < zero.lower) or not (upper.has(R) or zero.upper < upper):
        return None
    note = "between zeros of the field, on the safe side of them; without isolated nodes"
    return Box(lower, upper, note, assumes=NO_ISOLATED_NODES)


def _safe_side(zero: LineZero, way: int) -> sp.Expr:
    """The zero itself, or a decimal number on one side of it."""
    if zero.value is not None:
        return zero.value
    scale = 10**DECIMALS
    return sp.Rational(sp.ceiling(zero.upper * scale) if way > 0 else sp.floor(zero.lower * scale), scale)


# ---------------------------------------------------------------------- invariant boxes
#: Seconds spent on all candidates.
SEARCH_SECONDS = 2.6

__all__ = ["Box", "check_averages", "invariant_box", "proved_box", "raw_box", "single_box"]


@reads_system
def invariant_box(
    system: System, normalisation: str = "symmetric", bounds: Mapping[str, Any] | None = None
) -> Box | Rectangle:
    """Box that no solution leaves: between the outermost zeros of the reaction, or of any size R if all are invariant.

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
    box = raw_box(system, normalisation)
    lower, upper = (None if end is None else in_decimals(public(end)) for end in (box.lower, box.upper))
    others = tuple((public(a), public(b)) for a, b in box.others)
    return replace(
        box, lower=lower, upper=upper, others=others, with_isolated=_public(box.with_isolated),
        start=_public(box.start), where=public(box.where), regular=_public(box.regular),
        regular_start=_public(box.regular_start),
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
    """The box in the package's internal symbols."""
    box = proved_box(system, normalisation)
    if box.exists:
        return box
    with watched() as watch:
        other = _absent(system, normalisation)
    return replace(other, reason=f"{other.reason}; {BOUNDED}") if watch.bounded and other.is_decided else other


@remembered(512)
def proved_box(system: System, normalisation: str) -> Box:
    """A box for all admissible coefficients, in the package's internal symbols."""
    with watched() as watch:
        box = _for_all_coefficients(system, normalisation)
    return replace(box, reason=f"{box.reason}; {BOUNDED}") if watch.bounded and box.exists else box


def _for_all_coefficients(system: System, normalisation: str) -> Box:
    try:
        field = NodeSpeeds.of_one(system)
    except NotApplicable as problem:
        return no_box(f"no box was derived: {problem}")
    stochastic = find_normalisation(normalisation).averages == "stochastic"
    search = FaceSearch(field, AVERAGING if stochastic else UP_TO_S)
    try:
        box = limited(SEARCH_SECONDS, search.best)
    except Undecided:
        box = None
    if box is not None and stochastic:
        return _with_isolated(box, search)
    if box is not None:
        has_sum = any(part is not None and part.has(s) for part in (box.lower, box.upper, box.where))
        meaning = "s is the largest row sum of A, 1 on regular graphs only"
        remark = meaning if has_sum else "no rate points outwards at its faces"
        return replace(box, reason=remark, with_isolated=(box.lower, box.upper))
    large = search.absorbing()
    return large if large is not None and large.exists else no_box("no box was found")


def _absent(system: System, normalisation: str) -> Box:
    """The answer where no box is invariant for all coefficients on every graph."""
    row = find_normalisation(normalisation).averages == "stochastic"
    try:
        field = NodeSpeeds.of_one(system)
    except NotApplicable as problem:
        mixed = _mixed(system, stars=not row)
        return no_box(f"no box was derived: {problem}") if mixed is None else mixed
    escapes = Escapes(field, stars=not row)
    search = FaceSearch(field, AVERAGING if row else UP_TO_S)
    regular = None if row else proved_box(system, "row")
    ways: list[Callable[[], Box | None]] = [
        lambda: _box_of_escape(escapes.always()),
        lambda: search.conditional(escapes),
    ]
    ways += [lambda: line_box(field)] if row else []
    ways.append(lambda: _box_of_escape(escapes.somewhere()))
    answer = next((box for way in ways if (box := way()) is not None), None)
    if regular is None or not regular.exists:
        return no_box(search.why_not()) if answer is None else answer
    on_regular = f"on regular graphs with edges the row box [{public(regular.lower)}, {public(regular.upper)}] holds"
    if regular.start is not None:
        on_regular += f" for H0 in [{public(regular.start[0])}, {public(regular.start[1])}]"
    answer = (
        no_box("no box was found for irregular graphs: row sums of the symmetric A exceed 1")
        if answer is None
        else answer
    )
    return replace(
        answer, reason=f"{answer.reason}; {on_regular}", regular=(regular.lower, regular.upper),
        regular_start=regular.start,
    )  # fmt: skip


def _mixed(system: System, *, stars: bool) -> Box | None:
    """The proof for mixing matrices that no box is invariant: multiples of the identity show it."""
    try:
        field = NodeSpeeds.of_one(system, scaled=True)
    except NotApplicable:
        return None
    return _box_of_escape(Escapes(field, stars).somewhere())


def _box_of_escape(escape: Escape | None) -> Box | None:
    return None if escape is None else Box(None, None, escape.reason, is_left=True, at=escape.at)


def _with_isolated(main: Box, search: FaceSearch) -> Box:
    """The row box, and what remains of it where a node without edges collects the average 0."""
    lonely = replace(search, collecting=AVERAGING_OR_ALONE)
    faces = lonely.faces(main.start)
    if faces.keep({H.name: (main.lower, main.upper)}):
        others = tuple(box for box in main.others if faces.keep({H.name: box}))
        return replace(main, with_isolated=(main.lower, main.upper), others=others)
    smaller = lonely.best()
    remains = (
        f"[{public(smaller.lower)}, {public(smaller.upper)}] is kept" if smaller is not None else "no box was found"
    )
    return replace(
        main, assumes=NO_ISOLATED_NODES, with_isolated=(smaller.lower, smaller.upper) if smaller is not None else None,
        reason=f"{main.reason}; with isolated nodes {remains}",
    )  # fmt: skip
