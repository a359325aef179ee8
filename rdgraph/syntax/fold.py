"""`Fold`: a function of trees that has one rule for each type of node. Every walk over a tree is one of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import sympy as sp

from rdgraph.errors import RdgraphError

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

    A rule gets the node and whatever else the call was given, and calls the fold on the parts it wants. `other` takes
    the nodes for which there is no rule; unless a subclass says what they mean, they raise `TypeMismatch`.

    >>> from rdgraph.syntax.reader import read_expression
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
    rdgraph.syntax.fold.TypeMismatch: expected Name or Plus for Depth, got Times; build expressions with rdgraph.parse
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
        """What the fold says of a node without a rule."""
        known = [name for name, rule in RULES.items() if hasattr(self, rule)]
        known += ["a rational number"] if hasattr(self, "number") else []
        raise TypeMismatch(
            f"{', '.join(known[:-1])} or {known[-1]} for {type(self).__name__.strip('_')}",
            type(node).__name__,
            "build expressions with rdgraph.parse",
        )
