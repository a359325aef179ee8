"""All real solutions of algebraic equations with symbolic coefficients, in closed form, case by case.

Every equation is factored and each choice of factors solved separately: an unknown in which an equation is linear is
substituted in the others, and the last unknown solves a linear or quadratic equation. Where a leading coefficient can
vanish, that is a separate case with fewer solutions, or with a free unknown. A solution is valid where its conditions
hold, and the solutions of all cases together are complete, unless a case was given up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy as sp
from sympy.polys.matrices import DomainMatrix
from sympy.polys.orderings import grevlex

from rdgraph.errors import Undecided
from rdgraph.reals import polynomials
from rdgraph.reals.domain import Domain
from rdgraph.reals.enclosure import enclose, enclose_at, precision
from rdgraph.reals.regions import reduced
from rdgraph.theory.patterns.bands import PRECISIONS, real_roots
from rdgraph.vocabulary.functions import record_of

# ---------------------------------------------------------------------- elimination
#: Most cases, and most calls of abs, relu and roots that are resolved.
MAX_CASES = 200
MAX_CALLS = 4

Values = dict[sp.Symbol, sp.Expr]
Facts = tuple[sp.Basic, ...]


@dataclass(frozen=True)
class Solution:
    """Values of the unknowns where `conditions` hold; unknowns without a value are free.

    Every condition is defined where those before it hold.
    """

    values: Values
    conditions: Facts = ()


@dataclass
class Solutions:
    """The solutions so far; with `is_complete` there are no other real ones, for any coefficients.

    If the equations are not `algebraic`, they are not solved.
    """

    solutions: list[Solution] = field(default_factory=list)
    is_complete: bool = True
    algebraic: bool = True


def solve(
    equations: Sequence[sp.Expr], letters: Sequence[sp.Symbol], domain: Domain, into: Solutions | None = None
) -> Solutions:
    """The real solutions of equations = 0 where these are defined; solutions are added to `into` as they are found.

    >>> u, v, a, b = sp.symbols("u v a b", real=True)
    >>> answer = solve([a - u + u**2 * v, b - u**2 * v], [u, v], Domain())
    >>> for solution in answer.solutions:
    ...     print(solution.values, solution.conditions)
    {v: b/(a + b)**2, u: a + b} (Ne(a + b, 0),)
    {u: 0} (Eq(b, 0), Eq(a, 0))
    >>> answer.is_complete
    True
    """
    result = into or Solutions()
    constants = _constants(equations, letters)
    named = [sp.sympify(e).xreplace(constants) for e in equations]
    for algebraic, extra, facts, roots in _taken_apart(named, list(letters)):
        if not all(e.is_rational_function(*extra) for e in algebraic):
            result.is_complete = result.algebraic = False
            return result
        known = {dummy: value for value, dummy in constants.items()}
        _Search(extra, domain, known, roots, result).split(algebraic, facts, {})
    return result


def _constants(equations: Sequence[sp.Expr], letters: Sequence[sp.Symbol]) -> dict[sp.Expr, sp.Symbol]:
    """Symbols for the outermost roots and functions of coefficients alone."""

    def outermost(expression: sp.Expr) -> Iterator[sp.Expr]:
        is_root = isinstance(expression, sp.Pow) and not expression.exp.is_Integer
        if (is_root or isinstance(expression, sp.Function)) and not expression.has(*letters):
            yield expression
        else:
            for part in expression.args:
                yield from outermost(part)

    constants = dict.fromkeys(x for equation in equations for x in outermost(equation))
    return {x: sp.Dummy("k", real=True, positive=x.is_positive, nonnegative=x.is_nonnegative) for x in constants}


def _taken_apart(
    equations: list[sp.Expr], letters: list[sp.Symbol], facts: Facts = (), roots: Values | None = None, calls: int = 0
) -> Iterator[tuple[list[sp.Expr], list[sp.Symbol], Facts, Values]]:
    """Equations with a branch for every abs and relu and a symbol for every root, and the conditions of each case."""
    known = roots or {}
    kinked = {c for e in equations for c in e.atoms(sp.Function) if c.has(*letters) and _pieces(c) is not None}
    powers = {p for e in equations for p in e.atoms(sp.Pow) if p.exp.is_Rational and not p.exp.is_Integer}
    inner = sorted((x for x in (*kinked, *powers) if x.has(*letters)), key=lambda x: (x.count_ops(), str(x)))
    if not inner or calls == MAX_CALLS:
        yield equations, letters, facts, known
        return
    if isinstance(inner[0], sp.Pow):
        base, degree = inner[0].base, inner[0].exp.q
        root = sp.Dummy("root", real=True)
        same = {p: root ** (p.exp * degree) for p in powers if p.base == base and degree % p.exp.q == 0}
        put_in = [*(e.xreplace(same) for e in equations), root**degree - base]
        further = (*(c.xreplace(same) for c in facts), sp.Ge(root, 0, evaluate=False))
        named = {**known, root: base ** sp.Rational(1, degree)}
        yield from _taken_apart(put_in, [*letters, root], further, named, calls + 1)
        return
    argument = inner[0].args[0]
    for piece, side in zip(_pieces(inner[0]) or (), (sp.Le, sp.Ge), strict=True):
        value = {inner[0]: piece * argument}
        further = (*(c.xreplace(value) for c in facts), side(argument, 0, evaluate=False))
        yield from _taken_apart([e.xreplace(value) for e in equations], letters, further, known, calls + 1)


def _pieces(call: sp.Expr) -> tuple[int, int] | None:
    record = record_of(call)
    return None if record is None else record.pieces


class _Search:
    """The tree of cases: remaining equations, conditions on coefficients and unknowns, and values so far."""

    def __init__(
        self, letters: list[sp.Symbol], domain: Domain, constants: Values, roots: Values, result: Solutions
    ) -> None:
        self.letters, self.domain, self.constants, self.roots, self.result = letters, domain, constants, roots, result
        self.cases = 0

    def split(self, equations: Sequence[sp.Expr], facts: Facts, values: Values) -> None:
        """Try all choices of one factor per equation; a factor without unknowns is a condition on the coefficients."""
        self.cases += 1
        if self.cases > MAX_CASES:
            self.result.is_complete = False
            return
        factored = []
        for equation in equations:
            top = reduced(Domain(facts), sp.expand(sp.fraction(sp.together(equation))[0]))
            if sp.expand(top) == 0:
                continue
            bases = [base for base, _ in polynomials.factors(top) if not _is_nonzero(base, facts)]
            if not bases:
                return
            factored.append(bases)
        for choice in itertools.product(*factored):
            rest = [base for base in dict.fromkeys(choice) if base.has(*self.letters)]
            zero = [sp.Eq(base, 0, evaluate=False) for base in dict.fromkeys(choice) if base not in rest]
            if not zero:
                self.step(rest, facts, values)
            elif not self.is_empty((*facts, *zero)):
                self.split(rest, (*facts, *zero), values)

    def is_empty(self, facts: Facts) -> bool:
        return self.domain.where(*(c.xreplace(self.constants) for c in facts)).is_empty()

    def step(self, equations: Sequence[sp.Expr], facts: Facts, values: Values) -> None:
        """Solve one equation for one unknown, and substitute it in the others."""
        if not equations:
            self.leaf(facts, values)
            return
        simplest = _simplest(equations, self.letters)
        if simplest is None:
            zero = [sp.Eq(e, 0, evaluate=False) for e in equations]
            self.result.is_complete = self.result.is_complete and self.is_empty((*facts, *zero))
            return
        equation, letter, polynomial = simplest
        others = [e for e in equations if e is not equation]
        lead = polynomial.LC()
        apart = _nonzero(lead, facts)
        for value, further in _roots(polynomial):
            self.put(letter, value, others, (*facts, *apart, *further), values)
        if apart:
            tail = sp.expand(polynomial.as_expr() - lead * letter ** polynomial.degree())
            self.split([*others, lead, tail], facts, values)

    def put(self, letter: sp.Symbol, value: sp.Expr, others: list[sp.Expr], facts: Facts, values: Values) -> None:
        """Continue with the value of an unknown substituted everywhere."""
        put_in = {letter: value}
        conditions: Facts = ()
        for fact in facts:
            if not fact.has(letter):
                conditions = (*conditions, fact)
            elif not isinstance(fact, sp.Ne):
                conditions = (*conditions, fact.xreplace(put_in))
            else:
                top = sp.expand(sp.fraction(sp.together(fact.lhs.xreplace(put_in)))[0])
                if top == 0:
                    return
                conditions = (*conditions, *_nonzero(top, conditions))
        known = {x: _tidy(v.xreplace(put_in)) for x, v in values.items()}
        self.split([e.xreplace(put_in) for e in others], conditions, {**known, letter: value})

    def leaf(self, facts: Facts, values: Values) -> None:
        """Record a solution; where the symbol of a root is free, so is its radicand."""
        free = {root: value for root, value in self.roots.items() if root not in values}
        named = {x: sp.expand(v.xreplace(free)) if v.has(*free) else v for x, v in values.items()}
        solved = {x: v.xreplace(self.constants) for x, v in named.items() if x not in self.roots and v != x}
        conditions = [c.xreplace(free).xreplace(self.constants) for c in facts]
        if any(v.has(x) or v.has(*self.roots) for x, v in solved.items()):
            self.result.is_complete = False
            return
        self.result.solutions.append(Solution(solved, tuple(dict.fromkeys(c for c in conditions if c != sp.true))))


def _is_nonzero(base: sp.Expr, facts: Facts) -> bool:
    return bool(base.is_nonzero) or any(isinstance(c, sp.Ne) and c.lhs in (base, -base) for c in facts)


def _nonzero(expression: sp.Expr, facts: Facts) -> Facts:
    """The conditions that an expression is not zero, one for each factor that is not known to be nonzero."""
    bases = [expression]
    if expression.is_polynomial(*expression.free_symbols):
        bases = [base for base, _ in polynomials.factors(expression)]
    return tuple(sp.Ne(base, 0, evaluate=False) for base in bases if not _is_nonzero(base, facts))


def _tidy(value: sp.Expr) -> sp.Expr:
    return sp.factor(value) if value.is_rational_function() else value


def _simplest(equations: Sequence[sp.Expr], letters: Sequence[sp.Symbol]) -> tuple[sp.Expr, sp.Symbol, sp.Poly] | None:
    """The simplest equation with an unknown to solve for, as polynomial in that unknown; None where there is none."""
    best = None
    for equation in equations:
        present = [x for x in letters if equation.has(x)]
        for letter in present:
            if not equation.is_polynomial(letter):
                continue
            polynomial = sp.Poly(equation, letter)
            degree, lead = polynomial.degree(), polynomial.LC()
            alone = len(present) == 1
            numeric = not polynomial.free_symbols_in_domain and (polynomial.domain.is_ZZ or polynomial.domain.is_QQ)
            powers = [k for (k,) in polynomial.monoms()]
            even = degree % 2 == 0 and all(k % 2 == 0 for k in powers) and (degree == 4 or powers == [degree, 0])
            if degree == 1 or (alone and (degree == 2 or even or (numeric and len(equations) == 1))):
                in_letters = len(lead.free_symbols & set(letters)) > 0
                key = (degree, in_letters, sp.count_ops(equation), str(letter))
                if best is None or key < best[0]:
                    best = (key, equation, letter, polynomial)
    return None if best is None else best[1:]


def _roots(polynomial: sp.Poly) -> Iterator[tuple[sp.Expr, Facts]]:
    """The real roots where the leading coefficient is not zero, each with its conditions.

    The discriminant is s**2*d: the roots are real where d >= 0, and where s = 0 for any d.
    """
    if polynomial.degree() > 2:
        yield from _further_roots(polynomial)
        return
    if polynomial.degree() == 1:
        a, b = polynomial.all_coeffs()
        yield sp.factor(-b / a), ()
        return
    a, b, c = polynomial.all_coeffs()
    s, d = _square_part(sp.expand(b**2 - 4 * a * c))
    if d == 0:
        yield _tidy(-b / (2 * a)), ()
        return
    root = sp.sqrt(d)
    open_part, zeros = _real_where(root)
    if not open_part.is_negative:
        plain = all(x.is_polynomial(*x.free_symbols) for x in (a, b, s))
        common = sp.gcd_list([b, s, 2 * a]) if plain else sp.S.One
        middle, width, bottom = (sp.cancel(x / common) for x in (-b, s, 2 * a))
        real = () if open_part.is_nonnegative else (sp.Ge(sp.expand(open_part), 0, evaluate=False),)
        yield from (((middle + sign * width * root) / bottom, real) for sign in (1, -1))
    if not open_part.is_nonnegative:
        for base in [*zeros, *(base for base, _ in polynomials.factors(s))]:
            below = () if open_part.is_negative else (sp.Lt(sp.expand(open_part), 0, evaluate=False),)
            yield _tidy(-b / (2 * a)), (sp.Eq(base, 0, evaluate=False), *below)


def _real_where(root: sp.Expr) -> tuple[sp.Expr, list[sp.Expr]]:
    """The expression that must be >= 0 for a root to be real, and factors outside of it at whose zeros it vanishes."""
    under = [p.base for p in root.atoms(sp.Pow) if not p.exp.is_Integer and p.free_symbols]
    outermost = [x for x in under if not any(y != x and y.has(x) for y in under)]
    taken = [x for x in outermost if x.is_nonnegative]
    open_part = sp.Mul(*(x for x in outermost if not x.is_nonnegative)) if root.free_symbols else root**2
    if root.free_symbols and root.has(sp.I):  # sqrt(-a) is I*sqrt(a) where a >= 0
        open_part = -open_part
    return open_part, [x for x in taken if not x.is_positive]


def _further_roots(polynomial: sp.Poly) -> Iterator[tuple[sp.Expr, Facts]]:
    """The roots of polynomials with numbers, with two terms, or in the square of the unknown."""
    if not polynomial.free_symbols_in_domain:
        yield from ((root, ()) for root in dict.fromkeys(sp.real_roots(polynomial)))
        return
    degree = polynomial.degree()
    if len(polynomial.terms()) == 2:
        ratio = sp.factor(-polynomial.nth(0) / polynomial.LC())
        roots = [(ratio ** sp.Rational(1, degree), ())]
    else:
        square = sp.Poly({(k // 2,): c for (k,), c in polynomial.terms()}, sp.Dummy("square", real=True))
        roots = [(sp.sqrt(value), facts) for value, facts in _roots(square)]
    for root, facts in roots:
        open_part, zeros = _real_where(root)
        if not open_part.is_negative:
            real = () if open_part.is_nonnegative else (sp.Ge(open_part, 0, evaluate=False),)
            yield from ((sign * root, (*facts, *real)) for sign in (1, -1))
        yield from ((sp.S.Zero, (*facts, sp.Eq(base, 0, evaluate=False))) for base in zeros)


def _square_part(expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """(s, d) with expression = s**2*d."""
    if not expression.is_polynomial(*expression.free_symbols):
        return sp.S.One, expression
    content, factors = sp.factor_list(expression)
    number, _ = sp.sqrt(abs(content)).as_coeff_Mul()
    s = number * sp.Mul(*(base ** (times // 2) for base, times in factors))
    return s, content / number**2 * sp.Mul(*(base for base, times in factors if times % 2))


# ---------------------------------------------------------------------- real solutions
# All real solutions of polynomial equations with rational coefficients, exact and complete.
#
# The coordinates of the solutions are eigenvalues of multiplication matrices modulo a Groebner basis (Stickelberger),
# so every solution is a tuple of real roots of their characteristic polynomials. Tuples at which an equation is nonzero
# are excluded by enclosures. The signature of the trace form counts the distinct real solutions (Hermite): once exactly
# as many tuples remain, each of them is a solution.

#: Most solutions, with complex ones and multiplicities, and most tuples.
MAX_DIMENSION = 60
MAX_TUPLES = 20_000


class Continuum(Exception):
    """Raised for equations with infinitely many complex solutions."""


def real_solutions(equations: Sequence[sp.Expr], letters: Sequence[sp.Symbol]) -> list[tuple[sp.Expr, ...]]:
    """Every real solution of equations = 0, as exact numbers in the order of the unknowns.

    Raises `Continuum` where there are infinitely many complex solutions, `Undecided` beyond the limits.

    >>> x, y = sp.symbols("x y")
    >>> real_solutions([x**2 + y**2 - 2, x - y], [x, y])
    [(-1, -1), (1, 1)]
    """
    basis = sp.groebner(list(equations), *letters, order="grevlex", domain=sp.QQ)
    if basis.exprs == [1]:
        return []
    if not basis.is_zero_dimensional:
        raise Continuum
    algebra = _Quotient(basis, letters)
    roots = [_real_roots(matrix) for matrix in algebra.multiplications]
    tuples = math.prod(map(len, roots))
    if tuples > MAX_TUPLES:
        raise Undecided(f"{tuples} tuples of coordinates are more than {MAX_TUPLES}")
    count = algebra.real_count()
    candidates = list(itertools.product(*roots))
    for bits in PRECISIONS:
        candidates = [values for values in candidates if _may_vanish(equations, letters, values, bits)]
        if len(candidates) == count:
            return candidates
    raise Undecided(f"{len(candidates)} tuples of coordinates remain for {count} real solutions")


class _Quotient:
    """Polynomials modulo a Groebner basis: a vector space with the monomials that no leading monomial divides."""

    def __init__(self, basis: Any, letters: Sequence[sp.Symbol]) -> None:
        self.basis, self.letters = basis, tuple(letters)
        leading = [sp.Poly(g, *letters).monoms(order=grevlex)[0] for g in basis.exprs]
        self.monomials = _standard_monomials(leading, len(letters))
        self.index = {m: k for k, m in enumerate(self.monomials)}
        self.multiplications = [self._multiplication(i) for i in range(len(letters))]

    def _column(self, monomial: tuple[int, ...]) -> list[sp.Rational]:
        column = [sp.QQ(0)] * len(self.monomials)
        if monomial in self.index:
            column[self.index[monomial]] = sp.QQ(1)
            return column
        product = sp.Mul(*(x**k for x, k in zip(self.letters, monomial, strict=True)))
        rest = sp.Poly(self.basis.reduce(product)[1], *self.letters, domain=sp.QQ)
        for powers, c in rest.terms():
            if c != 0:
                column[self.index[powers]] = sp.QQ.from_sympy(c)
        return column

    def _multiplication(self, i: int) -> DomainMatrix:
        raised = [tuple(k + (j == i) for j, k in enumerate(m)) for m in self.monomials]
        size = len(self.monomials)
        return DomainMatrix([self._column(m) for m in raised], (size, size), sp.QQ).transpose()

    def real_count(self) -> int:
        """The number of distinct real solutions: the signature of (p, q) -> trace of the multiplication by p*q."""
        size = len(self.monomials)
        powers = [self._matrix(m) for m in self.monomials]
        traces = [sum((m.to_Matrix()[k, k] for k in range(size)), sp.S.Zero) for m in powers]
        form = sp.zeros(size)
        for i in range(size):
            for j in range(i, size):
                product = powers[i] * DomainMatrix([[sp.QQ(k == j)] for k in range(size)], (size, 1), sp.QQ)
                column = product.to_Matrix()
                form[i, j] = form[j, i] = sum(column[k] * traces[k] for k in range(size))
        signs = DomainMatrix.from_Matrix(form).convert_to(sp.QQ).charpoly()
        return _sign_changes(signs) - _sign_changes([c * (-1) ** k for k, c in enumerate(signs)])

    def _matrix(self, monomial: tuple[int, ...]) -> DomainMatrix:
        result = DomainMatrix.eye(len(self.monomials), sp.QQ)
        for matrix, times in zip(self.multiplications, monomial, strict=True):
            for _ in range(times):
                result = result * matrix
        return result


def _standard_monomials(leading: Sequence[tuple[int, ...]], count: int) -> list[tuple[int, ...]]:
    bounds = [min(m[i] for m in leading if sum(m) == m[i]) for i in range(count)]
    if math.prod(bounds) > 50 * MAX_DIMENSION:
        raise Undecided(f"the equations have up to {math.prod(bounds)} solutions")
    monomials = [
        m for m in itertools.product(*map(range, bounds))
        if not any(all(a >= b for a, b in zip(m, lead, strict=True)) for lead in leading)
    ]  # fmt: skip
    if len(monomials) > MAX_DIMENSION:
        raise Undecided(f"the equations have {len(monomials)} complex solutions, more than {MAX_DIMENSION}")
    return monomials


def _sign_changes(coefficients: Sequence[Any]) -> int:
    """The sign changes of the coefficients: for a polynomial with only real roots, the number of positive ones."""
    signs = [c > 0 for c in coefficients if c != 0]
    return sum(a != b for a, b in itertools.pairwise(signs))


def _real_roots(matrix: DomainMatrix) -> list[sp.Expr]:
    x = sp.Dummy("x")
    return real_roots(sp.Poly(matrix.charpoly(), x, domain=sp.QQ).as_expr(), x, -sp.oo, sp.oo)


def _may_vanish(
    equations: Sequence[sp.Expr], letters: Sequence[sp.Symbol], values: Sequence[sp.Expr], bits: int
) -> bool:
    given = {x: enclose(value, bits) for x, value in zip(letters, values, strict=True)}
    with precision(bits):
        return all(enclose_at(sp.expand(f), given).contains(0) for f in equations)
