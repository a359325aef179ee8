"""Exact decisions about coefficient expressions: signs, maxima on intervals, cells of the coefficient space.

Three means, in this order: sympy's own assumptions and coefficient signs; reduction to one free ratio, where real root
isolation decides completely; exact sampling, which can only refute. What none of them settles is "unknown".
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp

from rdgraph.cells import Line, sample_sign
from rdgraph.errors import AssumptionError, Undecided

if TYPE_CHECKING:
    from rdgraph.system import System

#: Answers of `Domain.sign`: positive, nonnegative, zero, nonpositive, negative, takes both signs, unknown.
POSITIVE, NONNEGATIVE, ZERO, NONPOSITIVE, NEGATIVE, BOTH, UNKNOWN = "+", "0+", "0", "0-", "-", "+-", "?"
_OPPOSITE = {"+": "-", "0+": "0-", "0": "0", "0-": "0+", "-": "+", "+-": "+-", "?": "?"}


@dataclass(frozen=True)
class Domain:
    """The admissible coefficient values: signs live in the symbols, further constraints are expressions > 0 or >= 0."""

    constraints: tuple[tuple[sp.Expr, bool], ...] = field(default=())

    @classmethod
    def of(cls, system: System) -> Domain:
        """Domain of a system's coefficients under its assumptions."""
        constraints = []
        for relation in system.assumptions.relations:
            gap = system.algebra.normal(relation.upper) - system.algebra.normal(relation.lower)
            constraints.append((sp.expand(gap), relation.strict))
        return cls(tuple(constraints))

    def given(self, *nonnegative: sp.Expr) -> Domain:
        """The part of the domain where the expressions are >= 0."""
        return Domain(self.constraints + tuple((self.cleared(e), False) for e in nonnegative))

    def cleared(self, expression: sp.Expr) -> sp.Expr:
        """A polynomial with the sign of a fraction."""
        top, bottom = sp.fraction(sp.together(expression))
        sign = self.sign(bottom)
        return sp.expand(top if sign == POSITIVE else -top if sign == NEGATIVE else top * bottom)

    # ------------------------------------------------------------------ signs
    def sign(self, expression: sp.Expr) -> str:
        """The sign of an expression on the whole domain.

        >>> a, b = sp.symbols("a b", positive=True)
        >>> Domain().sign(a**2 + b), Domain().sign(a - b), Domain(((a - b, True),)).sign(a**2 - b**2)
        ('+', '+-', '+')
        """
        return _sign(self, sp.sympify(expression))

    def check(self) -> None:
        """Refuse assumptions that leave no value for a letter."""
        for letter in {x for constraint, _ in self.constraints for x in constraint.free_symbols}:
            self._bounded(letter, sp.S.One)

    def _decide_sign(self, expression: sp.Expr) -> str:
        self.check()
        if expression in (sp.oo, sp.zoo):
            return POSITIVE
        if expression == -sp.oo:
            return NEGATIVE
        rational = expression.is_rational_function()
        top, bottom = sp.fraction(sp.cancel(expression) if rational else sp.together(expression))
        below = self._sign_of(bottom) if bottom != 1 else POSITIVE
        if below not in (POSITIVE, NEGATIVE):
            return self._by_sampling(expression)
        above = self._sign_of(top)
        return above if below == POSITIVE else _OPPOSITE[above]

    def _sign_of(self, expression: sp.Expr) -> str:
        direct = _assumed_sign(expression) or self._by_coefficients(expression)
        if direct:
            return direct
        try:
            line = self.line([expression])
            if line is not None:
                return self._on_line(line, expression)
            if not self.constraints and (form := self._as_real_form(expression)):
                return form
        except Undecided:
            pass
        return self._by_sampling(expression)

    def _as_real_form(self, expression: sp.Expr) -> str | None:
        """A form in two letters of any sign: odd ones take both signs, even ones are decided on y = 1 and at (1, 0)."""
        letters = sorted(expression.free_symbols, key=str)
        if len(letters) != 2 or not expression.is_polynomial(*letters) or degree(expression, letters) is None:
            return None
        if any(x.is_nonnegative or x.is_nonpositive for x in letters):
            return None
        if sp.Poly(expression, *letters).total_degree() % 2:
            return BOTH
        x, y = letters
        ratio = sp.Dummy("r", real=True)
        line = Line(ratio, x, sp.S.One, -sp.oo, sp.oo, True, True)
        flat = expression.subs({x: ratio, y: 1})
        values = [flat.subs(ratio, cell.sample) for cell in line.cells([flat])]
        return self._summary([*values, expression.subs({x: 1, y: 0}), sp.S.Zero])

    def is_nonnegative(self, expression: sp.Expr) -> bool:
        return self.sign(expression) in (POSITIVE, NONNEGATIVE, ZERO)

    def _by_coefficients(self, expression: sp.Expr) -> str | None:
        """Signs of polynomial coefficients, also after writing a constrained letter as the other side plus a slack."""
        if not expression.is_polynomial(*expression.free_symbols):
            return None
        for trial in self._slackened(expression):
            symbols = sorted(trial.free_symbols, key=str)
            if not all(x.is_nonnegative or x.is_nonpositive for x in symbols):
                continue
            flips = {x: -sp.Dummy(x.name, nonnegative=True, zero=x.is_zero) if x.is_nonpositive else x for x in symbols}
            flipped = sp.expand(trial.xreplace(flips))
            if not symbols:
                found = _assumed_sign(flipped)
                if found:
                    return found
                continue
            if not flipped.is_polynomial(*flipped.free_symbols):
                continue
            terms = sp.Add.make_args(flipped)
            signs = {bool(t.as_coeff_Mul()[0] > 0) for t in terms}
            if len(signs) == 1:
                strict = any(
                    all(not x.is_zero and (x.is_positive or x.name in _strict(symbols)) for x in t.free_symbols)
                    for t in terms
                )
                return (
                    (POSITIVE if strict else NONNEGATIVE) if signs == {True} else (NEGATIVE if strict else NONPOSITIVE)
                )
        return None

    def _slackened(self, expression: sp.Expr) -> Iterable[sp.Expr]:
        yield expression
        for chosen in range(1, min(len(self.constraints), 3) + 1):
            for subset in itertools.permutations(self.constraints, chosen):
                options = [_solvable(constraint) for constraint, _ in subset]
                for letters in itertools.product(*options):
                    trial = expression
                    ok = True
                    for (constraint, strict), letter in zip(subset, letters, strict=True):
                        slope = constraint.coeff(letter)
                        slack = sp.Dummy("slack", positive=True) if strict else sp.Dummy("slack", nonnegative=True)
                        rest = sp.expand(constraint - slope * letter)
                        if not (slope.is_positive or slope.is_negative):
                            ok = False
                            break
                        trial = sp.expand(trial.subs(letter, (slack - rest) / slope))
                    if ok:
                        yield sp.numer(sp.together(trial)) if trial.is_polynomial() else trial

    def _on_line(self, line: Line, expression: sp.Expr) -> str:
        reduced = line.reduce(expression)
        return self._summary(reduced.subs(line.ratio, cell.sample) for cell in line.cells([reduced]))

    @staticmethod
    def _summary(values: Iterable[sp.Expr]) -> str:
        """One answer from values on all cells; places where the expression is undefined do not count."""
        found = {sign for sign in map(sample_sign, values) if sign is not None}
        return {
            frozenset({1}): POSITIVE, frozenset({-1}): NEGATIVE, frozenset({0}): ZERO,
            frozenset({0, 1}): NONNEGATIVE, frozenset({0, -1}): NONPOSITIVE,
        }.get(frozenset(found), BOTH)  # fmt: skip

    def _by_sampling(self, expression: sp.Expr, tries: int = 200) -> str:
        """Points of the domain can show that both signs occur; they prove nothing else.

        Floating point proposes, exact evaluation confirms.
        """
        letters = sorted(expression.free_symbols, key=str)
        value_at = _make_float(letters, expression)
        confirmed: set[int] = set()
        for point in self.points(letters, tries):
            value = value_at(point)
            if value is None or abs(value) < 1e-9 or (1 if value > 0 else -1) in confirmed:
                continue
            exact = expression.subs(point)
            if (sign := sample_sign(exact)) is not None:
                confirmed.add(sign)
            if {1, -1} <= confirmed:
                return BOTH
        return UNKNOWN

    def points(self, symbols: Iterable[sp.Basic], count: int, seed: int = 0) -> Iterable[dict[sp.Basic, sp.Expr]]:
        """Rational points inside the domain, spread over several orders of magnitude."""
        extra = {x for constraint, _ in self.constraints for x in constraint.free_symbols}
        letters = sorted(set(symbols) | extra, key=str)
        gaps = [_make_float(letters, constraint) for constraint, _ in self.constraints]
        generator = random.Random(seed)
        for _ in range(count):
            point = {}
            for x in letters:
                size = sp.Rational(generator.randint(1, 40), generator.choice((1, 2, 4, 10, 40)))
                negative = x.is_nonpositive or (not x.is_nonnegative and generator.random() < 0.5)  # type: ignore[attr-defined]
                point[x] = -size if negative else size
            if all((gap(point) or 0.0) > 1e-12 for gap in gaps):
                yield point

    # ------------------------------------------------------------------ one free ratio
    def line(self, expressions: Sequence[sp.Expr]) -> Line | None:
        """The one-parameter reduction of a family of expressions, where there is one."""
        symbols = sorted({x for e in expressions for x in e.free_symbols}, key=str)
        if len(symbols) == 1:
            return self._bounded(symbols[0], sp.S.One)
        if len(symbols) != 2 or any(degree(e, symbols) is None for e in expressions):
            return None
        base = next((x for x in symbols if x.is_positive or x.is_negative), None)
        if base is None:
            return None
        other = symbols[1] if base == symbols[0] else symbols[0]
        return self._bounded(other, base if base.is_positive else -base)

    def _bounded(self, letter: sp.Symbol, unit: sp.Expr) -> Line:
        """Range of letter/unit from signs and linear constraints between the two."""
        lower, lower_open = (sp.S.Zero, letter.is_positive is not None) if letter.is_nonnegative else (-sp.oo, True)
        upper, upper_open = (sp.S.Zero, letter.is_negative is not None) if letter.is_nonpositive else (sp.oo, True)
        ratio = sp.Dummy("r", real=True)
        for constraint, strict in self.constraints:
            flat = _along(constraint, letter, unit, ratio)
            if flat is None:
                continue
            bound = -flat.coeff(ratio, 0) / flat.coeff(ratio, 1)
            if flat.coeff(ratio, 1) > 0 and bound >= lower:
                lower, lower_open = bound, strict or (bound == lower and lower_open)
            elif flat.coeff(ratio, 1) < 0 and bound <= upper:
                upper, upper_open = bound, strict or (bound == upper and upper_open)
        if lower > upper or (lower == upper and (lower_open or upper_open)):
            raise AssumptionError(
                f"the assumptions leave no value for {letter}: expected {lower} < {letter}/{unit} < {upper}"
            )
        return Line(ratio, letter, unit, lower, upper, lower_open, upper_open)


