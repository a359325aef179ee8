"""`Structure`: generator, source and reaction of a normal form, and the terms that prevent exact answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy as sp

from rdgraph.language.normal_form import H0, Act, H, State
from rdgraph.language.tree import Kind
from rdgraph.systems.coupling import OperatorWord, coupling_of


@dataclass(frozen=True)
class Structure:
    """f(H) = sum_k generator[k] A^k H + sum_k source[k] A^k H0 + reaction(H) + constant + coupled.

    `generator` and `source` have scalar or channel coefficients; `reaction` is a nonlinear function of single
    entries of H; `coupled` collects the rest (mixing, node coefficients, products across nodes), each with a
    reason. It is the `Coupling` of one field.
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
        """The system is a polynomial generator plus an entrywise reaction."""
        return self.coupled == 0

    def scalar_field(self, value: sp.Expr, initial: sp.Expr) -> sp.Expr:
        """f on a state that is the same in all nodes of a graph whose operator keeps constants (A@1 = 1)."""
        total = sum(self.generator.values(), sp.S.Zero) * value + sum(self.source.values(), sp.S.Zero) * initial
        return sp.sympify(total + self.reaction.xreplace({H: value}) + self.constant)


def structure_of(normal: sp.Expr, kinds: Mapping[str, Kind]) -> Structure:
    """The terms of a normal form in H, sorted; `kinds` are the kinds of its names."""
    coupling = coupling_of(("H",), {"H": normal}, kinds)
    generator, stray = _powers(coupling.linear.get(("H", "H"), {}), H)
    source, more = _powers(coupling.source.get(("H", "H"), {}), H0)
    others = [f"the term {term} is not a multiple of A^k H or A^k H0" for term in (*stray, *more)]
    return Structure(
        generator, source, coupling.reaction["H"], coupling.constant["H"], sp.Add(coupling.coupled["H"], *stray, *more),
        coupling.is_linear, has_source=normal.has(H0), obstacles=(*others, *coupling.obstacles),
    )  # fmt: skip


def _powers(words: Mapping[OperatorWord, sp.Expr], letter: State) -> tuple[dict[int, sp.Expr], list[sp.Expr]]:
    """Coefficients of A^k, and the terms in other operators."""
    powers = {len(word): c for word, c in words.items() if set(word) <= {"A"}}
    stray = [c * Act(map(sp.Symbol, word), letter) for word, c in words.items() if not set(word) <= {"A"}]
    return powers, stray
