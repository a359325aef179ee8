"""The normal form of an equation: a sympy expression in which `*` is the elementwise product.

Operators appear as `Act(word, field)`, mixing matrices as `Mix(word, field)`. Both are linear, so they are spread over
sums; scalar and channel coefficients move out of `Act`, scalar and node coefficients out of `Mix`, and the two commute.
What remains equal after these rules and sympy's `expand` is equal for every graph, state and coefficient.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

import sympy as sp
from sympy.printing.precedence import PRECEDENCE

from rdgraph.algebra.word_rules import WordRule
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.syntax.functions import FUNCTIONS
from rdgraph.syntax.printer import to_text
from rdgraph.syntax.size_limits import check_size
from rdgraph.syntax.tree import Apply, Call, Kind, Minus, Name, Negative, Over, Plus, Power, Times, kind_of, operator
from rdgraph.syntax.unfolding import unfolded

#: Letters of the language that are 0 or 1 in every node.
MASKS = ("M",)
MAX_TERMS = 3000
MAX_WORK = 5000

H = sp.Symbol("H", real=True)
H0 = sp.Symbol("H0", real=True)


class _Word(sp.Expr):
    """A word of letters applied to a field; linear in the field."""

    is_commutative = True
    is_real = True
    precedence = PRECEDENCE["Mul"]

    def __new__(cls, word: Any, inner: sp.Expr) -> Any:
        return super().__new__(cls, sp.Tuple(*word), inner)

    @property
    def word(self) -> tuple[sp.Symbol, ...]:
        return tuple(self.args[0])

    @property
    def inner(self) -> sp.Expr:
        return self.args[1]


class Act(_Word):
    """A word of operators applied to a field: `Act((A, A), H)` is A@(A@H)."""

    def _sympystr(self, printer: Any) -> str:
        inner = printer._print(self.inner)
        bracketed = f"({inner})" if isinstance(self.inner, sp.Add | sp.Mul | sp.Pow) else inner
        return "@".join([*(w.name for w in self.word), bracketed])


class Mix(_Word):
    """A field times a word of channel-mixing matrices: `Mix((W,), H)` is H@W."""

    def _sympystr(self, printer: Any) -> str:
        return "@".join([f"({printer._print(self.inner)})", *(w.name for w in self.word)])


def called(function: str, argument: sp.Expr) -> sp.Expr:
    """A function of the language applied to a normal form; a value that is not real is refused."""
    value = sp.sympify(FUNCTIONS[function].sympy(argument))
    if value.is_extended_real is False:
        raise NotApplicable(
            f"expected an argument in {FUNCTIONS[function].domain}, got {function}({argument}); all is real here"
        )
    return value


#: What L means unless a hypothesis says otherwise.
LAPLACIAN = {"L": Minus(operator("I"), operator("A"))}


@dataclass(frozen=True)
class Algebra:
    """The rules a normal form is computed under: symbols and kinds of letters, definitions, word rules."""

    symbols: Mapping[str, sp.Symbol]
    kinds: Mapping[str, Kind]
    definitions: Mapping[str, sp.Basic] = dataclass_field(default_factory=lambda: dict(LAPLACIAN))
    rules: tuple[WordRule, ...] = ()

    def normal(self, node: sp.Basic) -> sp.Expr:
        """Normal form of an elementwise tree (field or coefficient)."""
        tree = unfolded(node)
        check_size(tree)
        return _Expansion(self).expand(tree)

    def applied(self, word: _Word, operand: sp.Expr) -> sp.Expr:
        """Normal form of the letters of `word` (an Act or a Mix) applied to a normal form."""
        return _Expansion(self).applied(word, operand)

    @property
    def masks(self) -> tuple[sp.Symbol, ...]:
        """Letters that are 0 or 1 in every node."""
        return tuple(self.symbols[name] for name in MASKS if name in self.symbols)


class _Expansion:
    """One computation of a normal form, with a budget of steps."""

    def __init__(self, rules: Algebra) -> None:
        self.symbols, self.kinds = rules.symbols, rules.kinds
        self.definitions, self.rules = rules.definitions, rules.rules
        self.spent = 0

    def expand(self, node: sp.Basic) -> sp.Expr:
        return self._spread(self._field(node))

    def applied(self, word: _Word, operand: sp.Expr) -> sp.Expr:
        operand = self._spread(operand)
        if isinstance(word, Mix):
            return self._spread(sp.Add(*(self._mix_word(word.word, t) for t in sp.Add.make_args(operand))))
        return self._act_word(tuple(letter.name for letter in word.word), operand)

    # ------------------------------------------------------------------ elementwise trees
    def _field(self, node: sp.Basic) -> sp.Expr:
        match node:
            case sp.Rational():
                return node
            case Name():
                return self._letter(node)
            case Plus():
                return self._field(node.left) + self._field(node.right)
            case Minus():
                return self._field(node.left) - self._field(node.right)
            case Negative():
                return -self._field(node.inner)
            case Times():
                return self._product_of(Counter(_factors(node)), node)
            case Over():
                return self._product(self._field(node.left), _reciprocal(self._field(node.right), node))
            case Power():
                return self._power(self._field(node.base), node.exponent, node)
            case Call():
                argument = self._spread(self._field(node.argument))
                _guard(_terms(argument) * 10)
                return called(node.function, argument)
            case Apply():
                return self._apply(node)
        raise InvalidArgument(f"no normal form for {type(node).__name__}")

    def _letter(self, node: Name) -> sp.Expr:
        definition = self.definitions.get(node.name)
        return self._field(definition) if definition is not None else self.symbols[node.name]

    def _product(self, left: sp.Expr, right: sp.Expr) -> sp.Expr:
        left, right = self._spread(left), self._spread(right)
        _guard(_terms(left) * _terms(right))
        return self._spread(left * right)

    def _product_of(self, factors: Counter[sp.Basic], node: sp.Basic) -> sp.Expr:
        """A product of trees, equal factors taken as one power: (1+H)*(1+H)*... is expanded at once."""
        total: sp.Expr = sp.S.One
        for factor, times in factors.items():
            value = self._field(factor)
            total = self._product(total, value if times == 1 else self._power(value, times, node))
        return total

    def _power(self, base: sp.Expr, exponent: int, node: sp.Basic) -> sp.Expr:
        base = self._spread(base)
        if exponent < 0:
            return self._power(_reciprocal(base, node), -exponent, node)
        terms = _terms(base)
        _guard(math.comb(exponent + terms - 1, exponent))
        return self._spread(base**exponent)

    def _spread(self, expression: sp.Expr) -> sp.Expr:
        expanded = sp.expand(expression, deep=False, power_base=False, power_exp=False, log=False, func=False)
        self._spend(_terms(expanded))
        mask = self.symbols.get("M")
        if mask is not None and expanded.has(mask):
            expanded = expanded.replace(
                lambda e: isinstance(e, sp.Pow) and e.base == mask and e.exp.is_positive, lambda e: mask
            )
        return expanded

    def _spend(self, terms: int) -> None:
        self.spent += terms
        if self.spent > MAX_WORK:
            raise NotApplicable(f"expanding the equation takes more than {MAX_WORK} steps; lower the powers")

    # ------------------------------------------------------------------ operators and matrices
    def _apply(self, node: Apply) -> sp.Expr:
        if kind_of(node.right) is Kind.MATRIX:
            return self._mix(node.right, self._spread(self._field(node.left)))
        return self._act(node.left, self._spread(self._field(node.right)))

    def _act(self, op: sp.Basic, operand: sp.Expr) -> sp.Expr:
        """An operator tree applied to a normal form."""
        match op:
            case Name(name="I"):
                return operand
            case Name() if op.name in self.definitions:
                return self._act(self.definitions[op.name], operand)
            case Name():
                return self._spread(sp.Add(*(self._act_letter(op.name, t) for t in sp.Add.make_args(operand))))
            case Plus():
                return self._act(op.left, operand) + self._act(op.right, operand)
            case Minus():
                return self._spread(self._act(op.left, operand) - self._act(op.right, operand))
            case Negative():
                return self._spread(-self._act(op.inner, operand))
            case Apply():
                return self._act(op.left, self._act(op.right, operand))
            case Over():
                return self._product(_reciprocal(self._field(op.right), op), self._act(op.left, operand))
            case Power():
                for _ in range(op.exponent):
                    operand = self._act(op.base, operand)
                    _guard(_terms(operand))
                return operand
            case Times():
                left_is_operator = kind_of(op.left) is Kind.OPERATOR
                inner, factor = (op.left, op.right) if left_is_operator else (op.right, op.left)
                return self._product(self._field(factor), self._act(inner, operand))
        raise InvalidArgument(f"no normal form for the operator {type(op).__name__}")

    def _act_letter(self, letter: str, term: sp.Expr) -> sp.Expr:
        self._spend(2)
        outside, inside = self._split(term, Kind.CHANNEL)
        symbol = sp.Symbol(letter)
        if isinstance(inside, Act):
            return outside * self._rewritten(Act((symbol, *inside.word), inside.inner))
        node_part, core = self._split(inside, Kind.NODE)
        if isinstance(core, Mix):
            acted = self._act(operator(letter), self._spread(node_part * core.inner))
            return outside * sp.Add(*(self._mix_word(core.word, t) for t in sp.Add.make_args(acted)))
        return outside * self._rewritten(Act((symbol,), inside))

    def _rewritten(self, atom: Act) -> sp.Expr:
        """Apply the word rules at the front of a word; its tail is already reduced."""
        names = tuple(w.name for w in atom.word)
        for rule in self.rules:
            if names[: len(rule.word)] == rule.word:
                rest = atom.word[len(rule.word) :]
                operand = Act(rest, atom.inner) if rest else atom.inner
                return self._spread(sp.Add(*(c * self._act_word(word, operand) for word, c in rule.terms)))
        return atom

    def _act_word(self, word: tuple[str, ...], operand: sp.Expr) -> sp.Expr:
        for letter in reversed(word):
            operand = self._act(operator(letter), operand)
        return operand

    def _mix(self, matrix: sp.Basic, operand: sp.Expr) -> sp.Expr:
        match matrix:
            case Name() if matrix.name in self.definitions:
                return self._mix(self.definitions[matrix.name], operand)
            case Name():
                word = (sp.Symbol(matrix.name),)
                return self._spread(sp.Add(*(self._mix_word(word, t) for t in sp.Add.make_args(operand))))
            case Plus():
                return self._mix(matrix.left, operand) + self._mix(matrix.right, operand)
            case Minus():
                return self._spread(self._mix(matrix.left, operand) - self._mix(matrix.right, operand))
            case Negative():
                return self._spread(-self._mix(matrix.inner, operand))
            case Apply():
                return self._mix(matrix.right, self._mix(matrix.left, operand))
            case Over():
                return self._product(_reciprocal(self._field(matrix.right), matrix), self._mix(matrix.left, operand))
            case Times():
                factor, inner = (
                    (matrix.right, matrix.left) if kind_of(matrix.left) is Kind.MATRIX else (matrix.left, matrix.right)
                )
                return self._product(self._field(factor), self._mix(inner, operand))
            case sp.Rational() if matrix == 0:
                return sp.S.Zero
        raise InvalidArgument(f"no normal form for the matrix {type(matrix).__name__}")

    def _mix_word(self, word: tuple[sp.Symbol, ...], term: sp.Expr) -> sp.Expr:
        self._spend(2)
        outside, inside = self._split(term, Kind.NODE)
        if isinstance(inside, Mix):
            return outside * Mix((*inside.word, *word), inside.inner)
        return outside * Mix(word, inside)

    def _split(self, term: sp.Expr, passing: Kind) -> tuple[sp.Expr, sp.Expr]:
        """Factors that commute with the operator (numbers, scalars, `passing` coefficients) and the rest."""
        outside, inside = sp.S.One, sp.S.One
        for factor in sp.Mul.make_args(term):
            kinds = {self.kinds.get(s.name, Kind.FIELD) for s in factor.free_symbols}
            if factor.has(Act, Mix) or not kinds <= {Kind.SCALAR, passing}:
                inside *= factor
            else:
                outside *= factor
        return outside, inside


def _factors(node: sp.Basic) -> list[sp.Basic]:
    """The factors of a product of products, from left to right."""
    if not isinstance(node, Times):
        return [node]
    return _factors(node.left) + _factors(node.right)


def _reciprocal(expression: sp.Expr, node: sp.Basic) -> sp.Expr:
    if expression == 0:
        raise NotApplicable(f"division by zero in {to_text(node)}")
    return 1 / expression


def _terms(expression: sp.Expr) -> int:
    return len(sp.Add.make_args(expression))


def _guard(terms: int) -> None:
    if terms > MAX_TERMS:
        raise NotApplicable(f"the expanded equation has about {terms} terms, more than {MAX_TERMS}; lower the powers")
