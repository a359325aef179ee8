"""The normal form of an equation: a sympy expression in which `*` is the elementwise product.

Operators appear as `Act(word, field)`, mixing matrices as `Mix(word, field)`. Both are linear, so they are spread over
sums; scalar and channel coefficients move out of `Act`, scalar and node coefficients out of `Mix`, and the two commute.
What remains equal after these rules and sympy's `expand` is equal for every graph, state and coefficient.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

import sympy as sp
from sympy.printing.precedence import PRECEDENCE

from rdgraph.errors import AssumptionError, NotApplicable
from rdgraph.language.linear_fold import LinearFold
from rdgraph.language.printer import to_text
from rdgraph.language.size_limits import check_size
from rdgraph.language.tree import (
    Apply,
    Call,
    Fold,
    Kind,
    Minus,
    Name,
    Negative,
    Over,
    Plus,
    Power,
    Times,
    kind_of,
    operator,
)
from rdgraph.language.unfolding import unfolded
from rdgraph.vocabulary.functions import FUNCTIONS

# ---------------------------------------------------------------------- word rules
# Relations between operators, oriented and completed: words of the free algebra get one normal form.
#
# A relation is a polynomial in words that is zero, such as A@A - A. Its largest word (longer first, then by names) is
# rewritten into the rest. Overlaps of two left sides give further relations (Buchberger's procedure in the free
# algebra) until nothing new appears or a bound is reached.

Word = tuple[str, ...]
Polynomial = dict[Word, sp.Expr]

MAX_WORD = 12
MAX_RULES = 40


@dataclass(frozen=True)
class WordRule:
    """`word` is rewritten into the sum of coefficient times word; all words on the right are smaller."""

    word: Word
    terms: tuple[tuple[Word, sp.Expr], ...]


@dataclass(frozen=True)
class WordRules:
    """Rules, and whether they decide every question: each word has one normal form under them."""

    rules: tuple[WordRule, ...] = ()
    is_complete: bool = True


def completed(relations: Iterable[Polynomial]) -> WordRules:
    """The rules of relations that hold together; raises `AssumptionError` where they imply I = 0.

    >>> one, minus = sp.S.One, sp.S.NegativeOne
    >>> rules = completed([{("A", "A"): one, ("A", "A", "A"): minus}])
    >>> [(r.word, r.terms) for r in rules.rules]
    [(('A', 'A', 'A'), ((('A', 'A'), 1),))]
    """
    return _Completion(list(relations)).run()


class _Completion:
    """Buchberger's procedure with bounds on the length of words and the number of rules."""

    def __init__(self, pending: list[Polynomial]) -> None:
        self.pending = pending
        self.rules: list[WordRule] = []
        self.is_complete = True

    def run(self) -> WordRules:
        while self.pending:
            polynomial = self._reduced(self.pending.pop(0))
            rule = self._oriented(polynomial) if polynomial else None
            if rule is None:
                continue
            self._retire(rule)
            for other in [*self.rules, rule]:
                self.pending += [*self._overlaps(rule, other), *(self._overlaps(other, rule) if other != rule else ())]
            self.rules.append(rule)
            if len(self.rules) > MAX_RULES:
                return WordRules(tuple(self.rules), is_complete=False)
        return WordRules(tuple(sorted(self.rules, key=lambda r: _rank(r.word))), self.is_complete)

    def _oriented(self, polynomial: Polynomial) -> WordRule | None:
        """The rule of a relation; None, and incomplete, where its leading coefficient might be zero."""
        word = max(polynomial, key=_rank)
        leading = polynomial[word]
        if not leading.is_nonzero:
            self.is_complete = False
            return None
        if not word:
            raise AssumptionError("the hypotheses about operators contradict each other: they imply I = 0; drop one")
        rest = {w: sp.cancel(-c / leading) for w, c in polynomial.items() if w != word}
        return WordRule(word, tuple(sorted(rest.items(), key=lambda pair: _rank(pair[0]))))

    def _retire(self, rule: WordRule) -> None:
        """Older rules whose word contains the new one become relations again."""
        for old in [r for r in self.rules if next(_places(rule.word, r.word), None) is not None]:
            self.rules.remove(old)
            self.pending.append(_relation(old))

    def _overlaps(self, first: WordRule, second: WordRule) -> Iterator[Polynomial]:
        """Both ways to rewrite a word that starts with one left side and ends with the other, subtracted."""
        for size in range(1, min(len(first.word), len(second.word))):
            if first.word[-size:] != second.word[:size]:
                continue
            if len(first.word) + len(second.word) - size > MAX_WORD:
                self.is_complete = False
                continue
            head, tail = first.word[:-size], second.word[size:]
            gap: Polynomial = {}
            for word, c in first.terms:
                _add(gap, word + tail, c)
            for word, c in second.terms:
                _add(gap, head + word, -c)
            yield gap

    def _reduced(self, polynomial: Polynomial) -> Polynomial:
        done: Polynomial = {}
        todo = dict(polynomial)
        while todo:
            word = max(todo, key=_rank)
            coefficient = todo.pop(word)
            rule, position = next(((r, at) for r in self.rules for at in _places(r.word, word)), (None, 0))
            if rule is None:
                _add(done, word, coefficient)
                continue
            head, tail = word[:position], word[position + len(rule.word) :]
            for middle, c in rule.terms:
                _add(todo, head + middle + tail, coefficient * c)
        return done


