"""The form of f that is examined: its normal form with dependent functions rewritten, and the unknowns in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import sympy as sp

from rdgraph.language.normal_form import Mix
from rdgraph.language.reader import TIME_LETTER
from rdgraph.language.tree import COEFFICIENT_KINDS, Kind
from rdgraph.systems.system import System
from rdgraph.vocabulary.functions import FUNCTIONS

#: Letters that are given with the state, beside fields and operators; all other letters are unknowns.
GIVEN = {"M", TIME_LETTER}


def is_unknown(name: str, kind: Kind) -> bool:
    """Whether a letter is a coefficient or a matrix whose value is asked for."""
    return kind in COEFFICIENT_KINDS and name not in GIVEN


#: Functions with a kink at zero: what they do to a*x depends on the sign of a.
KINKED = (*(record.sympy for record in FUNCTIONS.values() if record.pieces is not None), sp.sign, sp.Heaviside)


@dataclass(frozen=True)
class ExaminedForm:
    """A normal form and its unknown letters, on a part of the admissible coefficients on which their signs are known.

    Matrices that only ever occur one after the other are one unknown, named like the product: `W@V`.
    """

    system: System
    expression: sp.Expr
    kinds: Mapping[str, Kind]
    signs: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def letters(self) -> dict[str, Kind]:
        """The unknowns that f depends on: coefficients and mixing matrices."""
        present = {x.name for x in self.expression.free_symbols}
        return {name: kind for name, kind in self.kinds.items() if is_unknown(name, kind) and name in present}

    @cached_property
    def relations(self) -> tuple[sp.Basic, ...]:
        """The inequalities between coefficients that are assumed."""
        found = []
        for relation in self.system.assumptions.relations:
            gap = self.system.algebra.normal(relation.upper) - self.system.algebra.normal(relation.lower)
            found.append(sp.Gt(gap, 0) if relation.strict else sp.Ge(gap, 0))
        return tuple(r for r in found if r != sp.true)

    def symbol(self, name: str) -> sp.Symbol:
        """The symbol of an unknown in the expression; matrices stand there as plain letters of a word."""
        if self.kinds[name] is Kind.MATRIX:
            return sp.Symbol(name)
        return sp.Symbol(name, **{self.signs[name]: True}) if name in self.signs else self.system.algebra.symbols[name]


def forms(system: System, expression: sp.Expr) -> tuple[ExaminedForm, ...]:
    """A form of f (its normal form, say), once for every choice of those signs that decide what a kink does."""
    free = sorted(
        x.name
        for x in _inside_kinks(expression)
        if x.name in system.coefficients and not (x.is_nonnegative or x.is_nonpositive)
    )
    return tuple(_form(system, expression, dict(zip(free, choice, strict=True))) for choice in _choices(len(free)))


def whole(system: System, expression: sp.Expr) -> ExaminedForm:
    """The form on all admissible coefficients at once, signs that decide about kinks left open."""
    return _form(system, expression, {})


def _choices(letters: int) -> Iterator[tuple[str, ...]]:
    return itertools.product(("positive", "negative"), repeat=letters)


def _inside_kinks(expression: sp.Expr) -> set[sp.Symbol]:
    return {x for atom in expression.atoms(*KINKED) for x in atom.free_symbols}


def _form(system: System, expression: sp.Expr, signs: Mapping[str, str]) -> ExaminedForm:
    signed = {system.algebra.symbols[name]: sp.Symbol(name, **{sign: True}) for name, sign in signs.items()}
    merged, kinds = _merged(expression.xreplace(signed), system.letters)
    return ExaminedForm(system, merged, kinds, signs)


def _merged(expression: sp.Expr, kinds: Mapping[str, Kind]) -> tuple[sp.Expr, dict[str, Kind]]:
    """Neighbours in words of matrices that never occur apart, taken as one matrix."""
    words = {tuple(w.name for w in atom.word) for atom in expression.atoms(Mix)}
    pair = next((p for word in words for p in itertools.pairwise(word) if _inseparable(p, words)), None)
    known = dict(kinds)
    if pair is None:
        return expression, known
    name = "@".join(pair)
    joined = expression.replace(lambda e: isinstance(e, Mix), lambda e: Mix(_joined(e.word, pair, name), e.inner))
    return _merged(joined, {**{n: k for n, k in known.items() if n not in pair}, name: Kind.MATRIX})


def _inseparable(pair: tuple[str, str], words: set[tuple[str, ...]]) -> bool:
    first, second = pair
    together = sum(p == pair for word in words for p in itertools.pairwise(word))
    return first != second and all(sum(word.count(n) for word in words) == together for n in pair)


def _joined(word: tuple[sp.Symbol, ...], pair: tuple[str, str], name: str) -> tuple[sp.Symbol, ...]:
    found: list[sp.Symbol] = []
    for letter in word:
        if found and (found[-1].name, letter.name) == pair:
            found[-1] = sp.Symbol(name)
        else:
            found.append(letter)
    return tuple(found)
