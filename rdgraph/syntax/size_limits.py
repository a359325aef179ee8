"""What is too large to work with exactly, told from the tree alone and before any algebra is done."""

from __future__ import annotations

import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.syntax.tree import Apply, Call, Kind, Minus, Name, Negative, Over, Plus, Power, Times, kind_of

MAX_BITS = 4000
MAX_ORDER = 40
MAX_CALL_NESTING = 5
#: Most operators that a lowered equation applies one after the other.
MAX_PRODUCTS = 128


def check_size(node: sp.Basic) -> None:
    """Raise NotApplicable where the exact form explodes: huge constants or operator powers, nested functions."""
    _check_constants(node)
    if _calls(node) > MAX_CALL_NESTING:
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
    if _bits(node) > MAX_BITS:
        raise NotApplicable(f"constants of more than {MAX_BITS} bits are too large to work with exactly; name them")


def products(node: sp.Basic) -> int:
    """Bound on the number of operators that are applied one after the other, told from the tree alone."""
    if isinstance(node, Apply) and kind_of(node.left) is Kind.OPERATOR and kind_of(node) is not Kind.OPERATOR:
        return order(node.left) + products(node.right)
    return max((products(part) for part in node.args), default=0)


def _bits(node: sp.Basic) -> int:
    """Bound on the size of the numbers in the expanded form."""
    match node:
        case sp.Rational():
            return int(max(node.p, node.q)).bit_length() if node not in (0, 1) else 0
        case Plus() | Minus():
            return max(_bits(node.left), _bits(node.right)) + 1
        case Times() | Over() | Apply():
            return _bits(node.left) + _bits(node.right)
        case Negative():
            return _bits(node.inner)
        case Power():
            return _bits(node.base) * abs(node.exponent)
        case Call():
            return _bits(node.argument)
        case Name(name="L"):
            return 1
    return 0


def _calls(node: sp.Basic) -> int:
    deepest = max((_calls(a) for a in node.args), default=0)
    return deepest + isinstance(node, Call)


def order(op: sp.Basic) -> int:
    """Bound on the number of letters in a word of an operator tree."""
    match op:
        case Plus() | Minus():
            return max(order(op.left), order(op.right))
        case Apply():
            return order(op.left) + order(op.right)
        case Negative():
            return order(op.inner)
        case Over():
            return order(op.left)
        case Times():
            return order(op.left if kind_of(op.left) is Kind.OPERATOR else op.right)
        case Power():
            return order(op.base) * op.exponent
    return 1