def _relation(rule: WordRule) -> Polynomial:
    return {rule.word: sp.S.One} | {word: -c for word, c in rule.terms}


def _rank(word: Word) -> tuple[int, Word]:
    return len(word), word


def _places(pattern: Word, word: Word) -> Iterator[int]:
    """Where a pattern occurs in a word."""
    return (i for i in range(len(word) - len(pattern) + 1) if word[i : i + len(pattern)] == pattern)


def _add(polynomial: Polynomial, word: Word, coefficient: sp.Expr) -> None:
    total = sp.cancel(polynomial.get(word, sp.S.Zero) + coefficient)
    if total == 0:
        polynomial.pop(word, None)
    else:
        polynomial[word] = total


# ---------------------------------------------------------------------- normal form
#: Names of the language that are 0 or 1 in every node.
MASKS = ("M",)
MAX_TERMS = 3000
MAX_WORK = 5000


class State(sp.Symbol):
    """The symbol of a field: a state such as H or u, or its start H0 or u0. It sorts like any other symbol.

    >>> State("u").is_real, (2*State("u")).has(State)
    (True, True)
    """

    def __new__(cls, name: str, **assumptions: Any) -> State:
        symbol: State = super().__new__(cls, name, **{"real": True, **assumptions})
        return symbol

    @classmethod
    def class_key(cls) -> tuple[int, int, str]:
        key: tuple[int, int, str] = sp.Symbol.class_key()
        return key


H = State("H")
H0 = State("H0")
#: Time, for equations in which it occurs.
TIME = sp.Symbol("t", real=True)


class _Word(sp.Expr):
    """A word of operators or matrices applied to a field; linear in the field."""

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
        letters = (printer.parenthesize(w, PRECEDENCE["Pow"]) for w in self.word)
        return "@".join([f"({printer._print(self.inner)})", *letters])


def called(function: str, argument: sp.Expr) -> sp.Expr:
    """A function of the language applied to a normal form; raises for a value that is not real."""
    value = sp.sympify(FUNCTIONS[function].sympy(argument))
    if value.is_extended_real is False:
        raise NotApplicable(
            f"expected an argument in {FUNCTIONS[function].domain}, got {function}({argument}); all values must be real"
        )
    return value


#: The meaning of L unless a hypothesis states another.
LAPLACIAN = {"L": Minus(operator("I"), operator("A"))}


