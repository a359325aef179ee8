"""`System`: one equation dH/dt = f(H), with its coefficient kinds and assumptions. Everything starts here."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy as sp

from rdgraph.assumptions import Assumptions
from rdgraph.errors import LanguageError
from rdgraph.language import STRUCTURAL, Vocabulary, check_new_name
from rdgraph.nodes import ELEMENTWISE, Kind, kind_of, names_in
from rdgraph.normal import H0, Algebra, H
from rdgraph.printing import to_latex, to_text

if TYPE_CHECKING:
    from rdgraph.structure import Structure
    from rdgraph.tableaux import Tableau


@dataclass(frozen=True)
class System:
    """A graph reaction-diffusion system dH/dt = expression.

    `str` gives one line that `rdgraph.parse` reads back to an equal system; what differs from the defaults
    (kinds of coefficients, signs) follows the word `where`.

    >>> import rdgraph as rd
    >>> s = rd.parse("-alpha*L@H + beta*H0", {"beta": "channel"}, assume=["beta<0"])
    >>> print(s)
    -alpha*L@H + beta*H0 where beta channel, beta negative
    >>> rd.parse(str(s)) == s
    True
    """

    expression: sp.Basic
    kinds: tuple[tuple[str, Kind], ...] = ()
    assumptions: Assumptions = field(default_factory=Assumptions)
    name: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        kind = kind_of(self.expression)
        if kind is not Kind.FIELD:
            raise LanguageError(
                to_text(self.expression) if kind in ELEMENTWISE or kind is Kind.OPERATOR else "", 0,
                expected="a field: an expression in H", got=f"a {kind}",
                remedy="apply it to the state, as in A@H or beta*H",
            )  # fmt: skip
        for name, _ in self.kinds:
            check_new_name(name)

    def __str__(self) -> str:
        used = self.coefficients
        declared = Vocabulary.standard().kinds
        notes = [f"{name} {kind}" for name, kind in used.items() if declared.get(name) is not kind]
        notes += self.assumptions.about(used).texts()
        return to_text(self.expression) + (f" where {', '.join(notes)}" if notes else "")

    def _repr_latex_(self) -> str:
        return f"$\\dot{{\\mathbf{{H}}}} = {self.latex()}$"

    @property
    def text(self) -> str:
        """The right-hand side alone, without declarations."""
        return to_text(self.expression)

    @cached_property
    def letters(self) -> dict[str, Kind]:
        """Every letter that occurs, with its kind."""
        found: dict[str, Kind] = {n.name: n.kind for n in names_in(self.expression)}
        return dict(sorted(found.items()))

    @cached_property
    def coefficients(self) -> dict[str, Kind]:
        """The coefficients that occur (scalar, channel, node or matrix), with their kinds."""
        return {name: kind for name, kind in self.letters.items() if name not in STRUCTURAL}

    @cached_property
    def algebra(self) -> Algebra:
        """Rules of this system's normal form: L = I - A and nothing else."""
        symbols = {name: self.assumptions.symbol(name) for name in self.letters}
        symbols |= {"H": H, "H0": H0, "M": sp.Symbol("M", real=True)}
        return Algebra(symbols, self.letters)

    @cached_property
    def normal(self) -> sp.Expr:
        """The expanded right-hand side: `*` elementwise, operators as `Act`, mixing as `Mix`."""
        return self.algebra.normal(self.expression)

    @cached_property
    def structure(self) -> Structure:
        """The normal form sorted into generator, source, reaction and the rest."""
        from rdgraph.structure import analyse_structure

        return analyse_structure(self)

    @cached_property
    def sympy(self) -> sp.MatrixExpr:
        """The right-hand side as a sympy matrix expression in H (n x d), A (n x n), W (d x d)."""
        from rdgraph.matrices import to_sympy

        return to_sympy(self.expression)

    def latex(self) -> str:
        """LaTeX of the right-hand side, term by term as written."""
        return to_latex(self.expression)

    def replace(self, **values: Any) -> System:
        """The system with coefficients set to numbers or expressions, as in `s.replace(beta=0)`."""
        from rdgraph.parse import substitute

        return substitute(self, values)

    # ------------------------------------------------------------------ the questions people ask first
    def symbol(self) -> sp.Expr:
        """Generator symbol p(lam): on an eigenvector of L with eigenvalue lam, H' = p(lam) H."""
        from rdgraph.spectral import symbol

        return symbol(self)

    def response(self, T: Any = None, method: str | Tableau = "exact", step: Any = None) -> sp.Expr:
        """Gain of the frequency lam after time T, exact or under a Runge-Kutta method with a fixed step."""
        from rdgraph.spectral import response

        return response(self, T=T, method=method, step=step)
