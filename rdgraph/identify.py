"""Identifiability: which combinations of the coefficients a flow can reveal at all.

The normal form is a sum of linearly independent terms, so the flow knows exactly its coefficients. The rank of their
Jacobian counts the identifiable combinations; the time gauge leaves them only up to a common factor if T is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from rdgraph.nodes import Kind
from rdgraph.symbols import public
from rdgraph.system import System


@dataclass(frozen=True)
class Identifiability:
    """Combinations the flow reveals, coefficients it reveals one by one, and those it never does."""

    combinations: tuple[sp.Expr, ...]
    single: tuple[str, ...]
    hidden: tuple[str, ...]

    @property
    def rank(self) -> int:
        return len(self.combinations)


def identify(system: System) -> Identifiability:
    """Symbolic rank of (coefficients) -> (coefficients of the normal form).

    >>> from rdgraph.parse import parse
    >>> identify(parse("-alpha*L@H + beta*L@H")).combinations
    (alpha - beta,)
    """
    letters = [system.algebra.symbols[n] for n, k in system.coefficients.items() if k is not Kind.MATRIX]
    if not letters:
        return Identifiability((), (), ())
    values = _revealed(system.normal, letters)
    jacobian = sp.Matrix([[sp.diff(v, x) for x in letters] for v in values])
    reduced, pivots = jacobian.rref(simplify=sp.cancel, iszerofunc=_vanishes)
    rows = [reduced.row(i) for i in range(len(pivots))]
    single = tuple(x.name for i, x in enumerate(letters) if any(_is_unit(row, i) for row in rows))
    if all(entry.is_number for row in rows for entry in row):
        combinations = tuple(_primitive(row, letters) for row in rows)
    else:
        combinations = _independent(values, letters, len(pivots), single)
    hidden = tuple(x.name for i, x in enumerate(letters) if all(row[i] == 0 for row in rows))
    return Identifiability(tuple(public(c) for c in combinations), single, hidden)


def _revealed(normal: sp.Expr, letters: list[sp.Symbol]) -> list[sp.Expr]:
    """Coefficients of the independent terms of the normal form."""
    table: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(normal):
        factor, core = sp.S.One, sp.S.One
        for piece in sp.Mul.make_args(term):
            if piece.free_symbols and piece.free_symbols <= set(letters):
                factor *= piece
            else:
                core *= piece
        number, core = core.as_coeff_Mul()
        table[core] = table.get(core, sp.S.Zero) + number * factor
    values = [sp.expand(v) for v in table.values()]
    inner = [v for core in table for v in sorted(core.free_symbols & set(letters), key=str)]
    return values + inner


def _vanishes(entry: sp.Expr) -> bool:
    return bool(entry == 0 or sp.cancel(entry) == 0)


def _is_unit(row: sp.Matrix, index: int) -> bool:
    return all((entry == 1) if i == index else (entry == 0) for i, entry in enumerate(row))


def _primitive(row: sp.Matrix, letters: list[sp.Symbol]) -> sp.Expr:
    scale = sp.ilcm(*(sp.Rational(e).q for e in row), 1)
    return sp.Add(*(scale * e * x for e, x in zip(row, letters, strict=True)))


def _independent(
    values: list[sp.Expr], letters: list[sp.Symbol], rank: int, single: tuple[str, ...]
) -> tuple[sp.Expr, ...]:
    """Coefficients known one by one first, then the simplest revealed values until the rank is reached."""
    chosen: list[sp.Expr] = [x for x in letters if x.name in single]
    for value in sorted((sp.factor(v) for v in values if v.free_symbols), key=lambda e: (e.count_ops(), str(e))):
        trial = [*chosen, value]
        if sp.Matrix([[sp.diff(v, x) for x in letters] for v in trial]).rank(
            simplify=sp.cancel, iszerofunc=_vanishes
        ) == len(trial):
            chosen = trial
        if len(chosen) == rank:
            break
    return tuple(chosen)
