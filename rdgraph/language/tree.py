"""The expression tree of the language: immutable sympy nodes that mirror the text, and their kinds.

A tree is never simplified; `rdgraph.language.normal_form` turns it into a normal form when one is asked for. Every node
is a `sympy.Basic`, so `atoms`, `xreplace` and structural equality are sympy's own. Numbers are sympy rationals >= 0.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Any, Generic, TypeVar

import sympy as sp
from sympy.core.symbol import Str

from rdgraph.errors import RdgraphError
from rdgraph.vocabulary.learned_functions import is_key, short_name

# ---------------------------------------------------------------------- fold
# `Fold`: a function of trees that has one rule for each type of node. Every walk over a tree is one of these.

T = TypeVar("T")

#: The node types of the language and the method that is their rule.
RULES = {
    "Name": "name",
    "Plus": "plus",
    "Minus": "minus",
    "Times": "times",
    "Over": "over",
    "Apply": "apply",
    "Power": "power",
    "Negative": "negative",
    "Call": "call",
}


class TypeMismatch(RdgraphError, TypeError):
    """An ill-typed node; the parser adds the place, other callers see expected, got and remedy."""

    def __init__(self, expected: str, got: str, remedy: str) -> None:
        self.expected, self.got, self.remedy = expected, got, remedy
        super().__init__(f"expected {expected}, got {got}; {remedy}")


class Fold(Generic[T]):
    """A function of trees: a subclass has the method `plus` for a Plus node, `name` for a Name, `number` for a number.

    A rule gets the node and the further arguments of the call, and calls the fold on parts of the node. Nodes without
    a rule go to `other`, which raises `TypeMismatch` unless a subclass defines it.

    >>> from rdgraph.language.reader import read_expression
    >>> class Depth(Fold[int]):
    ...     def name(self, node):
    ...         return 0
    ...     def plus(self, node):
    ...         return 1 + max(self(node.left), self(node.right))
    >>> Depth()(read_expression("H + (H0 + H)"))
    2
    >>> Depth()(read_expression("H*H"))
    Traceback (most recent call last):
    ...
    rdgraph.language.tree.TypeMismatch: expected Name or Plus for Depth, got Times; build expressions with rdgraph.parse
    """

    #: The rules by node type, looked up once for each.
    _known: dict[type, Callable[..., Any]]

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        cls._known = {}

    def __call__(self, node: sp.Basic, *given: Any) -> T:
        rule = self._known.get(type(node)) or self._rule(type(node))
        result: T = rule(self, node, *given)
        return result

    @classmethod
    def _rule(cls, kind: type) -> Callable[..., Any]:
        name = RULES.get(kind.__name__) or ("number" if issubclass(kind, sp.Rational) else "other")
        cls._known[kind] = getattr(cls, name, cls.other)
        return cls._known[kind]

    def other(self, node: sp.Basic, *given: Any) -> T:
        """The fold's value for a node without a rule; raises TypeMismatch unless a subclass defines it."""
        known = [name for name, rule in RULES.items() if hasattr(self, rule)]
        known += ["a rational number"] if hasattr(self, "number") else []
        raise TypeMismatch(
            f"{', '.join(known[:-1])} or {known[-1]} for {type(self).__name__.strip('_')}",
            type(node).__name__,
            "build expressions with rdgraph.parse",
        )


# ---------------------------------------------------------------------- tree
MAX_EXPONENT = 32
MAX_DIGITS = 40
MAX_DECIMAL_EXPONENT = 30


class Kind(StrEnum):
    """The kind of an expression: the types of the language."""

    SCALAR = "scalar"
    CHANNEL = "channel"
    NODE = "node"
    FIELD = "field"
    OPERATOR = "operator"
    MATRIX = "matrix"


ELEMENTWISE = {Kind.SCALAR, Kind.CHANNEL, Kind.NODE, Kind.FIELD}
COEFFICIENT_KINDS = (Kind.SCALAR, Kind.CHANNEL, Kind.NODE, Kind.MATRIX)


class Node(sp.Basic):
    """A node of the tree; subclasses are final."""

    __slots__ = ()


