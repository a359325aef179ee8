"""`LinearFold`: operator and matrix trees applied to an operand, by the rules of linear maps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar

import sympy as sp

from rdgraph.language.tree import Fold, Kind, Minus, Negative, Over, Plus, Times, kind_of

T = TypeVar("T")


class LinearFold(Fold[T], ABC):
    """X and an operand x to X x: (X + Y)x = Xx + Yx, (-X)x = -(Xx), (c*X)x = c*(Xx), (X/c)x = (Xx)/c.

    Subclasses define names and products of maps, and how values are scaled and divided by a coefficient.
    """

    def plus(self, node: Plus, operand: T) -> T:
        left: Any = self(node.left, operand)
        return left + self(node.right, operand)  # type: ignore[no-any-return]

    def minus(self, node: Minus, operand: T) -> T:
        left: Any = self(node.left, operand)
        return left - self(node.right, operand)  # type: ignore[no-any-return]

    def negative(self, node: Negative, operand: T) -> T:
        inner: Any = self(node.inner, operand)
        return -inner  # type: ignore[no-any-return]

    def times(self, node: Times, operand: T) -> T:
        factor, inner = scaling(node)
        return self.scaled(self(inner, operand), factor)

    def over(self, node: Over, operand: T) -> T:
        return self.divided(self(node.left, operand), node.right, node)

    @abstractmethod
    def scaled(self, value: T, factor: sp.Basic) -> T:
        """The value times a coefficient, given as a tree."""

    @abstractmethod
    def divided(self, value: T, divisor: sp.Basic, node: sp.Basic) -> T:
        """The value divided by a coefficient, given as a tree; `node` is the quotient."""


def scaling(node: Times) -> tuple[sp.Basic, sp.Basic]:
    """The coefficient of a scaled operator or matrix, and the operator or matrix.

    >>> from rdgraph.language.reader import read_expression
    >>> [x.name for x in scaling(read_expression("A*alpha"))]
    ['alpha', 'A']
    """
    first = kind_of(node.left) in (Kind.OPERATOR, Kind.MATRIX)
    return (node.right, node.left) if first else (node.left, node.right)
