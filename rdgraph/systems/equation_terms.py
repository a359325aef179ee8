"""`terms_of_system`: an equation as a sum of terms that other equations share, up to the names of coefficients.

Fields of many equations can then be evaluated together: what is a polynomial of A is a row of numbers, and of the rest
every term is computed once for all equations that have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.language.normal_form import H
from rdgraph.language.tree import COEFFICIENT_KINDS, Apply, Kind, Name, Negative, Over, Plus, Times, field, kind_of
from rdgraph.systems.equation import signed_terms
from rdgraph.systems.system import System

#: The names of the coefficients of a term, in the order in which they occur.
LETTER = "k_{}"


@dataclass(frozen=True)
class Term:
    """A summand of an equation, with coefficients k_1, k_2, ..., which all have one value for each channel.

    Where it is a polynomial of A, applied to H and to H0, `generator` and `source` hold its coefficients by powers of
    A, and `is_linear` says so.
    """

    system: System
    is_linear: bool
    is_forcing: bool

    @property
    def generator(self) -> dict[int, sp.Expr]:
        return self.system.structure.generator

    @property
    def source(self) -> dict[int, sp.Expr]:
        return self.system.structure.source


@dataclass(frozen=True)
class PlacedTerm:
    """A term of an equation with its sign, and the equation's coefficients in the order of the term's."""

    sign: int
    term: Term
    letters: tuple[str, ...]


@lru_cache(maxsize=1 << 14)
def terms_of_system(system: System) -> tuple[PlacedTerm, ...]:
    """The summands of one equation, with L = I - A.

    >>> from rdgraph.systems.parser import parse
    >>> first, second = terms_of_system(parse("-alpha*L@H + beta*tanh(gamma*H)"))
    >>> print(first.sign, first.term.system.text, first.letters, first.term.generator)
    -1 k_1*L@H ('alpha',) {0: k_1, 1: -k_1}
    >>> print(second.sign, second.term.system.text, second.letters, second.term.is_linear)
    1 k_1*tanh(k_2*H) ('beta', 'gamma') False
    """
    other = [name for name, kind in system.letters.items() if kind in (Kind.NODE, Kind.MATRIX)]
    if other:
        raise NotApplicable(
            f"expected coefficients that are numbers or channels, got {other[0]} in {system.text}; evaluate its field "
            "alone"
        )
    return tuple(_placed(int(sign), tree) for sign, tree in signed_terms(system.expression))


def _placed(sign: int, tree: sp.Basic) -> PlacedTerm:
    """A summand with its coefficients renamed."""
    sign, tree = _unsigned(sign, tree)
    renamed: dict[sp.Basic, sp.Basic] = {}
    for node in sp.preorder_traversal(tree):
        if isinstance(node, Name) and node.kind in COEFFICIENT_KINDS and node not in renamed:
            renamed[node] = Name(LETTER.format(len(renamed) + 1), Kind.CHANNEL)
    letters = tuple(node.name for node in renamed if isinstance(node, Name))
    return PlacedTerm(sign, _term(tree.xreplace(renamed), len(renamed)), letters)


def _unsigned(sign: int, tree: sp.Basic) -> tuple[int, sp.Basic]:
    """The sign in front of a product, as in -alpha*L@H, and the product without it."""
    if isinstance(tree, Negative):
        return _unsigned(-sign, tree.inner)
    if isinstance(tree, Times | Over | Apply):
        sign, left = _unsigned(sign, tree.left)
        return sign, type(tree)(left, tree.right)
    return sign, tree


@lru_cache(maxsize=1 << 12)
def _term(tree: sp.Basic, letters: int) -> Term:
    kinds = tuple((LETTER.format(k + 1), Kind.CHANNEL) for k in range(letters))
    if kind_of(tree) is not Kind.FIELD:  # a number or a coefficient, the same in all nodes
        tree = Plus(tree, Times(sp.S.Zero, field("H")))
    system = System.of(tree, kinds)
    structure = system.structure
    is_linear = structure.reaction == 0 and structure.constant == 0 and structure.coupled == 0
    return Term(system, is_linear, is_forcing=not system.normal.has(H))
