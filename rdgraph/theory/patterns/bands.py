"""Bands: the exact intervals of lam on which a matrix polynomial P(lam) with rational coefficients has growing modes.

The growth of P(lam), the largest real part of its eigenvalues, can change its sign only where an eigenvalue is zero or
two add up to zero. These lam are roots of one polynomial; between two neighbouring roots one sample decides.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp
from flint import acb_poly, fmpq, fmpq_poly, fmpz_poly
from sympy.polys.matrices import DomainMatrix

from rdgraph.errors import Undecided
from rdgraph.reals.enclosure import NotEnclosed, bounds, enclose_at, precision

# ---------------------------------------------------------------------- half planes
# The half-plane of the roots of a polynomial: characteristic polynomials, Hurwitz determinants, exact signs of growth.
#
# The growth of a matrix is the largest real part of its eigenvalues. Its sign is decided from the characteristic
# polynomial alone: all Hurwitz determinants are positive exactly where it is negative, and one that is negative proves
# that it is positive.

#: Bits of precision, tried in turn until no root of a polynomial touches the imaginary axis.
PRECISIONS = (64, 128, 256, 512, 1024, 4096)

s = sp.Dummy("s")


def characteristic(matrix: sp.Matrix) -> tuple[sp.Expr, ...]:
    """The coefficients 1, c_1, ..., c_n of det(s I - matrix), expanded where they are polynomials.

    >>> a = sp.Symbol("a")
    >>> characteristic(sp.Matrix([[0, 1], [-1, a]]))
    (1, -a, 1)
    """
    packed = _packed(matrix)
    return tuple(packed.domain.to_sympy(c) for c in packed.charpoly())


def determinant(rows: Sequence[Sequence[sp.Expr]]) -> sp.Expr:
    """The determinant of a small matrix of expressions."""
    packed = _packed(sp.Matrix(rows))
    return packed.domain.to_sympy(packed.charpoly()[-1]) * (-1) ** len(rows)


def _packed(matrix: sp.Matrix) -> DomainMatrix:
    return DomainMatrix.from_Matrix(sp.Matrix(matrix)).to_dense()


def hurwitz_rows(coefficients: Sequence[Any], zero: Any) -> list[list[Any]]:
    """Hurwitz' matrix of s^n + c_1 s^(n-1) + ... + c_n: entry [i, j] is c_(2j - i), counted from one."""
    n = len(coefficients) - 1
    return [
        [coefficients[k] if 0 <= (k := 2 * (j + 1) - (i + 1)) <= n else zero for j in range(n)] for i in range(n)
    ]  # fmt: skip


def hurwitz_determinants(coefficients: Sequence[sp.Expr]) -> tuple[sp.Expr, ...]:
    """The leading minors of Hurwitz' matrix, the last one without its factor c_n, and c_n as last entry.

    All of them are positive where all roots have negative real parts. The product of the last two vanishes exactly
    where two roots add up to zero, or one is zero (Orlando's formula).

    >>> c = sp.symbols("c1:4")
    >>> hurwitz_determinants((1, *c))
    (c1, c1*c2 - c3, c3)
    """
    n = len(coefficients) - 1
    rows = hurwitz_rows(coefficients, sp.S.Zero)
    minors = [determinant([row[:k] for row in rows[:k]]) for k in range(1, n)]
    return (*minors, sp.sympify(coefficients[-1]))


