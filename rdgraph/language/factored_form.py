"""The factored normal form: every linear layer is in normal form, nonlinear parts stay as written.

The rules are those of `rdgraph.language.normal_form`; products are not multiplied out. Products, quotients,
powers and functions of fields become `Entrywise`, a matrix with its operand one `Mix`, and coefficients stay in
brackets. So H*(1 - H) is one atom, ((A - A@A)**3)@H four words, and multiplying out gives the normal form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.core.symbol import Str
from sympy.printing.precedence import PRECEDENCE

from rdgraph.errors import NotApplicable
from rdgraph.language.linear_fold import scaling
from rdgraph.language.normal_form import Act, Algebra, Expansion, Mix, State, called, reciprocal
from rdgraph.language.size_limits import check_products
from rdgraph.language.tree import Apply, Fold, Kind, Minus, Name, Negative, Over, Plus, Times

#: Most terms of one sum: words in two operators double with every power.
MAX_WORDS = 20_000

Word = tuple[str, ...]


class Entrywise(sp.Expr):
    """A function of single entries as one atom: "*", "/", "**" (with a whole number), or one of the language.

    >>> u = State("u")
    >>> Entrywise("*", u, 1 - u)
    (u)*(1 - u)
    """

    is_commutative = True
    is_real = True
    precedence = PRECEDENCE["Mul"]

    def __new__(cls, function: str | Str, *arguments: sp.Expr) -> Entrywise:
        call: Entrywise = super().__new__(cls, Str(str(function)), *arguments)
        return call

    @property
    def function(self) -> str:
        return str(self.args[0].name)  # type: ignore[attr-defined]

    @property
    def arguments(self) -> tuple[sp.Expr, ...]:
        """The arguments of the function; the exponent of a power is not among them."""
        return self.args[1:2] if self.function == "**" else self.args[1:]

    @property
    def exponent(self) -> int:
        return int(self.args[2]) if self.function == "**" else 1

    def _sympystr(self, printer: Any) -> str:
        inner = [f"({printer._print(x)})" for x in self.args[1:]]
        return self.function.join(inner) if len(inner) == 2 else self.function + inner[0]


@dataclass(frozen=True)
class Term:
    """coefficient * word @ atom: the atom is a state or start, 1, an `Entrywise`, a `Mix`, or a sum of such."""

    coefficient: sp.Expr
    word: Word
    atom: sp.Expr

    @property
    def is_constant(self) -> bool:
        """Whether the term is a coefficient."""
        return not self.word and self.atom == 1

    def shortened(self) -> Term:
        """The term without the first operator of its word."""
        return Term(self.coefficient, self.word[1:], self.atom)

    def expression(self) -> sp.Expr:
        """The term as part of a factored form."""
        return self.coefficient * (Act(map(sp.Symbol, self.word), self.atom) if self.word else self.atom)


def factored_form(node: sp.Basic, algebra: Algebra) -> sp.Expr:
    """The factored normal form of a field.

    >>> from rdgraph.systems.parser import parse
    >>> s = parse("(A - A@A)@H + beta*tanh(H)*(1 - H) - A@H")
    >>> factored_form(s.expression, s.algebra)
    beta*((tanh(H))*(1 - H)) - A@A@H
    """
    check_products(node)
    return Factoring(algebra).expand(node)


@lru_cache(maxsize=4096)
def terms_of(form: sp.Expr) -> tuple[Term, ...]:
    """The terms of a factored form: short words first, coefficients of one word and atom added up.

    >>> alpha, beta, u = *sp.symbols("alpha beta"), State("u")
    >>> [t.coefficient for t in terms_of(beta*u + alpha*Act([sp.Symbol("A")], u) + 2*u)]
    [beta + 2, alpha]
    """
    merged: dict[tuple[Word, sp.Expr], list[sp.Expr]] = {}
    for part in sp.Add.make_args(form):
        coefficient, core = _split(part)
        key = (tuple(w.name for w in core.word), core.inner) if isinstance(core, Act) else ((), core)
        merged.setdefault(key, []).append(coefficient)
    nonzero = [Term(c, *k) for k, coefficients in merged.items() if (c := _added(coefficients)) != 0]
    return tuple(sorted(nonzero, key=lambda t: (len(t.word), t.word, sp.default_sort_key(t.atom))))


def _added(coefficients: list[sp.Expr]) -> sp.Expr:
    """A sum of coefficients, multiplied out where that makes it shorter; several may cancel, one alone does not."""
    total = sp.Add(*coefficients)
    if len(coefficients) == 1 or total.is_Atom:
        return total
    expanded = sp.expand(total)
    return expanded if expanded.count_ops() < total.count_ops() else total


def is_coefficient(form: sp.Expr) -> bool:
    """Whether a form contains coefficients only, no state, operator or matrix."""
    return not form.has(State, Act, Mix, Entrywise)


def _split(part: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """The coefficient of a term, and what it multiplies."""
    factors = sp.Mul.make_args(part)
    held = [f for f in factors if not is_coefficient(f)]
    return sp.Mul(*(f for f in factors if f not in held)), sp.Mul(*held)


class Factoring(Expansion):
    """An expansion that multiplies out linear layers only."""

    atoms = (Act, Mix, Entrywise)

    def spread(self, expression: sp.Expr) -> sp.Expr:
        """Terms of one word and atom collected; coefficients keep their brackets."""
        return sp.Add(*(t.expression() for t in terms_of(expression)))

    # ------------------------------------------------------------------ atoms
    def times(self, node: Times) -> sp.Expr:
        return self.product(self(node.left), self(node.right))

    def product(self, left: sp.Expr, right: sp.Expr) -> sp.Expr:
        left, right = self.spread(left), self.spread(right)
        for factor, rest in ((left, right), (right, left)):
            if is_coefficient(factor):
                return self._scaled(rest, factor)
        (first, left), (second, right) = self._front(left), self._front(right)
        return first * second * Entrywise("*", left, right)

    def quotient(self, left: sp.Expr, right: sp.Expr, node: sp.Basic) -> sp.Expr:
        left, right = self.spread(left), self.spread(right)
        if is_coefficient(right) and not self._is_masked(right):
            return self._scaled(left, reciprocal(right, node))
        front, rest = self._front(left)
        return front * Entrywise("/", rest, right)

    def power_of(self, base: sp.Expr, exponent: int, node: sp.Basic) -> sp.Expr:
        base = self.spread(base)
        if is_coefficient(base) and not (exponent < 0 and self._is_masked(base)):
            return (reciprocal(base, node) if exponent < 0 else base) ** abs(exponent)
        if exponent in (0, 1):
            return base if exponent else sp.S.One
        return Entrywise("**", base, sp.Integer(exponent))

    def _is_masked(self, divisor: sp.Expr) -> bool:
        """Whether a mask is divided by: it is 0 at some nodes, where M/M has no value, so that it is not cancelled."""
        return divisor.has(*self.algebra.masks)

    def function_of(self, function: str, argument: sp.Expr) -> sp.Expr:
        return called(function, argument) if is_coefficient(argument) else Entrywise(function, argument)

    def _scaled(self, form: sp.Expr, factor: sp.Expr) -> sp.Expr:
        return sp.Add(*(factor * part for part in sp.Add.make_args(form)))

    def _front(self, form: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
        """The coefficient in front, and what it multiplies: beta and A@H for beta*A@H."""
        return (sp.S.One, form) if isinstance(form, sp.Add) else _split(form)

    # ------------------------------------------------------------------ words
    def guard(self, terms: int) -> None:
        if terms > MAX_WORDS:
            raise NotApplicable(
                f"expected an equation of at most {MAX_WORDS} operator words, got {terms}; lower the powers"
            )

    def act_letter(self, letter: str, operand: sp.Expr) -> sp.Expr:
        """Applies an operator to the terms that vary over the nodes together, and to the others one by one."""
        passing: list[sp.Expr] = []
        held: list[sp.Expr] = []
        for term in (t.expression() for t in terms_of(operand)):
            outside, inside = self.split(term, Kind.CHANNEL)
            if self.split(inside, Kind.NODE)[0] != 1:
                held.append(term)
            else:
                passing.append(outside * self.lengthened(letter, inside))
        if held:
            outside, inside = self.split(held[0], Kind.CHANNEL) if len(held) == 1 else (sp.S.One, sp.Add(*held))
            passing.append(outside * self.lengthened(letter, inside))
        return self.spread(sp.Add(*passing))

    def mixed(self, matrix: sp.Basic, operand: sp.Expr) -> sp.Expr:
        """One `Mix` with the whole matrix as its word, scalars and node coefficients in front where possible."""
        scalars, letters = _MatrixForm(self)(matrix).args_cnc()
        whole = sp.Mul(*letters)
        if operand == 0 or not letters:
            return sp.S.Zero
        outside, inside = (sp.S.One, operand) if isinstance(operand, sp.Add) else self.split(operand, Kind.NODE)
        return sp.Mul(*scalars) * outside * Mix((whole,), inside)


class _MatrixForm(Fold[sp.Expr]):
    """A matrix tree as an expression in non-commutative symbols."""

    def __init__(self, factoring: Factoring) -> None:
        self.factoring = factoring

    def number(self, node: sp.Rational) -> sp.Expr:
        return sp.S.Zero if node == 0 else self.other(node)

    def name(self, node: Name) -> sp.Expr:
        definition = self.factoring.definitions.get(node.name)
        return sp.Symbol(node.name, commutative=False) if definition is None else self(definition)

    def plus(self, node: Plus) -> sp.Expr:
        return self(node.left) + self(node.right)

    def minus(self, node: Minus) -> sp.Expr:
        return self(node.left) - self(node.right)

    def negative(self, node: Negative) -> sp.Expr:
        return -self(node.inner)

    def times(self, node: Times) -> sp.Expr:
        factor, inner = scaling(node)
        return self.factoring.expand(factor) * self(inner)

    def over(self, node: Over) -> sp.Expr:
        return reciprocal(self.factoring.expand(node.right), node) * self(node.left)

    def apply(self, node: Apply) -> sp.Expr:
        return self(node.left) * self(node.right)
