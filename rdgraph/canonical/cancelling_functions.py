"""Functions that cancel: relu(H) - relu(-H) is H, so that an equation with it is linear and is called so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy as sp

from rdgraph.algebra.normal_form import Algebra, State
from rdgraph.canonical.function_identities import canonical
from rdgraph.errors import NotApplicable

#: Sums of more different functions than this stay as they are.
MAX_CALLS = 8


def without_cancelling(normal: sp.Expr, algebra: Algebra) -> sp.Expr:
    """A normal form with the sums replaced whose functions cancel altogether; everything else stays as it was written.

    Sums that are not defined for all states, with divisions or roots, stay too: what they are equal to would be.

    >>> from rdgraph.systems.parser import parse
    >>> for text in ("A@H + relu(H) - relu(-H) + tanh(H)", "H*sin(H)**2 + H*cos(H)**2", "tanh(H) - sigmoid(H)"):
    ...     system = parse(text)
    ...     print(without_cancelling(system.algebra.normal(system.expression), system.algebra))
    H + tanh(H) + A@H
    H
    -sigmoid(H) + tanh(H)
    """
    if len(_calls(normal)) < 2:
        return normal
    for whole in _sums(normal, algebra):
        form = _form(whole, algebra)
        if form is not None and not _calls(form) and not _is_partial(form):
            normal = normal - whole + sp.expand(form)
    return normal


def _form(whole: sp.Expr, algebra: Algebra) -> sp.Expr | None:
    """The canonical form; None for sums that are too long or not defined for all states."""
    if _is_partial(whole) or len(_calls(whole)) > MAX_CALLS:
        return None
    try:
        return canonical(whole, algebra).expression
    except NotApplicable:
        return None


def _is_partial(expression: sp.Expr) -> bool:
    """Whether there are divisions by states or roots of them."""
    powers = [power for power in expression.atoms(sp.Pow) if power.base.has(State)]
    return any(power.exp.is_negative or not power.exp.is_Integer for power in powers)


def _calls(expression: sp.Expr) -> set[sp.Expr]:
    """Functions and roots, those inside of others, of operators and of matrices too."""
    roots = {power for power in expression.atoms(sp.Pow) if not power.exp.is_Integer}
    return expression.atoms(sp.Function) | roots


def _sums(normal: sp.Expr, algebra: Algebra) -> Iterator[sp.Expr]:
    """Terms with functions, summed where their canonical forms have functions of one kind with a letter in common."""
    found: list[tuple[set[tuple[Any, sp.Basic]], sp.Expr]] = []
    for term in sp.Add.make_args(normal):
        form = _form(term, algebra) if _calls(term) else None
        if form is None:
            continue
        marks = {(call.func, letter) for call in _calls(form) for letter in call.free_symbols}
        for other in [group for group in found if group[0] & marks]:
            marks, term = marks | other[0], term + other[1]
            found.remove(other)
        found.append((marks, term))
    return (whole for _, whole in found)
