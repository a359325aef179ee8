"""Classes of sympy for registered functions whose formula the language cannot write, such as x*(1 + erf(x))/2.

They stay closed: what is known of f(x) and f'(x) is what their records say, and the formula is put in only where values
or equalities are asked for.
"""

from __future__ import annotations

from typing import Any, ClassVar

import sympy as sp

from rdgraph.syntax.function_record import Span
from rdgraph.syntax.functions import FUNCTIONS


class FormulaFunction(sp.Function):
    """f(x) of a formula in one letter; subclasses are made by `formula_class`."""

    is_real = True
    formula: ClassVar[sp.Lambda]
    slope: ClassVar[Any] = None

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        return cls.formula(sp.S.Zero) if x.is_zero else None

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        if self.slope is not None:
            return self.slope(self.args[0])
        letter = self.formula.variables[0]
        return sp.diff(self.formula.expr, letter).xreplace({letter: self.args[0]})

    def _eval_evalf(self, precision: int) -> sp.Expr:
        return self.formula(self.args[0])._eval_evalf(precision)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _applied, (type(self).__name__, self.args[0])


def formula_class(name: str, formula: sp.Lambda, values: Span | None, slope: Any = None) -> Any:
    """The class of f(x) = formula(x), whose values lie in a span and whose derivative is the class `slope`."""
    known: dict[str, Any] = {"formula": formula, "slope": slope}
    if values is not None and values.lower.is_nonnegative:
        known["is_nonnegative"] = True
    if values is not None and values.upper.is_nonpositive:
        known["is_nonpositive"] = True
    metaclass: Any = type(FormulaFunction)
    return metaclass(name, (FormulaFunction,), known)


def _applied(name: str, argument: sp.Expr) -> sp.Expr:
    """f(x) by the name of its class; functions travel between processes that have registered them."""
    kinds = {kind.__name__: kind for kind in FUNCTIONS.classes()}
    return kinds[name](argument) if name in kinds else FUNCTIONS[name].sympy(argument)
