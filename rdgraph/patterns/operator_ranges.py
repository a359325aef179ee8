"""Boxes around the numerical ranges of words of operators, from what an equation says of them and from their norms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp

from rdgraph.errors import InvalidArgument
from rdgraph.patterns.numerical_ranges import RangeBox
from rdgraph.patterns.operator_matrices import Word
from rdgraph.syntax.exact_numbers import exact_number
from rdgraph.systems.further_operators import FurtherOperators


class OperatorRanges:
    """What is known of operators: L is symmetric with eigenvalues in [0, to], norms of others may be given.

    >>> ranges = OperatorRanges(FurtherOperators.of({"B": "antisymmetric"}), {"B": 3}, sp.Integer(2))
    >>> print(ranges.box(("B",)), ranges.box(("B", "B")), ranges.box(("L", "B")))
    [0, 0] + i*[-3, 3] [-9, 0] [-6, 6] + i*[-6, 6]
    """

    def __init__(self, declared: FurtherOperators, norms: Mapping[str, Any], to: sp.Expr) -> None:
        unknown = set(norms) - set(declared.names)
        if unknown:
            raise InvalidArgument(f"expected norms of {', '.join(declared.names)}, got {', '.join(sorted(unknown))}")
        self.declared, self.to = declared, to
        self.norms = {name: self._norm(name, norms) for name in declared.names}

    def _norm(self, name: str, norms: Mapping[str, Any]) -> sp.Expr:
        facts = self.declared.facts(name)
        if name not in norms:
            return sp.S.One if {"symmetric", "stochastic"} <= set(facts) else sp.oo
        value = exact_number(norms[name], f"norm of {name}")
        if not value.is_Rational or value < 0:
            raise InvalidArgument(f"expected a number >= 0 as norm of {name}, got {norms[name]}")
        return value

    def _is(self, letter: str, word: str) -> bool:
        return (letter == "L" and word == "symmetric") or (letter != "L" and word in self.declared.facts(letter))

    def box(self, word: Word) -> RangeBox:
        """The box of a word; one that reads the same backwards is symmetric or antisymmetric if its letters are."""
        if word == ("L",):
            return RangeBox(sp.S.Zero, self.to, sp.S.Zero)
        size = sp.Mul(*(self.to if x == "L" else self.norms[x] for x in word)) if word else sp.S.One
        size = sp.oo if size is sp.nan else size
        told = all(self._is(x, "symmetric") or self._is(x, "antisymmetric") for x in word)
        if not told or word != word[::-1]:
            return RangeBox(-size, size, size)
        odd = [x for x in word if self._is(x, "antisymmetric")]
        if len(odd) % 2:
            return RangeBox(sp.S.Zero, sp.S.Zero, size)
        if len(word) % 2:
            return RangeBox(-size, size, sp.S.Zero)
        # a word times its mirror image: V V^T, with a sign for every antisymmetric letter of the half
        return RangeBox(sp.S.Zero, size, sp.S.Zero) if len(odd) % 4 == 0 else RangeBox(-size, sp.S.Zero, sp.S.Zero)