@dataclass(frozen=True)
class Algebra:
    """The rules of a normal form: symbols and kinds of names, definitions, word rules."""

    symbols: Mapping[str, sp.Symbol]
    kinds: Mapping[str, Kind]
    definitions: Mapping[str, sp.Basic] = dataclass_field(default_factory=lambda: dict(LAPLACIAN))
    rules: tuple[WordRule, ...] = ()

    def normal(self, node: sp.Basic) -> sp.Expr:
        """Normal form of an elementwise tree (field or coefficient)."""
        return self.normal_and_parts(node)[0]

    def normal_and_parts(self, node: sp.Basic) -> tuple[sp.Expr, list[sp.Expr]]:
        """The normal form, and the reciprocals and functions met on the way, including those that cancelled."""
        tree = unfolded(node)
        check_size(tree)
        expansion = Expansion(self)
        return expansion.expand(tree), expansion.parts

    def applied(self, word: _Word, operand: sp.Expr) -> sp.Expr:
        """Normal form of `word` (that of an Act or a Mix) applied to a normal form."""
        return Expansion(self).applied(word, operand)

    @property
    def masks(self) -> tuple[sp.Symbol, ...]:
        """The symbols that are 0 or 1 in every node."""
        return tuple(self.symbols[name] for name in MASKS if name in self.symbols)


