"""`System`: one equation dH/dt = f(H), with its coefficient kinds and assumptions. Everything starts here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sympy as sp

from rdgraph.algebra.normal_form import H0, Algebra, H
from rdgraph.decisions.domain import Domain
from rdgraph.errors import InvalidArgument, LanguageError, NotApplicable
from rdgraph.methods.runge_kutta import Tableau
from rdgraph.syntax.answer_symbols import public
from rdgraph.syntax.assumptions import Assumptions, read_statements
from rdgraph.syntax.exact_numbers import exact_number
from rdgraph.syntax.printer import to_latex, to_text
from rdgraph.syntax.reader import STRUCTURAL, USUAL_COEFFICIENTS, Vocabulary, check_new_name, read_expression
from rdgraph.syntax.sympy_form import number_node, to_sympy
from rdgraph.syntax.tree import ELEMENTWISE, Kind, Name, kind_of, names_in
from rdgraph.systems import responses
from rdgraph.systems.coefficient_domain import check_consistency, coefficient_domain
from rdgraph.systems.spelling import Spelling
from rdgraph.systems.structure import Structure, structure_of


@dataclass(frozen=True, repr=False)
class System:
    """A graph reaction-diffusion system dH/dt = expression.

    `str` gives one line that `rdgraph.parse` reads back to an equal system; what differs from the defaults
    (kinds of coefficients, signs) and functions that are declared with the equation follow the word `where`.
    `expression` has such functions written out; `spelling` keeps them.

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
    spelling: Spelling | None = None

    def __post_init__(self) -> None:
        if self.spelling is not None and self.spelling.unfolded != self.expression:
            raise InvalidArgument("expected a spelling of the expression, got that of another; give spelling=None")
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
        notes = self.spelling.declarations() if self.spelling else []
        notes += [f"{name} {kind}" for name, kind in used.items() if declared.get(name) is not kind]
        notes += self.assumptions.about(used).texts()
        body = self.spelling.expression if self.spelling else self.expression
        return to_text(body) + (f" where {', '.join(notes)}" if notes else "")

    def __repr__(self) -> str:
        return f"dH/dt = {self}"

    def _repr_latex_(self) -> str:
        return f"$\\dot{{\\mathbf{{H}}}} = {self.latex()}$"

    @property
    def text(self) -> str:
        """The right-hand side alone, without declarations, and with declared functions written out."""
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
    def domain(self) -> Domain:
        """The admissible values of the coefficients; contradictory assumptions raise `AssumptionError`."""
        return coefficient_domain(self.assumptions, self.algebra)

    @cached_property
    def structure(self) -> Structure:
        """The normal form sorted into generator, source, reaction and the rest."""
        return structure_of(self.normal, self.algebra.kinds)

    @cached_property
    def generator_symbol(self) -> sp.Expr:
        """p(lam) in the package's own symbols; raises NotApplicable with the reason where there is none."""
        return responses.generator_symbol(self.structure)

    @cached_property
    def source_symbol(self) -> sp.Expr:
        """q(lam), the factor of H0; raises NotApplicable where the forcing is not a filter of H0."""
        return responses.source_symbol(self.structure)

    @property
    def has_response(self) -> bool:
        """Whether the system is linear with a symbol, so that its frequencies have gains."""
        try:
            return bool(self.generator_symbol is not None and self.source_symbol is not None)
        except NotApplicable:
            return False

    @cached_property
    def sympy(self) -> sp.MatrixExpr:
        """The right-hand side as a sympy matrix expression in H (n x d), A (n x n), W (d x d)."""
        return to_sympy(self.expression)

    def latex(self) -> str:
        """LaTeX of the right-hand side, term by term as written."""
        return self.spelling.latex() if self.spelling else to_latex(self.expression)

    # ------------------------------------------------------------------ the questions people ask first
    def symbol(self) -> sp.Expr:
        """Generator symbol p(lam): on an eigenvector of L with eigenvalue lam, H' = p(lam) H."""
        return public(self.generator_symbol)

    def response(self, T: Any = None, method: str | Tableau = "exact", step: Any = None) -> sp.Expr:
        """Gain of the frequency lam after time T, exact or under a Runge-Kutta method with a fixed step."""
        return public(responses.gain(self.structure, T, method, step))

    # ------------------------------------------------------------------ other systems made of this one
    @classmethod
    def build(
        cls,
        expression: sp.Basic,
        kinds: Mapping[str, Kind],
        assumed: Sequence[str],
        name: str | None = None,
        spelling: Spelling | None = None,
    ) -> System:
        """A system of a tree, declared kinds and texts of assumptions; what concerns other letters is left out."""
        letters = {n.name for n in names_in(expression)}
        usual = dict.fromkeys(USUAL_COEFFICIENTS, Kind.SCALAR)
        kept = {k: v for k, v in kinds.items() if k in letters and usual.get(k) is not v}
        stated = Assumptions.read(assumed, kinds)
        if stated.relations:
            check_consistency(stated, kinds)
        return cls(expression, tuple(sorted(kept.items())), stated.about(letters), name, spelling)

    def declared(self, kinds: Mapping[str, Kind], assumed: Sequence[str]) -> System:
        """This system under further declarations and assumptions."""
        if not kinds and not assumed:
            return self
        merged = {**dict(self.kinds), **kinds}
        renamed = {n: Name(n.name, merged[n.name]) for n in names_in(self.expression) if n.name in merged}
        restated, _ = read_statements(assumed, merged)
        kept = [f"{name} {sign}" for name, sign in self.assumptions.signs if name not in restated]
        kept += map(str, self.assumptions.relations)
        spelling = self.spelling.replaced(renamed) if self.spelling else None
        return System.build(self.expression.xreplace(renamed), merged, [*kept, *assumed], self.name, spelling)

    def replace(self, **values: Any) -> System:
        """The system with coefficients set to numbers or texts of coefficients, as in `s.replace(beta=0)`."""
        unknown = set(values) - set(self.coefficients)
        if unknown:
            raise InvalidArgument(f"expected coefficients among {list(self.coefficients)}, got {sorted(unknown)}")
        vocabulary = Vocabulary.standard(dict(self.kinds))
        trees = {}
        for node in names_in(self.expression):
            if node.name in values:
                value = values[node.name]
                trees[node] = read_expression(value, vocabulary) if isinstance(value, str) else _number(value)
        spelling = self.spelling.replaced(trees) if self.spelling else None
        texts = list(self.assumptions.texts())
        return System.build(self.expression.xreplace(trees), dict(self.kinds), texts, spelling=spelling)


def _number(value: Any) -> sp.Basic:
    try:
        return number_node(exact_number(value, "number"))
    except InvalidArgument:
        raise InvalidArgument(
            f"expected a number or a text, got {type(value).__name__}; give 2, 0.5 or '2*gamma'"
        ) from None
