"""One-step maps as expressions: explicit Euler, iteration and composition, in the language itself.

A map H -> g(H, H0) is kept as a `System` whose expression is g; the same algebra then compares layers with ODE steps.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from rdgraph.syntax.reader import USUAL_COEFFICIENTS
from rdgraph.syntax.sympy_form import number_node
from rdgraph.syntax.tree import Kind, Name, Plus, Times, field
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System


@reads_system
def euler_map(system: System, step: Any = "epsilon") -> System:
    """H + step * f(H), one step of the explicit Euler method as a system.

    Args:
        system: dH/dt = f(H).
        step: the name of a coefficient, or a number.

    Returns:
        The map as a system whose right-hand side is the next state.

    Raises:
        InvalidArgument: a step that is not rational.

    >>> from rdgraph.systems.parser import parse
    >>> euler_map(parse("SGC"), step=1).normal
    A@H
    """
    if isinstance(step, str):
        factor: sp.Basic = Name(step, Kind.SCALAR)
        kinds = system.kinds if step in USUAL_COEFFICIENTS else (*system.kinds, (step, Kind.SCALAR))
    else:
        factor, kinds = number_node(sp.sympify(step)), system.kinds
    return System.of(Plus(field("H"), Times(factor, system.expression)), tuple(sorted(kinds)), system.assumptions)


def compose(outer: System, inner: System) -> System:
    """outer(inner(H)): the inner map is put in the place of H."""
    expression = outer.expression.xreplace({field("H"): inner.expression})
    kinds = dict(outer.kinds) | dict(inner.kinds)
    return System.of(expression, tuple(sorted(kinds.items())), outer.assumptions)


def iterate(step_map: System, count: int) -> System:
    """A map applied `count` times."""
    result = step_map
    for _ in range(count - 1):
        result = compose(step_map, result)
    return result
