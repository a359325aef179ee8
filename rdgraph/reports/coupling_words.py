"""The coupling of several fields in words: which terms move each field, and from which nodes they come."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from rdgraph.language.printer import to_text
from rdgraph.language.reader import NOISE_LETTER, PRIME, start_of
from rdgraph.language.tree import Times, field
from rdgraph.reals.condition_words import in_words
from rdgraph.systems.coupling import Coupling, OperatorWord
from rdgraph.systems.system import System


def coupling_words(system: System) -> dict[str, str]:
    """The terms that move each state, by the left-hand side of its equation of first order.

    Args:
        system: any system that has normal forms.

    Returns:
        A line for every state: linear terms with the operators they come through, source terms, constants, reactions
        within a node, further coupling between nodes, noise.

    Raises:
        NotApplicable: the equations are too large to multiply out.

    >>> from rdgraph.systems.parser import parse
    >>> for left, words in coupling_words(parse("u' = a - u + u**2*v - Du*L@u; v' = u - v*(A@u) + sigma*xi")).items():
    ...     print(left, words)
    u' linear in u (node and A); constant a; reaction u**2*v
    v' linear in u (node); between nodes -v*A@u; noise sigma*xi
    """
    coupling = system.coupling
    lines = {}
    for state in system.fields:
        parts = [*_linear(coupling, state), *_rest(coupling, state)]
        if state in system.noise:
            factor, noise = system.noise[state], field(NOISE_LETTER)
            parts.append(f"noise {to_text(noise if factor == 1 else Times(factor, noise))}")
        lines[state + PRIME] = "; ".join(parts) or "nothing"
    return lines


def _linear(coupling: Coupling, state: str) -> list[str]:
    """The states and initial states that act on a state linearly, with the operators they come through."""
    parts = []
    for terms, name in ((coupling.linear, str), (coupling.source, start_of)):
        pairs = [(j, terms[state, j]) for j in coupling.fields if (state, j) in terms]
        names = [f"{name(j)} ({_ways(words)})" for j, words in pairs]
        parts += [f"linear in {', '.join(names)}"] if names else []
    return parts


def _ways(words: Iterable[OperatorWord]) -> str:
    """The operators of some terms: `node` for the state of the node itself."""
    texts = ["@".join(word) if word else "node" for word in words]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _rest(coupling: Coupling, state: str) -> list[str]:
    sorts = {"constant": coupling.constant, "reaction": coupling.reaction, "between nodes": coupling.coupled}
    return [f"{word} {in_words(terms[state])}" for word, terms in sorts.items() if terms[state] != sp.S.Zero]
