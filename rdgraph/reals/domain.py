"""Exact decisions about coefficient expressions: signs and comparisons on the whole domain, and the line of a ratio.

Signs are decided by the solvers; sympy's assumptions answer the easy ones first. Where expressions depend only on one
ratio of coefficients, the line of that ratio can be cut into cells, which gives borders in closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import sympy as sp

from rdgraph.errors import AssumptionError
from rdgraph.reals.enclosure import sign_of
from rdgraph.reals.judge import Possibility, always, possible
from rdgraph.reals.polynomials import Line


class Sign(Enum):
    """What is known of the sign of an expression on a whole domain; points where it is undefined do not count."""

    POSITIVE = "+"
    NONNEGATIVE = "0+"
    ZERO = "0"
    NONPOSITIVE = "0-"
    NEGATIVE = "-"
    BOTH = "+-"
    UNKNOWN = "?"

    def __neg__(self) -> Sign:
        """The sign of the negated expression."""
        return Sign(self.value.translate(str.maketrans("+-", "-+")) if self is not Sign.BOTH else "+-")

    @property
    def is_nonnegative(self) -> bool:
        """Whether an expression of this sign is proved to be >= 0."""
        return self in (Sign.POSITIVE, Sign.NONNEGATIVE, Sign.ZERO)

    @property
    def is_nonpositive(self) -> bool:
        """Whether an expression of this sign is proved to be <= 0."""
        return self in (Sign.NEGATIVE, Sign.NONPOSITIVE, Sign.ZERO)


POSITIVE, NONNEGATIVE, ZERO = Sign.POSITIVE, Sign.NONNEGATIVE, Sign.ZERO
NONPOSITIVE, NEGATIVE, BOTH, UNKNOWN = Sign.NONPOSITIVE, Sign.NEGATIVE, Sign.BOTH, Sign.UNKNOWN


@dataclass(frozen=True)
class Domain:
    """Admissible values of coefficients: signs are assumptions of the symbols, everything else is a condition."""

    conditions: tuple[sp.Basic, ...] = ()

    def check(self) -> None:
        """Refuse assumptions that no values satisfy, naming those that contradict each other."""
        if not self.conditions or possible(*self.conditions).outcome is not Possibility.IMPOSSIBLE:
            return
        core = list(self.conditions)
        for condition in self.conditions:
            rest = [c for c in core if c is not condition]
            if possible(*rest).outcome is Possibility.IMPOSSIBLE:
                core = rest
        raise AssumptionError(
            f"the assumptions contradict each other: no values satisfy {' and '.join(map(str, core))} "
            "with the declared signs; drop one of them"
        )

    def where(self, *conditions: sp.Basic) -> Domain:
        """The part of the domain where the conditions hold."""
        return Domain(self.conditions + tuple(c for c in conditions if c != sp.true))

    def given(self, *nonnegative: sp.Expr) -> Domain:
        """The part of the domain where the expressions are >= 0."""
        return self.where(*(sp.Ge(e, 0, evaluate=False) for e in nonnegative))

    def is_empty(self) -> bool:
        """Whether the domain is proved to hold no point."""
        return possible(*self.conditions).outcome is Possibility.IMPOSSIBLE

    def proves(self, claim: sp.Basic) -> bool | None:
        """Whether a condition holds on the whole domain: proved, refuted by a point, or None."""
        return always(claim, *self.conditions)

    def point(self, *conditions: sp.Basic) -> dict[sp.Basic, sp.Expr] | None:
        """An exact point of the domain where the conditions hold, if one is found."""
        return possible(*self.conditions, *conditions).point

    # ------------------------------------------------------------------ signs
    def sign(self, expression: sp.Expr) -> Sign:
        """The sign of an expression on the whole domain.

        >>> a, b = sp.symbols("a b", positive=True)
        >>> [x.value for x in (Domain().sign(a**2 + b), Domain().sign(a - b), Domain((a > b,)).sign(a**2 - b**2))]
        ['+', '+-', '+']
        """
        expression = sp.sympify(expression)
        if expression in (sp.oo, -sp.oo):
            return POSITIVE if expression == sp.oo else NEGATIVE
        if expression.has(sp.oo, -sp.oo, sp.zoo, sp.nan):
            return UNKNOWN
        known = _number_sign(expression) if expression.is_number else _assumed_sign(expression)
        settled = known in (POSITIVE, ZERO, NEGATIVE) or (known is not None and not self.conditions)
        return known if known is not None and settled else self._judged_sign(expression)

    def _judged_sign(self, expression: sp.Expr) -> Sign:
        below = self._possible(sp.Lt(expression, 0, evaluate=False))
        above = self._possible(sp.Gt(expression, 0, evaluate=False))
        if above and below:
            return BOTH
        if below is not False and above is not False:
            return UNKNOWN
        at = self._possible(sp.Eq(expression, 0, evaluate=False))
        match below, at, above:
            case False, False, False:
                return UNKNOWN  # defined nowhere
            case False, _, False:
                return ZERO
            case False, False, _:
                return POSITIVE
            case _, False, False:
                return NEGATIVE
            case False, _, _:
                return NONNEGATIVE
        return NONPOSITIVE

    def _possible(self, condition: sp.Basic, *, thorough: bool = True) -> bool | None:
        outcome = possible(*self.conditions, condition, thorough=thorough).outcome
        return None if outcome is Possibility.UNKNOWN else outcome is Possibility.POSSIBLE

    def is_nonnegative(self, expression: sp.Expr, *, thorough: bool = True) -> bool:
        """Proved to be >= 0 on the whole domain; without much effort if not `thorough`."""
        expression = sp.sympify(expression)
        if expression.is_number or expression.has(sp.oo, -sp.oo, sp.zoo, sp.nan):
            return self.sign(expression).is_nonnegative
        if not expression.has(sp.CRootOf) and expression.is_nonnegative:
            return True
        return self._possible(sp.Lt(expression, 0, evaluate=False), thorough=thorough) is False

    def cleared(self, expression: sp.Expr) -> sp.Expr:
        """A polynomial with the sign of a fraction."""
        top, bottom = sp.fraction(sp.together(expression))
        sign = self.sign(bottom)
        return sp.expand(top if sign is POSITIVE else -top if sign is NEGATIVE else top * bottom)

    # ------------------------------------------------------------------ one free ratio
    def line(self, compared: Sequence[sp.Expr], alone: Sequence[sp.Expr] = ()) -> Line | None:
        """The one-parameter reduction of a family of expressions, where there is one.

        Expressions that are compared or added must have the same degree of homogeneity in two symbols: only then does a
        common factor cancel. Expressions of which only the sign matters may each have another degree.
        """
        symbols = sorted({x for e in [*compared, *alone] for x in e.free_symbols}, key=str)
        if len(symbols) == 1:
            return self._bounded(symbols[0], sp.S.One)
        degrees = {degree(e, symbols) for e in compared if e != 0}
        if len(symbols) != 2 or len(degrees) > 1 or None in degrees | {degree(e, symbols) for e in alone}:
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
        for condition in self.conditions:
            if not isinstance(condition, sp.Gt | sp.Ge):
                continue
            strict = isinstance(condition, sp.Gt)
            flat = _along(condition.lhs - condition.rhs, letter, unit, ratio)
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


def _number_sign(number: sp.Expr) -> Sign | None:
    """Sign of a number by enclosure; sympy is asked only where that cannot tell it from zero."""
    sign = sign_of(number)
    if sign is None:
        return ZERO if number.is_zero else None
    return (ZERO, POSITIVE, NEGATIVE)[sign]


def _assumed_sign(expression: sp.Expr) -> Sign | None:
    """The sign by sympy's rules, which would look for closed forms of the roots of polynomials, at any length."""
    if expression.has(sp.CRootOf):
        return None
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
