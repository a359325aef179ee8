"""Candidates for the faces of a box, and the boxes between them that are proved to be kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import sympy as sp

from rdgraph.decisions.branches import is_defined
from rdgraph.decisions.budget import limited, remaining
from rdgraph.decisions.closed_zeros import zeros as zeros_of
from rdgraph.decisions.condition_words import condition_in_words, factored
from rdgraph.decisions.domain import Domain
from rdgraph.decisions.judge import within_effort
from rdgraph.errors import Undecided
from rdgraph.syntax.answer_symbols import R, h, h0, public, s
from rdgraph.syntax.functions import FUNCTIONS
from rdgraph.theory.absorption import absorbing_radius
from rdgraph.theory.box_faces import STOCHASTIC, STRETCHED, SUBSTOCHASTIC, Faces, Interval, LocalField, RowSums
from rdgraph.theory.box_values import Box
from rdgraph.theory.escapes import Escapes
from rdgraph.theory.provisos import Proviso, weakest
from rdgraph.theory.several_fields.rectangles import NO_ISOLATED_NODES

#: Seconds spent on one candidate for a box.
PROOF_SECONDS = 1.0
#: What is spent on a region of the coefficients: the effort of questions, which is the same on every machine. Seconds
#: are a last resort.
REGION_EFFORT, REGION_SECONDS = 450, 2.6
#: Seconds kept for what is asked after that.
RESERVED_SECONDS = 2.0
#: More boxes than this are not listed.
MAX_BOXES = 8
#: Candidates for faces that need a condition on the coefficients; more are not paired.
MAX_CONDITIONAL = 6


@dataclass(frozen=True)
class FaceSearch:
    """Boxes of one field on matrices with given row sums."""

    field: LocalField
    domain: Domain
    rows: RowSums

    def best(self) -> Box | None:
        for start in self._starts():
            found = self._from(start)
            if found:
                return self._box(found, start)
        return None

    def _starts(self) -> tuple[Interval | None, ...]:
        return ((-R, R), (sp.S.Zero, R), (-R, sp.S.Zero)) if self.field.has_source else (None,)

    def absorbing(self) -> Box | None:
        """A box that is large enough for the damping, with the condition under which there is one."""
        rows = SUBSTOCHASTIC if self.rows is STOCHASTIC else self.rows
        large = absorbing_radius(self.field, self.domain, rows)
        if large is None:
            return None
        size = large.value
        facts = [sp.Gt(x, 0, evaluate=False) for x in large.positive]
        if self.wide.where(*facts).proves(sp.Gt(size, 0, evaluate=False)) is not True:
            size = size + R
        faces = replace(self, rows=rows, domain=self.domain.where(*facts)).faces(
            (-R, R) if self.field.has_source else None
        )
        if (facts and self.wide.point(*facts) is None) or not faces.is_lipschitz(-size, size):
            return None
        note = "far enough out the damping exceeds everything else"
        return Box(-size, size, note, with_isolated=(-size, size), start=faces.start, where=sp.And(*facts))

    def conditional(self, escapes: Escapes) -> Box | None:
        """A box that is kept in a region of the coefficients, which is told; of two boxes that of the larger region."""
        large = self.absorbing()
        try:
            seconds = min(REGION_SECONDS, max(0.0, remaining() - RESERVED_SECONDS))
            found = limited(seconds, within_effort, REGION_EFFORT, self._conditional)
        except Undecided:
            found = None
        if found is None or (large is not None and not self._reaches(found, large)):
            found = large
        if found is None:
            return None
        rest = "; elsewhere no box is kept on every graph" if escapes.outside(found.where) else ""
        words = condition_in_words(public(found.where))
        return replace(found, note=f"[{public(found.lower)}, {public(found.upper)}] is kept where {words}{rest}")

    def _reaches(self, box: Box, other: Box) -> bool:
        """Not refuted: a box is kept wherever another one is."""
        return self.wide.where(other.where).proves(box.where) is not False

    def _conditional(self) -> Box | None:
        kinds = (SUBSTOCHASTIC, STOCHASTIC) if self.rows is STOCHASTIC else (self.rows,)
        for rows, start in ((rows, start) for rows in kinds for start in self._starts()):
            search = replace(self, rows=rows)
            found = weakest(search.faces(start), search._open_candidates(start))
            if found is not None:
                return search._with_proviso(found, start)
        return None

    def _with_proviso(self, found: Proviso, start: Interval | None) -> Box:
        lower, upper = found.box
        everywhere = self.rows is not STOCHASTIC
        return Box(
            lower, upper, assumes="" if everywhere else NO_ISOLATED_NODES,
            with_isolated=found.box if everywhere else None, where=found.where,
            start=start if start is not None and start != found.box else None,
        )  # fmt: skip

    def _open_candidates(self, start: Interval | None) -> list[sp.Expr]:
        """Faces that need not be real for all coefficients, the shortest first."""
        ends = [sp.S.Zero] if start is None else list(start)
        zeros = [z for end in ends for z in zeros_of(self.field.uniform(h, end, self.rows.highest), h)]
        kept = [z for z in dict.fromkeys([*zeros, *ends]) if not z.free_symbols & self.field.varying and not z.has(h)]
        ordered = sorted(kept, key=lambda v: (v.count_ops(), str(v)))[:MAX_CONDITIONAL]
        return ordered if start is not None else [*ordered, -R, R]

    def faces(self, start: Interval | None) -> Faces:
        return Faces(self.field, self.domain, self.rows, start)

    @property
    def wide(self) -> Domain:
        return self.domain.where(*self.rows.conditions)

    # ------------------------------------------------------------------ the search
    def _from(self, start: Interval | None) -> list[Interval]:
        """Boxes that are kept, the main one first: between zeros, else with a radius, else between other faces."""
        zeros, turning, others = self._tiers(start)
        between_zeros = self._kept(zeros, start)
        opened = self._kept(zeros + turning, start)
        found = [*between_zeros, *(b for b in opened if b not in between_zeros and self._is_widest(b, opened))]
        return (found or self._kept(zeros + turning + others, start))[:MAX_BOXES]

    def _is_widest(self, box: Interval, boxes: list[Interval]) -> bool:
        return not any(other != box and self._contains(other, box) for other in boxes)

    def _kept(self, candidates: Sequence[sp.Expr], start: Interval | None) -> list[Interval]:
        """The boxes between candidates that are proved, those first that no other one contains."""
        faces = self.faces(start)
        lowers = [x for x in candidates if _in_time(faces.may_be, x, 1)]
        uppers = [x for x in candidates if _in_time(faces.may_be, x, -1)]
        if start is not None:
            lowers = [x for x in lowers if self._below(x, start[0])]
            uppers = [x for x in uppers if self._below(start[1], x)]
        found = [
            (lower, upper) for lower in lowers for upper in uppers
            if lower != upper and self.wide.proves(sp.Gt(upper, lower, evaluate=False)) is True
            and _in_time(faces.keep, lower, upper)
        ]  # fmt: skip
        return sorted(found, key=lambda box: not self._is_widest(box, found))

    def _contains(self, outer: Interval, inner: Interval) -> bool:
        return self._below(outer[0], inner[0]) and self._below(inner[1], outer[1])

    def _below(self, left: sp.Expr, right: sp.Expr) -> bool:
        return self.wide.proves(sp.Ge(right, left, evaluate=False)) is True

    def _box(self, boxes: list[Interval], start: Interval | None) -> Box:
        (lower, upper), *others = boxes
        narrower = start if start is not None and start != (lower, upper) else None
        return Box(lower, upper, self._remark(lower, upper, start), tuple(others), start=narrower)

    def _remark(self, lower: sp.Expr, upper: sp.Expr, start: Interval | None) -> str:
        if start is not None:
            return f"kept for every R > 0 and H0 in [{public(start[0])}, {public(start[1])}]"
        if self.field.uniform(h, sp.S.Zero) == 0:
            return "every interval is kept: averages stay between the smallest and the largest entry"
        if lower.has(R) or upper.has(R):
            return "the field points inwards on both faces for every R > 0"
        return "the field vanishes on both faces or points inwards"

    # ------------------------------------------------------------------ candidates
    def _tiers(self, start: Interval | None) -> tuple[list[sp.Expr], list[sp.Expr], list[sp.Expr]]:
        """Zeros of the field on equal entries; those moved outwards by R; zero and what else could be a face."""
        scale = self.rows.highest
        if start is None:
            zeros = self._admitted(zeros_of(self.field.uniform(h, sp.S.Zero, scale), h))
            opened = [z for z in zeros if z != 0 and sp.simplify(z.subs(s, 1)) == 0] if self.rows is STRETCHED else []
            zeros = [z for z in zeros if z not in opened]
            turning = [z + sign * R for z in zeros or [sp.S.Zero] for sign in (-1, 1)]
            others = [
                sp.S.Zero,
                *opened,
                *(z + sign * R for z in opened for sign in (-1, 1)),
                *self._further(sp.S.Zero),
            ]
        else:
            zeros, turning = [], [x for x in start if x != 0]
            others = [sp.S.Zero]
            for end in start:
                for zero in self._admitted([*zeros_of(self.field.uniform(h, end, scale), h), *self._further(end)]):
                    others += [zero, sp.Max(zero, R), sp.Min(zero, -R)]
        seen = {*zeros, *turning}
        return zeros, turning, [x for x in dict.fromkeys(others) if x not in seen]

    def _further(self, initial: sp.Expr) -> list[sp.Expr]:
        """Zeros where bounded functions are at their ends, where relu and abs are one of their branches, and alone."""
        found: list[sp.Expr] = []
        for scale in (self.rows.highest, lambda k: sp.S.Zero):
            field = self.field.uniform(h, initial, scale)
            found += [z for branch in _branches(field) for z in zeros_of(branch, h)]
        return self._admitted([*found, *(-z for z in found)])

    def _admitted(self, values: Iterable[sp.Expr]) -> list[sp.Expr]:
        """Faces that are real for all coefficients and the same in all nodes, the shortest first."""
        kept = [v for v in dict.fromkeys(values) if not v.free_symbols & self.field.varying and not v.has(h)]
        return sorted((v for v in kept if is_defined(v, self.wide)), key=lambda v: (v.count_ops(), str(v)))

    # ------------------------------------------------------------------ why there is none
    def why_not(self) -> str:
        """What a maximum principle lacks."""
        for average in self.field.averages:
            slope = sp.diff(self.field.speed, average.letter)
            if average.inner != h or slope.has(h):
                continue
            term = f"the coefficient {public(slope)} of A^{average.power}"
            sign = self.domain.sign(slope)
            if sign.is_nonpositive:
                return f"no box was found: no maximum principle, {term} is negative"
            if not sign.is_nonnegative:
                return f"no box was found: {term} can be negative; assume {public(slope)} >= 0"
        return f"no box was found for h' = {public(factored(self.field.uniform(h, h0)))}"


def _in_time(proof: Callable[..., bool], *arguments: sp.Expr | int) -> bool:
    """What a proof says; one that takes long is passed over."""
    if remaining() <= 0:
        raise Undecided("time ran out")
    try:
        return limited(PROOF_SECONDS, proof, *arguments)
    except Undecided:
        return False


def _branches(field: sp.Expr) -> Iterator[sp.Expr]:
    """The field with bounded functions at either end of their range, and relu and abs on either side of zero."""
    yield field
    for record in FUNCTIONS.values():
        if not isinstance(record.sympy, type) or not field.has(record.sympy):
            continue
        if record.range is not None and record.is_bounded:
            ends = (record.range.lower, record.range.upper)
            yield from (field.replace(record.sympy, lambda x, end=end: end) for end in ends)
        if record.pieces is not None:
            yield from (field.replace(record.sympy, lambda x, side=side: side * x) for side in record.pieces)
