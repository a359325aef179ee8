"""A system from a text, for the tests of the adversary."""

from __future__ import annotations

from tests.adversary import expressions, systems
from tests.adversary.systems import Drawn


def drawn(text: str, recipe: str = "usual") -> Drawn:
    """A system from a text, as the adversary would have drawn it."""
    body, _, clause = text.partition(" where ")
    notes = [n.strip() for n in clause.split(",")] if clause else []
    kinds = {n: "matrix" if n == "W" else "node" if n == "M" else "scalar" for n in expressions.names(body)}
    kinds |= {n.split()[0]: n.split()[1] for n in notes if n.split()[-1] in ("channel", "node", "scalar")}
    statements = tuple(n for n in notes if n.split()[-1] not in ("channel", "node", "scalar"))
    own = tuple(sorted((n, k) for n, k in kinds.items() if n not in systems.STRUCTURAL))
    return Drawn(body, own, statements, recipe)
