"""`Formula`: an equation on a page, as rendered maths with its text beside it."""

from __future__ import annotations

from dataclasses import dataclass

from rdgraph.systems.parser import parse


@dataclass(frozen=True)
class Formula:
    """An equation by its name, as MathML and as the text that reads back to it."""

    name: str
    mathml: str
    text: str

    @classmethod
    def of(cls, equation: str, name: str = "") -> Formula:
        """From an equation, or the name of one of the catalogue.

        Args:
            equation: as `rdgraph.parse` takes it.
            name: what the page calls it; the name of the catalogue by default.

        Example:
            >>> found = Formula.of("ST")
            >>> found.name, found.text, "<mi>β</mi>" in found.mathml
            ('ST', '-alpha*L@H + beta*H0', True)
        """
        system = parse(equation)
        return cls(name or system.name or "", system.mathml(), str(system))
