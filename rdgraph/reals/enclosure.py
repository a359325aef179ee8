"""Enclosures of real numbers by ball arithmetic (arb): what a formula is worth, with a bound on every rounding.

An enclosure is a ball that contains the value. It proves a sign where it does not touch zero; where it does, more
digits are asked for, up to a limit.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from types import MappingProxyType
from typing import Any

import sympy as sp
from flint import arb, ctx, fmpq

from rdgraph.errors import Undecided
from rdgraph.vocabulary.functions import record_of

#: Bits tried one after the other until a value is separated from zero.
PRECISIONS = (64, 256, 1024)


class NotEnclosed(Undecided):
    """An expression that has no enclosure: an unknown function, or a value that is not a finite real number."""


def sign_of(expression: sp.Expr, point: Mapping[sp.Basic, sp.Expr] | None = None) -> int | None:
    """Sign of a number, or of an expression at a point, proved; None if it is undecided or undefined.

    Rational values are compared exactly; of others only those that differ from zero have a sign here.

    >>> sign_of(sp.exp(1) - sp.Rational(27, 10)), sign_of(sp.sqrt(2) - 2), sign_of(sp.sqrt(-sp.S(1)))
    (1, -1, None)
    """
    value = expression.xreplace(dict(point)) if point else expression
    if value.is_Rational:
        return int(sp.sign(value))
    for bits in PRECISIONS:
        try:
            ball = enclose(value, bits)
        except NotEnclosed:
            return None
        if ball > 0:
            return 1
        if ball < 0:
            return -1
        if ball == 0:
            return 0
    return None


def bounds(number: sp.Expr, bits: int = 128) -> tuple[sp.Rational, sp.Rational]:
    """Rational numbers below and above a real number."""
    with precision(bits):
        ball = _finite(number)
        return _rational(ball.lower()), _rational(ball.upper())


def enclose(expression: sp.Expr, bits: int = 64) -> Any:
    """A ball of arb that contains the value of a number."""
    with precision(bits):
        return _finite(expression)


def enclose_function(formula: sp.Expr, letter: sp.Symbol, argument: Any) -> Any:
    """A ball that contains the values of a formula over a ball, or at a rational of flint, with the bits in force."""
    return _ball(formula, {letter: arb(argument)})


def enclose_at(formula: sp.Expr, given: Mapping[sp.Basic, Any]) -> Any:
    """A ball that contains the values of a formula at the given balls of its symbols, at the current precision."""
    return _ball(formula, given)


def make_enclosure(formula: sp.Expr, letter: sp.Symbol) -> Callable[[Any], Any]:
    """A function from a ball of the letter to a ball with the values of a formula, for many balls.

    Parts that occur several times are enclosed once; it raises NotEnclosed as `enclose_at` does.

    >>> x = sp.Symbol("x", real=True)
    >>> with precision(64):
    ...     bool(make_enclosure(sp.exp(x) + 1, x)(enclose(sp.S.One)) > 3)
    True
    """
    steps: list[Callable[[list[Any]], Any]] = []
    places: dict[sp.Expr, int] = {letter: 0}

    def place_of(part: sp.Expr) -> int:
        if part not in places:
            steps.append(_step_of(part, letter, place_of))
            places[part] = len(steps)
        return places[part]

    end = place_of(formula)

    def enclosed(ball: Any) -> Any:
        values = [ball]
        for step in steps:
            values.append(step(values))
        return values[end]

    return enclosed


def _step_of(part: sp.Expr, letter: sp.Symbol, place_of: Callable[[sp.Expr], int]) -> Callable[[list[Any]], Any]:
    """One part of a formula as a function of the values of those before it."""
    if not part.has(letter):
        return lambda values: _ball(part)
    match part:
        case sp.Add() | sp.Mul():
            inner = [place_of(a) for a in part.args]
            join = operator.add if isinstance(part, sp.Add) else operator.mul
            return lambda values: reduce(join, [values[i] for i in inner])
        case sp.Pow() if not part.exp.has(letter):
            base = place_of(part.base)
            return lambda values: _power(values[base], part.exp, {})
    record = record_of(part)
    function = _functions().get(part.func) if record is None else record.ball
    if function is None or len(part.args) != 1:
        return lambda values: _ball(part, {letter: values[0]})
    argument, enclose_call = place_of(part.args[0]), function
    return lambda values: enclose_call(values[argument])


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with `bits` bits of precision in the block."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def _finite(expression: sp.Expr) -> Any:
    ball = _ball(expression)
    if not ball.is_finite():
        raise NotEnclosed(f"{expression} is not a finite real number, as far as these digits tell")
    return ball


def _rational(ball: Any) -> sp.Rational:
    mantissa, exponent = ball.mid().man_exp()
    return sp.Rational(int(mantissa)) * sp.Integer(2) ** int(exponent)


def _ball(expression: sp.Expr, given: Mapping[sp.Basic, Any] = MappingProxyType({})) -> Any:
    """The ball of an expression at the given balls of its symbols."""
    if expression in given:
        return given[expression]

    match expression:
        case sp.Rational():
            return arb(fmpq(int(expression.p), int(expression.q)))
        case sp.Float():
            return _ball(sp.Rational(expression))
        case sp.Add():
            total = arb(0)
            for part in expression.args:
                total += _ball(part, given)
            return total
        case sp.Mul():
            product = arb(1)
            for part in expression.args:
                product *= _ball(part, given)
            return product
        case sp.Pow():
            return _power(_ball(expression.base, given), expression.exp, given)
        case sp.Piecewise():
            return _branch(expression)
        case sp.CRootOf():
            return _algebraic(expression)
        case sp.Max() | sp.Min():
            choose = arb.max if isinstance(expression, sp.Max) else arb.min
            value = _ball(expression.args[0], given)
            for part in expression.args[1:]:
                value = choose(value, _ball(part, given))
            return value
    constant = _constants().get(expression)
    if constant is not None:
        return constant()
    record = record_of(expression)
    function = _functions().get(expression.func) if record is None else record.ball
    if function is None or len(expression.args) != 1:
        raise NotEnclosed(f"no enclosure for {expression}")
    return function(_ball(expression.args[0], given))


def _algebraic(root: sp.CRootOf) -> Any:
    """A real root of a polynomial, to as many digits as are in force."""
    if not root.is_real:
        raise NotEnclosed(f"{root} is not real")
    width = sp.Rational(1, 2 ** int(ctx.prec))
    return arb(_ball(root.eval_rational(width, width)), _ball(width))


def _power(base: Any, exponent: sp.Expr, given: Mapping[sp.Basic, Any]) -> Any:
    if exponent.is_Integer:
        return _integer_power(base, int(exponent))
    if exponent == sp.S.Half:
        return base.sqrt()
    if exponent == -sp.S.Half:
        return base.rsqrt()
    if not base > 0:
        raise NotEnclosed("a power with a base that may be zero or negative")
    return (_ball(exponent, given) * base.log()).exp()


def _integer_power(base: Any, exponent: int) -> Any:
    """A whole power; over balls that hold zero from their ends, where arb's own is wide or undefined."""
    if exponent < 0:
        return 1 / _integer_power(base, -exponent)
    if exponent == 0 or base == 0 or not base.contains(0) or not base.is_finite():
        return base**exponent
    ends = [end if end == 0 else end**exponent for end in (base.lower(), base.upper())]
    return ends[0].union(ends[1]) if exponent % 2 else arb(0).union(ends[0]).union(ends[1])


