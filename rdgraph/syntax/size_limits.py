"""What is too large to work with exactly, told from the tree alone and before any algebra is done."""

from __future__ import annotations

import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.syntax.fold import Fold
from rdgraph.syntax.linear_fold import scaling
from rdgraph.syntax.tree import Apply, Call, Kind, Minus, Name, Negative, Over, Plus, Power, Times, kind_of

MAX_BITS = 4000
MAX_ORDER = 40
MAX_CALL_NESTING = 5
#: Most operators that a lowered equation applies one after the other.
MAX_PRODUCTS = 128


def check_size(node: sp.Basic) -> None:
    """Raise NotApplicable where the exact form explodes: huge constants or operator powers, nested functions."""
    _check_constants(node)
    if _NESTING(node) > MAX_CALL_NESTING:
        raise NotApplicable(f"functions nested more than {MAX_CALL_NESTING} deep are not worked out")
    for part in sp.preorder_traversal(node):
        if isinstance(part, Apply | Power) and kind_of(part) is Kind.OPERATOR and order(part) > MAX_ORDER:
            raise NotApplicable(
                f"an operator polynomial of degree above {MAX_ORDER} is too long to expand; lower the powers"
            )
        if isinstance(part, Call) and part.argument.has(Call) and not part.argument.has(Name):
            raise NotApplicable(
                f"functions of constants inside {part.function}(...) are not worked out; name the constant"
            )


def check_products(node: sp.Basic) -> None:
    """Raise NotApplicable where an equation is too large to lower: operators in a row, huge constants."""
    _check_constants(node)
    if (count := products(node)) > MAX_PRODUCTS:
        raise NotApplicable(
            f"expected at most {MAX_PRODUCTS} operators one after the other, got {count}; lower the powers"
        )


def _check_constants(node: sp.Basic) -> None:
    if _BITS(node) > MAX_BITS:
        raise NotApplicable(f"constants of more than {MAX_BITS} bits are too large to work with exactly; name them")


def products(node: sp.Basic) -> int:
    """Bound on the number of operators that are applied one after the other, told from the tree alone."""
    return _PRODUCTS(node)


def order(op: sp.Basic) -> int:
    """Bound on the number of letters in a word of an operator tree."""
    return _ORDER(op)


class _Products(Fold[int]):
    """Operators in a row: as many as on the longest way down, and those of every operator on it."""

    def apply(self, node: Apply) -> int:
        if kind_of(node.left) is Kind.OPERATOR and kind_of(node) is not Kind.OPERATOR:
            return order(node.left) + self(node.right)
        return self.other(node)

    def other(self, node: sp.Basic) -> int:
        return max(map(self, node.args), default=0)


class _Nesting(Fold[int]):
    """How deep functions are nested."""

    def call(self, node: Call) -> int:
        return 1 + self(node.argument)

    def other(self, node: sp.Basic) -> int:
        return max(map(self, node.args), default=0)


class _Bits(Fold[int]):
    """Bound on the size of the numbers in the expanded form."""

    def number(self, node: sp.Rational) -> int:
        return int(max(node.p, node.q)).bit_length() if node not in (0, 1) else 0

    def name(self, node: Name) -> int:
        return int(node.name == "L")

    def plus(self, node: Plus | Minus) -> int:
        return max(self(node.left), self(node.right)) + 1

    minus = plus

    def times(self, node: Times | Over | Apply) -> int:
        return self(node.left) + self(node.right)

    over = apply = times

    def negative(self, node: Negative) -> int:
        return self(node.inner)

    def power(self, node: Power) -> int:
        return self(node.base) * abs(node.exponent)

    def call(self, node: Call) -> int:
        return self(node.argument)


class _Order(Fold[int]):
    """Letters in a word of an operator."""

    def plus(self, node: Plus | Minus) -> int:
        return max(self(node.left), self(node.right))

    minus = plus

    def apply(self, node: Apply) -> int:
        return self(node.left) + self(node.right)

    def negative(self, node: Negative) -> int:
        return self(node.inner)

    def over(self, node: Over) -> int:
        return self(node.left)

    def times(self, node: Times) -> int:
        return self(scaling(node)[1])

    def power(self, node: Power) -> int:
        return self(node.base) * node.exponent

    def other(self, node: sp.Basic) -> int:
        return 1


_PRODUCTS, _NESTING, _BITS, _ORDER = _Products(), _Nesting(), _Bits(), _Order()
