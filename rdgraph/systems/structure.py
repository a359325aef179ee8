"""The anatomy of a normal form: generator, source, reaction, and what stands in the way of exact answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy as sp

from rdgraph.algebra.normal_form import H0, Act, H, Mix
from rdgraph.syntax.tree import Kind


@dataclass(frozen=True)
class Structure:
    """f(H) = sum_k generator[k] A^k H + sum_k source[k] A^k H0 + reaction(H) + constant + coupled.

    `generator` and `source` have scalar or channel coefficients; `reaction` is a nonlinear function of single
    entries of H; `coupled` collects the rest (mixing, node coefficients, products across nodes), each with a reason.
    """

    generator: dict[int, sp.Expr]
    source: dict[int, sp.Expr]
    reaction: sp.Expr
    constant: sp.Expr
    coupled: sp.Expr
    linear: bool
    has_source: bool
    obstacles: tuple[str, ...] = field(default=())

    @property
    def is_polynomial_in_operator(self) -> bool:
        """Linear with a generator that is a polynomial in A: the systems that have a symbol."""
        return self.linear and not self.obstacles

    @property
    def is_pointwise(self) -> bool:
        """Polynomial generator plus an entrywise reaction, and nothing else."""
        return self.coupled == 0

    def scalar_field(self, value: sp.Expr, initial: sp.Expr) -> sp.Expr:
        """f on a state that is the same in all nodes of a graph whose operator keeps constants (A@1 = 1)."""
        total = sum(self.generator.values(), sp.S.Zero) * value + sum(self.source.values(), sp.S.Zero) * initial
        return sp.sympify(total + self.reaction.xreplace({H: value}) + self.constant)


def structure_of(normal: sp.Expr, kinds: Mapping[str, Kind]) -> Structure:
    """The terms of a normal form, sorted; `kinds` are those of its letters."""
    generator: dict[int, sp.Expr] = {}
    source: dict[int, sp.Expr] = {}
    reaction, constant, coupled = sp.S.Zero, sp.S.Zero, sp.S.Zero
    obstacles: list[str] = []
    linear = True
    for term in sp.Add.make_args(normal):
        if term == 0:
            continue
        linear = linear and _degree(term) <= 1
        factor, core = _split(term, kinds)
        place = _place(core)
        if place is not None:
            state, power = place
            target = generator if state == H else source
            target[power] = target.get(power, sp.S.Zero) + factor
        elif _is_entrywise(term, kinds) and term.has(H) and not term.has(H0):
            reaction += term
        elif not term.has(H, H0) and not term.has(Act, Mix) and _kinds_of(term, kinds) <= {Kind.SCALAR, Kind.CHANNEL}:
            constant += term
        else:
            coupled += term
            obstacles.append(_reason(term, kinds))
    if reaction != 0:
        obstacles.append(f"the reaction {reaction} is nonlinear")
    if constant != 0:
        obstacles.append(f"the constant forcing {constant} is not a multiple of H or H0")
    clean = {k: sp.expand(v) for k, v in sorted(generator.items()) if sp.expand(v) != 0}
    sources = {k: sp.expand(v) for k, v in sorted(source.items()) if sp.expand(v) != 0}
    return Structure(
        clean, sources, reaction, constant, coupled, linear,
        has_source=normal.has(H0), obstacles=tuple(dict.fromkeys(obstacles)),
    )  # fmt: skip


def _kinds_of(term: sp.Expr, kinds: Mapping[str, Kind]) -> set[Kind]:
    return {kinds.get(s.name, Kind.FIELD) for s in term.free_symbols}


def _split(term: sp.Expr, kinds: Mapping[str, Kind]) -> tuple[sp.Expr, sp.Expr]:
    """Scalar and channel factors, and the field core."""
    factor, core = sp.S.One, sp.S.One
    for piece in sp.Mul.make_args(term):
        if piece.has(H, H0, Act, Mix) or not _kinds_of(piece, kinds) <= {Kind.SCALAR, Kind.CHANNEL}:
            core *= piece
        else:
            factor *= piece
    return factor, core


def _place(core: sp.Expr) -> tuple[sp.Expr, int] | None:
    """(H, k) for A^k H, (H0, k) for A^k H0."""
    if core in (H, H0):
        return core, 0
    if isinstance(core, Act) and core.inner in (H, H0) and all(w.name == "A" for w in core.word):
        return core.inner, len(core.word)
    return None


def _is_entrywise(term: sp.Expr, kinds: Mapping[str, Kind]) -> bool:
    return not term.has(Act, Mix) and Kind.NODE not in _kinds_of(term, kinds)


def _degree(expression: sp.Expr) -> float:
    """Degree in H; infinite for anything that is not a polynomial in H and its images."""
    if not expression.has(H):
        return 0
    if expression == H:
        return 1
    match expression:
        case Act() | Mix():
            return _degree(expression.inner)
        case sp.Add():
            return max(_degree(a) for a in expression.args)
        case sp.Mul():
            return sum(_degree(a) for a in expression.args)
        case sp.Pow(exp=sp.Integer()) if expression.exp > 0:
            return _degree(expression.base) * int(expression.exp)
    return float("inf")


def _reason(term: sp.Expr, kinds: Mapping[str, Kind]) -> str:
    if term.has(Mix):
        return f"the matrix in {term} mixes channels"
    if _degree(term) > 1:
        return f"the term {term} is nonlinear and couples nodes"
    if Kind.NODE in _kinds_of(term, kinds):
        return f"the node coefficient in {term} does not commute with A"
    return f"the term {term} is not a multiple of A^k H or A^k H0"
