"""`System`: equations u' = f(u, v, ...) of one or several fields, with coefficient kinds and assumptions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any

import sympy as sp

from rdgraph.errors import InvalidArgument, LanguageError, NotApplicable
from rdgraph.language.answer_symbols import public
from rdgraph.language.assumptions import SYMMETRIC, Assumptions, read_statements
from rdgraph.language.normal_form import H0, MASKS, TIME, Algebra, H, State
from rdgraph.language.printer import dotted, math_element, row, sign, to_latex, to_mathml
from rdgraph.language.reader import (
    DRIVERS,
    FIELD_COEFFICIENTS,
    NOISE_LETTER,
    STRUCTURAL,
    TIME_LETTER,
    USUAL_COEFFICIENTS,
    Vocabulary,
    check_new_name,
    read_expression,
    start_of,
    usual_of_fields,
)
from rdgraph.language.sympy_form import number_tree, to_sympy
from rdgraph.language.tree import COEFFICIENT_KINDS, ELEMENTWISE, Call, Kind, Name, kind_of, names_in
from rdgraph.language.tree import field as field_name
from rdgraph.reals.domain import Domain
from rdgraph.reals.regions import defining_conditions
from rdgraph.systems import symbols
from rdgraph.systems.canonical.cancelled_parts import with_cancelled
from rdgraph.systems.coupling import Coupling, coupling_of
from rdgraph.systems.equation import Equation, Spelling, split_noise
from rdgraph.systems.further_operators import FurtherOperators
from rdgraph.systems.structure import Structure, structure_of
from rdgraph.systems.symbols import matrix_gain
from rdgraph.vocabulary.learned_functions import LearnedFunction, is_key
from rdgraph.vocabulary.methods import Tableau

# ---------------------------------------------------------------------- coefficient domain
# The admissible values of a system's coefficients, from its assumptions.


def coefficient_domain(assumptions: Assumptions, algebra: Algebra, needs: tuple[sp.Basic, ...] = ()) -> Domain:
    """The domain where assumed relations and needs hold; signs are in the symbols, and a mask is 0 or 1.

    Contradictory assumptions raise `AssumptionError`.
    """
    conditions: list[sp.Basic] = []
    for relation in assumptions.relations:
        gap = sp.expand(algebra.normal(relation.upper) - algebra.normal(relation.lower))
        conditions.append((sp.Gt if relation.strict else sp.Ge)(gap, 0, evaluate=False))
    conditions += [sp.Or(sp.Eq(mask, 0), sp.Eq(mask, 1)) for mask in algebra.masks if mask.name in algebra.kinds]
    domain = Domain((*conditions, *needs))
    domain.check()
    return domain


def coefficient_needs(trees: Iterable[sp.Basic], algebra: Algebra) -> tuple[sp.Basic, ...]:
    """The conditions on coefficients under which the divisions and roots of an equation are defined.

    >>> from rdgraph.systems.parser import parse
    >>> s = parse("sqrt(alpha - 1)*H - H/(alpha - beta)")
    >>> coefficient_needs(s.flow.values(), s.algebra)
    (Ne(alpha - beta, 0), alpha - 1 >= 0)
    """
    known = {name for name, kind in algebra.kinds.items() if kind in COEFFICIENT_KINDS} - {*MASKS, TIME_LETTER}
    parts = (part for tree in trees for part in algebra.normal(tree).atoms(sp.Pow, sp.Function))
    needs = (defining_conditions(part) for part in parts if {letter.name for letter in part.free_symbols} <= known)
    return tuple(sorted({c for conditions in needs for c in conditions}, key=lambda c: (c.count_ops(), str(c))))


def check_consistency(assumptions: Assumptions, kinds: Mapping[str, Kind]) -> None:
    """Raise where no values satisfy the relations, also those between coefficients the equation does not use."""
    known = {n: k for n, k in Vocabulary.standard(kinds).kinds.items() if k in ELEMENTWISE - {Kind.FIELD}}
    coefficient_domain(assumptions, Algebra({n: assumptions.symbol(n) for n in known if n not in MASKS}, known))


# ---------------------------------------------------------------------- learned calls
# The learned functions that equations call, each with one declaration.


def learned_functions(equations: Sequence[Equation]) -> dict[str, LearnedFunction]:
    """The learned functions by name; raises if two declarations share a name.

    >>> from rdgraph.language.reader import read_expression
    >>> list(learned_functions([Equation("H", 1, read_expression("phi(H) - tanh(psi(H))"))]))
    ['phi', 'psi']
    """
    keys = {call.function for e in equations for call in e.expression.atoms(Call) if is_key(call.function)}
    functions: dict[str, LearnedFunction] = {}
    for declared in map(LearnedFunction.of_key, sorted(keys)):
        if declared.name in functions:
            raise InvalidArgument(
                f"{declared.name} has two declarations, {functions[declared.name]} and {declared}; "
                "rename one of the functions"
            )
        functions[declared.name] = declared
    return functions


# ---------------------------------------------------------------------- system text
# Text, LaTeX and MathML of equations: one line without a left side where it is dH/dt, else u' = ...; v' = ...


def is_plain(equations: Sequence[Equation]) -> bool:
    """Whether the equations are written as a right-hand side alone."""
    return len(equations) == 1 and equations[0].left == "H'"


def system_text(equations: Sequence[Equation]) -> str:
    """The equations as written, in one line."""
    if is_plain(equations):
        return equations[0].written
    return "; ".join(map(str, equations))


def declarations(
    equations: Sequence[Equation], usual: Mapping[str, Kind], coefficients: Mapping[str, Kind]
) -> list[str]:
    """The declared functions, each once, the learned ones, and the kinds that differ from the default."""
    spelled = [equation.spelling.declarations() for equation in equations if equation.spelling]
    notes = list(dict.fromkeys(note for part in spelled for note in part))
    notes += map(str, learned_functions(equations).values())
    return notes + [f"{name} {kind}" for name, kind in coefficients.items() if usual.get(name) is not kind]


def system_latex(equations: Sequence[Equation]) -> str:
    r"""All equations with their left sides, one below the other.

    >>> from rdgraph.language.reader import read_expression
    >>> system_latex([Equation("H", 2, read_expression("-beta*H"))])
    '\\ddot{\\mathbf{H}} = -\\beta \\mathbf{H}'
    """
    marks = {1: r"\dot", 2: r"\ddot"}
    lines = [(f"{marks[e.order]}{{{to_latex(field_name(e.field))}}}", e.latex()) for e in equations]
    if len(lines) == 1:
        return " = ".join(lines[0])
    body = r" \\ ".join(f"{left} &= {right}" for left, right in lines)
    return rf"\begin{{aligned}} {body} \end{{aligned}}"


def system_mathml(equations: Sequence[Equation]) -> str:
    """All equations with their left sides, one below the other, as one element that a browser draws.

    >>> from rdgraph.language.reader import read_expression
    >>> "<mo>=</mo>" in system_mathml([Equation("H", 2, read_expression("-beta*H"))])
    True
    """
    cells = [(dotted(to_mathml(field_name(e.field)), e.order), e.mathml()) for e in equations]
    if len(cells) == 1:
        return math_element(row(cells[0][0], sign("="), cells[0][1]))
    lines = (
        f'<mtr><mtd style="text-align:right">{left}</mtd><mtd>{sign("=")}</mtd>'
        f'<mtd style="text-align:left">{right}</mtd></mtr>'
        for left, right in cells
    )
    return math_element(f'<mtable displaystyle="true">{"".join(lines)}</mtable>')


# ---------------------------------------------------------------------- declared names
# The names in equations: those known without a declaration, and those that may be declared.


def states_of(equations: Sequence[Equation]) -> tuple[str, ...]:
    """The states, in order: every field, and after a field of second order its velocity, as in H, H'."""
    return tuple(state for equation in equations for state in equation.states)


