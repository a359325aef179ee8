"""Systems as polynomials of one operator: X = A wherever L = I - A, and X = A or X = L where L = D - A."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import sympy as sp

from rdgraph.algebra.normal_form import H
from rdgraph.errors import NotApplicable
from rdgraph.syntax.tree import Kind, Name
from rdgraph.systems.structure import Structure
from rdgraph.systems.system import System


class OneOperator(NamedTuple):
    """A system whose letter A stands for the operator X, and the letter, A or L, that X has in the equation."""

    letter: str
    system: System


@lru_cache(maxsize=256)
def in_one_operator(system: System, *, has_degrees: bool = False) -> OneOperator:
    """The system written in one operator; `has_degrees` says that L is D - A, which does not commute with A.

    >>> from rdgraph.systems.parser import parse
    >>> letter, written = in_one_operator(parse("-alpha*L@H"), has_degrees=True)
    >>> print(letter, written)
    L -alpha*A@H
    """
    used = {"A", "L"} & set(system.letters)
    if not has_degrees or used <= {"A"}:
        return OneOperator("A", system)
    if len(used) == 2:
        raise NotApplicable(
            f"expected a polynomial in A alone or in L alone for the normalisation none, where L = D - A does not "
            f"commute with A, got {system}; write it in one letter or normalise the operator"
        )
    letters = {Name("L", Kind.OPERATOR): Name("A", Kind.OPERATOR)}
    return OneOperator("L", system.with_expression(system.expression.xreplace(letters)))


def terms_beyond_generator(structure: Structure) -> list[sp.Expr]:
    """The terms in H that are no A^k H with scalar or channel factors; with none the flow is exp(t p(A)) and a forcing.

    >>> from rdgraph.systems.parser import parse
    >>> terms_beyond_generator(parse("-L@H + H**2 + M*H0").structure)
    [H**2]
    """
    return [term for term in sp.Add.make_args(structure.coupled + structure.reaction) if term.has(H)]
