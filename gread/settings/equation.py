"""The equation of a network: text or `System` to the `System` that is trained, read once."""

from __future__ import annotations

from rdgraph import parse
from rdgraph.errors import NotApplicable
from rdgraph.syntax.learned_names import declared_names
from rdgraph.systems.system import System


def lasting_text(reaction: str) -> str:
    """The text of an equation that reads to the same one elsewhere: with what `rdgraph.learned` declared here."""
    return str(parse(reaction)) if any(name in reaction for name in declared_names()) else reaction


def read_equation(reaction: str | System, alpha: str, beta: str, *, has_beside: bool = False) -> System:
    """The system of a catalogue name, a text or a `System`, with alpha and beta of the kinds asked for.

    Raises NotApplicable for white noise, under which there is no one H(T) to read classes from, and for operators
    beside A, since a network has one graph, unless it says what they are on it (`has_beside`).

    >>> print(read_equation("ST", "scalar", "channel"))
    -alpha*L@H + beta*H0 where beta channel
    >>> print(read_equation("u' = -Du*L@u + beta*v; v' = u - v", "scalar", "channel"))
    u' = -Du*L@u + beta*v; v' = u - v where beta channel
    """
    system = parse(reaction)
    if system.is_noisy:
        raise NotApplicable(
            f"expected an equation without white noise to train, got {system.text}; leave out the term of xi, or draw "
            "paths with rdgraph.solve"
        )
    if not has_beside and (further := [name for name in system.operators.names if name in system.letters]):
        raise NotApplicable(
            f"expected an equation in A and L alone to train, got {system.text}, for whose {', '.join(further)} a "
            "network has no graph; write it in A and L, or run it with rdgraph.solve"
        )
    asked = {"alpha": alpha, "beta": beta}
    letters = system.coefficients
    return parse(system, {name: kind for name, kind in asked.items() if letters.get(name, kind) != kind})