def usual_coefficients(equations: Sequence[Equation]) -> dict[str, Kind]:
    """The coefficients that need no declaration."""
    usual = dict.fromkeys(USUAL_COEFFICIENTS, Kind.SCALAR)
    of_fields = () if is_plain(equations) else (*FIELD_COEFFICIENTS, *usual_of_fields(states_of(equations)))
    return usual | dict.fromkeys(of_fields, Kind.SCALAR)


def known_letters(
    equations: Sequence[Equation], kinds: Mapping[str, Kind], operators: FurtherOperators
) -> dict[str, Kind]:
    """The names that assumptions may mention, and those that they may not: fields and operators."""
    taken = {**dict.fromkeys(operators.names, Kind.OPERATOR), **dict.fromkeys(states_of(equations), Kind.FIELD)}
    return {**usual_coefficients(equations), **kinds, **taken}


def check_free_letters(
    equations: Sequence[Equation], kinds: Mapping[str, Kind], operators: FurtherOperators, coefficients: Collection[str]
) -> None:
    """Raise where a field, an operator and a coefficient share a name.

    `coefficients` are the coefficients that the equations contain already.
    """
    fields = {letter for state in states_of(equations) for letter in (state, start_of(state))}
    clashes = [(name, "a field") for name in (*kinds, *operators.names) if name in fields]
    clashes += [(name, "an operator") for name in kinds if name in operators.names]
    clashes += [(name, "a coefficient") for name in operators.names if name in {*coefficients, *kinds}]
    for name, meaning in clashes:
        raise LanguageError(
            name, 0, expected="a free name", got=f"{name!r}, {meaning} of {system_text(equations)}"[:120],
            remedy=f"call it {name}_1",
        )  # fmt: skip


