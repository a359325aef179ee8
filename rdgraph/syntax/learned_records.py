"""Records of learned functions: classes of sympy without a formula, known by what is declared of them alone.

The class of a function and those of its derivatives follow from its key, so an expression travels between processes
by itself, and two functions with one name and two declarations are never taken for each other.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.syntax.function_record import ElementwiseFunction, Monotone, Span
from rdgraph.syntax.learned_function import LearnedFunction

#: Names of Greek letters are written as such.
_GREEK = ("phi", "psi", "chi", "zeta", "xi", "eta", "theta", "rho", "sigma", "omega", "tau")


class LearnedCall(sp.Function):
    """The value of a learned function, or of a derivative of it; subclasses are made by `learned_class`."""

    is_real = True
    is_number = False  # phi(0) has no letters, and yet nobody can compute it
    key: ClassVar[str]
    order: ClassVar[int]
    is_odd_function: ClassVar[bool] = False
    is_even_function: ClassVar[bool] = False

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        if cls.is_odd_function and x.is_zero:
            return sp.S.Zero
        if (cls.is_odd_function or cls.is_even_function) and x.could_extract_minus_sign():
            return -cls(-x) if cls.is_odd_function else cls(-x)
        return None

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return learned_class(self.key, self.order + 1)(self.args[0])

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _applied, (self.key, self.order, self.args[0])


#: Every class that was made: one key has one class, as long as the process lives.
_CLASSES: dict[tuple[str, int], Any] = {}


def learned_class(key: str, order: int = 0) -> Any:
    """The class of a learned function, or of one of its derivatives.

    >>> phi = learned_class(LearnedFunction("phi", odd=True).key)
    >>> x = sp.Symbol("x", real=True)
    >>> phi(-x) + phi(x), phi(0), sp.diff(phi(2 * x), x)
    (0, 0, 2*phi_slope(2*x))
    """
    if (key, order) in _CLASSES:
        return _CLASSES[key, order]
    declared = LearnedFunction.of_key(key)
    suffix = {0: "", 1: "_slope", 2: "_curvature"}.get(order, f"_derivative_{order}")
    known: dict[str, Any] = {"key": key, "order": order}
    if declared.odd:
        known["is_odd_function" if order % 2 == 0 else "is_even_function"] = True
    values = _values(declared, order)
    if values is not None and values.lower.is_nonnegative:
        known["is_nonnegative"] = True
    if values is not None and values.upper.is_nonpositive:
        known["is_nonpositive"] = True
    metaclass: Any = type(LearnedCall)
    return _CLASSES.setdefault((key, order), metaclass(declared.name + suffix, (LearnedCall,), known))


def learned_classes() -> dict[type, ElementwiseFunction]:
    """The classes of all learned functions that were met, and of their derivatives, with their records."""
    return {kind: learned_record(key, order) for (key, order), kind in tuple(_CLASSES.items())}


@cache
def learned_record(key: str, order: int = 0) -> ElementwiseFunction:
    """The record of a learned function or of a derivative: facts, and no values."""
    declared = LearnedFunction.of_key(key)
    kind, name = learned_class(key, order), declared.name
    marks = "'" * order
    is_odd = declared.odd and order % 2 == 0
    return ElementwiseFunction(
        key if order == 0 else kind.__name__, kind, lambda u: learned_class(key, order + 1)(u), _latex(name, marks),
        numpy=lambda x: _no_values(name), torch=None, ball=lambda x: _enclosed(declared, order, x),
        range=_values(declared, order), slope=_values(declared, order + 1),
        monotone=Monotone(declared.monotone) if declared.monotone is not None and order == 0 else None,
        at_zero=sp.S.Zero if is_odd else None, reflection=_reflection(declared.odd, order), is_sharp=False,
        has_straight_tails=order == 0,
    )  # fmt: skip


def _values(declared: LearnedFunction, order: int) -> Span | None:
    return {0: declared.values, 1: declared.slope}.get(order)


def _reflection(odd: bool, order: int) -> Any:
    if not odd:
        return None
    return (lambda x, y: -y) if order % 2 == 0 else (lambda x, y: y)


def _latex(name: str, marks: str) -> str:
    letter = rf"\{name}" if name in _GREEK else rf"\operatorname{{{{{name.replace('_', chr(92) + '_')}}}}}"
    return rf"{letter}{marks}\left({{}}\right)"


def _no_values(name: str) -> Any:
    raise NotApplicable(
        f"expected a function with values, got {name}, which is learned; give its control values by name, as in "
        f"coefficients={{{name!r}: ...}}"
    )


def _enclosed(declared: LearnedFunction, order: int, x: Any) -> Any:
    """A ball that holds f(x) for every function with what is declared."""
    from flint import arb, fmpq

    def hull(span: Span | None) -> Any:
        if span is None or not span.is_bounded:
            return arb(0, arb("inf"))
        lower, upper = (arb(fmpq(int(end.p), int(end.q))) for end in (span.lower, span.upper))
        return lower.union(upper)

    values, place = hull(_values(declared, order)), arb(x)
    if declared.odd and order == 0 and place.is_finite():
        cone = place * hull(declared.slope)
        return cone if declared.bound is None else values.intersection(cone)
    return values


def _applied(key: str, order: int, argument: sp.Expr) -> sp.Expr:
    return learned_class(key, order)(argument)