class Name(Node):
    """A name and its kind: `Name("H", Kind.FIELD)`."""

    __slots__ = ()

    def __new__(cls, name: str | Str, kind: Kind | Str) -> Name:
        return super().__new__(cls, Str(str(name)), Str(str(kind)))

    @property
    def name(self) -> str:
        return str(self.args[0].name)  # type: ignore[attr-defined]

    @property
    def kind(self) -> Kind:
        return Kind(self.args[1].name)  # type: ignore[attr-defined]


class _Binary(Node):
    __slots__ = ()

    @property
    def left(self) -> sp.Basic:
        return self.args[0]

    @property
    def right(self) -> sp.Basic:
        return self.args[1]


class Plus(_Binary):
    """left + right"""

    __slots__ = ()


class Minus(_Binary):
    """left - right"""

    __slots__ = ()


class Times(_Binary):
    """left * right: elementwise, or an operator or matrix scaled by a coefficient."""

    __slots__ = ()


class Over(_Binary):
    """left / right, elementwise."""

    __slots__ = ()


class Apply(_Binary):
    """left @ right: operator on field, operator on operator, field times channel-mixing matrix."""

    __slots__ = ()


class Negative(Node):
    """-inner"""

    __slots__ = ()

    @property
    def inner(self) -> sp.Basic:
        return self.args[0]


class Power(Node):
    """base ** exponent, with a whole-number exponent; an operator power for operators."""

    __slots__ = ()

    @property
    def base(self) -> sp.Basic:
        return self.args[0]

    @property
    def exponent(self) -> int:
        return int(self.args[1])  # type: ignore[call-overload]


class Call(Node):
    """function(argument), elementwise."""

    __slots__ = ()

    def __new__(cls, function: str | Str, argument: sp.Basic) -> Call:
        return super().__new__(cls, Str(str(function)), argument)

    @property
    def function(self) -> str:
        return str(self.args[0].name)  # type: ignore[attr-defined]

    @property
    def argument(self) -> sp.Basic:
        return self.args[1]


def field(name: str) -> Name:
    return Name(name, Kind.FIELD)


def operator(name: str) -> Name:
    return Name(name, Kind.OPERATOR)


@lru_cache(maxsize=4096)
def kind_of(node: sp.Basic) -> Kind:
    """The kind of a tree; raises TypeMismatch where it has none."""
    return _KINDS(node)


class _Kinds(Fold[Kind]):
    """The kind of a node from those of its parts."""

    def number(self, node: sp.Rational) -> Kind:
        return Kind.SCALAR if is_decimal(node) else self.other(node)

    def name(self, node: Name) -> Kind:
        return node.kind

    def negative(self, node: Negative) -> Kind:
        return kind_of(node.inner)

    def plus(self, node: Plus | Minus) -> Kind:
        return _sum_kind(kind_of(node.left), kind_of(node.right))

    minus = plus

    def times(self, node: Times) -> Kind:
        return _product_kind(kind_of(node.left), kind_of(node.right))

    def over(self, node: Over) -> Kind:
        return _quotient_kind(kind_of(node.left), kind_of(node.right))

    def apply(self, node: Apply) -> Kind:
        return _apply_kind(kind_of(node.left), kind_of(node.right))

    def power(self, node: Power) -> Kind:
        return _power_kind(kind_of(node.base), node.exponent)

    def call(self, node: Call) -> Kind:
        return _call_kind(node.function, kind_of(node.argument))


_KINDS = _Kinds()


def is_decimal(number: sp.Rational) -> bool:
    """Whether a number is >= 0 with finitely many decimals, so that the language writes it as one literal."""
    rest = int(number.q)
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return bool(number >= 0 and rest == 1)


def join(left: Kind, right: Kind) -> Kind:
    """Kind of an elementwise combination, by broadcasting."""
    if left is right or right is Kind.SCALAR:
        return left
    return right if left is Kind.SCALAR else Kind.FIELD


