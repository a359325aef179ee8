"""The nine functions that the language has from the start, one record each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp

from rdgraph.syntax.function_record import ElementwiseFunction, Monotone, Span


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
    """A function of numpy by its name: numpy is loaded when it is first called."""

    def value(x: Any) -> Any:
        import numpy as np

        return getattr(np, name)(x)

    return value


def _of_arb(name: str) -> Callable[[Any], Any]:
    """A function of arb by its name."""

    def value(x: Any) -> Any:
        from flint import arb

        return getattr(arb(x), name)()

    return value


def _numpy_relu(x: Any) -> Any:
    import numpy as np

    return np.maximum(x, 0)


def _numpy_sigmoid(x: Any) -> Any:
    import numpy as np

    return np.exp(-np.logaddexp(0, -x))


def _numpy_softplus(x: Any) -> Any:
    import numpy as np

    return np.logaddexp(0, x)


def _ball_relu(x: Any) -> Any:
    from flint import arb

    return x if x >= 0 else x * 0 if x <= 0 else arb.max(x, arb(0))


def _ball_sigmoid(x: Any) -> Any:
    from flint import arb

    return 1 / (1 + (-arb(x)).exp())


def _ball_softplus(x: Any) -> Any:
    from flint import arb

    return arb.max(arb(x), arb(0)) + (-abs(arb(x))).exp().log1p()


def _ball_sqrt(x: Any) -> Any:
    from flint import arb, fmpq

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
