"""`FUNCTIONS`: the elementwise functions of the language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import sympy as sp

from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.vocabulary.function_records import (
    BUILT_IN,
    REALS,
    ElementwiseFunction,
    Monotone,
    Span,
    relu,
    sigmoid,
    softplus,
)
from rdgraph.vocabulary.learned_functions import LearnedCall, is_key, learned_classes, learned_record

__all__ = [
    "BUILT_IN",
    "FUNCTIONS",
    "REALS",
    "ElementwiseFunction",
    "Monotone",
    "Span",
    "at_zero",
    "in_exponentials",
    "record_of",
    "relu",
    "sigmoid",
    "softplus",
]


class FunctionRegistry(Mapping[str, ElementwiseFunction]):
    """Functions by name: the built-in ones, and those that `add` registers and `remove` removes.

    A name keeps its meaning for the life of the process, since systems cache their results: it can be registered again
    only with the same definition. `version` counts the changes. A learned function is found by its key, which is its
    declaration, without registration.

    >>> FUNCTIONS["tanh"].range, "gelu_of_nobody" in FUNCTIONS
    (Span(lower=-1, upper=1, has_lower=False, has_upper=False), False)
    """

    def __init__(self, first: Iterable[ElementwiseFunction]) -> None:
        self._first = {function.name: function for function in first}
        self._known = dict(self._first)
        self._by_class = {function.sympy: function for function in self._first.values()}
        self._meanings: dict[str, Any] = {}
        self._slopes: dict[str, ElementwiseFunction] = {}
        self.version = 0

    def __getitem__(self, name: str) -> ElementwiseFunction:
        if is_key(name):
            return learned_record(name)
        if name not in self._known:
            raise UnknownName("function", str(name), self._known)
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._known or (isinstance(name, str) and is_key(name))

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._known))

    def __len__(self) -> int:
        return len(self._known)

    def add(self, function: ElementwiseFunction, meaning: Any, slope: ElementwiseFunction | None = None) -> None:
        """Register a function, and its slope where that is a separate class; `meaning` is the definition to compare."""
        if function.name in self._known:
            raise InvalidArgument(f"the name {function.name!r} is taken by another function; choose a free name")
        if self._meanings.setdefault(function.name, meaning) != meaning:
            raise InvalidArgument(
                f"expected the definition that {function.name!r} had before in this process, "
                f"{self._meanings[function.name]}, got {meaning}; choose another name"
            )
        self.version += 1
        self._known[function.name] = function
        self._by_class[function.sympy] = function
        if slope is not None:
            self._slopes[function.name] = slope
            self._by_class[slope.sympy] = slope

    def remove(self, name: str) -> None:
        """Remove a registered function from the language."""
        if name in self._first:
            raise InvalidArgument(f"{name!r} is built in and cannot be removed; only registered functions can")
        self.version += 1
        del self._by_class[self[name].sympy]
        del self._known[name]
        if slope := self._slopes.pop(name, None):
            del self._by_class[slope.sympy]

    def classes(self) -> dict[type, ElementwiseFunction]:
        """The records by sympy class, slopes of registered and learned functions included."""
        return {kind: record for kind, record in self._by_class.items() if isinstance(kind, type)} | learned_classes()

    def of_class(self, kind: Any) -> ElementwiseFunction | None:
        """The function of a sympy class; None for other classes."""
        if isinstance(kind, type) and issubclass(kind, LearnedCall):
            return learned_record(kind.key, kind.order)
        return self._by_class.get(kind)


FUNCTIONS = FunctionRegistry(BUILT_IN)


def record_of(expression: sp.Basic) -> ElementwiseFunction | None:
    """The record of the function whose value an expression is; None for everything else.

    >>> x = sp.Symbol("x", real=True)
    >>> record_of(sp.tanh(x)).name, record_of(x + 1)
    ('tanh', None)
    """
    return FUNCTIONS.of_class(expression.func)


def in_exponentials(expression: sp.Basic) -> sp.Basic:
    """The expression with tanh, sigmoid and the like as rational functions of exp.

    >>> in_exponentials(sigmoid(sp.Symbol("x", real=True)))
    1 - 1/(exp(x) + 1)
    """

    def written(call: sp.Expr) -> sp.Expr:
        record = FUNCTIONS.of_class(call.func)
        return record.rewriting(call.args[0]) if record is not None and record.rewriting is not None else call

    return expression.replace(_is_rational_in_exp, written)


def _is_rational_in_exp(expression: sp.Basic) -> bool:
    record = record_of(expression)
    return record is not None and record.rewriting is not None and record.pieces is None


def at_zero(expression: sp.Expr) -> sp.Expr:
    """The expression with f(0) evaluated for functions that sympy leaves unevaluated.

    >>> at_zero(softplus(0) + sigmoid(0))
    1/2 + log(2)
    """

    def value(call: sp.Expr) -> sp.Expr:
        record = record_of(call)
        return call if record is None or record.at_zero is None else record.at_zero

    return expression.replace(lambda e: isinstance(e, sp.Function) and e.args == (sp.S.Zero,), value)
