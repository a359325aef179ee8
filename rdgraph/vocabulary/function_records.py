"""`ElementwiseFunction`: the source, bounds, slopes and identities of an elementwise function in one record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import sympy as sp
from flint import arb, fmpq


# ---------------------------------------------------------------------- function record
class Monotone(StrEnum):
    """Monotonicity of a function; "increasing" and "decreasing" are strict."""

    INCREASING = "increasing"
    NONDECREASING = "nondecreasing"
    DECREASING = "decreasing"
    NONINCREASING = "nonincreasing"


@dataclass(frozen=True)
class Span:
    """An interval of numbers; an end is attained or only approached.

    >>> Span.of(-1, 1).magnitude, Span.of(0, sp.oo).is_bounded
    (1, False)
    """

    lower: sp.Expr
    upper: sp.Expr
    has_lower: bool = False
    has_upper: bool = False

    @classmethod
    def of(cls, lower: Any, upper: Any, *, attained: bool = False) -> Span:
        """The interval between two numbers, its finite ends attained or not."""
        ends = sp.sympify(lower), sp.sympify(upper)
        return cls(*ends, *(attained and bool(end.is_finite) for end in ends))

    @property
    def is_bounded(self) -> bool:
        return bool(self.lower.is_finite and self.upper.is_finite)

    @property
    def magnitude(self) -> sp.Expr:
        """The largest |y|; infinite if unbounded."""
        return sp.Max(sp.Abs(self.lower), sp.Abs(self.upper))

    def relations(self, y: sp.Expr) -> list[sp.Basic]:
        """The inequalities that a symbol in the interval satisfies."""
        below = (sp.Ge if self.has_lower else sp.Gt)(y, self.lower, evaluate=False)
        above = (sp.Le if self.has_upper else sp.Lt)(y, self.upper, evaluate=False)
        ends = ((self.lower, below), (self.upper, above))
        return [relation for end, relation in ends if end.is_finite]

    def __str__(self) -> str:
        return f"{'[' if self.has_lower else '('}{self.lower}, {self.upper}{']' if self.has_upper else ')'}"


REALS = Span.of(-sp.oo, sp.oo)


@dataclass(frozen=True, eq=False)
class ElementwiseFunction:
    """y = f(x), acting on every entry of a field.

    None means unknown: nothing is concluded from it.

    Attributes:
        name: its name in equations.
        sympy: from an expression x to the expression f(x).
        derivative: from x to f'(x), where f has one.
        latex: text with {} for the argument.
        numpy: on float arrays.
        torch: source text with {0} for the argument, an expression in `torch` alone; None where the tree of
            `definition` is lowered instead.
        c: source text in the argument `x`, of the type `real`, with the functions of <tgmath.h>; NaN stays NaN. None
            where `formula` or the tree of `definition` is compiled instead.
        triton: source text with {x} for the name of the argument, in the language of Triton and the functions of
            `rdgraph.graphs.kernels.entry_kernels`; NaN stays NaN. None where fields with this function are not fused.
        triton_gradient: the gradient of x for the gradient {a} of y = f(x), in {a}, {x} and {y}; as torch has it.
        ball: on a rational (`flint.fmpq`) or a ball (`flint.arb`); an enclosure, exact where it can be.
        domain: where f is defined.
        range: the values of f on its domain.
        slope: the values of f', where f has one.
        monotone: the monotonicity of f.
        at_zero: f(0).
        reflection: from x and y = f(x) to f(-x).
        pieces: (a, b) where f(x) = a x below zero and b x above it.
        rewriting: from x to f(x) in exp or abs.
        formula: from x to f(x) in functions of sympy, which the language need not have, such as erf.
        inverse: from y to the only x with f(x) = y, a formula that is real where there is one.
        ties: from x and y = f(x) to inequalities between them that hold for every x, beyond those of range and slope.
        definition: the tree of f in H, where f is defined in the language.
        is_sharp: whether range and slope are the smallest intervals; else they only contain the values.
        has_straight_tails: whether f is smooth and a straight line far out, on either side.
    """

    name: str
    sympy: Callable[[Any], sp.Expr]
    derivative: Callable[[Any], sp.Expr]
    latex: str
    numpy: Callable[[Any], Any]
    torch: str | None
    ball: Callable[[Any], Any]
    domain: Span = REALS
    range: Span | None = None
    slope: Span | None = None
    monotone: Monotone | None = None
    at_zero: sp.Expr | None = None
    reflection: Callable[[Any, Any], sp.Expr] | None = None
    pieces: tuple[int, int] | None = None
    rewriting: Callable[[Any], sp.Expr] | None = None
    formula: Callable[[Any], sp.Expr] | None = None
    inverse: Callable[[Any], sp.Expr] | None = None
    ties: Callable[[Any, Any], list[sp.Basic]] | None = None
    definition: sp.Basic | None = None
    is_sharp: bool = True
    c: str | None = None
    triton: str | None = None
    triton_gradient: str | None = None
    has_straight_tails: bool = False

    @property
    def is_bounded(self) -> bool:
        """Whether the values are known to be bounded."""
        return self.range is not None and self.range.is_bounded

    @property
    def is_lipschitz(self) -> bool:
        """Whether |f(x)| <= |f(0)| + c |x| is known, from bounded slopes on all reals."""
        return self.slope is not None and self.slope.is_bounded and self.domain == REALS

    @property
    def is_injective(self) -> bool:
        """Whether f is known to take every value once."""
        return self.monotone in (Monotone.INCREASING, Monotone.DECREASING)

    @property
    def growth(self) -> str | None:
        """bounded or linear, where it is known."""
        return "bounded" if self.is_bounded else "linear" if self.is_lipschitz or self.has_straight_tails else None

    def relations(self, x: sp.Expr, y: sp.Expr) -> list[sp.Basic]:
        """Inequalities between x and y = f(x) that hold for every real x: from range, slopes and `ties`."""
        known = list(self.range.relations(y)) if self.range is not None else []
        if self.slope is not None and self.at_zero is not None and self.domain == REALS:
            for bound, is_upper in ((self.slope.lower, False), (self.slope.upper, True)):
                if bound.is_finite:
                    line = self.at_zero + bound * x
                    right, left = (line, y) if is_upper else (y, line)
                    known.append(sp.Or(sp.Ge(0, x, evaluate=False), sp.Ge(right, left, evaluate=False)))
                    known.append(sp.Or(sp.Ge(x, 0, evaluate=False), sp.Ge(left, right, evaluate=False)))
        return known + (self.ties(x, y) if self.ties is not None else [])


# ---------------------------------------------------------------------- builtin functions
# The nine built-in functions of the language, one record each.


class relu(sp.Function):
    """max(x, 0)"""

    is_real = True
    is_nonnegative = True

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        if x.is_nonnegative:
            return x
        return sp.S.Zero if x.is_nonpositive else None

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return sp.Heaviside(self.args[0])

    def _eval_evalf(self, precision: int) -> sp.Expr:
        return sp.Max(0, self.args[0])._eval_evalf(precision)


class sigmoid(sp.Function):
    """1/(1 + exp(-x))"""

    is_real = True
    is_positive = True

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        return sp.S.Half if x.is_zero else None

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return self * (1 - self)

    def _eval_evalf(self, precision: int) -> sp.Expr:
        return (1 / (1 + sp.exp(-self.args[0])))._eval_evalf(precision)


class softplus(sp.Function):
    """log(1 + exp(x))"""

    is_real = True
    is_positive = True

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return sigmoid(self.args[0])

    def _eval_evalf(self, precision: int) -> sp.Expr:
        return sp.log(1 + sp.exp(self.args[0]))._eval_evalf(precision)


def _of_numpy(name: str) -> Callable[[Any], Any]:
    """A function of numpy by its name; numpy is loaded on the first call."""

    def value(x: Any) -> Any:
        return getattr(np, name)(x)

    return value


def _of_arb(name: str) -> Callable[[Any], Any]:
    """A function of arb by its name."""

    def value(x: Any) -> Any:
        return getattr(arb(x), name)()

    return value


def _numpy_relu(x: Any) -> Any:
    return np.maximum(x, 0)


def _numpy_sigmoid(x: Any) -> Any:
    return np.exp(-np.logaddexp(0, -x))


def _numpy_softplus(x: Any) -> Any:
    return np.logaddexp(0, x)


def _ball_relu(x: Any) -> Any:
    return x if x >= 0 else x * 0 if x <= 0 else arb.max(x, arb(0))


def _ball_sigmoid(x: Any) -> Any:
    return 1 / (1 + (-arb(x)).exp())


def _ball_softplus(x: Any) -> Any:
    return arb.max(arb(x), arb(0)) + (-abs(arb(x))).exp().log1p()


def _ball_sqrt(x: Any) -> Any:
    if isinstance(x, fmpq) and x >= 0:
        top, bottom = x.p.isqrt(), x.q.isqrt()
        if top * top == x.p and bottom * bottom == x.q:
            return fmpq(top, bottom)
    return arb(x).sqrt()


def _ties_of_softplus(x: Any, y: Any) -> list[sp.Basic]:
    """softplus(x) > x, and it is convex: above its tangent at zero."""
    return [sp.Gt(y, x, evaluate=False), sp.Ge(y, sp.log(2) + x / 2, evaluate=False)]


_ROUND = r"\left({}\right)"
_UNIT = Span.of(-1, 1)
_SWING = Span.of(-1, 1, attained=True)

BUILT_IN: tuple[ElementwiseFunction, ...] = (
    ElementwiseFunction(
        "tanh", sp.tanh, lambda x: 1 - sp.tanh(x) ** 2, r"\tanh" + _ROUND,
        numpy=_of_numpy("tanh"), torch="torch.tanh({0})", c="tanh(x)", ball=_of_arb("tanh"),
        range=_UNIT, slope=Span(sp.S.Zero, sp.S.One, has_upper=True), monotone=Monotone.INCREASING, at_zero=sp.S.Zero,
        reflection=lambda x, y: -y, rewriting=lambda x: 1 - 2 / (sp.exp(2 * x) + 1), inverse=sp.atanh,
        triton="tanh({x})", triton_gradient="{a}*(1 - {y}*{y})",
    ),
    ElementwiseFunction(
        "relu", relu, sp.Heaviside, r"\operatorname{{relu}}" + _ROUND,
        numpy=_numpy_relu, torch="torch.relu({0})", c="x < 0 ? 0 : x", ball=_ball_relu,
        range=Span.of(0, sp.oo, attained=True), slope=Span.of(0, 1, attained=True), monotone=Monotone.NONDECREASING,
        at_zero=sp.S.Zero, pieces=(0, 1), rewriting=lambda x: (x + sp.Abs(x)) / 2,
        triton="tl.where({x} < 0, 0.0, {x})", triton_gradient="tl.where({y} <= 0, 0.0, {a})",
    ),
    ElementwiseFunction(
        "sigmoid", sigmoid, lambda x: sigmoid(x) * (1 - sigmoid(x)), r"\sigma" + _ROUND,
        numpy=_numpy_sigmoid, torch="torch.sigmoid({0})", c="1/(1 + exp(-x))", ball=_ball_sigmoid,
        range=Span.of(0, 1), slope=Span(sp.S.Zero, sp.Rational(1, 4), has_upper=True), monotone=Monotone.INCREASING,
        at_zero=sp.S.Half, reflection=lambda x, y: 1 - y, rewriting=lambda x: 1 - 1 / (sp.exp(x) + 1),
        inverse=lambda y: sp.log(y / (1 - y)),
        triton="1/(1 + tl.exp(-{x}))", triton_gradient="{a}*(1 - {y})*{y}",
    ),
    ElementwiseFunction(
        "exp", sp.exp, sp.exp, r"\exp" + _ROUND,
        numpy=_of_numpy("exp"), torch="torch.exp({0})", c="exp(x)", ball=_of_arb("exp"),
        range=Span.of(0, sp.oo), slope=Span.of(0, sp.oo), monotone=Monotone.INCREASING, at_zero=sp.S.One,
        reflection=lambda x, y: 1 / y, inverse=sp.log,
        triton="tl.exp({x})", triton_gradient="{a}*{y}",
    ),
    ElementwiseFunction(
        "sqrt", sp.sqrt, lambda x: 1 / (2 * sp.sqrt(x)), r"\sqrt{{{}}}",
        numpy=_of_numpy("sqrt"), torch="torch.sqrt({0})", c="sqrt(x)", ball=_ball_sqrt,
        domain=Span.of(0, sp.oo, attained=True), range=Span.of(0, sp.oo, attained=True), slope=Span.of(0, sp.oo),
        monotone=Monotone.INCREASING, at_zero=sp.S.Zero, inverse=lambda y: y**2,
        triton="root({x})", triton_gradient="{a}/(2*{y})",
    ),
    ElementwiseFunction(
        "abs", sp.Abs, sp.sign, r"\operatorname{{abs}}" + _ROUND,
        numpy=_of_numpy("abs"), torch="torch.abs({0})", c="fabs(x)", ball=abs,
        range=Span.of(0, sp.oo, attained=True), slope=_SWING, at_zero=sp.S.Zero, reflection=lambda x, y: y,
        pieces=(-1, 1),
        triton="tl.abs({x})", triton_gradient="{a}*sign({x})",
    ),
    ElementwiseFunction(
        "softplus", softplus, sigmoid, r"\operatorname{{softplus}}" + _ROUND,
        numpy=_numpy_softplus, torch="torch.logaddexp({0}, torch.zeros_like({0}))",
        c="(x > 0 ? x : 0) + log1p(exp(-fabs(x)))", ball=_ball_softplus,
        range=Span.of(0, sp.oo), slope=Span.of(0, 1), monotone=Monotone.INCREASING, at_zero=sp.log(2),
        reflection=lambda x, y: y - x, formula=lambda x: sp.log(1 + sp.exp(x)), ties=_ties_of_softplus,
        inverse=lambda y: sp.log(sp.exp(y) - 1),
        triton="softplus({x})", triton_gradient="{a}/(1 + tl.exp(-{x}))",
    ),
    ElementwiseFunction(
        "sin", sp.sin, sp.cos, r"\sin" + _ROUND,
        numpy=_of_numpy("sin"), torch="torch.sin({0})", c="sin(x)", ball=_of_arb("sin"),
        range=_SWING, slope=_SWING, at_zero=sp.S.Zero, reflection=lambda x, y: -y,
        triton="tl.sin({x})", triton_gradient="{a}*tl.cos({x})",
    ),
    ElementwiseFunction(
        "cos", sp.cos, lambda x: -sp.sin(x), r"\cos" + _ROUND,
        numpy=_of_numpy("cos"), torch="torch.cos({0})", c="cos(x)", ball=_of_arb("cos"),
        range=_SWING, slope=_SWING, at_zero=sp.S.One, reflection=lambda x, y: y,
        triton="tl.cos({x})", triton_gradient="-{a}*tl.sin({x})",
    ),
)  # fmt: skip