def _sum_kind(left: Kind, right: Kind) -> Kind:
    if left is right:
        return left
    pair = {left, right}
    if pair <= ELEMENTWISE:
        return join(left, right)
    if Kind.OPERATOR in pair and Kind.FIELD in pair:
        remedy = "apply the operator to a field first, as in A@H"
    elif Kind.OPERATOR in pair:
        remedy = "write the identity as I, as in I - A or 2*I - A"
    else:
        remedy = "multiply the matrix from the right first, as in H@W"
    raise TypeMismatch("two terms of one kind", f"{left} and {right}", remedy)


def _product_kind(left: Kind, right: Kind) -> Kind:
    if {left, right} <= ELEMENTWISE:
        return join(left, right)
    if right is Kind.OPERATOR and left in (Kind.SCALAR, Kind.CHANNEL, Kind.NODE):
        return Kind.OPERATOR
    if left is Kind.OPERATOR and right in (Kind.SCALAR, Kind.CHANNEL):
        return Kind.OPERATOR
    if Kind.MATRIX in (left, right) and Kind.SCALAR in (left, right):
        return Kind.MATRIX
    if left is Kind.OPERATOR and right is Kind.NODE:
        remedy = "put a node coefficient on the left, as in beta*A@H"
    elif left is Kind.OPERATOR:
        remedy = "operators are applied with @, as in A@H (use A@H, not A*H)"
    elif right is Kind.OPERATOR:
        remedy = "operators act from the left and are applied with @, as in A@H"
    else:
        remedy = "a mixing matrix is multiplied with @, as in H@W"
    raise TypeMismatch("elementwise factors (fields and coefficients)", f"{left} * {right}", remedy)


def _quotient_kind(left: Kind, right: Kind) -> Kind:
    if right in ELEMENTWISE and (left in ELEMENTWISE or right is Kind.SCALAR):
        return join(left, right) if left in ELEMENTWISE else left
    raise TypeMismatch(
        "a divisor that is a number, a coefficient or a field",
        f"{left} / {right}",
        "operators and matrices have no elementwise inverse here; divide by a scalar",
    )


def _apply_kind(left: Kind, right: Kind) -> Kind:
    if left is Kind.OPERATOR and right in (Kind.OPERATOR, Kind.FIELD, Kind.NODE):
        return right
    if left is Kind.FIELD and right is Kind.MATRIX:
        return Kind.FIELD
    if left is Kind.MATRIX and right is Kind.MATRIX:
        return Kind.MATRIX
    if right is Kind.OPERATOR:
        remedy = "operators act from the left: write A@H, not H@A"
    elif left is Kind.OPERATOR and right is Kind.MATRIX:
        remedy = "mix channels after the operator: write A@H@W"
    elif left is Kind.OPERATOR:
        remedy = "apply the operator to a field and scale the result, as in beta*(A@H)"
    elif left is Kind.MATRIX:
        remedy = "a mixing matrix acts from the right: write H@W"
    else:
        remedy = "use * for elementwise products, as in H*H"
    raise TypeMismatch("operator @ field, operator @ operator or field @ matrix", f"{left} @ {right}", remedy)


def _power_kind(base: Kind, exponent: int) -> Kind:
    if base is Kind.MATRIX:
        raise TypeMismatch("a field, coefficient or operator as base", "matrix", "write H@W@W")
    if base is Kind.OPERATOR and exponent < 0:
        raise TypeMismatch("an operator power >= 0", str(exponent), "operators are not inverted here")
    return base


def _call_kind(function: str, argument: Kind) -> Kind:
    if is_key(function) and argument is not Kind.FIELD:
        name = short_name(function)
        raise TypeMismatch(
            f"a field inside {name}(...), which is learned", str(argument), f"write {name}(H), or {name}(alpha*H)"
        )
    if argument in ELEMENTWISE:
        return argument
    raise TypeMismatch(
        f"a field or coefficient inside {function}(...)",
        str(argument),
        f"functions act elementwise: write {function}(A@H), not {function}(A)",
    )


def names_in(node: sp.Basic) -> frozenset[Name]:
    """Every name that occurs in a tree."""
    atoms: Any = node.atoms(Name) if not isinstance(node, Name) else {node}
    return frozenset(atoms)