class Expansion(Fold[sp.Expr]):
    """One computation of a normal form, with a budget of steps: elementwise trees here, operators and matrices below.

    Linear layers are treated alike in every form. The rules `product`, `quotient`, `power_of`, `function_of`,
    `act_letter` and `mixed` define how far other parts are multiplied out; `rdgraph.language.factored_form` has others.
    """

    #: Atoms that a coefficient does not contain.
    atoms: tuple[type, ...] = (Act, Mix)

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self.symbols, self.kinds = algebra.symbols, algebra.kinds
        self.definitions, self.rules = algebra.definitions, algebra.rules
        self.act = _Operators(self)
        self.spent = 0
        self.parts: list[sp.Expr] = []

    def expand(self, node: sp.Basic) -> sp.Expr:
        return self.spread(self(node))

    def applied(self, word: _Word, operand: sp.Expr) -> sp.Expr:
        operand = self.spread(operand)
        if isinstance(word, Mix):
            return self.spread(sp.Add(*(self.mix_word(word.word, t) for t in sp.Add.make_args(operand))))
        return self.act_word(tuple(letter.name for letter in word.word), operand)

    # ------------------------------------------------------------------ elementwise trees
    def number(self, node: sp.Rational) -> sp.Expr:
        return node

    def name(self, node: Name) -> sp.Expr:
        definition = self.definitions.get(node.name)
        return self(definition) if definition is not None else self.symbols[node.name]

    def plus(self, node: Plus) -> sp.Expr:
        return self(node.left) + self(node.right)

    def minus(self, node: Minus) -> sp.Expr:
        return self(node.left) - self(node.right)

    def negative(self, node: Negative) -> sp.Expr:
        return -self(node.inner)

    def times(self, node: Times) -> sp.Expr:
        """Equal factors are taken as one power: (1+H)*(1+H)*... is expanded at once."""
        total: sp.Expr = sp.S.One
        for factor, times in Counter(_factors(node)).items():
            value = self(factor)
            total = self.product(total, value if times == 1 else self.power_of(value, times, node))
        return total

    def over(self, node: Over) -> sp.Expr:
        return self.quotient(self(node.left), self(node.right), node)

    def power(self, node: Power) -> sp.Expr:
        return self.power_of(self(node.base), node.exponent, node)

    def call(self, node: Call) -> sp.Expr:
        return self.function_of(node.function, self.spread(self(node.argument)))

    def apply(self, node: Apply) -> sp.Expr:
        if kind_of(node.right) is Kind.MATRIX:
            return self.mixed(node.right, self.spread(self(node.left)))
        return self.act(node.left, self.spread(self(node.right)))

    # ------------------------------------------------------------------ multiplying out
    def product(self, left: sp.Expr, right: sp.Expr) -> sp.Expr:
        left, right = self.spread(left), self.spread(right)
        self.guard(_terms(left) * _terms(right))
        return self.spread(left * right)

    def quotient(self, left: sp.Expr, right: sp.Expr, node: sp.Basic) -> sp.Expr:
        return self.product(left, self.inverted(right, node))

    def inverted(self, expression: sp.Expr, node: sp.Basic) -> sp.Expr:
        """1 / expression; the reciprocal is recorded among the parts."""
        self.parts.append(reciprocal(expression, node))
        return self.parts[-1]

    def power_of(self, base: sp.Expr, exponent: int, node: sp.Basic) -> sp.Expr:
        base = self.spread(base)
        if exponent < 0:
            return self.power_of(self.inverted(base, node), -exponent, node)
        terms = _terms(base)
        self.guard(math.comb(exponent + terms - 1, exponent))
        return self.spread(base**exponent)

    def function_of(self, function: str, argument: sp.Expr) -> sp.Expr:
        self.guard(_terms(argument) * 10)
        self.parts.append(called(function, argument))
        return self.parts[-1]

    def spread(self, expression: sp.Expr) -> sp.Expr:
        expanded = sp.expand(expression, deep=False, power_base=False, power_exp=False, log=False, func=False)
        self.spend(_terms(expanded))
        mask = self.symbols.get("M")
        if mask is not None and expanded.has(mask):
            expanded = expanded.replace(
                lambda e: isinstance(e, sp.Pow) and e.base == mask and e.exp.is_positive, lambda e: mask
            )
        return expanded

    def guard(self, terms: int) -> None:
        """Raise where a product would have too many terms, before it is multiplied out."""
        if terms > MAX_TERMS:
            raise NotApplicable(
                f"the expanded equation has about {terms} terms, more than {MAX_TERMS}; lower the powers"
            )

    def spend(self, terms: int) -> None:
        self.spent += terms
        if self.spent > MAX_WORK:
            raise NotApplicable(f"expanding the equation takes more than {MAX_WORK} steps; lower the powers")

    # ------------------------------------------------------------------ words of operators and matrices
    def act_letter(self, letter: str, operand: sp.Expr) -> sp.Expr:
        """One operator applied to a normal form, term by term."""
        return self.spread(sp.Add(*(self._act_term(letter, t) for t in sp.Add.make_args(operand))))

    def _act_term(self, letter: str, term: sp.Expr) -> sp.Expr:
        self.spend(2)
        outside, inside = self.split(term, Kind.CHANNEL)
        node_part, core = self.split(inside, Kind.NODE)
        if isinstance(core, Mix):
            acted = self.act(operator(letter), self.spread(node_part * core.inner))
            return outside * sp.Add(*(self.mix_word(core.word, t) for t in sp.Add.make_args(acted)))
        return outside * self.lengthened(letter, inside)

    def lengthened(self, letter: str, inside: sp.Expr) -> sp.Expr:
        """letter@inside, where no factor of `inside` passes; the word rules are applied at the front of the word."""
        symbol = sp.Symbol(letter)
        atom = Act((symbol, *inside.word), inside.inner) if isinstance(inside, Act) else Act((symbol,), inside)
        names = tuple(w.name for w in atom.word)
        for rule in self.rules:
            if names[: len(rule.word)] == rule.word:
                rest = atom.word[len(rule.word) :]
                operand = Act(rest, atom.inner) if rest else atom.inner
                return self.spread(sp.Add(*(c * self.act_word(word, operand) for word, c in rule.terms)))
        return atom

    def act_word(self, word: tuple[str, ...], operand: sp.Expr) -> sp.Expr:
        for letter in reversed(word):
            operand = self.act(operator(letter), operand)
        return operand

    def mixed(self, matrix: sp.Basic, operand: sp.Expr) -> sp.Expr:
        """A normal form times a matrix tree."""
        return _Matrices(self)(matrix, operand)

    def mix_word(self, word: tuple[sp.Symbol, ...], term: sp.Expr) -> sp.Expr:
        self.spend(2)
        outside, inside = self.split(term, Kind.NODE)
        if isinstance(inside, Mix):
            return outside * Mix((*inside.word, *word), inside.inner)
        return outside * Mix(word, inside)

    def split(self, term: sp.Expr, passing: Kind) -> tuple[sp.Expr, sp.Expr]:
        """Factors that commute with the operator (numbers, scalars, `passing` coefficients) and the rest."""
        outside, inside = sp.S.One, sp.S.One
        for factor in sp.Mul.make_args(term):
            if factor.has(*self.atoms) or not self.kinds_in(factor) <= {Kind.SCALAR, passing}:
                inside *= factor
            else:
                outside *= factor
        return outside, inside

    def kinds_in(self, factor: sp.Expr) -> set[Kind]:
        return {self.kinds.get(s.name, Kind.FIELD) for s in factor.free_symbols}


