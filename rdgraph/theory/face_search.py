"""Invariant boxes of one field: candidates for the faces, and the boxes between them that are proved to be kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy as sp

from rdgraph.answers import Answer, Status, certainty
from rdgraph.errors import Undecided
from rdgraph.language.answer_symbols import R, h, h0, public, s
from rdgraph.language.normal_form import H0, H
from rdgraph.reals.branches import is_defined
from rdgraph.reals.budget import limited, remaining
from rdgraph.reals.condition_words import condition_in_words, factored, in_words
from rdgraph.reals.domain import NEGATIVE, POSITIVE, Domain
from rdgraph.reals.judge import within_effort
from rdgraph.reals.line_pieces import zeros as zeros_of
from rdgraph.reals.regions import defining_conditions
from rdgraph.theory.escapes import Escapes
from rdgraph.theory.several_fields.node_speeds import NodeSpeeds
from rdgraph.theory.several_fields.rectangle_faces import (
    AVERAGING,
    AVERAGING_OR_ALONE,
    NO_ISOLATED_NODES,
    UP_TO_S,
    Bounds,
    Collecting,
    Facts,
    Interval,
    RectangleFaces,
)
from rdgraph.theory.slope_bounds import largest_slope, largest_value
from rdgraph.vocabulary.functions import FUNCTIONS, record_of

# ---------------------------------------------------------------------- answer
# `Box`, the answer about an invariant interval of one field.


@dataclass(frozen=True, repr=False)
class Box(Answer):
    """An invariant interval for every entry; without one there is none (proved), or none was found (undecided).

    `others` are further boxes. `assumes` is what the graph must satisfy in addition to its normalisation, empty where
    nothing is needed; `with_isolated` is a box that also holds with isolated nodes. `start` is the range of H0 where it
    is narrower than the box. `where` is the condition on the coefficients under which the box is invariant. Without a
    box, `regular` is one that is invariant on regular graphs with edges, for H0 in `regular_start` where that is
    narrower; `is_left` says that some run leaves every box, which is proved for the coefficients `at` if there are any,
    else for all coefficients.
    """

    lower: sp.Expr | None
    upper: sp.Expr | None
    reason: str = ""
    others: tuple[Interval, ...] = ()
    assumes: str = ""
    with_isolated: Interval | None = None
    start: Interval | None = None
    where: sp.Basic = sp.true
    regular: Interval | None = None
    is_left: bool = False
    at: tuple[tuple[str, sp.Expr], ...] = ()
    regular_start: Interval | None = None

    @property
    def value(self) -> Interval | None:
        """The lower and the upper face."""
        return None if self.lower is None or self.upper is None else (self.lower, self.upper)

    @property
    def status(self) -> Status:
        """proved for a box, and where every box is left; undecided where none was found."""
        return certainty(self.reason) if self.lower is not None or self.is_left else Status.UNDECIDED

    @property
    def conditions(self) -> tuple[sp.Basic, ...]:
        """What the coefficients must satisfy for the box to be invariant, or the coefficients at which no box is."""
        where = () if self.where == sp.true else (self.where,)
        return where + tuple(sp.Eq(sp.Symbol(name), value, evaluate=False) for name, value in self.at)

    @property
    def headline(self) -> str:
        if self.value is None:
            return "no box is invariant"
        given = "" if self.start is None else f" for H0 in {self.inside}"
        return f"[{in_words(self.lower)}, {in_words(self.upper)}] is invariant{given}"

    @property
    def exists(self) -> bool:
        """Whether the box is proved to be invariant for all admissible coefficients."""
        return self.lower is not None and self.where == sp.true

    @property
    def is_decided(self) -> bool:
        """Whether there is a box, perhaps only for some coefficients or graphs, or a proof that there is none."""
        return self.lower is not None or self.regular is not None or self.is_left

    def allowing_isolated(self) -> Box:
        """The part of the answer that also holds on graphs with isolated nodes."""
        if self.with_isolated is None:
            return no_box(f"no box was found for graphs with isolated nodes; without them {self.reason}")
        if self.with_isolated == (self.lower, self.upper):
            return self
        return Box(*self.with_isolated, self.reason, with_isolated=self.with_isolated)

    @property
    def starts(self) -> tuple[sp.Expr, sp.Expr]:
        """The range of H0 for which the box is invariant."""
        assert self.lower is not None
        assert self.upper is not None
        return self.start or (self.lower, self.upper)

    @property
    def inside(self) -> str:
        """The range of H0 for which the box is invariant, as text."""
        return f"[{', '.join(map(in_words, self.starts))}]"


def no_box(reason: str) -> Box:
    """The answer that there is no box, with the reason."""
    return Box(None, None, reason)


# ---------------------------------------------------------------------- absorption
# Boxes [-U, U] that are invariant because damping outgrows all other terms: how large U must be.
#
# On a face h = U or h = -U the outward speed is a sum of terms c U^n of the entry itself, with their sign, and of terms
# that are at most m_j U^j in modulus: averages, bounded functions, sources. If N is the highest degree and
# lead = -c_N - m_N > 0, the speed points inwards as soon as lead U^N exceeds the lower terms; for U >= 1 those are at
# most the sum of their coefficients times U^j, j the highest degree among them.

#: A sum of m_j U^j with m_j >= 0, by degree j.
Powers = dict[sp.Rational, sp.Expr]


class _Unbounded(Exception):
    """A term that no power of U bounds."""


@dataclass(frozen=True)
class Radius:
    """[-value, value] is invariant where all of `positive` are > 0."""

    value: sp.Expr
    positive: tuple[sp.Expr, ...]


def absorbing_radius(faces: RectangleFaces) -> Radius | None:
    """The size of a box that is invariant for every H0 in [-R, R]; None where there is none.

    >>> from rdgraph.systems.parser import parse
    >>> one = NodeSpeeds.of_one(parse("-2*H + sin(A@H) + alpha*cos(H)"))
    >>> absorbing_radius(RectangleFaces(one, AVERAGING)).value
    alpha/2 + 1/2
    """
    field = faces.speeds
    if any(x.name != "M" for x in field.varying):
        return None
    highest = sp.sympify(faces.collecting.highest)
    sides = [_Face(field, faces.domain, highest, side) for side in (1, -1)]
    try:
        radii = [face.radius() for face in sides]
    except _Unbounded:
        return None
    least = [R] if field.has_source else []
    needed = {x for radius in radii for x in radius.positive}
    return Radius(sp.Max(*least, *(radius.value for radius in radii)), tuple(sorted(needed, key=str)))


def _has_pieces(call: sp.Expr) -> bool:
    record = record_of(call)
    return record is not None and record.pieces is not None


@dataclass(frozen=True)
class _Face:
    """The outward speed on the face h = side * U, where rows of A sum to at most `highest`."""

    field: NodeSpeeds
    domain: Domain
    highest: sp.Expr
    side: int

    def radius(self) -> Radius:
        U = sp.Dummy("U", positive=True)
        exact: Powers = defaultdict(lambda: sp.S.Zero)
        bound: Powers = defaultdict(lambda: sp.S.Zero)
        outward = sp.expand(self.side * self.field.speed.xreplace({H: self.side * U}).replace(_has_pieces, self._piece))
        for term in sp.Add.make_args(outward):
            factor, power = term.as_independent(U)
            if not factor.free_symbols & self._foreign and power.is_polynomial(U) and not power.has(sp.Add):
                exact[sp.degree(power, U) if power.has(U) else sp.S.Zero] += factor
            elif not self._helps(term):
                for degree, size in self._size(term, U, is_own=True).items():
                    bound[degree] += size
        return self._balance(exact, bound)

    @property
    def _foreign(self) -> set[sp.Symbol]:
        return {H0, *(call.letter for call in self.field.calls), *self.field.varying}

    def _piece(self, call: sp.Expr) -> sp.Expr:
        """The linear piece of a function such as relu, on the side of zero where its argument is proved to lie."""
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
    def _size(self, expression: sp.Expr, U: sp.Symbol, *, is_own: bool) -> Powers:
        """Powers of U whose sum bounds |expression|; with `is_own`, U is the entry itself, not a bound of one."""
        if expression in (U, H):
            return {sp.S.One: sp.S.One}
        if expression == H0:
            return {sp.S.Zero: R}
        for call in self.field.calls:
            if expression == call.letter:
                inner = self._size(call.inner, U, is_own=False)
                return {d: self.highest ** len(call.word) * size for d, size in inner.items()}
        if expression in self.field.varying:
            return {sp.S.Zero: sp.S.One}  # a mask
        if not expression.has(U, H) and not expression.free_symbols & self._foreign:
            return {sp.S.Zero: self._modulus(expression)}
        return self._composed(expression, U, is_own)

    def _modulus(self, expression: sp.Expr) -> sp.Expr:
        sign = self.domain.sign(expression)
        return expression if sign.is_nonnegative else -expression if sign.is_nonpositive else sp.Abs(expression)

    def _composed(self, expression: sp.Expr, U: sp.Symbol, is_own: bool) -> Powers:
        match expression:
            case sp.Add():
                return _total(*(self._size(a, U, is_own=is_own) for a in expression.args))
            case sp.Mul():
                product: Powers = {sp.S.Zero: sp.S.One}
                for a in expression.args:
                    product = _product(product, self._size(a, U, is_own=is_own))
                return product
            case sp.Pow(exp=sp.Integer()) if expression.exp > 0:
                return self._composed(sp.Mul(*[expression.base] * int(expression.exp), evaluate=False), U, is_own)
            case sp.Pow(exp=sp.Rational()):
                return self._root(expression, U, is_own)
        largest = largest_value(expression)
        if largest.is_finite:
            return {sp.S.Zero: largest}
        record = record_of(expression)
        if record is not None and record.is_lipschitz and record.at_zero is not None:
            inner, slope = self._size(expression.args[0], U, is_own=is_own), largest_slope(expression)
            grown = {degree: slope * size for degree, size in inner.items()}
            return _total(grown, {sp.S.Zero: sp.Abs(record.at_zero)})
        if isinstance(expression, sp.exp) and self.domain.sign(expression.args[0]).is_nonpositive:
            return {sp.S.Zero: sp.S.One}
        if isinstance(expression, sp.exp) and is_own:
            slope, rest = sp.diff(expression.args[0], U), expression.args[0].subs(U, 0)
            if not slope.has(U) and self.domain.sign(slope).is_nonpositive and not rest.free_symbols & self._foreign:
                return {sp.S.Zero: sp.exp(rest)}
        raise _Unbounded

    def _root(self, power: sp.Pow, U: sp.Symbol, is_own: bool) -> Powers:
        """A bound of (c_0 + ... + c_n U^n)^q with all c_j >= 0: a sum of roots, or for q < 0 that of one term."""
        x = U if power.base.has(U) else H
        if not power.base.is_polynomial(x) or power.base.free_symbols & self._foreign:
            raise _Unbounded
        terms = {sp.Integer(m[0]): c for m, c in sp.Poly(power.base, x).terms()}
        even = x == U or all(d % 2 == 0 for d in terms)
        if not even or not all(self.domain.sign(c).is_nonnegative for c in terms.values()):
            raise _Unbounded
        if 0 < power.exp < 1:
            return {d * power.exp: c**power.exp for d, c in terms.items()}
        degree = max(terms) if is_own and x == U else sp.S.Zero
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


# ---------------------------------------------------------------------- provisos
# Boxes that are invariant in a region of the coefficients: the inequalities at the corners are conditions on them.

#: Longer conditions are not shown.
MAX_OPERATIONS = 60


@dataclass(frozen=True)
class Proviso:
    """A box that is invariant where a condition on the coefficients (and on the largest row sum s) holds."""

    box: Interval
    where: sp.Basic


def weakest(faces: RectangleFaces, candidates: Sequence[sp.Expr]) -> Proviso | None:
    """The box between two candidates with the weakest condition; of incomparable conditions the shortest.

    >>> from rdgraph.systems.parser import parse
    >>> one = NodeSpeeds.of_one(parse("-alpha*L@H + beta*L@H"))
    >>> weakest(RectangleFaces(one, AVERAGING), [-R, R]).where
    alpha - beta >= 0
    """
    provisos = [
        proviso for lower in candidates for upper in candidates
        if lower != upper and (proviso := _proviso(faces, lower, upper)) is not None
    ]  # fmt: skip
    best = None
    for rival in sorted(provisos, key=lambda p: p.where.count_ops()):
        if best is None or (_implies(best, rival, faces.domain) and not _implies(rival, best, faces.domain)):
            best = rival
    return best


def _implies(first: Proviso, second: Proviso, domain: Domain) -> bool:
    return domain.where(first.where).proves(second.where) is True


def _cleared(condition: sp.Basic, domain: Domain) -> list[sp.Basic]:
    """A comparison with zero as a comparison of polynomials, false where a denominator vanishes."""
    bottom = sp.denom(sp.together(condition.lhs))
    if condition.rhs != 0 or domain.sign(bottom) in (POSITIVE, NEGATIVE):
        return [condition]
    cleared = condition.func(domain.cleared(condition.lhs), 0, evaluate=False)
    return [cleared] if isinstance(condition, sp.Gt | sp.Lt) else [cleared, sp.Ne(bottom, 0)]


def _proviso(faces: RectangleFaces, lower: sp.Expr, upper: sp.Expr) -> Proviso | None:
    wide = faces.domain
    try:
        needed = list(dict.fromkeys(_needed(faces, lower, upper)))
    except Undecided:
        return None
    if any(condition.has(sp.nan, sp.zoo) for condition in needed):
        return None
    open_ones: list[sp.Basic] = []
    for condition in needed:
        if wide.where(*open_ones).proves(condition) is not True:
            open_ones.append(condition)
    for condition in tuple(open_ones):  # a later condition can imply an earlier one
        others = [c for c in open_ones if c != condition]
        if wide.where(*others).proves(condition) is True:
            open_ones = others
    open_ones = [part for c in open_ones for part in _cleared(c, wide)]
    where = sp.And(*open_ones, evaluate=False) if len(open_ones) > 1 else sp.And(*open_ones)
    if where.count_ops() > MAX_OPERATIONS or where.has(R) or where.free_symbols & faces.speeds.varying:
        return None
    irregular = [sp.Gt(s, 1)] if faces.collecting.conditions else []
    strict = {sp.Ge: sp.Gt, sp.Le: sp.Lt}
    inner = [strict.get(type(c), type(c))(c.lhs, c.rhs, evaluate=False) for c in open_ones]
    if wide.point(*inner, *irregular) is None:
        return None  # a region without an interior is useless
    inside = replace(faces, given=(*faces.given, *open_ones))
    return Proviso((lower, upper), where) if inside.is_lipschitz(_bounds(lower, upper)) else None


def _needed(faces: RectangleFaces, lower: sp.Expr, upper: sp.Expr) -> Iterator[sp.Basic]:
    """The conditions for the ends to be real numbers in this order, and for no corner to move outwards."""
    yield from dict.fromkeys([*defining_conditions(lower), *defining_conditions(upper)])
    yield sp.Gt(_stripped(upper - lower, faces.domain), 0, evaluate=False)
    if faces.starts is not None:
        first, last = faces.starts[H.name]
        yield sp.Ge(_stripped(upper - last, faces.domain), 0, evaluate=False)
        yield sp.Ge(_stripped(first - lower, faces.domain), 0, evaluate=False)
    for face, inward in ((lower, 1), (upper, -1)):
        for value in _corner_values(faces, inward, face, _bounds(lower, upper)):
            yield sp.Ge(_stripped(value, faces.domain), 0, evaluate=False)


def _corner_values(faces: RectangleFaces, inward: int, face: sp.Expr, bounds: Bounds) -> Iterator[sp.Expr]:
    """The inward speed at the corners of a face in the coefficients alone; Undecided where it depends on more."""
    for value, facts in faces.values(inward * faces.speeds.speed, bounds, {H: face}):
        is_affine = faces.starts is not None and sp.diff(value, H0, 2) == 0
        if facts or (value.has(H0) and not is_affine):
            raise Undecided("the speed depends on more than the coefficients")
        ends = faces.starts[H.name] if value.has(H0) and faces.starts is not None else ()
        yield from [value.xreplace({H0: end}) for end in ends] or [value]


def _stripped(value: sp.Expr, domain: Domain) -> sp.Expr:
    """The value without positive factors such as R; a single root is replaced by its radicand, which has its sign."""
    parts = sp.Mul.make_args(sp.factor(value) if value.is_rational_function() else value)
    factors = [f for f in parts if domain.sign(f) is not POSITIVE]
    if len(factors) == 1 and isinstance(factors[0], sp.Pow) and factors[0].exp == sp.S.Half:
        factors = [factors[0].base]
    return sp.expand(sp.Mul(*factors))


# ---------------------------------------------------------------------- face search
#: Seconds spent on one candidate for a box.
PROOF_SECONDS = 1.0
#: Effort spent on a region of the coefficients, which is the same on every machine; the seconds are a last resort.
REGION_EFFORT, REGION_SECONDS = 450, 2.6
#: Seconds reserved for later questions.
RESERVED_SECONDS = 2.0
#: More boxes than this are not listed.
MAX_BOXES = 8
#: Most candidates for faces that need a condition on the coefficients.
MAX_CONDITIONAL = 6


@dataclass(frozen=True)
class FaceSearch:
    """Boxes of one field on matrices with given row sums, where the coefficients satisfy `given`."""

    field: NodeSpeeds
    collecting: Collecting
    given: Facts = ()

    def best(self) -> Box | None:
        for start in self._starts():
            boxes = self._from(start)
            if boxes:
                return self._box(boxes, start)
        return None

    def _starts(self) -> tuple[Interval | None, ...]:
        return ((-R, R), (sp.S.Zero, R), (-R, sp.S.Zero)) if self.field.has_source else (None,)

    def absorbing(self) -> Box | None:
        """A box so large that damping wins on its faces, with the condition under which there is one."""
        alone = replace(self, collecting=AVERAGING_OR_ALONE) if self.collecting is AVERAGING else self
        large = absorbing_radius(alone.faces(None))
        if large is None:
            return None
        size = large.value
        facts = [sp.Gt(x, 0, evaluate=False) for x in large.positive]
        if self.domain.where(*facts).proves(sp.Gt(size, 0, evaluate=False)) is not True:
            size = size + R
        start = (-R, R) if self.field.has_source else None
        faces = replace(alone, given=(*self.given, *facts)).faces(start)
        if (facts and self.domain.point(*facts) is None) or not faces.is_lipschitz(_bounds(-size, size)):
            return None
        note = "for large states the damping exceeds all other terms"
        return Box(-size, size, note, with_isolated=(-size, size), start=start, where=sp.And(*facts))

    def conditional(self, escapes: Escapes) -> Box | None:
        """A box that is invariant in a region of the coefficients; of two boxes the one with the larger region."""
        large = self.absorbing()
        try:
            seconds = min(REGION_SECONDS, max(0.0, remaining() - RESERVED_SECONDS))
            box = limited(seconds, within_effort, REGION_EFFORT, self._conditional)
        except Undecided:
            box = None
        if box is None or (large is not None and not self._reaches(box, large)):
            box = large
        if box is None:
            return None
        rest = "; elsewhere no box is invariant on every graph" if escapes.outside(box.where) else ""
        words = condition_in_words(public(box.where))
        return replace(box, reason=f"[{public(box.lower)}, {public(box.upper)}] is invariant if {words}{rest}")

    def _reaches(self, box: Box, other: Box) -> bool:
        """Whether it is not refuted that a box is invariant wherever another one is."""
        return self.domain.where(other.where).proves(box.where) is not False

    def _conditional(self) -> Box | None:
        kinds = (AVERAGING_OR_ALONE, AVERAGING) if self.collecting is AVERAGING else (self.collecting,)
        for kind, start in ((kind, start) for kind in kinds for start in self._starts()):
            search = replace(self, collecting=kind)
            proviso = weakest(search.faces(start), search._open_candidates(start))
            if proviso is not None:
                return search._with_proviso(proviso, start)
        return None

    def _with_proviso(self, proviso: Proviso, start: Interval | None) -> Box:
        lower, upper = proviso.box
        everywhere = self.collecting is not AVERAGING
        return Box(
            lower, upper, assumes="" if everywhere else NO_ISOLATED_NODES,
            with_isolated=proviso.box if everywhere else None, where=proviso.where,
            start=start if start is not None and start != proviso.box else None,
        )  # fmt: skip

    def _open_candidates(self, start: Interval | None) -> list[sp.Expr]:
        """Faces that need not be real for all coefficients, the shortest first."""
        ends = [sp.S.Zero] if start is None else list(start)
        zeros = [z for end in ends for z in zeros_of(self.field.uniform_one(h, end, self.highest), h)]
        faces = [z for z in dict.fromkeys([*zeros, *ends]) if not z.free_symbols & self.field.varying and not z.has(h)]
        ordered = sorted(faces, key=lambda v: (v.count_ops(), str(v)))[:MAX_CONDITIONAL]
        return ordered if start is not None else [*ordered, -R, R]

    def faces(self, start: Interval | None) -> RectangleFaces:
        """The faces of boxes for H0 in the range `start`, or in the box itself."""
        return RectangleFaces(self.field, self.collecting, None if start is None else {H.name: start}, self.given)

    @property
    def domain(self) -> Domain:
        return self.faces(None).domain

    @property
    def highest(self) -> sp.Expr:
        """The largest row sum of A."""
        return sp.sympify(self.collecting.highest)

    # ------------------------------------------------------------------ the search
    def _from(self, start: Interval | None) -> list[Interval]:
        """Invariant boxes, the main one first: between zeros, else with a radius, else between other faces."""
        zeros, turning, others = self._tiers(start)
        between_zeros = self._invariant(zeros, start)
        opened = self._invariant(zeros + turning, start)
        boxes = [*between_zeros, *(b for b in opened if b not in between_zeros and self._is_widest(b, opened))]
        return (boxes or self._invariant(zeros + turning + others, start))[:MAX_BOXES]

    def _is_widest(self, box: Interval, boxes: list[Interval]) -> bool:
        return not any(other != box and self._contains(other, box) for other in boxes)

    def _invariant(self, candidates: Sequence[sp.Expr], start: Interval | None) -> list[Interval]:
        """The boxes between candidates that are proved to be invariant, the maximal ones first."""
        faces = self.faces(start)
        lowers = [x for x in candidates if _in_time(_may_be_face, faces, x, -1)]
        uppers = [x for x in candidates if _in_time(_may_be_face, faces, x, 1)]
        if start is not None:
            lowers = [x for x in lowers if self._below(x, start[0])]
            uppers = [x for x in uppers if self._below(start[1], x)]
        boxes = [
            (lower, upper) for lower in lowers for upper in uppers
            if lower != upper and self.domain.proves(sp.Gt(upper, lower, evaluate=False)) is True
            and _in_time(faces.keep, _bounds(lower, upper))
        ]  # fmt: skip
        return sorted(boxes, key=lambda box: not self._is_widest(box, boxes))

    def _contains(self, outer: Interval, inner: Interval) -> bool:
        return self._below(outer[0], inner[0]) and self._below(inner[1], outer[1])

    def _below(self, left: sp.Expr, right: sp.Expr) -> bool:
        return self.domain.proves(sp.Ge(right, left, evaluate=False)) is True

    def _box(self, boxes: list[Interval], start: Interval | None) -> Box:
        (lower, upper), *others = boxes
        narrower = start if start is not None and start != (lower, upper) else None
        return Box(lower, upper, self._remark(lower, upper, start), tuple(others), start=narrower)

    def _remark(self, lower: sp.Expr, upper: sp.Expr, start: Interval | None) -> str:
        if start is not None:
            return f"invariant for every R > 0 and H0 in [{public(start[0])}, {public(start[1])}]"
        if self.field.uniform_one(h, sp.S.Zero) == 0:
            return "every interval is invariant: averages stay between the smallest and the largest entry"
        if lower.has(R) or upper.has(R):
            return "the field points inwards on both faces for every R > 0"
        return "the field vanishes or points inwards on both faces"

    # ------------------------------------------------------------------ candidates
    def _tiers(self, start: Interval | None) -> tuple[list[sp.Expr], list[sp.Expr], list[sp.Expr]]:
        """Zeros of the field on equal entries; zeros moved outwards by R; zero and other possible faces."""
        if start is None:
            zeros = self._admitted(zeros_of(self.field.uniform_one(h, sp.S.Zero, self.highest), h))
            grows = self.collecting is UP_TO_S
            opened = [z for z in zeros if z != 0 and sp.simplify(z.subs(s, 1)) == 0] if grows else []
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
                at_end = zeros_of(self.field.uniform_one(h, end, self.highest), h)
                for zero in self._admitted([*at_end, *self._further(end)]):
                    others += [zero, sp.Max(zero, R), sp.Min(zero, -R)]
        seen = {*zeros, *turning}
        return zeros, turning, [x for x in dict.fromkeys(others) if x not in seen]

    def _further(self, initial: sp.Expr) -> list[sp.Expr]:
        """Zeros of the field with functions at the ends of their range or on one branch, and without neighbours."""
        faces: list[sp.Expr] = []
        for weight in (self.highest, sp.S.Zero):
            field = self.field.uniform_one(h, initial, weight)
            faces += [z for branch in _branches(field) for z in zeros_of(branch, h)]
        return self._admitted([*faces, *(-z for z in faces)])

    def _admitted(self, values: Iterable[sp.Expr]) -> list[sp.Expr]:
        """Values that are real for all coefficients and equal in all nodes, the shortest first."""
        constant = [v for v in dict.fromkeys(values) if not v.free_symbols & self.field.varying and not v.has(h)]
        return sorted((v for v in constant if is_defined(v, self.domain)), key=lambda v: (v.count_ops(), str(v)))

    # ------------------------------------------------------------------ why there is none
    def why_not(self) -> str:
        """Why no box was found: what a maximum principle lacks."""
        for call in self.field.calls:
            slope = sp.diff(self.field.speed, call.letter)
            if call.inner != H or slope.has(H):
                continue
            term = f"the coefficient {public(slope)} of A^{len(call.word)}"
            sign = self.domain.sign(slope)
            if sign.is_nonpositive:
                return f"no box was found: no maximum principle, {term} is negative"
            if not sign.is_nonnegative:
                return f"no box was found: {term} can be negative; assume {public(slope)} >= 0"
        return f"no box was found for h' = {public(factored(self.field.uniform_one(h, h0)))}"


def _bounds(lower: sp.Expr, upper: sp.Expr) -> Bounds:
    """The box [lower, upper] as a rectangle of one field."""
    return {H.name: (lower, upper)}


def _may_be_face(faces: RectangleFaces, face: sp.Expr, side: int) -> bool:
    """Whether a value can be the face of some box: it holds as a face, or that depends on the other face."""
    other = sp.Dummy("other", real=True)
    bounds = _bounds(face, other) if side < 0 else _bounds(other, face)
    inward = faces.values(-side * faces.speeds.speed, bounds, {H: face})
    return any(
        value.has(other) or sp.And(*facts, *faces.starting(bounds, value)).has(other) for value, facts in inward
    ) or faces.hold(bounds, H.name, side)


def _in_time(proof: Callable[..., bool], *arguments: Any) -> bool:
    """Whether a proof is found in time."""
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
