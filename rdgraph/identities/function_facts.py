"""What a record says of a function, compared with its definition at a few hundred points, with a proof at each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import sympy as sp

from rdgraph.decisions.enclosure import NotEnclosed, enclose, holds
from rdgraph.errors import InvalidArgument
from rdgraph.identities.exact_values import Undefined, array
from rdgraph.syntax.functions import ElementwiseFunction, Monotone, Span

#: Quarters up to 8, powers of two around zero and up to 64, of either sign.
POINTS: tuple[sp.Rational, ...] = tuple(
    sorted(
        {sign * x for sign in (1, -1) for x in (
            *(sp.Rational(k, 4) for k in range(33)), *(sp.Rational(2) ** k for k in range(-12, 7)),
            *(sp.Rational(k, 7) for k in range(1, 50)), sp.Rational(12), sp.Rational(20), sp.Rational(33),
        )}
    )
)  # fmt: skip
BITS = 128
TOLERANCE = 1e-9
#: Bits of a value that is compared with its neighbour.
ACCURATE = 20


def check_facts(function: ElementwiseFunction) -> None:
    """Raise InvalidArgument, with the point, where the values of a function contradict what its record says."""
    values = dict(_values(function))
    if not values:
        raise InvalidArgument(f"expected a function with values, got {function.name}, which is defined nowhere tried")
    _check_span(function, values, function.range, "f(x)")
    if function.slope is not None:
        slopes = dict(_slopes(function, values))
        if not slopes:
            raise InvalidArgument(f"expected a slope that can be checked, but that of {function.name} is not enclosed")
        _check_span(function, slopes, function.slope, "f'(x)")
    if function.monotone is not None:
        _check_order(function, function.monotone, values)
    _check_numpy(function, values)


def _values(function: ElementwiseFunction) -> Iterator[tuple[sp.Rational, Any]]:
    """Enclosures at the points where the function is defined."""
    from flint import arb, ctx

    before, ctx.prec = ctx.prec, BITS
    try:
        for point in POINTS:
            try:
                ball = arb(function.ball(array(point)))
            except (NotEnclosed, Undefined):
                continue
            if ball.is_finite():
                yield point, ball
    finally:
        ctx.prec = before


def _slopes(function: ElementwiseFunction, values: dict[sp.Rational, Any]) -> Iterator[tuple[sp.Rational, Any]]:
    """Enclosures of the derivative; that of a closed function comes from its formula, not from its own slope."""
    x = sp.Dummy("x", real=True)
    derivative = sp.diff(function.formula(x), x) if function.formula is not None else function.derivative(x)
    for point in values:
        try:
            yield point, enclose(derivative.xreplace({x: point}), BITS)
        except NotEnclosed:
            continue


def _check_span(function: ElementwiseFunction, values: dict[sp.Rational, Any], span: Span | None, what: str) -> None:
    if span is None:
        return
    lower, upper = ((enclose(end, BITS) if end.is_finite else None) for end in (span.lower, span.upper))
    for point, ball in values.items():
        below = lower is not None and (ball < lower or (not span.has_lower and ball == lower))
        above = upper is not None and (ball > upper or (not span.has_upper and ball == upper))
        if below or above:
            raise InvalidArgument(
                f"expected {what} in {span} for {function.name}, got {_shown(ball)} at x = {point}; correct the fact"
            )


def _check_order(function: ElementwiseFunction, monotone: Monotone, values: dict[sp.Rational, Any]) -> None:
    rises = monotone in (Monotone.INCREASING, Monotone.NONDECREASING)
    known = [(point, ball) for point, ball in values.items() if ball.rel_accuracy_bits() >= ACCURATE]
    for (left, low), (right, high) in itertools.pairwise(known):
        step = high - low if rises else low - high
        if step < 0 or (function.is_injective and step == 0):
            raise InvalidArgument(
                f"expected {function.name} to be {monotone}, got f({left}) = {_shown(low)} and "
                f"f({right}) = {_shown(high)}; correct the fact"
            )


def _check_numpy(function: ElementwiseFunction, values: dict[sp.Rational, Any]) -> None:
    import numpy as np

    points = list(values)
    exact = np.array([float(ball.mid()) for ball in values.values()])
    with np.errstate(all="ignore"):
        computed = np.asarray(function.numpy(np.array([float(x) for x in points])), dtype=float)
    if computed.shape != exact.shape:
        raise InvalidArgument(f"expected numpy= to keep the shape {exact.shape}, got {computed.shape}")
    away = ~(np.abs(computed - exact) <= TOLERANCE * (1 + np.abs(exact)))
    if away.any():
        at = int(np.argmax(away))
        raise InvalidArgument(
            f"expected numpy= to agree with the definition of {function.name}, got {computed[at]:g} for "
            f"{exact[at]:g} at x = {points[at]}"
        )


def _shown(ball: Any) -> str:
    """A number as a fraction where it is one with a short name, else its digits."""
    number = float(ball.mid())
    fraction = sp.nsimplify(number, rational=True)
    short = fraction.q <= 1000 and holds(sp.Eq(fraction, sp.Rational(number))) is True
    return str(fraction) if short else f"{number:.6g}"
