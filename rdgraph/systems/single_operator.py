"""Systems as polynomials of one operator: X = A wherever L = I - A, and X = A or X = L where L = D - A."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.language.normal_form import H, State
from rdgraph.language.tree import Kind, Name
from rdgraph.systems.canonical.cancelled_parts import Nought
from rdgraph.systems.coupling import Coupling
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
    return OneOperator("L", replace(system, equations=tuple(e.replaced(letters) for e in system.equations)))


class CoupledOperator(NamedTuple):
    """The coupling of the fields in powers of one operator X, under the letter A, and X's letter in the equations."""

    letter: str
    coupling: Coupling


@lru_cache(maxsize=256)
def coupled_in_one_operator(system: System, *, has_degrees: bool = False) -> CoupledOperator:
    """Several fields whose flow is exp(t P(X)), P a matrix of polynomials, up to a forcing that is constant in time.

    Raises NotApplicable, with the reason, for all others.

    >>> from rdgraph.systems.parser import parse
    >>> coupled_in_one_operator(parse("H'' = -L@H")).coupling.linear["H'", "H"]
    {(): -1, ('A',): 1}
    """
    if reasons := coupling_obstacles(system, has_degrees=has_degrees):
        raise NotApplicable(
            f"expected a linear autonomous system whose generator is a matrix of polynomials in A with scalar or "
            f"channel entries, got {system}: {'; '.join(reasons)}; use dopri5 or rk4"
        )
    letter, written = in_one_operator(system, has_degrees=has_degrees)
    return CoupledOperator(letter, written.coupling)


@lru_cache(maxsize=256)
def coupling_obstacles(system: System, *, has_degrees: bool = False) -> tuple[str, ...]:
    """Why the flow of a system is not exp(t P(X)) and a forcing; empty where it is."""
    reasons: tuple[str, ...] = () if system.is_autonomous else ("it depends on the time t",)
    reasons += ("it is driven by the noise xi",) if system.is_noisy else ()
    try:
        _, written = in_one_operator(system, has_degrees=has_degrees)
    except NotApplicable:
        return (*reasons, "A and L = D - A do not commute")
    coupling = written.coupling
    states = [State(name) for name in coupling.fields]
    beyond = [x for part in (coupling.reaction, coupling.coupled) for x in part.values() if x.has(*states)]
    if not coupling.is_linear or beyond:
        return (*reasons, *coupling.obstacles)
    terms = (*coupling.linear.values(), *coupling.source.values())
    further = sorted({name for words in terms for word in words for name in word} - {"A"})
    return (*reasons, *(f"the operator {name} need not commute with A" for name in further))


def terms_beyond_generator(structure: Structure) -> list[sp.Expr]:
    """The terms in H that are no A^k H with scalar or channel factors; with none the flow is exp(t p(A)) and a forcing.

    What cancels without being defined everywhere is among them: a flow that drops it hides that there is no value.

    >>> from rdgraph.systems.parser import parse
    >>> terms_beyond_generator(parse("-L@H + H**2 + M*H0").structure)
    [H**2]
    """
    return [term for term in sp.Add.make_args(structure.coupled + structure.reaction) if term.has(H, Nought)]
