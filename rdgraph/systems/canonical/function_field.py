"""Elementwise functions as rational functions of few generators, so that dependent functions become equal.

Every function of the language is written in generators exp(u), cos(u), sin(u), softplus(u), abs(p) and sqrt(p):

- tanh(x) = (exp(2x) - 1)/(exp(2x) + 1), sigmoid(x) = exp(x)/(exp(x) + 1), relu(x) = (x + abs(x))/2;
- exp(sum q_i m_i) with rational q_i is a product of powers of exp(m_i/d_i), one unit for each term m_i;
- sin and cos of sums by the addition theorems, of multiples by Chebyshev polynomials, and sin**2 = 1 - cos**2;
- softplus(-x) = softplus(x) - x and exp(softplus(x)) = 1 + exp(x);
- abs of a product factor by factor, abs(p)**2 = p**2; sqrt of what is not a square, sqrt(p)**2 = p;
- with s = abs(p)/p, which is 1 or -1: exp(s x) = cosh(x) + s sinh(x), cos(s x) = cos(x), sin(s x) = s sin(x) and
  softplus(s x) = softplus(x) - (1 - s) x/2; abs(exp(u) - exp(v)) = (exp(u) - exp(v)) abs(u - v)/(u - v).

A rewritten expression has the value of the original one wherever the original one is defined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.reals.polynomials import expanded
from rdgraph.vocabulary.functions import record_of, softplus

# ---------------------------------------------------------------------- polynomials
# Polynomials in symbols and generators: one order of symbols, terms, and a sign that Sturm's theorem decides.


def ordered(letters: Iterable[sp.Basic]) -> list[sp.Basic]:
    """The symbols in a fixed order, so that leading coefficients agree between calls.

    sympy's own order takes H and H0 for equal: which of them leads then depends on the hashes of the process.

    >>> ordered(sp.symbols("H0 beta H"))
    [H, H0, beta]
    """
    return sorted(letters, key=lambda x: (isinstance(x, sp.Dummy), x.name, getattr(x, "dummy_index", 0)))  # type: ignore[attr-defined]


def cancelled(fraction: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Numerator and denominator without common factors, the denominator's leading coefficient positive.

    >>> x, y = sp.symbols("H H0")
    >>> cancelled((y**2 - x**2) / (y - x) ** 2)
    (-H - H0, H - H0)
    """
    return sp.fraction(sp.cancel(fraction, *ordered(fraction.free_symbols)))


def common_multiple(first: sp.Expr, second: sp.Expr) -> sp.Expr:
    """The least common multiple, its leading coefficient positive."""
    return sp.expand(sp.lcm(first, second, *ordered(first.free_symbols | second.free_symbols)))


def is_positive_polynomial(p: sp.Expr) -> bool:
    """Whether a polynomial in one symbol is positive for all values of the symbol, by Sturm's theorem.

    >>> x, y = sp.Symbol("x", positive=True), sp.Symbol("y", real=True)
    >>> [is_positive_polynomial(p) for p in (x**2 - x + 1, x + 1, x - 1, y + 1, y**4 + y + 1, x**2 + y**2 + 1)]
    [True, True, False, False, True, False]
    """
    if len(p.free_symbols) != 1 or not p.is_polynomial():
        return False
    (letter,) = p.free_symbols
    polynomial = sp.Poly(p, letter)
    is_rational = all(c.is_Rational for c in polynomial.coeffs())
    return bool(
        is_rational
        and polynomial.eval(1) > 0
        and polynomial.count_roots(0 if letter.is_nonnegative else None, None) == 0
    )


def monomials(polynomial: sp.Expr) -> Iterator[tuple[sp.Rational, sp.Expr]]:
    """Coefficient and power product of every term."""
    for term in sp.Add.make_args(sp.expand(polynomial)):
        if term != 0:
            yield term.as_coeff_Mul()


# ---------------------------------------------------------------------- function field
#: Powers of a unit beyond which arguments count as not commensurable, and terms beyond which nothing is factored.
MAX_POWER = 24
MAX_ANGLE_TERMS = 4
#: Products in the cosine of a sum beyond which the addition theorems are not applied.
MAX_ANGLE_POWERS = 60
MAX_FACTORED_TERMS = 40


class FinerUnit(Exception):
    """A unit was too coarse; the rewriting is repeated with the finer one. Never leaves this package."""