def _make_float(letters: Sequence[sp.Basic], expression: sp.Expr) -> Callable[[dict[sp.Basic, sp.Expr]], float | None]:
    """A fast float evaluation at a point; None where it is not a finite real number."""
    function = sp.lambdify(list(letters), expression, "mpmath" if expression.has(sp.Function) else "math")

    def evaluate(point: dict[sp.Basic, sp.Expr]) -> float | None:
        try:
            value = float(function(*(float(point[x]) for x in letters)))
        except (ValueError, ZeroDivisionError, OverflowError, TypeError, NameError):
            return None
        return value if math.isfinite(value) else None

    return evaluate


@lru_cache(maxsize=20_000)
def _sign(domain: Domain, expression: sp.Expr) -> str:
    return domain._decide_sign(expression)


def _assumed_sign(expression: sp.Expr) -> str | None:
    if expression.is_zero:
        return ZERO
    if expression.is_positive:
        return POSITIVE
    if expression.is_negative:
        return NEGATIVE
    if expression.is_nonnegative:
        return NONNEGATIVE
    if expression.is_nonpositive:
        return NONPOSITIVE
    return None


def _strict(symbols: Iterable[sp.Symbol]) -> set[str]:
    """Names of letters that are strictly negative: their flipped stand-ins count as positive."""
    return {x.name for x in symbols if x.is_negative}


