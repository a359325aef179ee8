"""Factors and fractions of polynomials in several symbols, by FLINT where the coefficients are rational numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy as sp
from flint import Ordering, acb, arb, ctx, fmpq, fmpq_mpoly_ctx, fmpq_poly

from rdgraph.errors import Undecided
from rdgraph.language.size_limits import MAX_DEGREE
from rdgraph.reals.budget import spend
from rdgraph.reals.enclosure import sign_of, touches_zero

# ---------------------------------------------------------------------- polynomials
#: Terms of a polynomial beyond which it is not factored: FLINT cannot be interrupted, and takes seconds for these.
MAX_TERMS = 1_500
#: Terms of a product, before equal ones are joined, beyond which it is not expanded here.
MAX_PRODUCT = 200_000
#: Expressions whose factors, fractions and short forms are kept: the questions about one system meet the same ones.
REMEMBERED = 4_096
#: Effort of one factorisation, in seconds.
COST = 0.0005


def factors(expression: sp.Expr) -> list[tuple[sp.Expr, int]]:
    """Irreducible factors over the rational numbers with their multiplicities, constants left out; of a fraction, those
    of its numerator.

    Raises `Undecided` where there are too many terms.

    >>> x, a = sp.symbols("x a")
    >>> factors(a**2 * x - x**3)
    [(x, 1), (a + x, 1), (a - x, 1)]
    """
    spend(COST)
    return list(_factors(expression))


@lru_cache(REMEMBERED)
def _factors(expression: sp.Expr) -> tuple[tuple[sp.Expr, int], ...]:
    top = sp.fraction(sp.together(expression))[0]
    letters = sorted(top.free_symbols, key=str)
    packed = _packed(top, letters)
    if packed is None:
        return tuple((sp.sympify(factor), int(times)) for factor, times in sp.factor_list(sp.expand(top))[1])
    _check_size(packed)
    found = [(_unpacked(factor, letters), int(times)) for factor, times in packed.factor()[1]]
    return tuple(sorted(found, key=lambda pair: (pair[0].count_ops(), str(pair[0]))))


@lru_cache(REMEMBERED)
def reduced(expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Numerator and denominator of a rational function, without common factors.

    Raises `Undecided` where there are too many terms, or the degree is too high.

    >>> x = sp.Symbol("x")
    >>> reduced(1 / (1 + 1 / (1 + x**2)))
    (x**2 + 1, x**2 + 2)
    """
    top, bottom = sp.fraction(sp.together(expression))
    letters = sorted(top.free_symbols | bottom.free_symbols, key=str)
    above, below = _packed(top, letters), _packed(bottom, letters)
    if above is None or below is None or not letters:
        return tuple(sp.fraction(sp.cancel(sp.expand(top) / sp.expand(bottom))))
    _check_size(above)
    _check_size(below)
    common = above.gcd(below)
    if common.is_constant():
        return _unpacked(above, letters), _unpacked(below, letters)
    return _unpacked(above / common, letters), _unpacked(below / common, letters)


def expanded(expression: sp.Expr) -> sp.Expr:
    """What `sympy.expand` returns, far sooner for polynomials with rational coefficients.

    >>> x = sp.Symbol("x")
    >>> expanded((x + 1) * (x - 1) + 1)
    x**2
    """
    letters = sorted(expression.free_symbols, key=str)
    try:
        packed = _packed(expression, letters)
    except Undecided:
        packed = None
    return sp.expand(expression) if packed is None else _unpacked(packed, letters)


def _check_size(packed: Any) -> None:
    """Raise Undecided for a polynomial that is too large for a factorisation or a common divisor."""
    if len(packed) > MAX_TERMS:
        raise Undecided(f"a polynomial of {len(packed)} terms is too long to be factored")
    if not packed.is_constant() and (degree := packed.total_degree()) > MAX_DEGREE:
        raise Undecided(f"a polynomial of degree {degree} is too high to be factored")


def _packed(expression: sp.Expr, letters: list[sp.Symbol]) -> Any | None:
    """The polynomial in FLINT's form; None where it is none, or its coefficients are not rational."""
    if not letters or not _is_rational_polynomial(expression):
        return None
    context = fmpq_mpoly_ctx.get([f"x{i}" for i in range(len(letters))], Ordering.lex)
    return _evaluated(expression, dict(zip(letters, context.gens(), strict=True)), context)


def _is_rational_polynomial(expression: sp.Expr) -> bool:
    if isinstance(expression, sp.Add | sp.Mul):
        return all(map(_is_rational_polynomial, expression.args))
    if isinstance(expression, sp.Pow):
        return bool(expression.exp.is_Integer and expression.exp > 0) and _is_rational_polynomial(expression.base)
    return isinstance(expression, sp.Symbol | sp.Rational)


def _evaluated(expression: sp.Expr, letters: Mapping[sp.Symbol, Any], context: Any) -> Any:
    """The value of a polynomial at FLINT's letters; Undecided where a product has too many terms."""
    if isinstance(expression, sp.Symbol):
        return letters[expression]
    if isinstance(expression, sp.Rational):
        return context.constant(fmpq(int(expression.p), int(expression.q)))
    if isinstance(expression, sp.Pow):
        base, times = _evaluated(expression.base, letters, context), int(expression.exp)
        _check_product(math.comb(len(base) + times - 1, times) if len(base) else 0)
        return base**times
    parts = [_evaluated(argument, letters, context) for argument in expression.args]
    if isinstance(expression, sp.Add):
        return sum(parts[1:], parts[0])
    product = parts[0]
    for part in parts[1:]:
        _check_product(len(product) * len(part))
        product *= part
    return product