def _branch(pieces: sp.Piecewise) -> Any:
    """The first branch whose condition is proved to hold, all before it being refuted."""
    for value, condition in pieces.args:
        applies = holds(condition)
        if applies is None:
            raise NotEnclosed(f"cannot tell whether {condition} holds")
        if applies:
            return _ball(value)
    raise NotEnclosed("no branch applies")


def holds(
    condition: sp.Basic, point: Mapping[sp.Basic, sp.Expr] | None = None, *, to_the_last_digit: bool = True
) -> bool | None:
    """Whether a condition holds at a point, proved either way; None if it is undecided or undefined.

    Equality of irrational numbers is never proved; without `to_the_last_digit`, numbers that agree at the highest
    precision count as equal.
    """
    if condition in (sp.true, sp.false):
        return bool(condition)
    match condition:
        case sp.And() | sp.Or():
            parts = [holds(part, point, to_the_last_digit=to_the_last_digit) for part in condition.args]
            decisive = isinstance(condition, sp.Or)
            if decisive in parts:
                return decisive
            return None if None in parts else not decisive
        case sp.Not():
            inner = holds(condition.args[0], point, to_the_last_digit=to_the_last_digit)
            return None if inner is None else not inner
    try:
        lhs, rhs = (side.xreplace(dict(point)) if point else side for side in (condition.lhs, condition.rhs))
    except (TypeError, ValueError):  # sympy refuses to build Max or a relation of what is not real
        return None
    sign = sign_of(lhs - rhs)
    if sign is None and not to_the_last_digit and touches_zero(lhs - rhs):
        sign = 0
    if sign is None:
        return None
    return {
        sp.Gt: sign > 0, sp.Ge: sign >= 0, sp.Lt: sign < 0, sp.Le: sign <= 0, sp.Eq: sign == 0, sp.Ne: sign != 0,
    }[type(condition)]  # fmt: skip


def touches_zero(number: sp.Expr) -> bool:
    """Whether even the finest enclosure of a number contains zero."""
    try:
        return bool(enclose(number, PRECISIONS[-1]).contains(0))
    except NotEnclosed:
        return False


def _step(ball: Any) -> Any:
    """Heaviside's function, one half at zero."""
    if ball > 0:
        return arb(1)
    if ball < 0:
        return arb(0)
    if ball == 0:
        return arb(1) / 2
    return (arb(0)).union(arb(1))


def _constants() -> dict[sp.Expr, Callable[[], Any]]:
    return {sp.pi: arb.pi, sp.E: arb.const_e}


def _functions() -> dict[Any, Callable[[Any], Any]]:
    """What formulas use beyond the functions of the language."""
    return {
        sp.log: arb.log, sp.tan: arb.tan, sp.atan: arb.atan, sp.asin: arb.asin, sp.acos: arb.acos, sp.atanh: arb.atanh,
        sp.asinh: arb.asinh, sp.sinh: arb.sinh, sp.cosh: arb.cosh, sp.erf: arb.erf, sp.LambertW: arb.lambertw,
        sp.sign: lambda x: 2 * _step(x) - 1, sp.Heaviside: _step,
    }  # fmt: skip
