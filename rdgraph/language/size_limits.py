"""Limits of size for exact algebra, checked on the tree before any algebra is done."""

from __future__ import annotations

from collections import Counter

import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.language.linear_fold import scaling
from rdgraph.language.reader import number_value
from rdgraph.language.tree import Apply, Call, Fold, Kind, Minus, Name, Negative, Over, Plus, Power, Times, kind_of

MAX_BITS = 4000
#: exp of larger constants overflows double precision.
MAX_CONSTANT = 700
MAX_ORDER = 40
MAX_CALL_NESTING = 5
#: Degree beyond which no polynomial is factored: compiled code cannot be interrupted, and takes minutes there.
MAX_DEGREE = 200
#: Most operators that a lowered equation applies one after the other.
MAX_PRODUCTS = 128


def check_size(node: sp.Basic) -> None:
    """Raise NotApplicable where the exact form is too large: constants, degrees, operator powers, nested functions.

    >>> from rdgraph.language.reader import read_expression
    >>> check_size(read_expression("(H**32)**32"))
    Traceback (most recent call last):
    ...
    rdgraph.errors.NotApplicable: the degree 1024 exceeds 200; lower the powers
    """
    _check_constants(node)
    if (largest := degree(node)) > MAX_DEGREE:
        raise NotApplicable(f"the degree {largest} exceeds {MAX_DEGREE}; lower the powers")
    if _NESTING(node) > MAX_CALL_NESTING:
        raise NotApplicable(f"functions are nested more than {MAX_CALL_NESTING} deep; nest them less")
    for part in sp.preorder_traversal(node):
        if isinstance(part, Apply | Power) and kind_of(part) is Kind.OPERATOR and order(part) > MAX_ORDER:
            raise NotApplicable(
                f"an operator polynomial of degree above {MAX_ORDER} is too long to expand; lower the powers"
            )
        if isinstance(part, Call) and not part.argument.has(Name):
            _check_constant_call(part)


def _check_constant_call(call: Call) -> None:
    """Raise NotApplicable for a function of a constant whose digits no exact method can hold."""
    if call.argument.has(Call):
        raise NotApplicable(f"functions of constants inside {call.function}(...) are not evaluated; name the constant")
    value = number_value(call.argument)
    if value is None or abs(value) > MAX_CONSTANT:
        raise NotApplicable(
            f"expected a constant of at most {MAX_CONSTANT} inside {call.function}(...), got a larger one; name "
            f"{call.function} of it"
        )


def check_products(node: sp.Basic) -> None:
    """Raise NotApplicable where an equation is too large to lower: operators in a row, huge constants."""
    _check_constants(node)
    if (count := products(node)) > MAX_PRODUCTS:
        raise NotApplicable(f"expected at most {MAX_PRODUCTS} operators in a row, got {count}; lower the powers")


def _check_constants(node: sp.Basic) -> None:
    if _BITS(node) > MAX_BITS:
        raise NotApplicable(f"constants of more than {MAX_BITS} bits are too large to work with exactly; name them")


def products(node: sp.Basic) -> int:
    """Bound on the number of operators applied one after the other, computed from the tree."""
    return _PRODUCTS(node)


def degree(node: sp.Basic) -> int:
    """Bound on the degree of numerator and denominator over one common denominator, functions counting as variables.

    >>> from rdgraph.language.reader import read_expression
    >>> [degree(read_expression(text)) for text in ("H**3/(1 + H) + H/(1 + H)", "H/(1 + H/(2 + H))", "tanh(H**9)")]
    [3, 2, 9]
    """
    top, below = _DEGREE(node)
    return max(top, below.total())


def order(op: sp.Basic) -> int:
    """Bound on the length of a word of an operator tree."""
    return _ORDER(op)


class _Products(Fold[int]):
    """Operators in a row: their number on the longest path, with those inside of each operator on it."""

    def apply(self, node: Apply) -> int:
        if kind_of(node.left) is Kind.OPERATOR and kind_of(node) is not Kind.OPERATOR:
            return order(node.left) + self(node.right)
        return self.other(node)

    def other(self, node: sp.Basic) -> int:
        return max(map(self, node.args), default=0)


class _Nesting(Fold[int]):
    """Depth to which functions are nested."""

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


class _Degree(Fold[tuple[int, Counter[sp.Basic]]]):
    """Degree of the numerator, and the denominators, each as often as it occurs times its degree."""

    def number(self, node: sp.Rational) -> tuple[int, Counter[sp.Basic]]:
        return 0, Counter()

    def name(self, node: Name) -> tuple[int, Counter[sp.Basic]]:
        return int(node.kind not in (Kind.OPERATOR, Kind.MATRIX)), Counter()

    def plus(self, node: Plus | Minus) -> tuple[int, Counter[sp.Basic]]:
        (left, below), (right, denominator) = self(node.left), self(node.right)
        common = below | denominator
        return max(left + (common - below).total(), right + (common - denominator).total()), common

    minus = plus

    def times(self, node: Times | Apply) -> tuple[int, Counter[sp.Basic]]:
        (left, below), (right, denominator) = self(node.left), self(node.right)
        return left + right, below + denominator

    apply = times

    def over(self, node: Over) -> tuple[int, Counter[sp.Basic]]:
        (left, below), (right, denominator) = self(node.left), self(node.right)
        return left + denominator.total(), below + Counter({node.right: right})

    def negative(self, node: Negative) -> tuple[int, Counter[sp.Basic]]:
        return self(node.inner)

    def power(self, node: Power) -> tuple[int, Counter[sp.Basic]]:
        top, below = self(node.base)
        times = abs(node.exponent)
        if node.exponent < 0:
            return times * below.total(), Counter({node.base: times * top})
        return times * top, Counter({part: times * size for part, size in below.items()})

    def call(self, node: Call) -> tuple[int, Counter[sp.Basic]]:
        return max(1, degree(node.argument)), Counter()


class _Order(Fold[int]):
    """Length of a word of an operator."""

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


_PRODUCTS, _NESTING, _BITS, _DEGREE, _ORDER = _Products(), _Nesting(), _Bits(), _Degree(), _Order()