def _solvable(constraint: sp.Expr) -> list[sp.Symbol]:
    """Letters in which a constraint is linear with a constant slope."""
    return [
        x
        for x in sorted(constraint.free_symbols, key=str)
        if constraint.coeff(x).is_number and constraint.coeff(x) != 0
    ]


def _along(constraint: sp.Expr, letter: sp.Symbol, unit: sp.Expr, ratio: sp.Symbol) -> sp.Expr | None:
    """A linear constraint between letter and unit as one on their ratio; None where it says something else."""
    if not constraint.has(letter) or not constraint.free_symbols <= {letter} | unit.free_symbols:
        return None
    if not constraint.is_polynomial(*constraint.free_symbols) or sp.Poly(constraint).total_degree() != 1:
        return None
    if unit == 1:
        return constraint.subs(letter, ratio)
    if degree(constraint, sorted(constraint.free_symbols, key=str)) is None:
        return None
    base = next(iter(unit.free_symbols))
    return sp.expand(constraint.subs({letter: ratio * unit}).subs(base, 1 if unit == base else -1))


def degree(expression: sp.Expr, symbols: Sequence[sp.Symbol]) -> sp.Expr | None:
    """Degree of homogeneity in the symbols, read off the structure; None where there is none to be seen."""
    if not expression.free_symbols & set(symbols):
        return sp.S.Zero
    if expression.is_Symbol:
        return sp.S.One
    if isinstance(expression, sp.Pow) and expression.exp.is_Rational:
        inner = degree(expression.base, symbols)
        return None if inner is None else inner * expression.exp
    if not isinstance(expression, sp.Mul | sp.Add):
        return None
    degrees = [degree(part, symbols) for part in expression.args]
    if None in degrees:
        return None
    if isinstance(expression, sp.Mul):
        return sp.Add(*degrees)
    return degrees[0] if len(set(degrees)) == 1 else None
