"""How an equation was written where functions are declared with it: `g(H) where g = H**3/(1 + H**2)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from rdgraph.syntax.mathml_printer import row, sign, to_mathml
from rdgraph.syntax.printer import to_latex, to_text
from rdgraph.syntax.tree import Call
from rdgraph.syntax.unfolding import ARGUMENT, unfolded


@dataclass(frozen=True)
class Spelling:
    """A right-hand side with calls of declared functions, and their definitions in the letter H.

    A definition may use the functions before it; those that the right-hand side does not need are left out.
    """

    expression: sp.Basic
    functions: tuple[tuple[str, sp.Basic], ...]

    @classmethod
    def of(cls, expression: sp.Basic, functions: Mapping[str, sp.Basic]) -> Spelling | None:
        """The spelling of a tree; None where it calls no declared function."""
        needed = _called(expression)
        for name, definition in reversed(list(functions.items())):
            needed |= _called(definition) if name in needed else set()
        kept = tuple((name, definition) for name, definition in functions.items() if name in needed)
        return cls(expression, kept) if kept else None

    @property
    def unfolded(self) -> sp.Basic:
        """The right-hand side with the functions written out."""
        return unfolded(self.expression, dict(self.functions))

    def replaced(self, letters: Mapping[sp.Basic, sp.Basic]) -> Spelling:
        """The same spelling with coefficients replaced, in the definitions too."""
        trees = tuple((name, definition.xreplace(dict(letters))) for name, definition in self.functions)
        return Spelling(self.expression.xreplace(dict(letters)), trees)

    def declarations(self) -> list[str]:
        """What follows the word `where`."""
        return [f"{name} = {to_text(definition)}" for name, definition in self.functions]

    def latex(self) -> str:
        """The right-hand side, and the definitions after it."""
        texts = [f"{to_latex(Call(name, ARGUMENT))} = {to_latex(definition)}" for name, definition in self.functions]
        return to_latex(self.expression) + r",\quad " + r",\ ".join(texts)

    def mathml(self) -> str:
        """The same in MathML."""
        parts = [to_mathml(self.expression)]
        for name, definition in self.functions:
            parts += [sign(","), '<mspace width="1em"/>', to_mathml(Call(name, ARGUMENT)), sign("=")]
            parts.append(to_mathml(definition))
        return row(*parts)


def _called(tree: sp.Basic) -> set[str]:
    return {call.function for call in tree.atoms(Call)}
