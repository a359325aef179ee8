"""What every field does with itself linearly: scalars or channels times A^k or L^k of it, and the rest."""

from __future__ import annotations

import sympy as sp

from rdgraph.algebra.normal_form import TIME, Act, Mix, State
from rdgraph.normalisations.registry import find_normalisation
from rdgraph.syntax.tree import Kind
from rdgraph.systems.system import System
from rdgraph.theory.several_fields.node_speeds import normal_forms, row_size

Word = tuple[str, ...]


def own_terms(system: System, normalisation: str, name: str) -> tuple[list[tuple[sp.Expr, Word]], sp.Expr]:
    """The coefficients and words of the linear terms of a field in itself, and all other terms.

    >>> from rdgraph.systems.parser import parse
    >>> own_terms(parse("u' = u*v - 3*u + 2*A@u; v' = -v"), "row", "u")[0]
    [(-3, ()), (2, ('A',))]
    """
    own, rest = [], []
    for term in sp.Add.make_args(normal_forms(system, normalisation)[name]):
        found = _own(term, State(name), system)
        if found is None:
            rest.append(term)
        else:
            own.append(found)
    return sorted(own, key=lambda pair: (len(pair[1]), pair[1], str(pair[0]))), sp.Add(*rest)


def _own(term: sp.Expr, state: State, system: System) -> tuple[sp.Expr, Word] | None:
    pieces = sp.Mul.make_args(term)
    cores = [x for x in pieces if x.has(State, Act, Mix)]
    if len(cores) != 1 or any(x.has(TIME) for x in pieces):
        return None
    core = cores[0]
    factor = sp.Mul(*(x for x in pieces if x is not core))
    kinds = {system.letters.get(x.name) for x in factor.free_symbols}
    if not kinds <= {Kind.SCALAR, Kind.CHANNEL}:
        return None
    if core == state:
        return factor, ()
    if isinstance(core, Act) and core.inner == state and len({w.name for w in core.word}) == 1:
        word = tuple(w.name for w in core.word)
        return (factor, word) if word[0] in ("A", "L") else None
    return None


def own_rate(system: System, normalisation: str) -> sp.Expr:
    """A bound of the rates of the linear parts: the largest sum of |coefficient| times the row sum of its word."""
    record = find_normalisation(normalisation)
    totals = [
        sp.Add(*(sp.Abs(c) * row_size(word, system, record) for c, word in own_terms(system, normalisation, name)[0]))
        for name in system.fields
    ]
    return sp.Max(*totals)
