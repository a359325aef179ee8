"""Divisions and roots that cancel: H**2/H is H, but it is not defined where H = 0, and the normal form says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import sympy as sp

from rdgraph.algebra.normal_form import Act, Algebra, Mix, State
from rdgraph.canonical.cancelling_functions import without_cancelling
from rdgraph.decisions.definedness import defining_conditions
from rdgraph.decisions.domain import Domain


class Nought(sp.Function):
    """Zero wherever its argument has a value, and without a value elsewhere.

    >>> H = State("H")
    >>> print(Nought(1 / H), Nought(sp.Integer(3)), H + Nought(1 / H), sep=", ")
    0/H, 0, H + 0/H
    """

    nargs = 1
    is_real = True
    is_commutative = True

    @classmethod
    def eval(cls, part: sp.Expr) -> sp.Expr | None:
        return sp.S.Zero if part.is_Number and part.is_finite else None

    @property
    def reason(self) -> str:
        """Why it stands in the way of answers for all states."""
        return f"{self.args[0]} cancels, but it is not defined for all states"

    def _eval_derivative(self, letter: sp.Symbol) -> sp.Expr:
        """The slope has no value either where the argument has none."""
        return self if self.has(letter) else sp.S.Zero

    def _sympystr(self, printer: Any) -> str:
        return f"0*{printer._print(self.args[0])}".replace("0*1/", "0/", 1)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        """LaTeX, to the power `exp` where one is given."""
        text = rf"0 \cdot {printer._print(self.args[0])}"
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"


def with_cancelled(tree: sp.Basic, algebra: Algebra, domain: Callable[[], Domain]) -> sp.Expr:
    """The normal form of a tree without what cancels; `Nought` stands for divisions and roots that went with it.

    What has a value for all states leaves nothing behind. The domain is asked for only where something cancelled.

    >>> from rdgraph.systems.parser import parse
    >>> for text in ("beta*H**2/H", "H*(A@H)/(A@H)", "H*exp(H)/exp(H)", "beta/H"):
    ...     system = parse(text)
    ...     print(with_cancelled(system.expression, system.algebra, lambda: system.domain))
    H*beta + 0/H
    H + 0/(A@H)
    H
    beta/H
    """
    normal, parts = algebra.normal_and_parts(tree)
    return sp.Add(without_cancelling(normal, algebra), *_lost(normal, parts, algebra, domain))


def where_defined(normal: sp.Expr) -> sp.Expr:
    """The values of a normal form at the states where it has some."""
    return normal.replace(Nought, lambda part: sp.S.Zero) if normal.has(Nought) else normal


def _lost(normal: sp.Expr, parts: Iterable[sp.Expr], algebra: Algebra, domain: Callable[[], Domain]) -> list[sp.Expr]:
    """A `Nought` for every part that asks more of the states than the normal form does."""
    asked = {part: found for part in dict.fromkeys(parts) if (found := _conditions(part, algebra))}
    if not asked:
        return []
    kept = _conditions(normal, algebra)
    lost = []
    for part, conditions in asked.items():
        gone = [condition for condition in conditions if condition not in kept]
        if gone and not _hold(gone, kept, domain()):
            lost.append(Nought(part))
            kept = [*kept, *gone]
    return lost


def _conditions(expression: sp.Expr, algebra: Algebra) -> list[sp.Basic]:
    """What an expression asks of states and masks in order to have a value."""
    return [c for c in defining_conditions(expression) if c.has(State, Act, Mix, *algebra.masks)]


def _hold(conditions: Iterable[sp.Basic], given: Iterable[sp.Basic], domain: Domain) -> bool:
    """Whether conditions are proved on a domain, averages and mixtures being any numbers."""
    wanted, known = list(conditions), list(given)
    atoms: set[sp.Expr] = set().union(*(c.atoms(Act, Mix) for c in (*wanted, *known)))
    letters = {atom: sp.Dummy("z", real=True) for atom in atoms}
    wide = domain.where(*(c.xreplace(letters) for c in known))
    return all(wide.proves(c.xreplace(letters)) is True for c in wanted)
