"""Several fields as one: their factored forms combined into one form of the packed state.

The states lie side by side along the channels, so that an operator is applied to all of them in one product. The terms
of every field in itself become one term with a coefficient for each field (`PerField`), all others one atom made of a
block for each field (`Blocks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import sympy as sp
from sympy.printing.precedence import PRECEDENCE

from rdgraph.language.factored_form import Word, is_coefficient, terms_of
from rdgraph.language.normal_form import Act, State
from rdgraph.language.reader import start_of

#: The packed state and its start; no field can have such a name. The source writes them without the brackets.
PACKED, PACKED_START = State("[state]"), State("[start]")


class PerField(sp.Expr):
    """A coefficient that has a value for each field.

    >>> PerField(sp.Symbol("Du"), sp.S.Zero)
    [Du | 0]
    """

    is_commutative = True
    is_real = True
    precedence = PRECEDENCE["Atom"]

    def _sympystr(self, printer: Any) -> str:
        return f"[{' | '.join(printer._print(x) for x in self.args)}]"


class Blocks(sp.Expr):
    """An atom with one factored form for each field."""

    is_commutative = True
    is_real = True
    precedence = PRECEDENCE["Atom"]

    def _sympystr(self, printer: Any) -> str:
        return f"[{' | '.join(printer._print(x) for x in self.args)}]"


def packed_form(forms: Mapping[str, sp.Expr]) -> sp.Expr:
    """One form of `PACKED` and `PACKED_START` for the forms of several fields.

    >>> u, v, A = State("u"), State("v"), sp.Symbol("A")
    >>> packed_form({"u": 2*Act([A], u) + u*v, "v": Act([A], v)})
    (A@[state])*[2 | 1] + [u*v | 0]
    """
    fields = {State(name): (i, PACKED) for i, name in enumerate(forms)}
    fields |= {State(start_of(name)): (i, PACKED_START) for i, name in enumerate(forms)}
    shared: dict[tuple[Word, sp.Expr], list[sp.Expr]] = {}
    blocks: list[list[sp.Expr]] = [[] for _ in forms]
    is_packed = needs_packing(forms) or all(map(is_coefficient, forms.values()))
    for i, form in enumerate(forms.values()):
        for term in terms_of(form):
            field, letter = fields.get(term.atom, (None, None))
            letter = sp.S.One if term.is_constant else letter if field == i else None
            if letter is None or not is_packed:
                blocks[i].append(term.expression())
                continue
            values = shared.setdefault((term.word, letter), [sp.S.Zero] * len(blocks))
            values[i] += term.coefficient
    terms = [_per_field(c) * (Act(map(sp.Symbol, word), x) if word else x) for (word, x), c in shared.items()]
    rest = [sp.Add(*block) for block in blocks]
    if not any(rest):
        return sp.Add(*terms)
    if not terms:
        return Blocks(*rest)
    fronts, rest = (list(part) for part in zip(*map(_front, rest), strict=True))
    return sp.Add(*terms, _per_field(fronts) * Blocks(*rest))


def _front(form: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """The coefficient of a single term, and the term without it; 1 where blocks are added to others."""
    terms = terms_of(form)
    if len(terms) != 1:
        return sp.S.One, form
    return terms[0].coefficient, replace(terms[0], coefficient=sp.S.One).expression()


def needs_packing(forms: Mapping[str, sp.Expr]) -> bool:
    """Whether more than half of the fields need some operator word, so that one product for all costs less."""
    return any(2 * len(fields) > len(forms) for fields in _words(forms).values())


def _words(forms: Mapping[str, sp.Expr]) -> dict[Word, set[str]]:
    """The words that are applied to states, with the states they are applied to."""
    names = {State(name): name for name in forms}
    words: dict[Word, set[str]] = {}
    for form in forms.values():
        for act in form.atoms(Act):
            word = tuple(letter.name for letter in act.word)
            if act.inner in names:
                for i in range(len(word)):
                    words.setdefault(word[i:], set()).add(names[act.inner])
    return words


def _per_field(values: list[sp.Expr]) -> sp.Expr:
    return values[0] if len(set(values)) == 1 else PerField(*values)
