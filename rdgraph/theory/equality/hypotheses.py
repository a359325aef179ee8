"""Hypotheses: equations that a proof may use, parsed, ordered, and checked for consistency.

`name = expression` is a definition. A further statement about a defined name, or about products, is an equation:
between operators it becomes rules for words, between coefficients it is solved for one of them or becomes a condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import sympy as sp

from rdgraph.errors import AssumptionError, InvalidArgument, NotApplicable
from rdgraph.language.answer_symbols import public
from rdgraph.language.assumptions import Assumptions
from rdgraph.language.normal_form import H0, MASKS, Act, Algebra, H, Polynomial, State, WordRules, completed
from rdgraph.language.printer import to_term, to_text
from rdgraph.language.reader import Vocabulary, read_expression
from rdgraph.language.tree import ELEMENTWISE, Apply, Kind, Name, kind_of, names_in
from rdgraph.language.unfolding import unfolded
from rdgraph.reals.domain import Domain
from rdgraph.reals.judge import Identity, note_identity

_SIGN_CONDITIONS = {"positive": sp.Gt, "negative": sp.Lt, "nonnegative": sp.Ge, "nonpositive": sp.Le}


@dataclass(frozen=True)
class Equation:
    """left = right, as text and as trees."""

    text: str
    left: sp.Basic
    right: sp.Basic


@dataclass(frozen=True)
class Hypotheses:
    """The definitions `name = expression` and equations, such as `A@A = A` between operators, that a proof may use.

    Nothing else is used: without "L = I - A", L is an arbitrary operator. With `assumptions` the coefficients have
    signs and relations, and a definition overrides only default signs; without them coefficients are any real numbers.
    Contradictions raise `AssumptionError`. `operators` are declared properties of operators, such as antisymmetric,
    which counter-examples satisfy and no proof uses.
    """

    texts: tuple[str, ...]
    letters: tuple[tuple[str, str], ...] = ()
    assumptions: Assumptions | None = None
    operators: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.standard().extended({"D": Kind.OPERATOR} | {n: Kind(k) for n, k in self.letters})

    def note(self, left: sp.Basic, right: sp.Basic) -> None:
        """Record for certificates that two trees were proved to be equal."""
        note_identity(lambda: self._identity(left, right))

    def _identity(self, left: sp.Basic, right: sp.Basic) -> Identity:
        given = {Name(name, self.vocabulary.kinds[name]): unfolded(body) for name, body in self.definitions.items()}
        for _ in given:  # definitions that use definitions; none is recursive
            given = {name: body.xreplace(given) for name, body in given.items()}
        one, other = unfolded(left), unfolded(right)
        kinds = {n.name: n.kind for tree in (one, other, *given.values()) for n in tree.atoms(Name)}
        return Identity(
            f"{to_text(left)} = {to_text(right)}",
            to_term(one),
            to_term(other),
            tuple(sorted((n.name, to_term(body)) for n, body in given.items() if one.has(n) or other.has(n))),
            tuple(sorted((name, str(kind)) for name, kind in kinds.items() if kind in ELEMENTWISE)),
        )

    @cached_property
    def equations(self) -> tuple[Equation, ...]:
        """Every hypothesis as written."""
        return tuple(map(self._read, self.texts))

    def _read(self, text: str) -> Equation:
        left_text, sign, right_text = text.partition("=")
        if not sign or "=" in right_text:
            raise InvalidArgument(f"expected a hypothesis such as 'L = I - A', got {text!r}")
        left, right = (read_expression(t, self.vocabulary) for t in (left_text, right_text))
        vanishes = right == 0 and isinstance(left, Name) and left.kind in (Kind.MATRIX, Kind.FIELD)
        both = {kind_of(left), kind_of(right)}
        if len(both) > 1 and not both <= ELEMENTWISE - {Kind.FIELD} and not vanishes:
            raise InvalidArgument(f"the sides of {text!r} have different kinds: {kind_of(left)} and {kind_of(right)}")
        return Equation(text, left, right)

    @cached_property
    def symbols(self) -> dict[str, sp.Symbol]:
        """The symbols of all names, with their signs."""
        known = self.assumptions
        plain = {n: sp.Symbol(n, real=True) for n in self.vocabulary.kinds}
        signed = {} if known is None else {n: known.symbol(n) for n, k in self._coefficients.items() if n not in MASKS}
        states = {n: State(n) for n, k in self.vocabulary.kinds.items() if k is Kind.FIELD}
        return plain | signed | states | {"H": H, "H0": H0}

    @cached_property
    def _coefficients(self) -> dict[str, Kind]:
        return {n: k for n, k in self.vocabulary.kinds.items() if k in ELEMENTWISE - {Kind.FIELD}}

    @cached_property
    def _resolved(self) -> _Resolved:
        return _resolve(self)

    @property
    def definitions(self) -> dict[str, sp.Basic]:
        return self._resolved.definitions

    @property
    def chosen(self) -> set[str]:
        """The names that a single hypothesis defines; definitions of others follow from several hypotheses."""
        return self._resolved.chosen

    @property
    def word_rules(self) -> WordRules:
        return self._resolved.word_rules

    @cached_property
    def algebra(self) -> Algebra:
        return Algebra(self.symbols, self.vocabulary.kinds, self.definitions, self.word_rules.rules)

    @cached_property
    def domain(self) -> Domain:
        """The admissible coefficients under assumptions and hypotheses; raises AssumptionError for contradictions."""
        conditions = [*self._resolved.conditions, *self._mask_conditions()]
        if self.assumptions is not None:
            conditions += self._relations(self.assumptions) + self._signs(self.assumptions)
        domain = Domain(tuple(c for c in conditions if c != sp.true))
        try:
            domain.check()
        except AssumptionError as problem:
            under = f"; under the hypotheses {', '.join(self.texts)}" if self.texts else ""
            raise AssumptionError(f"{problem}{under}") from None
        return domain

    def _relations(self, assumptions: Assumptions) -> list[sp.Basic]:
        gaps = [(self.algebra.normal(r.upper) - self.algebra.normal(r.lower), r.strict) for r in assumptions.relations]
        return [(sp.Gt if strict else sp.Ge)(sp.expand(gap), 0, evaluate=False) for gap, strict in gaps]

    def _signs(self, assumptions: Assumptions) -> list[sp.Basic]:
        """The signs of defined coefficients as conditions, since their symbols no longer occur."""
        explicit = assumptions.stated
        conditions = []
        for name, body in self.definitions.items():
            if name not in self._coefficients or name in MASKS:
                continue
            if name in self.chosen and name not in explicit:
                continue
            relation = _SIGN_CONDITIONS.get(assumptions.sign(name))
            if relation is not None:
                conditions.append(relation(self.algebra.normal(body), 0, evaluate=False))
        return conditions

    def _mask_conditions(self) -> list[sp.Basic]:
        masks = [self.algebra.normal(Name(n, Kind.NODE)) for n in MASKS if n in self.definitions]
        return [sp.Or(sp.Eq(m, 0, evaluate=False), sp.Eq(m, 1, evaluate=False)) for m in masks]


@dataclass
class _Resolved:
    """Definitions, the names among them that one text defines, word rules, and remaining conditions."""

    definitions: dict[str, sp.Basic] = field(default_factory=dict)
    chosen: set[str] = field(default_factory=set)
    word_rules: WordRules = field(default_factory=WordRules)
    conditions: list[sp.Basic] = field(default_factory=list)


def _resolve(given: Hypotheses) -> _Resolved:
    result = _Resolved()
    pending = []
    for equation in given.equations:
        name = equation.left.name if isinstance(equation.left, Name) else ""
        if name and name not in result.definitions and _can_define(name, equation.right, result, given):
            result.definitions[name] = equation.right
            result.chosen.add(name)
        else:
            pending.append(equation)
    relations = []
    for equation in pending:
        match kind_of(equation.left):
            case Kind.OPERATOR:
                relations.append(_operator_relation(equation, _algebra(given, result)))
            case Kind.FIELD | Kind.MATRIX:
                _check_redundant(equation, _algebra(given, result))
            case _:
                _use_coefficients(equation, given, result)
    result.word_rules = completed(relations)
    return result


def _algebra(given: Hypotheses, result: _Resolved) -> Algebra:
    return Algebra(given.symbols, given.vocabulary.kinds, result.definitions)


def _can_define(name: str, body: sp.Basic, result: _Resolved, given: Hypotheses) -> bool:
    """Whether a body can define a name: not recursively, and a number not by values of nodes or channels."""
    kinds = given.vocabulary.kinds
    kind = kinds[name]
    if kind in ELEMENTWISE - {Kind.FIELD} and kind_of(body) not in (Kind.SCALAR, kind):
        return False
    return name not in _reachable(body, result.definitions)


def _reachable(body: sp.Basic, definitions: Mapping[str, sp.Basic]) -> set[str]:
    """All names on which a tree depends, also through definitions."""
    reached: set[str] = set()
    todo = [body]
    while todo:
        for letter in names_in(todo.pop()):
            if letter.name not in reached:
                reached.add(letter.name)
                if letter.name in definitions:
                    todo.append(definitions[letter.name])
    return reached


def _operator_relation(equation: Equation, algebra: Algebra) -> Polynomial:
    """left - right as a polynomial in words, from its action on a state."""
    state = Name("H", Kind.FIELD)
    gap = sp.expand(algebra.normal(Apply(equation.left, state)) - algebra.normal(Apply(equation.right, state)))
    polynomial: Polynomial = {}
    for term in sp.Add.make_args(gap):
        coefficient, core = term.as_independent(H, Act)
        if core == H:
            word: tuple[str, ...] = ()
        elif isinstance(core, Act) and core.inner == H:
            word = tuple(w.name for w in core.word)
        elif term == 0:
            continue
        else:
            raise NotApplicable(
                f"expected operators with scalar or channel coefficients in {equation.text!r}, got the term {term}"
            )
        polynomial[word] = polynomial.get(word, sp.S.Zero) + coefficient
    return polynomial


def _check_redundant(equation: Equation, algebra: Algebra) -> None:
    """Raise NotApplicable unless a further equation for a field or a matrix is redundant."""
    sides = [equation.left, equation.right]
    if kind_of(equation.left) is Kind.MATRIX:
        sides = [Apply(Name("H", Kind.FIELD), side) for side in sides]
    if algebra.normal(sides[0]) != algebra.normal(sides[1]):
        raise NotApplicable(
            f"a field or matrix can have one definition, which is not recursive; substitute {equation.text!r} by hand"
        )


def _use_coefficients(equation: Equation, given: Hypotheses, result: _Resolved) -> None:
    """Add an equation between coefficients as definition of one in which it is linear, else as condition."""
    algebra = _algebra(given, result)
    gap = sp.expand(algebra.normal(equation.left) - algebra.normal(equation.right))
    if gap == 0:
        return
    if gap.is_number:
        raise AssumptionError(f"the hypotheses contradict each other: {equation.text!r} would need {gap} = 0; drop one")
    for letter in sorted(gap.free_symbols, key=lambda x: x.name):
        slope = gap.coeff(letter)
        rest = sp.expand(gap - slope * letter)
        if slope.is_Rational and slope != 0 and not rest.has(letter):
            body = read_expression(str(public(-rest / slope)), given.vocabulary)
            if _can_define(letter.name, body, result, given):
                result.definitions[letter.name] = body
                return
    result.conditions.append(sp.Eq(gap, 0, evaluate=False))
