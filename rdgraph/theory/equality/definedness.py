"""Where an expression is defined: no division by zero, no root of a negative number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import sympy as sp

from rdgraph.language.answer_symbols import public
from rdgraph.language.normal_form import Algebra
from rdgraph.language.tree import Call, Fold, Name, Over, Power
from rdgraph.language.unfolding import unfolded
from rdgraph.reals.domain import Domain
from rdgraph.reals.judge import always
from rdgraph.systems.canonical.function_identities import freed
from rdgraph.vocabulary.functions import FUNCTIONS, REALS


def conditions(tree: sp.Basic, algebra: Algebra, domain: Domain) -> tuple[sp.Basic, ...]:
    """What must hold of letters and states for a tree to have a value, less what the domain grants.

    >>> from rdgraph.systems.parser import parse
    >>> s = parse("sqrt(H) + H0/beta + H0/H")
    >>> [in_words(c) for c in conditions(s.expression, s.algebra, s.domain)]
    ['H >= 0', 'H != 0']
    """
    found = dict.fromkeys(_Needs(algebra)(unfolded(tree)))
    return tuple(c for c in found if _follows(c, (), domain) is not True)


def agree(first: Iterable[sp.Basic], second: Iterable[sp.Basic], domain: Domain) -> bool:
    """Whether two sets of conditions are proved to mean the same on a domain."""
    one, other = tuple(first), tuple(second)
    return all(_follows(c, other, domain) for c in one) and all(_follows(c, one, domain) for c in other)


def in_words(condition: sp.Basic) -> str:
    """A condition as text, both sides with positive coefficients where it is an inequality."""
    gap = sp.expand(condition.lhs - condition.rhs)
    if isinstance(condition, sp.Ne):
        return f"{public(gap)} != 0"
    terms = sp.Add.make_args(gap)
    if len(terms) == 1:
        sign = gap.could_extract_minus_sign()
        return f"{public(-gap if sign else gap)} {'<=' if sign else '>='} 0"
    below = [t for t in terms if t.could_extract_minus_sign()]
    upper = public(sp.Add(*(t for t in terms if t not in below)))
    return f"{public(-sp.Add(*below))} <= {upper}"


def _follows(condition: sp.Basic, others: tuple[sp.Basic, ...], domain: Domain) -> bool | None:
    if condition in others:
        return True
    return always(*freed((condition, *others, *domain.conditions)))


class _Needs(Fold[Iterator[sp.Basic]]):
    """The conditions of a node, then those of its parts."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra

    def name(self, node: Name) -> Iterator[sp.Basic]:
        if node.name in self.algebra.definitions:
            yield from self(self.algebra.definitions[node.name])

    def over(self, node: Over) -> Iterator[sp.Basic]:
        yield from _nonzero(self.algebra.normal(node.right))
        yield from self.other(node)

    def power(self, node: Power) -> Iterator[sp.Basic]:
        if node.exponent < 0:
            yield from _nonzero(self.algebra.normal(node.base))
        yield from self.other(node)

    def call(self, node: Call) -> Iterator[sp.Basic]:
        domain = FUNCTIONS[node.function].domain
        if domain != REALS:
            inside = self.algebra.normal(node.argument)
            yield from (r for r in domain.relations(inside) if r.func(*r.args) != sp.true)
        yield from self.other(node)

    def number(self, node: sp.Rational) -> Iterator[sp.Basic]:
        yield from ()

    def other(self, node: sp.Basic) -> Iterator[sp.Basic]:
        for part in node.args:
            yield from self(part)


def _nonzero(value: sp.Expr) -> Iterator[sp.Basic]:
    if not value.is_nonzero:
        yield sp.Ne(value, 0, evaluate=False)
