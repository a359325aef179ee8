"""Invariant boxes: intervals [l, u] such that a state with all entries inside stays inside.

Candidates for the faces are zeros of the field on states that are the same in all nodes, zero, and multiples of a free
radius R; a box is given only if the judge proves, for all admissible coefficients and all averages over neighbours,
that entries on its faces do not leave (`rdgraph.theory.box_faces`). Where none of them is kept, a box is sought that is
large enough for the damping (`rdgraph.theory.absorption`), then a proof that every box is left
(`rdgraph.theory.escapes`), then a region of the coefficients where a box is kept (`rdgraph.theory.provisos`).
Row-stochastic A: averages of entries in [l, u] stay there; a node without edges has the average 0 instead, which is a
second question wherever 0 is outside the box. Symmetric A: row sums reach s = max_i sum_j A_ij (s = 1 on regular graphs
only), and the box must grow with s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rdgraph.decisions.budget import limited, within_budget
from rdgraph.decisions.domain import Domain
from rdgraph.decisions.judge import BOUNDED, remembered, watched
from rdgraph.decisions.line_extents import in_decimals
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.normalisations.registry import find_normalisation, records
from rdgraph.syntax.answer_symbols import public
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.box_faces import STOCHASTIC, STRETCHED, SUBSTOCHASTIC, Interval, LocalField
from rdgraph.theory.box_values import Box, no_box
from rdgraph.theory.escapes import Escape, Escapes
from rdgraph.theory.face_search import FaceSearch
from rdgraph.theory.line_boxes import line_box
from rdgraph.theory.several_fields.rectangles import NO_ISOLATED_NODES, Rectangle, rectangle

#: Seconds spent on all candidates.
SEARCH_SECONDS = 2.6

__all__ = ["Box", "check_averages", "invariant_box", "kept_box", "raw_box", "single_box"]


@reads_system
def invariant_box(
    system: System, normalisation: str = "row", bounds: Mapping[str, Any] | None = None
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
        (`where`), or, with `is_proved`, a proof that every box is left; else a note that says what was tried. For
        several fields, and where bounds are given, a `Rectangle`: its status is proved, refuted by a point or
        undecided, and `nonnegative` says whether densities stay non-negative.

    Raises:
        NotApplicable: the rows of the normalisation are no averages.
        InvalidArgument: bounds that are no intervals.

    >>> from rdgraph.systems.parser import parse
    >>> box = invariant_box(parse("F"), "row")
    >>> box.lower, box.upper
    (0, 1)
    >>> invariant_box(parse("F"), "symmetric").upper
    (alpha*s - alpha + beta)/beta
    >>> invariant_box(parse("-L@H + (H - 1)*(3 - H)"), "row").assumes
    'no node is without incoming edges'
    >>> invariant_box("u' = u*(1 - u - a*v) - Du*L@u; v' = v*(1 - v - b*u) - Dv*L@v").bounds
    {'u': (0, 1), 'v': (0, 1)}
    """
    if bounds is not None or not system.is_single:
        return rectangle(system, normalisation, bounds)
    return single_box(system, normalisation)


@within_budget(lambda problem: no_box(f"undecided: {problem}"))
def single_box(system: System, normalisation: str) -> Box:
    """The box of one field."""
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
    return replace(found, note=f"{found.note}; {BOUNDED}") if watch.bounded and found.is_decided else found


@remembered(512)
def kept_box(system: System, normalisation: str) -> Box:
    """A box for all admissible coefficients in the package's own symbols; none is given without a reason."""
    with watched() as watch:
        found = _found(system, normalisation)
    return replace(found, note=f"{found.note}; {BOUNDED}") if watch.bounded and found.exists else found


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
        return replace(found, note=remark, with_isolated=(found.lower, found.upper))
    large = search.absorbing()
    return large if large is not None and large.exists else no_box("no box was found")


def _absent(system: System, normalisation: str) -> Box:
    """What is left to say where no box is kept for all coefficients on every graph."""
    domain, row = system.domain, find_normalisation(normalisation).averages == "stochastic"
    try:
        field = LocalField.of(system)
    except NotApplicable as problem:
        return _mixed(system, domain, stars=not row) or no_box(f"no box was derived: {problem}")
    escapes = Escapes(field, domain, stars=not row)
    search = FaceSearch(field, domain, STOCHASTIC if row else STRETCHED)
    regular = None if row else kept_box(system, "row")
    found = _left(escapes.always()) or search.conditional(escapes) or (line_box(field, domain) if row else None)
    found = found or _left(escapes.somewhere())
    if regular is None or not regular.exists:
        return found or no_box(search.why_not())
    on_regular = f"on regular graphs with edges the row box [{public(regular.lower)}, {public(regular.upper)}] holds"
    if regular.start is not None:
        on_regular += f" for H0 in [{public(regular.start[0])}, {public(regular.start[1])}]"
    found = found or no_box("no box was found for irregular graphs: row sums of the symmetric A exceed 1")
    return replace(
        found, note=f"{found.note}; {on_regular}", regular=(regular.lower, regular.upper), regular_start=regular.start
    )  # fmt: skip


def _mixed(system: System, domain: Domain, *, stars: bool) -> Box | None:
    """Systems with mixing matrices: multiples of the identity show that every box is left."""
    try:
        field = LocalField.of(system, scaled=True)
    except NotApplicable:
        return None
    return _left(Escapes(field, domain, stars).somewhere())


def _left(escape: Escape | None) -> Box | None:
    return None if escape is None else Box(None, None, escape.reason, is_proved=True, at=escape.at)


def _with_isolated(found: Box, search: FaceSearch) -> Box:
    """The row box, and what remains of it where a node without edges sees the average 0."""
    lonely = replace(search, rows=SUBSTOCHASTIC)
    faces = lonely.faces(found.start)
    if faces.keep(found.lower, found.upper):
        others = tuple(box for box in found.others if faces.keep(*box))
        return replace(found, with_isolated=(found.lower, found.upper), others=others)
    own = lonely.best()
    remains = f"[{public(own.lower)}, {public(own.upper)}] is kept" if own else "no box was found"
    return replace(
        found, assumes=NO_ISOLATED_NODES, with_isolated=(own.lower, own.upper) if own else None,
        note=f"{found.note}; with isolated nodes {remains}",
    )  # fmt: skip
