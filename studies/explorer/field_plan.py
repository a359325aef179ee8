"""The right-hand sides as a plan for the page: products with A, one after the other, and a formula for each state."""

from __future__ import annotations

from typing import Any

import sympy as sp

from rdgraph.algebra.normal_form import Act, Mix
from rdgraph.errors import NotApplicable
from rdgraph.syntax.answer_symbols import public
from rdgraph.systems.system import System
from studies.explorer.javascript_source import javascript, letter


def field_plan(system: System) -> dict[str, Any]:
    """Products `{into, of}` in their order, and the rates of the states, all in JavaScript, for one channel.

    Every product is that of A with an elementwise formula in states, coefficients and earlier products; a mixing matrix
    of one channel is a number. The formulas are those of the normal form, which is what is proved and lowered. White
    noise is left out.

    >>> from rdgraph.systems.parser import parse
    >>> field_plan(parse("BS"))["products"]
    [{'into': '$_0', 'of': '$H'}, {'into': '$_1', 'of': '$_0'}]

    Raises:
        NotApplicable: for operators beside A, and for what is too large to multiply out.
    """
    if further := [name for name in system.operators.names if name in system.letters]:
        raise NotApplicable(f"expected an equation in A alone, got the operator {further[0]} beside it")
    lowering = _Lowering()
    rates = [javascript(lowering.replaced(public(system.normals[state]))) for state in system.fields]
    products = [{"into": letter(x.name), "of": javascript(of)} for of, x in lowering.products.items()]
    return {"products": products, "rates": rates}


class _Lowering:
    """Formulas in which words of operators have become letters; equal products share one."""

    def __init__(self) -> None:
        self.products: dict[sp.Expr, sp.Symbol] = {}

    def replaced(self, expression: sp.Basic) -> Any:
        match expression:
            case Act():
                inner = self.replaced(expression.inner)
                for _ in expression.word:
                    inner = self.products.setdefault(inner, sp.Symbol(f"_{len(self.products)}"))
                return inner
            case Mix():
                return self.replaced(expression.inner) * sp.Mul(*expression.word)
        if not expression.args:
            return expression
        return expression.func(*map(self.replaced, expression.args))