def growth_sign(coefficients: Sequence[sp.Rational]) -> int:
    """The sign of the largest real part of the roots of s^n + c_1 s^(n-1) + ...: 1, 0 or -1, exact.

    Roots that come in pairs s, -s are split off: they lie on the imaginary axis exactly where their squares are real
    and not positive. No other root touches that axis, so that the search with more and more bits ends.

    >>> growth_sign([1, 0, 4]), growth_sign([1, 2, 4]), growth_sign([1, -1, 4]), growth_sign([1, 0, 0])
    (0, -1, 1, 0)
    """
    whole = fmpq_poly([fmpq(int(sp.Rational(c).p), int(sp.Rational(c).q)) for c in reversed(list(coefficients))])
    mirrored = fmpq_poly([c * (-1) ** k for k, c in enumerate(whole.coeffs())])
    paired = whole.gcd(mirrored)
    if _has_root_on_the_right(whole // paired):
        return 1
    if paired.degree() == 0:
        return -1
    return 1 if _pairs_grow(paired) else 0


def _has_root_on_the_right(polynomial: Any) -> bool:
    """Whether some root of a polynomial without roots on the imaginary axis has a positive real part."""
    if polynomial.degree() == 0:
        return False
    for bits in PRECISIONS:
        with precision(bits):
            parts = [root.real for root, _ in polynomial.numer().complex_roots()]
            if any(part > 0 for part in parts):
                return True
            if all(part < 0 for part in parts):
                return False
    raise AssertionError("no precision separated a root from the imaginary axis")


def _pairs_grow(paired: Any) -> bool:
    """Whether a polynomial with p(-s) = +-p(s) has a root off the imaginary axis."""
    coefficients = paired.numer().coeffs()
    while coefficients[0] == 0:
        coefficients = coefficients[1:]
    squares = fmpz_poly(coefficients[::2])
    if squares.degree() == 0:
        return False
    with precision(PRECISIONS[0]):  # real roots come with an imaginary part that is exactly zero
        roots = [root for root, _ in squares.complex_roots()]
    return any(not root.imag.is_zero() or root.real > 0 for root in roots)


# ---------------------------------------------------------------------- bands
@dataclass(frozen=True)
class Band:
    """An interval of lam on which the growth is positive; ends that do not belong to it are zeros of the growth.

    `slack` is zero where the ends are exact; otherwise the growth is positive between them, and the true ends lie at
    most that far outside.
    """

    lower: sp.Expr
    upper: sp.Expr
    has_lower: bool = False
    has_upper: bool = False
    slack: sp.Expr = sp.S.Zero

    def __str__(self) -> str:
        left, right = "[" if self.has_lower else "(", "]" if self.has_upper else ")"
        return f"{left}{_short(self.lower)}, {_short(self.upper)}{right}"

    def __contains__(self, value: float) -> bool:
        return float(self.lower) < value < float(self.upper) or self._is_end(value)

    def _is_end(self, value: float) -> bool:
        return (self.has_lower and value == self.lower) or (self.has_upper and value == self.upper)

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends as floating-point numbers."""
        return float(self.lower), float(self.upper)


def _short(number: sp.Expr) -> str:
    return str(number) if number.is_Rational and len(str(number)) < 12 else f"{float(number):.6g}"


def exact_bands(matrix: sp.Matrix, letter: sp.Symbol, to: sp.Expr) -> tuple[Band, ...]:
    """The bands in [0, to] of a matrix whose entries are polynomials in `letter` with rational coefficients.

    >>> lam = sp.Symbol("lam")
    >>> [str(band) for band in exact_bands(sp.Matrix([[-1 + 3 * lam - lam**2]]), lam, sp.Integer(2))]
    ['(0.381966, 2]']
    """
    coefficients = characteristic(matrix)
    roots = real_roots(critical_polynomial(coefficients, letter), letter, sp.S.Zero, to)
    edges = [sp.S.Zero, *roots, to]
    samples = [between(left, right) for left, right in itertools.pairwise(edges)]
    grows = [growth_sign(values_at(coefficients, letter, sample)) > 0 for sample in samples]
    ends = [growth_sign(values_at(coefficients, letter, x)) > 0 if x.is_finite else False for x in (sp.S.Zero, to)]
    bands: list[Band] = []
    for (left, right), growing in zip(itertools.pairwise(edges), grows, strict=True):
        if not growing:
            continue
        if bands and bands[-1].upper == left and grows_at(coefficients, letter, left):
            bands[-1] = Band(bands[-1].lower, right, bands[-1].has_lower)
        else:
            bands.append(Band(left, right, has_lower=left == 0 and ends[0]))
    if bands and bands[-1].upper == to:
        bands[-1] = Band(bands[-1].lower, to, bands[-1].has_lower, ends[1])
    return tuple(bands)


def values_at(coefficients: Sequence[sp.Expr], letter: sp.Symbol, value: sp.Expr) -> list[sp.Expr]:
    """The coefficients at a value of their letter."""
    return [sp.Poly(c, letter).eval(value) for c in coefficients]


def critical_polynomial(coefficients: Sequence[sp.Expr], letter: sp.Symbol) -> sp.Expr:
    """A nonzero polynomial in `letter` whose roots include every point where the sign of the growth can change.

    Eigenvalues that come in pairs s, -s for every value of `letter` are split off: for them these are the points where
    two of their squares are equal, or one is zero.

    >>> x = sp.Symbol("x")
    >>> sp.factor(critical_polynomial((sp.S(1), x - 1, x), x)), critical_polynomial((sp.S(1), sp.S(0), x), x)
    (x*(x - 1), x)
    """
    plain = _product(coefficients)
    if plain != 0:
        return plain
    whole = sp.Poly(sum(c * s**k for k, c in enumerate(reversed(list(coefficients)))), s, letter)
    mirrored = sp.Poly(whole.as_expr().subs(s, -s), s, letter)
    paired = sp.gcd(whole, mirrored)
    rest = sp.Poly(sp.quo(whole, paired).as_expr(), s).monic().all_coeffs()
    pairs = sp.Poly(sp.Poly(paired.as_expr(), s).monic().as_expr(), s)
    return sp.expand(_product(rest) * _paired_critical(pairs))


def _product(coefficients: Sequence[sp.Expr]) -> sp.Expr:
    if len(coefficients) == 1:
        return sp.S.One
    last = hurwitz_determinants(coefficients)[-2:]
    return sp.expand(sp.Mul(*last))


def _paired_critical(paired: sp.Poly) -> sp.Expr:
    """The critical polynomial of roots in pairs: it vanishes where two w = s^2 are equal or one is zero."""
    descending = paired.all_coeffs()
    while len(descending) > 1 and descending[-1] == 0:
        descending.pop()
    squares = descending[::2]
    if len(squares) == 1:
        return sp.S.One
    w = sp.Dummy("w")
    polynomial = sp.Poly(squares, w).as_expr()
    letters = sorted(polynomial.free_symbols - {w}, key=str)
    simple = sp.Poly(sp.sqf_part(sp.Poly(polynomial, w, *letters)).as_expr(), w)
    meeting = simple.discriminant() if simple.degree() > 1 else sp.S.One
    return sp.expand(meeting * squares[-1])


# ---------------------------------------------------------------------- real roots in their order
def real_roots(polynomial: sp.Expr, letter: sp.Symbol, lower: sp.Expr, upper: sp.Expr) -> list[sp.Expr]:
    """The distinct real roots strictly between two numbers, ascending: rational, with roots, or as `CRootOf`.

    >>> x = sp.Symbol("x")
    >>> real_roots(x * (x - 1) * (x**2 - 2) * (x**3 - 2), x, sp.S.Zero, sp.Integer(3))
    [1, CRootOf(x**3 - 2, 0), sqrt(2)]
    """
    roots: list[sp.Expr] = []
    for factor, _ in sp.factor_list(sp.Poly(polynomial, letter))[1]:
        roots += _roots_of(factor)
    inside = [r for r in roots if _is_less(lower, r) and _is_less(r, upper)]
    return sorted(inside, key=_Ordered)


def _roots_of(factor: sp.Poly) -> list[sp.Expr]:
    if factor.degree() == 1:
        a, b = factor.all_coeffs()
        return [-b / a]
    if factor.degree() == 2:
        a, b, c = factor.all_coeffs()
        inside = b**2 - 4 * a * c
        return [(-b + sign * sp.sqrt(inside)) / (2 * a) for sign in (1, -1)] if inside > 0 else []
    return [sp.CRootOf(factor, k) for k in range(factor.count_roots())]


class _Ordered:
    """A sort key for real algebraic numbers, of which equal ones are equal expressions."""

    def __init__(self, number: sp.Expr) -> None:
        self.number = number

    def __lt__(self, other: _Ordered) -> bool:
        return _is_less(self.number, other.number)


def _is_less(left: sp.Expr, right: sp.Expr) -> bool:
    """Whether left < right, for numbers that are equal expressions or rational where they are equal."""
    if left == right:
        return False
    if left in (sp.oo, -sp.oo) or right in (sp.oo, -sp.oo):
        return left == -sp.oo or right == sp.oo
    for bits in PRECISIONS:
        (low, high), (other_low, other_high) = bounds(left, bits), bounds(right, bits)
        if high < other_low:
            return True
        if other_high < low:
            return False
    raise Undecided(f"no precision separates {left} and {right}")


def between(left: sp.Expr, right: sp.Expr) -> sp.Rational:
    """A rational number strictly between two numbers, with a short denominator if possible."""
    for bits in PRECISIONS:
        low = bounds(left, bits)[1] if left.is_finite else None
        high = bounds(right, bits)[0] if right.is_finite else None
        if low is None and high is None:
            return sp.S.Zero
        if low is None or high is None:
            return sp.ceiling(low) + 1 if high is None else sp.floor(high) - 1
        if low < high:
            middle = (low + high) / 2
            rough = sp.Rational(round(middle * 1024), 1024)
            return rough if low < rough < high else middle
    raise Undecided(f"no precision separates {left} and {right}")


def grows_at(coefficients: Sequence[sp.Expr], letter: sp.Symbol, point: sp.Expr) -> bool:
    """Whether the growth is proved to be positive at an algebraic number; where it is zero nothing is proved."""
    tests = [*coefficients[1:], *hurwitz_determinants(coefficients)]
    for bits in PRECISIONS[:4]:
        with precision(bits):
            try:
                given = {letter: enclose_at(point, {})}
                if any(enclose_at(test, given) < 0 for test in tests):
                    return True
                if _enclosed_root_grows([enclose_at(c, given) for c in coefficients]):
                    return True
            except NotEnclosed:
                return False
    return False


def _enclosed_root_grows(balls: Sequence[object]) -> bool:
    """Whether some root of a polynomial with enclosed coefficients is proved to have a positive real part."""
    try:
        return any(root.real > 0 for root in acb_poly(list(reversed(balls))).roots())
    except ValueError:  # the roots could not be isolated with these bits
        return False
