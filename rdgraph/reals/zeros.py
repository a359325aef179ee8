"""All zeros of a function of one variable on the whole real line, and its signs between them, by interval arithmetic.

The line is cut at kinks. Around a zero in closed form, the first derivative that does not vanish there proves that
there is no other one near; elsewhere intervals are halved until the function differs from zero on them, or is monotone
and changes its sign. Far out the function is enclosed for all x at once (`rdgraph.reals.line_pieces`). What none of
this settles is reported, not forgotten.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import sympy as sp
from flint import arb

from rdgraph.errors import Undecided
from rdgraph.reals import polynomials
from rdgraph.reals.budget import remaining, spend
from rdgraph.reals.domain import Domain
from rdgraph.reals.enclosure import NotEnclosed, enclose_at, precision
from rdgraph.reals.line_pieces import BITS, Neighbourhood, Piece, is_before, is_zero_at, neighbourhood, pieces, rational
from rdgraph.reals.regions import reduced, strict_sign
from rdgraph.vocabulary.functions import record_of
from rdgraph.vocabulary.learned_functions import LearnedCall

# ---------------------------------------------------------------------- zero candidates
# Candidates for the real zeros of a function, in closed form where its factors have one; each is to be proved.

#: More calls of abs and relu than this are not taken apart.
MAX_CALLS = 4


@dataclass(frozen=True)
class Zero:
    """A candidate that is real where all `needs` are >= 0."""

    value: sp.Expr
    needs: tuple[sp.Expr, ...] = ()


def candidates(rate: sp.Expr, x: sp.Symbol, domain: Domain) -> list[Zero]:
    """Closed candidates for the zeros of a rate; raises `Split` where their form depends on the coefficients.

    abs and relu are replaced by what they are on either side of their kink; zero itself is always tried.

    >>> x, a = sp.Symbol("x", real=True), sp.Symbol("a", positive=True)
    >>> [z.value for z in candidates(x**3 - a * x, x, Domain())]
    [0, sqrt(a), -sqrt(a)]
    """
    found: dict[Zero, None] = {Zero(sp.S.Zero): None}
    for smooth in _branches(rate, x):
        if smooth.is_rational_function(x):
            found |= dict.fromkeys(_of_rational(smooth, x, domain))
    return list(found)


def _branches(rate: sp.Expr, x: sp.Symbol) -> Iterator[sp.Expr]:
    records = {c: record_of(c) for c in rate.atoms(sp.Function) if c.has(x)}
    pieces = {c: record.pieces for c, record in records.items() if record is not None and record.pieces is not None}
    calls = sorted(pieces, key=str)
    if len(calls) > MAX_CALLS:
        return
    for sides in itertools.product(*(reversed(pieces[call]) for call in calls)):
        values = {call: call.args[0] * side for call, side in zip(calls, sides, strict=True)}
        yield rate.xreplace(values)


def _of_rational(rate: sp.Expr, x: sp.Symbol, domain: Domain) -> list[Zero]:
    top = reduced(domain, polynomials.reduced(rate)[0])
    factors = [factor for factor, _ in polynomials.factors(top) if factor.has(x)]
    ordered = sorted(factors, key=lambda factor: (sp.degree(factor, x), str(factor)))
    return [zero for factor in ordered for zero in _candidates_of_polynomial(sp.Poly(factor, x), domain)]


def _candidates_of_polynomial(polynomial: sp.Poly, domain: Domain) -> list[Zero]:
    """Zeros of degree one and two, of polynomials of these in a power of x, and of numeric polynomials."""
    if polynomial.is_zero or polynomial.degree() == 0:
        return []
    if strict_sign(domain, polynomial.LC()) == 0:
        lower = {m: c for m, c in polynomial.terms() if m[0] < polynomial.degree()}
        return _candidates_of_polynomial(sp.Poly(lower or {(0,): 0}, polynomial.gen), domain)
    if polynomial.degree() == 1:
        return [Zero(sp.cancel(-polynomial.nth(0) / polynomial.LC()))]
    if not polynomial.free_symbols_in_domain and polynomial.domain.is_QQ | polynomial.domain.is_ZZ:
        return [Zero(root) for root in sp.real_roots(polynomial)]
    step = sp.igcd(*(m[0] for m in polynomial.monoms()))
    if step > 1:
        y = sp.Dummy("y", real=True)
        inner = sp.Poly({(m[0] // step,): c for m, c in polynomial.terms()}, y)
        return [r for zero in _candidates_of_polynomial(inner, domain) for r in _roots(zero, int(step), domain)]
    if polynomial.degree() == 2:
        a, b, c = (polynomial.nth(k) for k in (2, 1, 0))
        discriminant = sp.expand(b**2 - 4 * a * c)
        return [Zero((-b + sign * sp.sqrt(discriminant)) / (2 * a), (discriminant,)) for sign in (1, -1)]
    return []


def _roots(zero: Zero, power: int, domain: Domain) -> list[Zero]:
    """Real solutions of x^power = zero."""
    exponent = sp.Rational(1, power)
    if power % 2 == 0:
        root = zero.value**exponent
        return [Zero(sign * root, (*zero.needs, zero.value)) for sign in (1, -1)]
    inside = domain.given(*zero.needs)
    if inside.is_empty():
        return []
    sign = strict_sign(inside, zero.value)
    return [Zero(sign * (sign * zero.value) ** exponent if sign else sp.S.Zero, zero.needs)]


# ---------------------------------------------------------------------- line zeros
#: Intervals of one piece, steps to a zero in one of them, the shortest one, and seconds kept for the rest of an answer.
MAX_CELLS = 3_000
MAX_REFINEMENTS = 200
SHORTEST = sp.Rational(1, 10**9)
RESERVED_SECONDS = 1.5
#: Effort of one cell, in seconds.
CELL_COST = 0.0005
#: The end of the search where nothing is proved farther out, and the largest denominator of numbers that are tried.
FAR = sp.Integer(100)
MAX_DENOMINATOR = 1000
#: The widest enclosure of a zero; functions of which only bounds are known leave wider ones.
WIDEST = sp.Rational(1, 10**6)


@dataclass(frozen=True)
class LineZero:
    """The only zero between two rational numbers; `value` where it has a closed form."""

    lower: sp.Rational
    upper: sp.Rational
    value: sp.Expr | None = None


@dataclass(frozen=True)
class LineZeros:
    """Zeros from left to right, and the signs of the function before, between and after them (None if unknown).

    `gaps` are intervals in which nothing is proved; `beyond` says that there are no zeros outside `reach`.
    """

    zeros: tuple[LineZero, ...]
    signs: tuple[int | None, ...]
    gaps: tuple[tuple[float, float], ...] = ()
    beyond: bool = True
    reach: tuple[sp.Rational, sp.Rational] = (-FAR, FAR)

    @property
    def is_complete(self) -> bool:
        """Whether these are proved to be all zeros on the whole line."""
        return self.beyond and not self.gaps


def line_zeros(formula: sp.Expr, letter: sp.Symbol, reach: tuple[sp.Rational, sp.Rational] = (-FAR, FAR)) -> LineZeros:
    """The zeros of a function of one letter, numbers as coefficients.

    Where nothing is proved far out, `reach` is searched. Raises Undecided where a kink is not found, or time runs out.

    >>> x = sp.Symbol("x", real=True)
    >>> found = line_zeros(x * sp.tanh(1 - x), x)
    >>> [zero.value for zero in found.zeros], found.signs, found.is_complete
    ([0, 1], (-1, 1, -1), True)
    >>> line_zeros(sp.tanh(x) - x, x).signs
    (1, -1)
    """
    found: list[LineZero] = []
    gaps: list[tuple[float, float]] = []
    beyond = True
    if formula.has(LearnedCall) and not any(_is_bounded_at(formula, letter, place) for place in (0, 1, -1)):
        raise Undecided(f"the zeros of {formula} depend on functions that are learned")
    with precision(BITS):
        for factor in _factors(formula, letter):
            for piece in pieces(factor, letter):
                searched = _Search(piece, reach).run()
                found += searched.zeros
                gaps += searched.gaps
                beyond = beyond and searched.beyond
        merged, doubtful = _merged(found)
    signs = _signs(formula, letter, merged)
    return LineZeros(tuple(merged), signs, (*gaps, *doubtful), beyond, reach)


def _is_bounded_at(formula: sp.Expr, letter: sp.Symbol, place: int) -> bool:
    """Whether something is known of a value."""
    try:
        return bool(enclose_at(formula, {letter: enclose_at(sp.Integer(place), {})}).is_finite())
    except NotEnclosed:
        return False


def period(formula: sp.Expr, letter: sp.Symbol) -> sp.Expr | None:
    """A period of a function that sees its letter through sines and cosines of rational multiples alone, else None.

    >>> x = sp.Symbol("x", real=True)
    >>> period(sp.sin(2 * x) - sp.cos(3 * x) / 2, x), period(sp.sin(x) - x, x)
    (2*pi, None)
    """
    calls = [c for c in formula.atoms(sp.sin, sp.cos) if c.has(letter)]
    rates = [sp.expand(c.args[0]).coeff(letter) for c in calls]
    slopes = [sp.diff(c.args[0], letter) for c in calls]
    letters = {c: sp.Dummy() for c in calls}
    if not calls or formula.xreplace(letters).has(letter) or any(not r.is_Rational or r == 0 for r in rates):
        return None
    if any(sp.expand(slope - rate) != 0 for slope, rate in zip(slopes, rates, strict=True)):
        return None
    below = sp.ilcm(1, *(r.q for r in rates))
    return 2 * sp.pi * below / sp.igcd(0, *(int(abs(r) * below) for r in rates))


def _factors(formula: sp.Expr, letter: sp.Symbol) -> list[sp.Expr]:
    """Factors whose zeros are those of the function, without such as are never zero."""
    found: dict[sp.Expr, None] = {}
    for factor in sp.Mul.make_args(sp.factor_terms(formula)):
        base = factor.base if isinstance(factor, sp.Pow) and factor.exp.is_Integer and factor.exp > 0 else factor
        if base.has(letter) and not _is_positive(base):
            found[base] = None
        elif base == 0:
            raise Undecided("the function is zero everywhere")
    return list(found)


def _is_positive(call: sp.Expr) -> bool:
    """Whether an expression is a value of a function that is positive everywhere, such as exp."""
    if isinstance(call, sp.exp):
        return True
    record = record_of(call)
    span = None if record is None else record.range
    return span is not None and (span.lower > 0 or (span.lower == 0 and not span.has_lower))


def _merged(found: list[LineZero]) -> tuple[list[LineZero], list[tuple[float, float]]]:
    """Zeros in their order, those of several pieces or factors once; enclosures that overlap otherwise are doubtful."""
    merged: list[LineZero] = []
    doubtful: list[tuple[float, float]] = []
    for zero in sorted(found, key=lambda z: (z.lower, z.value is None)):
        if merged and zero.lower <= merged[-1].upper:
            same = zero.value is not None and merged[-1].value is not None and zero.value == merged[-1].value
            if not same:
                doubtful.append((float(zero.lower), float(zero.upper)))
            continue
        merged.append(zero)
    return merged, doubtful


def _signs(formula: sp.Expr, letter: sp.Symbol, zeros: list[LineZero]) -> tuple[int | None, ...]:
    """Signs at points between neighbouring zeros; where gaps are left they say nothing of the whole stretch."""
    places = [sp.S.Zero]
    if zeros:
        inner = [(a.upper + b.lower) / 2 for a, b in itertools.pairwise(zeros)]
        places = [sp.floor(zeros[0].lower) - 1, *inner, sp.floor(zeros[-1].upper) + 2]
    piece = Piece(formula, letter, -sp.oo, sp.oo)
    return tuple(sign if (sign := piece.sign_at(place)) else None for place in places)


@dataclass
class _Found:
    zeros: list[LineZero] = field(default_factory=list)
    gaps: list[tuple[float, float]] = field(default_factory=list)
    beyond: bool = True


class _NewPlace(Exception):
    """A number at which the function turned out to be zero."""

    def __init__(self, place: sp.Expr) -> None:
        super().__init__(str(place))
        self.place = place


@dataclass
class _Search:
    """The zeros of one smooth piece."""

    piece: Piece
    reach: tuple[sp.Rational, sp.Rational]

    def run(self) -> _Found:
        found = _Found()
        ends = self._range(found)
        if ends is None:
            return found
        candidates = self.piece.closed_zeros()
        for _ in range(8):
            try:
                self._between(*ends, candidates, found)
                return found
            except _NewPlace as new:
                candidates.append(new.place)
                found.zeros, found.gaps = [], []
        raise Undecided("zeros lie too close to the ends of intervals")

    def _range(self, found: _Found) -> tuple[sp.Rational, sp.Rational] | None:
        """Where zeros can be: up to the tails if their signs are known; None where they cannot be anywhere."""
        ends = []
        for end, way in ((self.piece.lower, -1), (self.piece.upper, 1)):
            if end not in (sp.oo, -sp.oo):
                ball = enclose_at(end, {})
                ends.append(rational(ball.lower() if way < 0 else ball.upper()))
                continue
            far = self.piece.tail(way)
            known = far is not None and far.sign in (1, -1)
            found.beyond = found.beyond and known
            ends.append(way * far.start if far is not None and known else self.reach[way > 0])
        return (ends[0], ends[1]) if ends[0] < ends[1] else None

    def _inside(self, lower: sp.Expr, upper: sp.Expr) -> bool:
        """Whether numbers between these two can belong to the piece."""
        return not is_before(upper, self.piece.lower) and not is_before(self.piece.upper, lower)

    def _between(self, lower: sp.Rational, upper: sp.Rational, candidates: list[sp.Expr], found: _Found) -> None:
        known: list[Neighbourhood] = []
        for place in candidates:
            if not any(n.place == place for n in known):
                around = neighbourhood(self.piece, place)
                if around is not None:
                    known.append(around)
        known.sort(key=lambda n: n.ends)
        for around in known:
            found.zeros.append(_exactly(around.place))
        start = lower
        for around in known:
            if start < around.ends[0]:
                self._halved(start, around.ends[0], found)
            start = max(start, around.ends[1])
        if start < upper:
            self._halved(start, upper, found)

    def _halved(self, lower: sp.Rational, upper: sp.Rational, found: _Found) -> None:
        waiting = [(lower, upper)]
        seen = 0
        while waiting:
            low, high = waiting.pop()
            seen += 1
            spend(CELL_COST)
            place = enclose_at(low, {}).union(enclose_at(high, {}))
            values, slope = self.piece.values(place)
            if values > 0 or values < 0:
                continue
            if slope > 0 or slope < 0:
                if self._sign(low) != self._sign(high):
                    self._take(place, found)
                continue
            if high - low < SHORTEST or seen > MAX_CELLS or remaining() < RESERVED_SECONDS:
                found.gaps.append((float(low), float(high)))
                continue
            cut = low + (high - low) * sp.Rational(17, 32)
            waiting += [(cut, high), (low, cut)]

    def _sign(self, place: sp.Rational) -> int:
        ball = self.piece.over(enclose_at(place, {}))
        if ball > 0 or ball < 0:
            return 1 if ball > 0 else -1
        raise _NewPlace(place)

    def _take(self, place: Any, found: _Found) -> None:
        """A small enclosure of the zero of a monotone interval, and a closed form for it if one is seen."""
        for _ in range(MAX_REFINEMENTS):
            smaller = self._refined(place)
            if smaller is None or smaller.rad() >= place.rad():
                break
            place = smaller
        low, high = rational(place.lower()), rational(place.upper())
        exact = next((guess for guess in _guesses(place) if is_zero_at(self.piece, guess)), None)
        if exact is None and high - low > WIDEST * max(1, abs(low)):
            found.gaps.append((float(low), float(high)))
        elif self._inside(low, high):
            found.zeros.append(LineZero(low, high) if exact is None else _exactly(exact))

    def _refined(self, place: Any) -> Any:
        """A smaller interval that holds the zero: by Newton's method where that is fast, else one half."""
        middle = place.mid()
        value, slope = self.piece.over(middle), self.piece.over(place, 1)
        closer = middle - value / slope
        if closer.is_finite() and closer.rad() < place.rad() * 0.5 and place.overlaps(closer):
            return place.intersection(closer)
        if not (value > 0 or value < 0):
            return None
        rises = self._sign(rational(place.upper())) > 0
        return middle.union(place.upper() if (value < 0) == rises else place.lower())


def _exactly(place: sp.Expr) -> LineZero:
    if place.is_Rational:
        return LineZero(place, place, place)
    ball = enclose_at(place, {})
    return LineZero(rational(ball.lower()), rational(ball.upper()), place)


def _guesses(place: Any) -> list[sp.Expr]:
    """Numbers with small denominators near a ball, and such multiples of pi."""
    found = []
    for unit, ball in ((sp.S.One, place), (sp.pi, place / arb.pi())):
        near = Fraction(float(ball.mid())).limit_denominator(MAX_DENOMINATOR if unit == 1 else 12)
        number = sp.Rational(near.numerator, near.denominator)
        if ball.contains(enclose_at(number, {}).mid()):
            found.append(number * unit)
    return found
