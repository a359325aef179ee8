"""`GeneratedFunction`: one function of the generated torch source."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp


@dataclass(frozen=True)
class GeneratedFunction:
    """The body of one generated function with its arguments in order and coefficients by generated name."""

    name: str
    arguments: tuple[str, ...]
    coefficients: tuple[sp.Expr, ...]
    lines: tuple[str, ...]
    steps: tuple[str, ...]
    products: int
    mixes: int

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        return tuple(f"c{i}" for i in range(len(self.coefficients)))

    @property
    def coefficient_function(self) -> str:
        """The name of the generated function that computes the coefficients."""
        return "coefficients" if self.name == "field" else f"{self.name}_coefficients"
