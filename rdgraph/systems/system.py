"""`System`: equations u' = f(u, v, ...) of one or several fields, with coefficient kinds and assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import sympy as sp

from rdgraph.algebra.normal_form import H0, TIME, Algebra, H, State
from rdgraph.canonical.cancelled_parts import with_cancelled
from rdgraph.decisions.domain import Domain
from rdgraph.errors import InvalidArgument, LanguageError, NotApplicable
from rdgraph.methods.runge_kutta import Tableau
from rdgraph.syntax.answer_symbols import public
from rdgraph.syntax.assumptions import Assumptions, read_statements
from rdgraph.syntax.learned_function import LearnedFunction
from rdgraph.syntax.reader import (
    DRIVERS,
    NOISE_LETTER,
    STRUCTURAL,
    TIME_LETTER,
    Vocabulary,
    check_new_name,
    read_expression,
    start_of,
)
from rdgraph.syntax.sympy_form import number_tree, to_sympy
from rdgraph.syntax.tree import COEFFICIENT_KINDS, Kind, Name, kind_of, names_in
from rdgraph.syntax.tree import field as field_name
from rdgraph.systems import responses
from rdgraph.systems.coefficient_domain import check_consistency, coefficient_domain
from rdgraph.systems.coupling import Coupling, coupling_of
from rdgraph.systems.declared_letters import check_free_letters, known_letters, states_of, usual_coefficients
from rdgraph.systems.equation import Equation, split_noise
from rdgraph.systems.further_operators import FurtherOperators
from rdgraph.systems.learned_calls import learned_functions
from rdgraph.systems.matrix_responses import matrix_gain
from rdgraph.systems.spelling import Spelling
from rdgraph.systems.structure import Structure, structure_of
from rdgraph.systems.system_text import declarations, is_plain, system_latex, system_mathml, system_text


@dataclass(frozen=True, repr=False)
class System:
    """A graph reaction-diffusion system: dH/dt = f(H), or one equation for each of several fields.

    `str` gives one line that `rdgraph.parse` reads back to an equal system; what differs from the defaults
    (kinds of coefficients, signs, further operators) and functions that are declared with it follow the word `where`.
    A right-hand side alone is that of dH/dt. Most of what is proved is about such systems: `is_single` says whether
    this is one, and `expression`, `normal` and `structure` are theirs, in the letter H whatever the field is called.

    >>> import rdgraph as rd
    >>> s = rd.parse("-alpha*L@H + beta*H0", {"beta": "channel"}, assume=["beta<0"])
    >>> print(s)
    -alpha*L@H + beta*H0 where beta channel, beta negative
    >>> rd.parse(str(s)) == s
    True
    >>> pair = rd.parse("u' = u*v - Du*L@u; v' = 1 - u*v - Dv*L@v")
    >>> pair.fields, pair.is_single
    (('u', 'v'), False)
    """

    equations: tuple[Equation, ...]
    kinds: tuple[tuple[str, Kind], ...] = ()
    assumptions: Assumptions = field(default_factory=Assumptions)
    name: str | None = field(default=None, compare=False)
    operators: FurtherOperators = field(default_factory=FurtherOperators)

    def __post_init__(self) -> None:
        names = [equation.field for equation in self.equations]
        if not names or len(set(names)) < len(names):
            raise InvalidArgument(f"expected one equation for each field, got {names}; give every field one")
        first = self.equations[0]
        if all(kind_of(equation.expression) is not Kind.FIELD for equation in self.equations):
            raise LanguageError(
                first.written, 0, expected=f"a field: an expression in {first.field}",
                got=f"a {kind_of(first.expression)}",
                remedy=f"apply it to the state, as in A@{first.field} or beta*{first.field}",
            )  # fmt: skip
        for name, _ in self.kinds:
            check_new_name(name)
        learned_functions(self.equations)  # which raises where one name stands for two

    def __str__(self) -> str:
        notes = declarations(self.equations, usual_coefficients(self.equations), self.coefficients)
        notes += self.operators.texts() + list(self.assumptions.about(self.coefficients).texts())
        return system_text(self.equations) + (f" where {', '.join(notes)}" if notes else "")

    def __repr__(self) -> str:
        return f"dH/dt = {self}" if self._is_plain else str(self)

    def _repr_latex_(self) -> str:
        return f"${system_latex(self.equations)}$"

    @property
    def text(self) -> str:
        """The equations alone, without declarations, and with declared functions written out."""
        return system_text(tuple(replace(equation, spelling=None) for equation in self.equations))

    # ------------------------------------------------------------------ what occurs in it
    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The states, in order: every field, and after a field of second order its velocity, as in H, H'."""
        return states_of(self.equations)

    @cached_property
    def letters(self) -> dict[str, Kind]:
        """Every letter that occurs on the right, with its kind."""
        found: dict[str, Kind] = {n.name: n.kind for e in self.equations for n in names_in(e.expression)}
        return dict(sorted(found.items()))

    @cached_property
    def coefficients(self) -> dict[str, Kind]:
        """The coefficients that occur (scalar, channel, node or matrix), with their kinds."""
        others = {*STRUCTURAL, *DRIVERS}
        return {n: kind for n, kind in self.letters.items() if kind in COEFFICIENT_KINDS and n not in others}

    @cached_property
    def learned(self) -> dict[str, LearnedFunction]:
        """The functions that are learned, by name, with what is declared of them."""
        return learned_functions(self.equations)

    @cached_property
    def flow(self) -> dict[str, sp.Basic]:
        """The right-hand sides of first order by state, velocities included and noise left out."""
        trees: dict[str, sp.Basic] = {}
        for equation in self.equations:
            for state, velocity in zip(equation.states, equation.states[1:], strict=False):
                trees[state] = field_name(velocity)
            trees[equation.states[-1]] = split_noise(equation.expression)[0]
        return trees

    @cached_property
    def noise(self) -> dict[str, sp.Basic]:
        """The factor of white noise by state, for the states that have some."""
        parts = {e.states[-1]: split_noise(e.expression)[1] for e in self.equations}
        return {state: factor for state, factor in parts.items() if factor is not None}

    @property
    def is_autonomous(self) -> bool:
        """Whether the time t does not occur."""
        return TIME_LETTER not in self.letters

    @property
    def is_noisy(self) -> bool:
        """Whether white noise xi occurs."""
        return NOISE_LETTER in self.letters

    @property
    def is_single(self) -> bool:
        """Whether it is one autonomous equation of first order in A alone, without noise."""
        return not self._beyond_single

    @property
    def _beyond_single(self) -> list[str]:
        """What makes it more than one equation dH/dt = f(H)."""
        names = ", ".join(equation.field for equation in self.equations)
        second = [equation.field for equation in self.equations if equation.order > 1]
        reasons = [f"has the fields {names}"] if len(self.equations) > 1 else []
        reasons += [f"is of second order in {', '.join(second)}"] if second else []
        reasons += [] if self.is_autonomous else ["depends on the time t"]
        reasons += ["is driven by the noise xi"] if self.is_noisy else []
        further = [name for name in self.operators.names if name in self.letters]
        return reasons + ([f"has the further operators {', '.join(further)}"] if further else [])

    @property
    def _is_plain(self) -> bool:
        """Whether it is written as a right-hand side alone."""
        return is_plain(self.equations)

    def require_single(self) -> None:
        """Raise NotApplicable with the reasons where it is more than one equation dH/dt = f(H)."""
        if reasons := self._beyond_single:
            raise NotApplicable(
                f"expected one autonomous equation of first order in A alone, got {self.text}, which "
                f"{' and '.join(reasons)}"
            )

    def require_autonomous(self, purpose: str) -> None:
        """Raise NotApplicable where the time occurs."""
        if not self.is_autonomous:
            raise NotApplicable(
                f"expected an autonomous system for {purpose}, got {self.text}, which depends on the time t; "
                "freeze the time with replace(t=...)"
            )

    # ------------------------------------------------------------------ exact forms
    @cached_property
    def algebra(self) -> Algebra:
        """Rules of this system's normal forms: L = I - A and nothing else."""
        symbols: dict[str, sp.Symbol] = {name: self.assumptions.symbol(name) for name in self.letters}
        states = [*self.fields, *map(start_of, self.fields)]
        symbols |= {name: State(name) for name in states}
        symbols |= {"H": H, "H0": H0, "M": sp.Symbol("M", real=True), TIME_LETTER: TIME}
        return Algebra(symbols, {**self.letters, **dict.fromkeys(states, Kind.FIELD)})

    @cached_property
    def normals(self) -> dict[str, sp.Expr]:
        """The normal forms of `flow`, by state, without functions that cancel each other."""
        return {state: with_cancelled(x, self.algebra, lambda: self.domain) for state, x in self.flow.items()}

    @cached_property
    def coupling(self) -> Coupling:
        """The normal forms sorted into linear terms between the states, sources, reactions and the rest."""
        return coupling_of(self.fields, self.normals, self.algebra.kinds)

    @cached_property
    def generator_matrix(self) -> sp.Matrix:
        """P(lam), states by states, in the package's own symbols; raises NotApplicable where there is none."""
        self.require_autonomous("a symbol")
        return self.coupling.symbol()

    @cached_property
    def domain(self) -> Domain:
        """The admissible values of the coefficients; contradictory assumptions raise `AssumptionError`."""
        return coefficient_domain(self.assumptions, self.algebra)

    @property
    def sympy(self) -> Any:
        """The right-hand side as a sympy matrix expression in H (n x d), A (n x n), W (d x d).

        For several fields a dictionary, by state.
        """
        if self.is_single:
            return to_sympy(self.equations[0].expression)
        return {state: to_sympy(tree) for state, tree in self.flow.items()}

    # ------------------------------------------------------------------ one autonomous equation of first order
    @cached_property
    def expression(self) -> sp.Basic:
        """The tree of f in dH/dt = f(H); the field is called H here. Raises NotApplicable for other systems."""
        self.require_single()
        return self._single.expression

    @property
    def spelling(self) -> Spelling | None:
        """How the expression was written where functions are declared with it."""
        return self._single.spelling

    @cached_property
    def _single(self) -> Equation:
        (equation,) = self.equations
        letters: dict[sp.Basic, sp.Basic] = {
            field_name(equation.field): field_name("H"),
            field_name(start_of(equation.field)): field_name("H0"),
        }
        return equation if equation.field == "H" else equation.replaced(letters)

    @cached_property
    def normal(self) -> sp.Expr:
        """The expanded right-hand side: `*` elementwise, operators as `Act`, mixing as `Mix`; what cancels is gone."""
        return with_cancelled(self.expression, self.algebra, lambda: self.domain)

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

    def latex(self) -> str:
        """LaTeX of the right-hand side, term by term as written; of all equations where there are several."""
        if self._is_plain:
            return self.equations[0].latex()
        return system_latex(self.equations)

    def mathml(self) -> str:
        """All equations as MathML, which browsers draw by themselves."""
        return system_mathml(self.equations)

    # ------------------------------------------------------------------ the questions people ask first
    def symbol(self) -> sp.Expr | sp.Matrix:
        """Generator symbol p(lam): on an eigenvector of L with eigenvalue lam, H' = p(lam) H.

        For several fields the matrix P(lam), states by states.

        >>> import rdgraph as rd
        >>> rd.parse("u' = -L@u + 2*v; v' = -u").symbol()
        Matrix([
        [-lam, 2],
        [  -1, 0]])
        """
        return public(self.generator_symbol if self.is_single else self.generator_matrix)

    def response(self, T: Any = None, method: str | Tableau = "exact", step: Any = None) -> sp.Expr | sp.Matrix:
        """Gain of the frequency lam after time T, exact or under a Runge-Kutta method with a fixed step.

        For several fields the matrix by which the states at lam are multiplied; noise is left out, which gives means.

        >>> import rdgraph as rd
        >>> rd.parse("H'' = -L@H").response(1, "euler", step=1)
        Matrix([
        [   1, 1],
        [-lam, 1]])
        """
        if self.is_single:
            return public(responses.gain(self.structure, T, method, step))
        P, Q = self.generator_matrix, self.coupling.source_symbol()
        return public(matrix_gain(P.as_immutable(), Q.as_immutable(), T, method, step))

    # ------------------------------------------------------------------ other systems made of this one
    @classmethod
    def of(
        cls,
        expression: sp.Basic,
        kinds: tuple[tuple[str, Kind], ...] = (),
        assumptions: Assumptions | None = None,
        name: str | None = None,
        spelling: Spelling | None = None,
    ) -> System:
        """The system dH/dt = expression."""
        return cls((Equation("H", 1, expression, spelling),), kinds, assumptions or Assumptions(), name)

    @classmethod
    def build(
        cls,
        equations: sp.Basic | Iterable[Equation],
        kinds: Mapping[str, Kind],
        assumed: Sequence[str],
        name: str | None = None,
        operators: FurtherOperators | None = None,
    ) -> System:
        """A system of equations (or of the tree of dH/dt), declared kinds and texts of assumptions.

        What concerns other letters is left out.
        """
        lines = (Equation("H", 1, equations),) if isinstance(equations, sp.Basic) else tuple(equations)
        letters = {n.name for equation in lines for n in names_in(equation.expression)}
        further = operators or FurtherOperators()
        known, usual = known_letters(lines, kinds, further), usual_coefficients(lines)
        stated = Assumptions.read(assumed, known)
        if stated.relations:
            check_consistency(stated, known)
        kept = {k: v for k, v in kinds.items() if k in letters and usual.get(k) is not v}
        return cls(lines, tuple(sorted(kept.items())), stated.about(letters), name, further.about(letters))

    def with_expression(self, expression: sp.Basic) -> System:
        """The same declarations around another right-hand side of dH/dt."""
        return replace(self, equations=(Equation("H", 1, expression),))

    def declared(
        self, kinds: Mapping[str, Kind], assumed: Sequence[str], operators: FurtherOperators | None = None
    ) -> System:
        """This system under further declarations and assumptions."""
        further = self.operators.joined(operators or FurtherOperators())
        if not kinds and not assumed and further == self.operators:
            return self
        check_free_letters(self.equations, kinds, further, self.coefficients)
        merged = {**dict(self.kinds), **kinds}
        renamed: dict[sp.Basic, sp.Basic] = {
            n: Name(n.name, merged[n.name]) for e in self.equations for n in names_in(e.expression) if n.name in merged
        }
        restated, _ = read_statements(assumed, known_letters(self.equations, merged, further))
        kept = [f"{name} {sign}" for name, sign in self.assumptions.signs if name not in restated]
        kept += [f"{name} positive" for name in sorted(self.assumptions.stated_positive - set(restated))]
        kept += map(str, self.assumptions.relations)
        lines = [equation.replaced(renamed) for equation in self.equations]
        return System.build(lines, merged, [*kept, *assumed], self.name, further)

    def replace(self, **values: Any) -> System:
        """The system with coefficients set to numbers or texts of coefficients, as in `s.replace(beta=0)`.

        `t` may be set too, which freezes the time.
        """
        known = [*self.coefficients, *([] if self.is_autonomous else [TIME_LETTER])]
        unknown = set(values) - set(known)
        if unknown:
            raise InvalidArgument(f"expected coefficients among {known}, got {sorted(unknown)}")
        functions = [name for e in self.equations if e.spelling for name, _ in e.spelling.functions]
        vocabulary = Vocabulary.standard(dict(self.kinds), functions, None if self._is_plain else self.fields)
        vocabulary = replace(vocabulary, functions=())  # they took their letters, but no coefficient calls them
        trees: dict[sp.Basic, sp.Basic] = {}
        for node in {n for equation in self.equations for n in names_in(equation.expression)}:
            if node.name in values:
                value = values[node.name]
                trees[node] = read_expression(value, vocabulary) if isinstance(value, str) else number_tree(value)
        texts = list(self.assumptions.texts())
        lines = [equation.replaced(trees) for equation in self.equations]
        return System.build(lines, dict(self.kinds), texts, operators=self.operators)