def _check_product(terms: int) -> None:
    if terms > MAX_PRODUCT:
        raise Undecided(f"a product of {terms} terms is too long to be expanded")


def _unpacked(polynomial: Any, letters: list[sp.Symbol]) -> sp.Expr:
    terms = [
        sp.Rational(int(c.p), int(c.q)) * sp.Mul(*(x ** int(k) for x, k in zip(letters, powers, strict=True)))
        for powers, c in polynomial.to_dict().items()
    ]
    return sp.Add(*terms)


# ---------------------------------------------------------------------- polynomial cells
# Cells of the line between the zeros of polynomials with rational coefficients: one rational point in each, exact.

#: Bits at which zeros are enclosed, one after the other, until they are separated from the ends and each other.
_PRECISIONS = (64, 256, 1024)


def rational_polynomial(coefficients: Sequence[sp.Rational]) -> Any:
    """A polynomial of flint from its coefficients, lowest power first."""
    return fmpq_poly([fmpq(int(c.p), int(c.q)) for c in map(sp.Rational, coefficients)])


def cell_points(polynomials: Iterable[Any], low: sp.Rational, high: sp.Rational) -> list[Any]:
    """Rational numbers, rising, one in every open interval into which the zeros of the polynomials cut (low, high).

    Polynomials that vanish identically cut nothing.

    >>> cell_points([rational_polynomial([-2, 0, 1])], sp.Integer(0), sp.Integer(2))
    [5/8, 27/16]
    """
    ends = [fmpq(int(x.p), int(x.q)) for x in map(sp.Rational, (low, high))]
    zeros = _enclosed_zeros(_joined(polynomials, ends), ends)
    gaps = [ends[0], *(x for ball in zeros for x in ball), ends[1]]
    return [_simplest(gaps[k], gaps[k + 1]) for k in range(0, len(gaps), 2)]


def signs_to_infinity(polynomial: Any) -> list[int]:
    """The signs of a polynomial from 0 to infinity, one after the other where they change.

    >>> signs_to_infinity(rational_polynomial([-1, 0, 1]))
    [-1, 1]
    """
    if polynomial.degree() < 1:
        return [1 if polynomial[0] > 0 else -1]
    top = abs(polynomial.leading_coefficient())
    bound = 1 + sum(abs(c) for c in polynomial.coeffs()) / top
    values = [polynomial(x) for x in cell_points([polynomial], sp.S.Zero, sp.Rational(int(bound.p), int(bound.q)))]
    signs = [1 if v > 0 else -1 for v in values]
    return [sign for k, sign in enumerate(signs) if k == 0 or sign != signs[k - 1]]


def _joined(polynomials: Iterable[Any], ends: Sequence[Any]) -> Any:
    """A polynomial with single zeros: those of all polynomials, the ends left out."""
    total = fmpq_poly([1])
    for polynomial in polynomials:
        if polynomial.degree() < 1:
            continue
        single = polynomial // polynomial.gcd(polynomial.derivative())
        total = total * (single // single.gcd(total))
    for end in ends:
        if total(end) == 0:
            total = total // fmpq_poly([-end, 1])
    return total


def _enclosed_zeros(polynomial: Any, ends: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Rational numbers around every real zero between the ends, rising, none of them touching another."""
    if polynomial.degree() < 1:
        return []
    before = ctx.prec
    try:
        for bits in _PRECISIONS:
            ctx.prec = bits
            found = [root for root, _ in polynomial.complex_roots()]
            real = [r.real if isinstance(r, acb) else r for r in found if not isinstance(r, acb) or r.imag == 0]
            if any(ball.contains(arb(end)) for ball in real for end in ends):
                continue
            inside = sorted((r for r in real if r > arb(ends[0]) and r < arb(ends[1])), key=lambda r: float(r.mid()))
            pairs = [(_fraction(r.lower()), _fraction(r.upper())) for r in inside]
            if all(pairs[k][1] < pairs[k + 1][0] for k in range(len(pairs) - 1)):
                return pairs
    finally:
        ctx.prec = before
    raise Undecided("the zeros of a polynomial are too close to be separated")


def _fraction(ball: Any) -> Any:
    """The exact value of an exact ball."""
    mantissa, exponent = ball.mid().man_exp()
    power = fmpq(2) ** abs(int(exponent))
    return fmpq(mantissa) * power if exponent >= 0 else fmpq(mantissa) / power


def _simplest(low: Any, high: Any) -> Any:
    """A number between two others with a short binary expansion, near their middle."""
    middle, size = (low + high) / 2, fmpq(1)
    while True:
        rounded = fmpq((middle * size).floor()) / size
        if low < rounded < high and (middle - rounded) * 8 <= high - low:
            return rounded
        size *= 2


# ---------------------------------------------------------------------- ratio cells
# One-parameter families of coefficients: the line of a ratio, cut into cells by exact root isolation.


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
        flat = expression.xreplace({self.numerator: self.ratio, base: sign})
        return sp.expand(flat) if flat.is_polynomial(self.ratio) else sp.cancel(flat)

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
