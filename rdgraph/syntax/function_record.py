"""What is known of an elementwise function, in one record: how it is written, computed, bounded and rewritten."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sympy as sp


class Monotone(StrEnum):
    """How the values of a function follow its argument; "increasing" and "decreasing" are strict."""

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
        """The largest |y|; infinite where there is none."""
        return sp.Max(sp.Abs(self.lower), sp.Abs(self.upper))

    def relations(self, y: sp.Expr) -> list[sp.Basic]:
        """What the interval says of a letter."""
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

    What is None is unknown: nothing is concluded from it.

    Attributes:
        name: as it is called in equations.
        sympy: from an expression x to the expression f(x).
        derivative: from x to f'(x), where f has one.
        latex: text with {} for the argument.
        numpy: on float arrays.
        torch: source text with {0} for the argument, an expression in `torch` alone; None where the tree of
            `definition` is lowered instead.
        c: source text in the argument `x`, of the type `real`, with the functions of <tgmath.h>; NaN stays NaN. None
            where `formula` or the tree of `definition` is compiled instead.
        triton: source text with {x} for the name of the argument, in the language of Triton and the functions of
            `rdgraph.kernels.triton_functions`; NaN stays NaN. None where fields with this function are not fused.
        triton_gradient: what a gradient {a} of y = f(x) sends to x, in {a}, {x} and {y}; as torch has it.
        ball: on a rational (`flint.fmpq`) or a ball (`flint.arb`); an enclosure, exact where it can be.
        domain: where f is defined.
        range: the values of f on its domain.
        slope: the values of f', where f has one.
        monotone: how f follows its argument.
        at_zero: f(0).
        reflection: from x and y = f(x) to f(-x).
        pieces: (a, b) where f(x) = a x below zero and b x above it.
        rewriting: from x to f(x) in exp or abs.
        formula: from x to f(x) in functions of sympy that the language need not have, such as erf.
        inverse: from y to the only x with f(x) = y, a formula that is real where there is one.
        ties: from x and y = f(x) to inequalities between them that hold for every x, beyond those of range and slope.
        definition: the tree of f in the letter H, where it is an abbreviation of the language.
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