class _Linear(LinearFold[sp.Expr]):
    """Base of operators and matrices: sums are distributed, coefficients multiplied in."""

    def __init__(self, expansion: Expansion) -> None:
        self.expansion = expansion

    def minus(self, node: Minus, operand: sp.Expr) -> sp.Expr:
        return self.expansion.spread(super().minus(node, operand))

    def negative(self, node: Negative, operand: sp.Expr) -> sp.Expr:
        return self.expansion.spread(super().negative(node, operand))

    def scaled(self, value: sp.Expr, factor: sp.Basic) -> sp.Expr:
        return self.expansion.product(self.expansion(factor), value)

    def divided(self, value: sp.Expr, divisor: sp.Basic, node: sp.Basic) -> sp.Expr:
        return self.expansion.product(self.expansion.inverted(self.expansion(divisor), node), value)


class _Operators(_Linear):
    """An operator tree applied to a normal form."""

    def name(self, node: Name, operand: sp.Expr) -> sp.Expr:
        definition = self.expansion.definitions.get(node.name)
        if node.name == "I":
            return operand
        return self.expansion.act_letter(node.name, operand) if definition is None else self(definition, operand)

    def apply(self, node: Apply, operand: sp.Expr) -> sp.Expr:
        return self(node.left, self(node.right, operand))

    def power(self, node: Power, operand: sp.Expr) -> sp.Expr:
        for _ in range(node.exponent):
            operand = self(node.base, operand)
            self.expansion.guard(_terms(operand))
        return operand


class _Matrices(_Linear):
    """A normal form times a matrix tree."""

    def number(self, node: sp.Rational, operand: sp.Expr) -> sp.Expr:
        return sp.S.Zero if node == 0 else self.other(node, operand)

    def name(self, node: Name, operand: sp.Expr) -> sp.Expr:
        definition = self.expansion.definitions.get(node.name)
        if definition is not None:
            return self(definition, operand)
        word, terms = (sp.Symbol(node.name),), sp.Add.make_args(operand)
        return self.expansion.spread(sp.Add(*(self.expansion.mix_word(word, t) for t in terms)))

    def apply(self, node: Apply, operand: sp.Expr) -> sp.Expr:
        return self(node.right, self(node.left, operand))


def _factors(node: sp.Basic) -> list[sp.Basic]:
    """The factors of a product of products, from left to right."""
    if not isinstance(node, Times):
        return [node]
    return _factors(node.left) + _factors(node.right)


def reciprocal(expression: sp.Expr, node: sp.Basic) -> sp.Expr:
    if expression == 0:
        raise NotApplicable(f"division by zero in {to_text(node)}")
    return 1 / expression


def _terms(expression: sp.Expr) -> int:
    return len(sp.Add.make_args(expression))
