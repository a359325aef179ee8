"""Identifiability: which combinations of the coefficients a flow can reveal at all.

The normal form is a sum of linearly independent terms, so the flow knows exactly its coefficients. The rank of their
Jacobian counts the identifiable combinations; the time gauge leaves them only up to a common factor if T is unknown.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import sympy as sp

from rdgraph.nodes import Kind
from rdgraph.normal import Act, Mix
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
    values, bound = _revealed(system.normal, letters)
    rows = [[sp.diff(v, x) for x in letters] for v in values] + _sampled(bound, letters)
    rank = _rank(rows, letters)
    single = tuple(x for i, x in enumerate(letters) if _rank([*rows, _unit(i, len(letters))], letters) == rank)
    hidden = tuple(x.name for i, x in enumerate(letters) if all(row[i] == 0 for row in rows))
    combinations = _linear_combinations(rows, letters, rank) or _combinations(
        values, bound, letters, rows, rank, single
    )
    return Identifiability(tuple(public(c) for c in combinations), tuple(x.name for x in single), hidden)


def _revealed(normal: sp.Expr, letters: list[sp.Symbol]) -> tuple[list[sp.Expr], list[sp.Expr]]:
    """Coefficients of the terms whose state part is free of letters; the terms with letters inside a function."""
    table: dict[sp.Expr, sp.Expr] = {}
    bound = []
    for term in sp.Add.make_args(normal):
        factor, core = sp.S.One, sp.S.One
        for piece in sp.Mul.make_args(term):
            if piece.free_symbols and piece.free_symbols <= set(letters):
                factor *= piece
            else:
                core *= piece
        if core.free_symbols & set(letters):
            bound.append(term)
            continue
        number, core = core.as_coeff_Mul()
        table[core] = table.get(core, sp.S.Zero) + number * factor
    return [sp.expand(v) for v in table.values()], bound


def _sampled(bound: list[sp.Expr], letters: list[sp.Symbol]) -> list[list[sp.Expr]]:
    """Derivatives of the remaining terms at sample states; operators see states of their own."""
    if not bound:
        return []
    total = _separated(sp.Add(*bound))
    states = sorted(total.free_symbols - set(letters), key=str)
    generator = random.Random(0)
    rows = []
    for _ in range(3 * len(letters) + 2):
        point = {x: sp.Rational(generator.randint(-20, 20), 7) for x in states}
        rows.append([sp.diff(total, x).subs(point) for x in letters])
    return rows


def _separated(expression: sp.Expr) -> sp.Expr:
    """Act and Mix replaced by their argument at an independent state: values at other nodes and channels are free."""

    def copy(atom: Act | Mix) -> sp.Expr:
        inner = _separated(atom.inner)
        mark = f"{type(atom).__name__}{atom.word}"
        return inner.xreplace(
            {x: sp.Symbol(f"{x.name}|{mark}", real=True) for x in inner.free_symbols if "H" in x.name}
        )

    return expression.replace(lambda e: isinstance(e, Act | Mix), copy)


def _rank(rows: list[list[sp.Expr]], letters: list[sp.Symbol]) -> int:
    """Generic rank over the coefficients: at two random points, in exact arithmetic where the entries allow it."""
    best = 0
    for seed in (1, 2):
        generator = random.Random(seed)
        point = {x: sp.Rational(generator.randint(20, 90), 61) * (-1 if x.is_negative else 1) for x in letters}
        matrix = sp.Matrix([[sp.sympify(entry).subs(point) for entry in row] for row in rows])
        if all(entry.is_Rational for entry in matrix):
            best = max(best, matrix.rank())
        else:
            best = max(best, _numeric_rank(matrix))
    return best


def _numeric_rank(matrix: sp.Matrix) -> int:
    import numpy as np

    values = np.array([[float(sp.N(entry, 17)) for entry in matrix.row(i)] for i in range(matrix.rows)])
    scale = np.linalg.norm(values, axis=1, keepdims=True)
    return int(np.linalg.matrix_rank(values / np.where(scale == 0, 1, scale), tol=1e-9))


def _unit(index: int, size: int) -> list[sp.Expr]:
    return [sp.Integer(int(i == index)) for i in range(size)]


def _linear_combinations(rows: list[list[sp.Expr]], letters: list[sp.Symbol], rank: int) -> tuple[sp.Expr, ...]:
    """The combinations where they are linear: constant rows of the reduced Jacobian."""
    if not rows or any(not sp.sympify(e).is_rational_function(*letters) for row in rows for e in row):
        return ()
    reduced, pivots = sp.Matrix(rows).rref(simplify=sp.cancel, iszerofunc=_vanishes)
    kept = [reduced.row(i) for i in range(len(pivots))]
    if len(kept) != rank or not all(entry.is_number for row in kept for entry in row):
        return ()
    return tuple(_primitive(row, letters) for row in kept)


def _combinations(
    values: list[sp.Expr],
    bound: list[sp.Expr],
    letters: list[sp.Symbol],
    rows: list[list[sp.Expr]],
    rank: int,
    single: tuple[sp.Symbol, ...],
) -> tuple[sp.Expr, ...]:
    """Coefficients known one by one, then the simplest expressions whose gradient the flow reveals."""
    pieces = {sp.factor(v) for v in values if v.free_symbols} | _inner_coefficients(bound, letters)
    ratios = {sp.cancel(a / b) for a in pieces | set(letters) for b in pieces | set(letters) if a != b}
    products = {sp.factor(a * b) for a in pieces | set(letters) for b in pieces | set(letters) if a != b}
    chosen: list[sp.Expr] = list(single)
    for value in [*_simplest(pieces), *_simplest(ratios | products)]:
        if len(chosen) >= rank:
            break
        gradient = [sp.diff(value, x) for x in letters]
        own = [[sp.diff(v, x) for x in letters] for v in chosen]
        if _rank([*rows, gradient], letters) == rank and _rank([*own, gradient], letters) == len(chosen) + 1:
            chosen.append(value)
    return tuple(chosen)


def _simplest(expressions: set[sp.Expr]) -> list[sp.Expr]:
    return sorted((e for e in expressions if e.free_symbols), key=lambda e: (e.count_ops(), str(e)))


def _inner_coefficients(bound: list[sp.Expr], letters: list[sp.Symbol]) -> set[sp.Expr]:
    """Coefficients in front of state terms anywhere inside the remaining terms, and a*exp(b) of a*exp(b + ...)."""
    found: set[sp.Expr] = set()
    for term in bound:
        outside = sp.Mul(*(f for f in sp.Mul.make_args(term) if f.free_symbols <= set(letters)))
        for node in sp.preorder_traversal(term):
            grouped: dict[sp.Expr, sp.Expr] = {}
            for part in sp.Add.make_args(node) if isinstance(node, sp.Expr) else ():
                own = sp.Mul(*(f for f in sp.Mul.make_args(part) if f.free_symbols <= set(letters)))
                core = sp.Mul(*(f for f in sp.Mul.make_args(part) if not f.free_symbols <= set(letters)))
                grouped[core] = grouped.get(core, sp.S.Zero) + own
            found |= {sp.factor(v) for v in grouped.values()}
            if isinstance(node, sp.exp):
                found |= {outside * sp.exp(p) for p in sp.Add.make_args(node.args[0]) if p.free_symbols <= set(letters)}
    return {v for v in found if v.free_symbols}


def _vanishes(entry: sp.Expr) -> bool:
    return bool(entry == 0 or sp.cancel(entry) == 0)


def _primitive(row: sp.Matrix, letters: list[sp.Symbol]) -> sp.Expr:
    scale = sp.ilcm(*(sp.Rational(e).q for e in row), 1)
    return sp.Add(*(scale * e * x for e, x in zip(row, letters, strict=True)))