@dataclass(frozen=True)
class Generator:
    """One generator function(argument); the argument is written in variables and earlier generators."""

    function: Any
    argument: sp.Expr


class FunctionField:
    """Rewrites expressions into rational functions of variables and generators.

    `is_nonnegative`: whether an expression without generators is known to be >= 0. `units`: for each term of an
    exponent or angle, the common denominator of its coefficients.
    """

    def __init__(self, is_nonnegative: Callable[[sp.Expr], bool], units: dict[sp.Expr, int]) -> None:
        self.generators: dict[sp.Dummy, Generator] = {}
        self.obstacles: list[str] = []
        self._is_nonnegative = is_nonnegative
        self._units = units
        self._used_units: set[sp.Expr] = set()
        self._dummies: dict[Generator, sp.Dummy] = {}
        self._denominators: list[sp.Expr] = []
        self._known: dict[sp.Expr, sp.Expr] = {}

    # ------------------------------------------------------------------ rewriting
    def rewrite(self, expression: sp.Expr) -> sp.Expr:
        """The expression with every function written in generators."""
        if expression not in self._known:
            self._known[expression] = self._rewritten(expression)
        return self._known[expression]

    def _rewritten(self, e: sp.Expr) -> sp.Expr:
        if e.is_Rational or e.is_Symbol:
            return e
        match e:
            case sp.Add() | sp.Mul():
                return e.func(*map(self.rewrite, e.args))
            case sp.Pow(exp=sp.Integer()):
                return self.rewrite(e.base) ** e.exp
            case sp.Pow(exp=sp.Rational(q=2)):
                return self._root(self.rewrite(e.base)) ** e.exp.p
        if e == sp.E:
            return self._exponential(sp.S.One)
        if isinstance(e, sp.Function) and len(e.args) == 1 and e.func in _RULES:
            return _RULES[e.func](self, self.rewrite(e.args[0]))
        record = record_of(e)
        written = None if record is None else record.rewriting or record.formula
        if written is not None:
            return self.rewrite(written(e.args[0]))
        self.obstacles.append(f"nothing is known about {e}")
        return self._generator(None, e)

    def resolve(self, expression: sp.Expr) -> sp.Expr:
        """Generators written out as functions again."""
        while symbols := expression.atoms(sp.Dummy) & set(self.generators):
            expression = expression.xreplace({g: self._written(self.generators[g]) for g in symbols})
        return expression

    @staticmethod
    def _written(generator: Generator) -> sp.Expr:
        return generator.argument if generator.function is None else generator.function(generator.argument)

    def _generator(self, function: Any, argument: sp.Expr) -> sp.Dummy:
        key = Generator(function, argument)
        if key not in self._dummies:
            name = str(
                self.resolve(self._written(key))
            )  # one order of generators, independent of the order in which they occur
            self._dummies[key] = sp.Dummy(name, **_SIGNS.get(function, {"real": True}))
            self.generators[self._dummies[key]] = key
        return self._dummies[key]

    # ------------------------------------------------------------------ exponentials and angles
    def _exponential(self, u: sp.Expr) -> sp.Expr:
        result = sp.S.One
        for q, term in self._terms(u):
            sign, plain = self._without_moduli(q * term)
            if sign != 1:
                power = self._exponential(plain)
                result *= (power + 1 / power) / 2 + sign * (power - 1 / power) / 2
                continue
            inner = self.generators.get(term)
            if inner is not None and inner.function is softplus:
                if q.is_Integer:
                    result *= (1 + self._exponential(inner.argument)) ** q
                    continue
                self.obstacles.append(f"roots of 1 + exp({self.resolve(inner.argument)})")
            power, unit = self._in_units(q, term)
            result *= self._generator(sp.exp, unit) ** power
        return result

    def _terms(self, u: sp.Expr) -> list[tuple[sp.Rational, sp.Expr]]:
        """u as a sum of rational multiples of terms that are linearly independent."""
        top, bottom = self.fraction(u)
        if not bottom.free_symbols:
            return list(monomials(top / bottom))
        letters = ordered(top.free_symbols | bottom.free_symbols)
        whole, rest = sp.div(sp.Poly(top, *letters, domain="QQ"), sp.Poly(bottom, *letters, domain="QQ"))
        self._denominators.append(bottom)
        return [*monomials(whole.as_expr()), *((q, m / bottom) for q, m in monomials(rest.as_expr()))]

    def _in_units(self, q: sp.Rational, term: sp.Expr) -> tuple[int, sp.Expr]:
        """q*term as a whole multiple of the unit of the term."""
        key = self.resolve(term)
        known = self._units.get(key, 1)
        finer = math.lcm(known, int(q.q))
        if abs(q) * finer > MAX_POWER or finer > MAX_POWER:
            self.obstacles.append(f"multiples of {key} too far apart to have a common unit")
            return (1 if q > 0 else -1), abs(q) * term
        if finer != known:
            self._units[key] = finer
            if key in self._used_units:
                raise FinerUnit
        self._used_units.add(key)
        return int(q * finer), term / finer

    def _angle(self, u: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
        """Cosine and sine of u by the addition theorems."""
        terms = self._terms(u)
        if len(terms) > MAX_ANGLE_TERMS or (len(terms) > 1 and self._powers(terms) > MAX_ANGLE_POWERS):
            self.obstacles.append(f"an angle of {len(terms)} terms")
            sign, whole = self._oriented(u)
            return self._generator(sp.cos, whole), sign * self._generator(sp.sin, whole)
        cosine, sine = sp.S.One, sp.S.Zero
        for q, term in terms:
            c, s = self._turned(q, term)
            cosine, sine = sp.expand(cosine * c - sine * s), sp.expand(sine * c + cosine * s)
        return cosine, sine

    def _powers(self, terms: list[tuple[sp.Rational, sp.Expr]]) -> int:
        """Bound on the number of products in the cosine of a sum of terms, by the addition theorems."""
        units = [math.lcm(self._units.get(self.resolve(term), 1), int(q.q)) for q, term in terms]
        return math.prod(1 + int(abs(q) * unit) for (q, _), unit in zip(terms, units, strict=True))

    def _turned(self, q: sp.Rational, term: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
        """Cosine and sine of q*term by those of the unit of the term."""
        sign, plain = self._without_moduli(q * term)
        if sign != 1:
            cosine, sine = self._angle(plain)
            return cosine, sign * sine
        power, unit = self._in_units(q, term)
        c, s = self._generator(sp.cos, unit), self._generator(sp.sin, unit)
        turns = abs(power)
        return sp.chebyshevt(turns, c), (1 if power > 0 else -1) * s * sp.chebyshevu(turns - 1, c)

    def _softplus(self, u: sp.Expr) -> sp.Expr:
        parts = [self._without_moduli(q * term) for q, term in self._terms(u)]
        if len(signs := {sign for sign, _ in parts}) == 1 and signs != {1}:
            sign, plain = signs.pop(), sp.Add(*(x for _, x in parts))
            return self._softplus(plain) - (1 - sign) * plain / 2
        sign, oriented = self._oriented(u)
        return self._generator(softplus, oriented) + (0 if sign > 0 else -oriented)

    def _oriented(self, u: sp.Expr) -> tuple[int, sp.Expr]:
        """A sign and the one of u, -u whose leading coefficient is positive."""
        top, bottom = self.fraction(u)
        letters = ordered(top.free_symbols)
        leading = (sp.Poly(top, *letters).LC() if letters else top) / (1 if bottom.free_symbols else bottom)
        return (-1, -top / bottom) if leading < 0 else (1, top / bottom)

    # ------------------------------------------------------------------ absolute values and roots
    def _without_moduli(self, product: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
        """A product of generators as s*x: s the signs abs(p)/p of its absolute values, x with p in their places."""
        moduli = [g for g in self.generators if g in product.free_symbols and self.generators[g].function is sp.Abs]
        inside = {g: self.generators[g].argument for g in moduli}
        return sp.Mul(*(g / p for g, p in inside.items())), product.xreplace(inside)

    def _absolute(self, u: sp.Expr) -> sp.Expr:
        content, factors = self._factored(*self.fraction(u))
        result = abs(content)
        for p, e in factors:
            result *= p**e if e % 2 == 0 else p ** (e - 1) * self._modulus(p)
        return result

    def _modulus(self, p: sp.Expr) -> sp.Expr:
        if self._known_nonnegative(p):
            return p
        if self._known_nonnegative(-p):
            return -p
        gap = self._gap(p)
        return self._generator(sp.Abs, p) if gap is None else p * self._absolute(gap) / gap

    def _gap(self, p: sp.Expr) -> sp.Expr | None:
        """u - v where p is exp(u) - exp(v), which has its sign; None for others."""
        terms = [term.as_coeff_Mul() for term in sp.Add.make_args(p)]
        if sorted(c for c, _ in terms) != [-1, 1]:
            return None
        gap = sp.S.Zero
        for c, product in terms:
            for g, power in product.as_powers_dict().items():
                if g != 1 and (g not in self.generators or self.generators[g].function is not sp.exp):
                    return None
                gap += c * power * (0 if g == 1 else self.generators[g].argument)
        return gap

    def _root(self, u: sp.Expr) -> sp.Expr:
        """sqrt(u), for u >= 0: squares taken out, factors of known sign apart."""
        top, bottom = self.fraction(u)
        content, factors = self._factored(sp.expand(top * bottom), sp.S.One)
        result = 1 / self._absolute(bottom)
        number, rest = sp.Abs(content), sp.S.One if content > 0 else sp.S.NegativeOne
        for prime, e in sp.factorint(number.p * number.q).items():
            result *= sp.Integer(prime) ** (e // 2) * (self._generator(sp.sqrt, sp.Integer(prime)) if e % 2 else 1)
        result /= number.q
        for p, e in factors:
            half = e // 2
            result *= p**half if half % 2 == 0 else p ** (half - 1) * self._modulus(p)
            if e % 2 and self._known_nonnegative(p):
                result *= self._generator(sp.sqrt, p)
            elif e % 2 and self._known_nonnegative(-p):
                result, rest = result * self._generator(sp.sqrt, -p), -rest
            elif e % 2:
                rest *= p
        return result if rest == 1 else result * self._generator(sp.sqrt, sp.expand(rest))

    def _factored(self, top: sp.Expr, bottom: sp.Expr) -> tuple[sp.Rational, list[tuple[sp.Expr, int]]]:
        """Number and irreducible factors of top/bottom, each with a positive leading coefficient."""
        if top == 0:
            return sp.S.Zero, []
        content, powers = sp.S.One, []
        for part, sign in ((top, 1), (bottom, -1)):
            letters = ordered(part.free_symbols)
            if not letters:
                content *= part**sign
                continue
            whole = sp.Poly(part, *letters)
            if len(whole.terms()) > MAX_FACTORED_TERMS:
                number, factors = whole.LC(), [(whole.quo_ground(whole.LC()), 1)]
            else:
                number, factors = whole.factor_list()
            content *= number**sign
            powers += [(p.as_expr(), sign * e) for p, e in factors]
        return content, powers

    def _known_nonnegative(self, p: sp.Expr) -> bool:
        return bool(p.is_nonnegative) or is_positive_polynomial(p) or self._is_nonnegative(self.resolve(p))

    # ------------------------------------------------------------------ one form for equal fractions
    def fraction(self, expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
        """Numerator and denominator: polynomials, at most linear in every sine, absolute value and root."""
        top, bottom = (self._reduced(part) for part in sp.fraction(sp.together(expression)))
        if bottom == 0:
            raise NotApplicable(f"{self.resolve(expression)} is not defined anywhere: its denominator vanishes")
        for g in reversed([g for g in self.generators if g in bottom.free_symbols and self._is_algebraic(g)]):
            conjugate = bottom.xreplace({g: -g})
            norm = self._reduced(bottom * conjugate)
            if norm != 0:
                top, bottom = self._reduced(top * conjugate), norm
        top, bottom = cancelled(top / bottom) if bottom.free_symbols else (top / bottom, sp.S.One)
        return expanded(top), expanded(bottom)

    def _is_algebraic(self, g: sp.Dummy) -> bool:
        return self.generators[g].function in (sp.sin, sp.Abs, sp.sqrt)

    def _reduced(self, expression: sp.Expr) -> sp.Expr:
        """sin**2 = 1 - cos**2, abs(p)**2 = p**2, sqrt(p)**2 = p, one root of unknown sign in a term."""
        while True:
            expression = expanded(expression)
            algebraic = [g for g in self.generators if g in expression.free_symbols and self._is_algebraic(g)]
            if not algebraic:
                return expression
            terms = sp.Poly(expression, *algebraic).terms()
            if all(max(powers) <= 1 and len(self._open_roots(algebraic, powers)) <= 1 for powers, _ in terms):
                return expression
            expression = sp.Add(*(c * self._reduced_term(algebraic, powers) for powers, c in terms))

    def _reduced_term(self, algebraic: list[sp.Dummy], powers: tuple[int, ...]) -> sp.Expr:
        result = sp.S.One
        for g, power in zip(algebraic, powers, strict=True):
            result *= self._square(g) ** (power // 2) * (g if power % 2 else 1)
        roots = self._open_roots(algebraic, tuple(power % 2 for power in powers))
        if len(roots) > 1:
            merged = self._root(sp.Mul(*(self.generators[g].argument for g in roots)))
            result = result.xreplace(dict.fromkeys(roots, sp.S.One)) * merged
        return result

    def _open_roots(self, algebraic: list[sp.Dummy], powers: tuple[int, ...]) -> list[sp.Dummy]:
        """Roots of expressions whose sign is not known: only their products have one form."""
        return [
            g
            for g, power in zip(algebraic, powers, strict=True)
            if power
            and self.generators[g].function is sp.sqrt
            and not self._known_nonnegative(self.generators[g].argument)
        ]

    def _square(self, g: sp.Dummy) -> sp.Expr:
        generator = self.generators[g]
        if generator.function is sp.sin:
            return 1 - self._generator(sp.cos, generator.argument) ** 2
        return generator.argument ** (2 if generator.function is sp.Abs else 1)

    # ------------------------------------------------------------------ independence
    def obstacle(self) -> str:
        """Why the generators cannot be claimed independent; empty where they are.

        Exponentials and angles of terms that are linearly independent over the rationals modulo constants, and
        logarithms of multiplicatively independent expressions, are algebraically independent (the structure theorem
        for elementary functions, after Ax and Risch; for constants the theorem of Lindemann and Weierstrass). Square
        roots of distinct square-free polynomials are linearly independent over the rational functions. Absolute values
        are not checked here: they are independent where every pattern of signs occurs.
        """
        if self.obstacles:
            return self.obstacles[0]
        for check in (self._constants, self._nested_roots, self._shared_poles, self._logarithms):
            if reason := check():
                return reason
        return ""

    def _constants(self) -> str:
        for g, generator in self.generators.items():
            constant = not self.resolve(generator.argument).free_symbols
            if constant and (
                generator.function is softplus or generator.argument.atoms(sp.Dummy) & set(self.generators)
            ):
                return f"the constant {self.resolve(g)}"
        return ""

    def _nested_roots(self) -> str:
        for g, generator in self.generators.items():
            inner = generator.argument.atoms(sp.Dummy) & set(self.generators)
            angular = any(self.generators[x].function is sp.cos for x in inner)
            if generator.function in (sp.Abs, sp.sqrt) and (angular or any(map(self._is_algebraic, inner))):
                return f"roots or absolute values inside {self.resolve(g)}"
        return ""

    def _shared_poles(self) -> str:
        for a, b in combinations(dict.fromkeys(self._denominators), 2):
            if sp.gcd(a, b).free_symbols:
                return f"exponents with the denominators {self.resolve(a)} and {self.resolve(b)}"
        return ""

    def _logarithms(self) -> str:
        """softplus(u) = log(1 + exp(u)): the expressions 1 + exp(u) must be multiplicatively independent."""
        arguments = [g.argument for g in list(self.generators.values()) if g.function is softplus]
        columns: dict[sp.Expr, int] = {}
        rows = []
        for u in arguments:
            _, factors = self._factored(*self.fraction(1 + self._exponential(u)))
            rows.append({columns.setdefault(p, len(columns)): e for p, e in factors if not p.is_Symbol})
        matrix = sp.Matrix(len(rows), len(columns), lambda i, j: rows[i].get(j, 0))
        return "softplus of dependent arguments" if matrix.rank() < len(rows) else ""


_SIGNS: dict[Any, dict[str, bool]] = {
    sp.exp: {"positive": True},
    softplus: {"positive": True},
    sp.Abs: {"nonnegative": True},
    sp.sqrt: {"nonnegative": True},
}

_RULES: dict[Any, Callable[[FunctionField, sp.Expr], sp.Expr]] = {
    sp.exp: lambda field, u: field._exponential(u),
    softplus: lambda field, u: field._softplus(u),
    sp.Abs: lambda field, u: field._absolute(u),
    sp.sin: lambda field, u: field._angle(u)[1],
    sp.cos: lambda field, u: field._angle(u)[0],
}
