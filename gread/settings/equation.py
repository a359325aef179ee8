"""The equation of a network: text or `System` to the `System` that is trained, read once."""

from __future__ import annotations

from rdgraph import parse
from rdgraph.systems.system import System


def read_equation(reaction: str | System, alpha: str, beta: str) -> System:
    """The system of a catalogue name, a text or a `System`, with alpha and beta of the kinds asked for.

    >>> print(read_equation("ST", "scalar", "channel"))
    -alpha*L@H + beta*H0 where beta channel
    """
    system = parse(reaction)
    asked = {"alpha": alpha, "beta": beta}
    letters = system.coefficients
    return parse(system, {name: kind for name, kind in asked.items() if letters.get(name, kind) != kind})
