"""Divisions and roots that cancel: H**2/H is H, but it is not defined where H = 0, and the normal form says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.language.normal_form import Act, Algebra, Mix, State
from rdgraph.reals.domain import Domain
from rdgraph.reals.regions import defining_conditions
from rdgraph.systems.canonical.function_identities import canonical
from rdgraph.systems.canonical.standard_form import standard_form

# ---------------------------------------------------------------------- cancelling functions
# Functions that cancel: relu(H) - relu(-H) is H, so an equation with it is linear.

#: Most different functions of a sum that is simplified.
MAX_CALLS = 8


def without_cancelling(normal: sp.Expr, algebra: Algebra) -> sp.Expr:
    """A normal form with the sums replaced whose functions cancel completely; everything else is unchanged.

    Sums with divisions or roots that are not defined for all states stay too: their simplified forms would be defined.

    >>> from rdgraph.systems.parser import parse
    >>> for text in ("A@H + relu(H) - relu(-H) + tanh(H)", "H*sin(H)**2 + H*cos(H)**2", "tanh(H) - sigmoid(H)"):
    ...     system = parse(text)
    ...     print(without_cancelling(system.algebra.normal(system.expression), system.algebra))
    H + tanh(H) + A@H
    H
    tanh(H) - sigmoid(H)
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
    """Functions and roots, also inside other functions, operators and matrices."""
    roots = {power for power in expression.atoms(sp.Pow) if not power.exp.is_Integer}
    return expression.atoms(sp.Function) | roots


def _sums(normal: sp.Expr, algebra: Algebra) -> Iterator[sp.Expr]:
    """Terms with functions, summed where their canonical forms share a kind of function and a symbol."""
    sums: list[tuple[set[tuple[Any, sp.Basic]], sp.Expr]] = []
    for term in sp.Add.make_args(normal):
        form = _form(term, algebra) if _calls(term) else None
        if form is None:
            continue
        marks = {(call.func, letter) for call in _calls(form) for letter in call.free_symbols}
        for other in [group for group in sums if group[0] & marks]:
            marks, term = marks | other[0], term + other[1]
            sums.remove(other)
        sums.append((marks, term))
    return (whole for _, whole in sums)


# ---------------------------------------------------------------------- cancelled parts
class Nought(sp.Function):
    """Zero where its argument is defined, undefined elsewhere.

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
        """Why the cancelled part prevents answers for all states."""
        where = "all states" if self.has(State) else "nodes where a mask is 0"
        return f"{self.args[0]} cancels, but it is not defined for {where}"

    def _eval_derivative(self, letter: sp.Symbol) -> sp.Expr:
        """The slope, undefined where the argument is."""
        return self if self.has(letter) else sp.S.Zero

    def _sympystr(self, printer: Any) -> str:
        return f"0*{printer._print(self.args[0])}".replace("0*1/", "0/", 1)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        """LaTeX, to the power `exp` where one is given."""
        text = rf"0 \cdot {printer._print(self.args[0])}"
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"


def with_cancelled(tree: sp.Basic, algebra: Algebra, domain: Callable[[], Domain]) -> sp.Expr:
    """The normal form of a tree after cancellation; `Nought` marks divisions and roots that cancelled.

    Parts defined for all states leave no mark. The domain is computed only where something cancelled.

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
    plain = standard_form(without_cancelling(normal, algebra), algebra)
    return sp.Add(plain, *_lost(normal, parts, algebra, domain))


def where_defined(normal: sp.Expr) -> sp.Expr:
    """A normal form without the marks of undefined states."""
    return normal.replace(Nought, lambda part: sp.S.Zero) if normal.has(Nought) else normal


def _lost(normal: sp.Expr, parts: Iterable[sp.Expr], algebra: Algebra, domain: Callable[[], Domain]) -> list[sp.Expr]:
    """A `Nought` for every part with more conditions on the states than the normal form."""
    asked = {part: needed for part in dict.fromkeys(parts) if (needed := _conditions(part, algebra))}
    if not asked:
        return []
    remaining = _conditions(normal, algebra)
    lost = []
    for part, conditions in asked.items():
        gone = [condition for condition in conditions if condition not in remaining]
        if gone and not _hold(gone, remaining, domain()):
            lost.append(Nought(part))
            remaining = [*remaining, *gone]
    return lost


def _conditions(expression: sp.Expr, algebra: Algebra) -> list[sp.Basic]:
    """The conditions on states and masks under which an expression is defined."""
    return [c for c in defining_conditions(expression) if c.has(State, Act, Mix, *algebra.masks)]


def _hold(conditions: Iterable[sp.Basic], given: Iterable[sp.Basic], domain: Domain) -> bool:
    """Whether conditions are proved on a domain, for all values of averages and mixtures."""
    wanted, known = list(conditions), list(given)
    atoms: set[sp.Expr] = set().union(*(c.atoms(Act, Mix) for c in (*wanted, *known)))
    letters = {atom: sp.Dummy("z", real=True) for atom in atoms}
    wide = domain.where(*(c.xreplace(letters) for c in known))
    return all(wide.proves(c.xreplace(letters)) is True for c in wanted)
