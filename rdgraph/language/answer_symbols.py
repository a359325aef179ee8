"""The symbols of all answers, and `public`, which replaces internal symbols by plain ones.

Internal symbols know their signs so that sympy can simplify; public results use plain `Symbol(name)`, so that
`expr.subs(Symbol("beta"), 2)` works.
"""

from __future__ import annotations

from typing import TypeVar

import sympy as sp

lam = sp.Symbol("lam", nonnegative=True)
T = sp.Symbol("T", positive=True)
tau = sp.Symbol("tau", positive=True)
R = sp.Symbol("R", positive=True)
s = sp.Symbol("s", positive=True)
h = sp.Symbol("h", real=True)
h0 = sp.Symbol("h0", real=True)

E = TypeVar("E", bound=sp.Basic)


def public(expression: E) -> E:
    """The same expression in plain symbols."""
    return expression.xreplace({x: sp.Symbol(x.name) for x in expression.free_symbols})  # type: ignore[attr-defined]
