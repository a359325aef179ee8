"""First stage of lowering: an expression as a sum of coefficient * word @ atom, linear where the mathematics is.

A word is a string of operator letters; an atom is a letter, or an elementwise expression kept as it was written.
Terms that agree are merged, L is replaced by I - A, and nothing else is expanded: H*(1 - H) stays a product.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sympy as sp

from rdgraph.algebra.normal_form import called
from rdgraph.errors import NotApplicable
from rdgraph.syntax.printer import to_text
from rdgraph.syntax.tree import Apply, Call, Kind, Minus, Name, Negative, Over, Plus, Power, Times, kind_of

Word = tuple[str, ...]

_COEFFICIENTS = (Kind.SCALAR, Kind.CHANNEL, Kind.NODE)


@dataclass(frozen=True)
class Letter:
    """A tensor known by name: H, H0, a node coefficient under an operator, or `one`, a column of ones."""

    name: str


@dataclass(frozen=True)
class Elementwise:
    """A function of single entries: "*", "/", "**" (with its exponent), a named function, or "value" for grouping."""

    function: str
    arguments: tuple[Sum, ...]
    exponent: int = 1


@dataclass(frozen=True)
class Mixed:
    """A field times a channel-mixing matrix, kept as the tree that was written."""

    argument: Sum
    matrix: sp.Basic


Atom = Letter | Elementwise | Mixed
ONE = Letter("one")


@dataclass(frozen=True)
class Term:
    """coefficient * word @ atom"""

    coefficient: sp.Expr
    word: Word
    atom: Atom


@dataclass(frozen=True)
class Sum:
    """A sum of terms with different (word, atom)."""

    terms: tuple[Term, ...]

    @classmethod
    def of(cls, terms: Iterable[Term]) -> Sum:
        merged: dict[tuple[Word, Atom], sp.Expr] = {}
        for term in terms:
            key = (term.word, term.atom)
            merged[key] = merged.get(key, sp.S.Zero) + term.coefficient
        return cls(tuple(Term(c, *key) for key, c in merged.items() if sp.expand(c) != 0))

    @property
    def coefficient(self) -> sp.Expr | None:
        """Its value where it is a coefficient and nothing else."""
        if not self.terms:
            return sp.S.Zero
        alone = len(self.terms) == 1 and not self.terms[0].word and self.terms[0].atom == ONE
        return self.terms[0].coefficient if alone else None

    def scaled(self, factor: sp.Expr) -> Sum:
        return Sum.of(Term(factor * t.coefficient, t.word, t.atom) for t in self.terms)

    def split(self) -> tuple[sp.Expr, Sum]:
        """The coefficient in front, and what it multiplies: beta and A@H for beta*A@H."""
        if len(self.terms) != 1:
            return sp.S.One, self
        (term,) = self.terms
        return term.coefficient, Sum((Term(sp.S.One, term.word, term.atom),))

    def plus(self, other: Sum) -> Sum:
        return Sum.of((*self.terms, *other.terms))

    def depends_on(self, letter: str) -> bool:
        return any(depends_on(t.atom, letter) for t in self.terms)


def depends_on(atom: Atom, letter: str) -> bool:
    """Whether a letter such as H occurs in an atom."""
    match atom:
        case Letter():
            return atom.name == letter
        case Elementwise():
            return any(a.depends_on(letter) for a in atom.arguments)
        case Mixed():
            return atom.argument.depends_on(letter)


def coefficient_symbol(name: str) -> sp.Symbol:
    """The symbol of a coefficient in lowered expressions: real, of any sign."""
    return sp.Symbol(name, real=True)


@dataclass(frozen=True)
class Linearisation:
    """Turns trees into sums. `kinds` of the coefficients; `keeps_laplacian` where L is D - A and stays a letter."""

    kinds: Mapping[str, Kind]
    keeps_laplacian: bool = False

    def read(self, node: sp.Basic) -> Sum:
        """An elementwise tree as a sum."""
        match node:
            case sp.Rational():
                return Sum.of([Term(node, (), ONE)])
            case Name() if node.kind in _COEFFICIENTS:
                return Sum.of([Term(coefficient_symbol(node.name), (), ONE)])
            case Name():
                return Sum.of([Term(sp.S.One, (), Letter(node.name))])
            case Plus():
                return self.read(node.left).plus(self.read(node.right))
            case Minus():
                return self.read(node.left).plus(self.read(node.right).scaled(sp.S.NegativeOne))
            case Negative():
                return self.read(node.inner).scaled(sp.S.NegativeOne)
            case Times():
                return self._product(self.read(node.left), self.read(node.right))
            case Over():
                return self._quotient(self.read(node.left), self.read(node.right), node)
            case Power():
                return self._power(self.read(node.base), node.exponent, node)
            case Call():
                return self._call(node.function, self.read(node.argument))
            case Apply() if kind_of(node.left) is Kind.OPERATOR:
                return self.act(node.left, self.read(node.right))
            case Apply():
                mixed = self.read(node.left)
                return Sum.of([Term(sp.S.One, (), Mixed(mixed, node.right))] if mixed.terms else [])
        raise NotApplicable(f"expected a node of the language, got {type(node).__name__}; build it with rdgraph.parse")

    # ------------------------------------------------------------------ elementwise
    def _product(self, left: Sum, right: Sum) -> Sum:
        for factor, rest in ((left.coefficient, right), (right.coefficient, left)):
            if factor is not None:
                return rest.scaled(factor)
        (first, left), (second, right) = left.split(), right.split()
        return _atom(Elementwise("*", (left, right))).scaled(first * second)

    def _quotient(self, left: Sum, right: Sum, node: sp.Basic) -> Sum:
        divisor = right.coefficient
        if divisor is None and not left.terms:
            return left
        if divisor is None:
            factor, left = left.split()
            return _atom(Elementwise("/", (left, right))).scaled(factor)
        return left.scaled(1 / _nonzero(divisor, node))

    def _power(self, base: Sum, exponent: int, node: sp.Basic) -> Sum:
        value = base.coefficient
        if value is not None:
            return Sum.of([Term((_nonzero(value, node) if exponent < 0 else value) ** exponent, (), ONE)])
        if exponent == 0:
            return Sum.of([Term(sp.S.One, (), ONE)])
        return base if exponent == 1 else _atom(Elementwise("**", (base,), exponent))

    def _call(self, function: str, argument: Sum) -> Sum:
        value = argument.coefficient
        if value is not None:
            return Sum.of([Term(called(function, value), (), ONE)])
        return _atom(Elementwise(function, (argument,)))

    # ------------------------------------------------------------------ operators
    def act(self, op: sp.Basic, operand: Sum) -> Sum:
        """An operator tree applied to a sum."""
        match op:
            case Name(name="I"):
                return operand
            case Name(name="L") if not self.keeps_laplacian:
                return operand.plus(self._shift("A", operand).scaled(sp.S.NegativeOne))
            case Name():
                return self._shift(op.name, operand)
            case Plus():
                return self.act(op.left, operand).plus(self.act(op.right, operand))
            case Minus():
                return self.act(op.left, operand).plus(self.act(op.right, operand).scaled(sp.S.NegativeOne))
            case Negative():
                return self.act(op.inner, operand).scaled(sp.S.NegativeOne)
            case Apply():
                return self.act(op.left, self.act(op.right, operand))
            case Power():
                for _ in range(op.exponent):
                    operand = self.act(op.base, operand)
                return operand
            case Over():
                return self._quotient(self.act(op.left, operand), self.read(op.right), op)
            case Times():
                first = kind_of(op.left) is Kind.OPERATOR
                inner, factor = (op.left, op.right) if first else (op.right, op.left)
                return self._product(self.read(factor), self.act(inner, operand))
        raise NotApplicable(f"expected an operator of the language, got {type(op).__name__}")

    def _shift(self, letter: str, operand: Sum) -> Sum:
        """letter @ operand: scalar and channel coefficients pass, terms with node coefficients are grouped first."""
        passing: list[Term] = []
        held: list[Term] = []
        for term in operand.terms:
            (held if self._varies_over_nodes(term.coefficient) else passing).append(term)
        shifted = [Term(t.coefficient, (letter, *t.word), t.atom) for t in passing]
        if held:
            shifted.append(Term(sp.S.One, (letter,), Elementwise("value", (Sum.of(held),))))
        return Sum.of(shifted)

    def _varies_over_nodes(self, coefficient: sp.Expr) -> bool:
        return any(self.kinds.get(s.name) is Kind.NODE for s in coefficient.free_symbols)


def _atom(atom: Atom) -> Sum:
    return Sum((Term(sp.S.One, (), atom),))


def _nonzero(value: sp.Expr, node: sp.Basic) -> sp.Expr:
    if value == 0:
        raise NotApplicable(f"expected a divisor other than zero in {to_text(node)}; remove the division")
    return value
