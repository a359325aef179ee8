"""The learned functions that equations call, each under one declaration."""

from __future__ import annotations

from collections.abc import Sequence

from rdgraph.errors import InvalidArgument
from rdgraph.syntax.learned_function import LearnedFunction, is_key
from rdgraph.syntax.tree import Call
from rdgraph.systems.equation import Equation


def learned_functions(equations: Sequence[Equation]) -> dict[str, LearnedFunction]:
    """The functions that are learned, by name; a name that stands for two is refused, since no text tells them apart.

    >>> from rdgraph.syntax.reader import read_expression
    >>> list(learned_functions([Equation("H", 1, read_expression("phi(H) - tanh(psi(H))"))]))
    ['phi', 'psi']
    """
    keys = {call.function for e in equations for call in e.expression.atoms(Call) if is_key(call.function)}
    found: dict[str, LearnedFunction] = {}
    for declared in map(LearnedFunction.of_key, sorted(keys)):
        if declared.name in found:
            raise InvalidArgument(
                f"expected one declaration of {declared.name}, got {found[declared.name]} and {declared}; call one of "
                f"them {declared.name}_1"
            )
        found[declared.name] = declared
    return found