# ---------------------------------------------------------------------- system
@dataclass(frozen=True, repr=False)
class System:
    """A graph reaction-diffusion system: dH/dt = f(H), or one equation for each of several fields.

    `str` gives one line that `rdgraph.parse` reads back to an equal system; what differs from the defaults
    (kinds of coefficients, signs, further operators) and declared functions follow the word `where`.
    A right-hand side alone is that of dH/dt. Most proofs are about such systems: `is_single` says whether
    this is one, and `expression`, `normal` and `structure` are for these; the field is called H in them.

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
    _: KW_ONLY
    name: str | None = field(default=None, compare=False)
    operators: FurtherOperators = field(default_factory=FurtherOperators)

    def __post_init__(self) -> None:
        names = [equation.field for equation in self.equations]
        if not names or len(set(names)) < len(names):
            raise InvalidArgument(f"expected one equation for each field, got {names}")
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
        notes += self.operators.texts() + list(self.assumptions.about(self.letters).texts())
        return system_text(self.equations) + (f" where {', '.join(notes)}" if notes else "")

    def __repr__(self) -> str:
        return f"dH/dt = {self}" if self._is_plain else str(self)

    def _repr_latex_(self) -> str:
        return f"${system_latex(self.equations)}$"

    @property
    def text(self) -> str:
        """The equations alone, without declarations, and with declared functions written out."""
        return system_text(tuple(replace(equation, spelling=None) for equation in self.equations))

    # ------------------------------------------------------------------ contents
    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The states, in order: every field, and after a field of second order its velocity, as in H, H'."""
        return states_of(self.equations)

    @cached_property
    def letters(self) -> dict[str, Kind]:
        """Every name on the right-hand sides, with its kind."""
        kinds: dict[str, Kind] = {n.name: n.kind for e in self.equations for n in names_in(e.expression)}
        return dict(sorted(kinds.items()))

    @cached_property
    def coefficients(self) -> dict[str, Kind]:
        """The coefficients that occur (scalar, channel, node or matrix), with their kinds."""
        others = {*STRUCTURAL, *DRIVERS}
        return {n: kind for n, kind in self.letters.items() if kind in COEFFICIENT_KINDS and n not in others}

    @cached_property
    def learned(self) -> dict[str, LearnedFunction]:
        """The learned functions by name, with their declarations."""
        return learned_functions(self.equations)

    @cached_property
    def flow(self) -> dict[str, sp.Basic]:
        """The right-hand sides of first order by state, with velocities and without noise."""
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
        """Whether the system is one autonomous equation of first order in A alone, without noise."""
        return not self._beyond_single

    @property
    def _beyond_single(self) -> list[str]:
        """Why it is more than one equation dH/dt = f(H)."""
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
        """Whether its text is a right-hand side alone."""
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
        """The normal forms of `flow` by state; functions that cancel are gone."""
        return {state: with_cancelled(x, self.algebra, lambda: self.domain) for state, x in self.flow.items()}

    @cached_property
    def coupling(self) -> Coupling:
        """The normal forms sorted into linear terms between the states, sources, reactions and the rest."""
        return coupling_of(self.fields, self.normals, self.algebra.kinds)

    @cached_property
    def generator_matrix(self) -> sp.Matrix:
        """P(lam), states by states, in internal symbols; raises NotApplicable where there is none."""
        self.require_autonomous("a symbol")
        return self.coupling.symbol()

    @cached_property
    def domain(self) -> Domain:
        """The admissible values of the coefficients: the assumed ones where the equation is defined.

        Contradictory assumptions raise `AssumptionError`.
        """
        return coefficient_domain(self.assumptions, self.algebra, self.coefficient_needs)

    @cached_property
    def coefficient_needs(self) -> tuple[sp.Basic, ...]:
        """The conditions on the coefficients under which the equation is defined; empty without a normal form."""
        try:
            return coefficient_needs(self.flow.values(), self.algebra)
        except NotApplicable:
            return ()

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
        """The tree of f in dH/dt = f(H), with H for the field; raises NotApplicable for other systems."""
        self.require_single()
        return self._single.expression

    @property
    def spelling(self) -> Spelling | None:
        """The source form of the expression, with declared functions as calls."""
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
        """p(lam) in internal symbols; raises NotApplicable with the reason where there is none."""
        return symbols.generator_symbol(self.structure)

    @cached_property
    def source_symbol(self) -> sp.Expr:
        """q(lam), the factor of H0; raises NotApplicable where the forcing is not a filter of H0."""
        return symbols.source_symbol(self.structure)

    @property
    def has_response(self) -> bool:
        """Whether the system is linear with a symbol, so that each frequency has a gain."""
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
        """All equations as MathML."""
        return system_mathml(self.equations)

    # ------------------------------------------------------------------ symbol and response
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

        For several fields the matrix by which the states at lam are multiplied; for noisy systems, of their means.

        >>> import rdgraph as rd
        >>> rd.parse("H'' = -L@H").response(1, "euler", step=1)
        Matrix([
        [   1, 1],
        [-lam, 1]])
        """
        if self.is_single:
            return public(symbols.gain(self.structure, T, method, step))
        P, Q = self.generator_matrix, self.coupling.source_symbol()
        return public(matrix_gain(P.as_immutable(), Q.as_immutable(), T, method, step))

    # ------------------------------------------------------------------ derived systems
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
        return cls((Equation("H", 1, expression, spelling),), kinds, assumptions or Assumptions(), name=name)

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

        Declarations of other names are dropped.
        """
        lines = (Equation("H", 1, equations),) if isinstance(equations, sp.Basic) else tuple(equations)
        letters = {n.name for equation in lines for n in names_in(equation.expression)}
        further = operators or FurtherOperators()
        known, usual = known_letters(lines, kinds, further), usual_coefficients(lines)
        stated = Assumptions.read(assumed, known)
        if stated.relations:
            check_consistency(stated, known)
        declared = {k: v for k, v in kinds.items() if k in letters and usual.get(k) is not v}
        return cls(
            lines, tuple(sorted(declared.items())), stated.about(letters), name=name, operators=further.about(letters)
        )

    def with_expression(self, expression: sp.Basic) -> System:
        """The same declarations with another right-hand side of dH/dt."""
        return replace(self, equations=(Equation("H", 1, expression),))

    def declared(
        self, kinds: Mapping[str, Kind], assumed: Sequence[str], operators: FurtherOperators | None = None
    ) -> System:
        """This system with further declarations and assumptions."""
        further = self.operators.joined(operators or FurtherOperators())
        if not kinds and not assumed and further == self.operators:
            return self
        check_free_letters(self.equations, kinds, further, self.coefficients)
        merged = {**dict(self.kinds), **kinds}
        renamed: dict[sp.Basic, sp.Basic] = {
            n: Name(n.name, merged[n.name]) for e in self.equations for n in names_in(e.expression) if n.name in merged
        }
        restated, _ = read_statements(assumed, known_letters(self.equations, merged, further))
        signs = [f"{name} {sign}" for name, sign in self.assumptions.signs if name not in restated]
        signs += [f"{name} positive" for name in sorted(self.assumptions.stated_positive - set(restated))]
        signs += [f"{name} {SYMMETRIC}" for name in sorted(self.assumptions.symmetric)]
        signs += map(str, self.assumptions.relations)
        lines = [equation.replaced(renamed) for equation in self.equations]
        return System.build(lines, merged, [*signs, *assumed], self.name, further)

    def replace(self, **values: Any) -> System:
        """The system with coefficients set to numbers or texts of coefficients, as in `s.replace(beta=0)`.

        `t` may be set too, which freezes the time.
        """
        known = [*self.coefficients, *([] if self.is_autonomous else [TIME_LETTER])]
        unknown = set(values) - set(known)
        if unknown:
            expected = f"coefficients among {', '.join(known)}" if known else "no values, as there are no coefficients"
            raise InvalidArgument(f"expected {expected}, got {', '.join(sorted(unknown))}")
        functions = [name for e in self.equations if e.spelling for name, _ in e.spelling.functions]
        vocabulary = Vocabulary.standard(dict(self.kinds), functions, None if self._is_plain else self.fields)
        vocabulary = replace(vocabulary, functions=())  # names taken by fields, but not by coefficients
        trees: dict[sp.Basic, sp.Basic] = {}
        for node in {n for equation in self.equations for n in names_in(equation.expression)}:
            if node.name in values:
                value = values[node.name]
                trees[node] = read_expression(value, vocabulary) if isinstance(value, str) else number_tree(value)
        texts = list(self.assumptions.texts())
        lines = [equation.replaced(trees) for equation in self.equations]
        return System.build(lines, dict(self.kinds), texts, operators=self.operators)
