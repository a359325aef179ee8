"""The letters around some equations: those that are known without a declaration, and those that are free for one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rdgraph.errors import LanguageError
from rdgraph.syntax.reader import USUAL_COEFFICIENTS, start_of, usual_of_fields
from rdgraph.syntax.tree import Kind
from rdgraph.systems.equation import Equation
from rdgraph.systems.further_operators import FurtherOperators
from rdgraph.systems.system_text import is_plain, system_text


def states_of(equations: Sequence[Equation]) -> tuple[str, ...]:
    """The states, in order: every field, and after a field of second order its velocity, as in H, H'."""
    return tuple(state for equation in equations for state in equation.states)


def usual_coefficients(equations: Sequence[Equation]) -> dict[str, Kind]:
    """The coefficients that need no declaration."""
    usual = dict.fromkeys(USUAL_COEFFICIENTS, Kind.SCALAR)
    own = () if is_plain(equations) else usual_of_fields(states_of(equations))
    return usual | dict.fromkeys(own, Kind.SCALAR)


def known_letters(
    equations: Sequence[Equation], kinds: Mapping[str, Kind], operators: FurtherOperators
) -> dict[str, Kind]:
    """The letters that assumptions may speak of, and those that they may not: fields and operators."""
    taken = {**dict.fromkeys(operators.names, Kind.OPERATOR), **dict.fromkeys(states_of(equations), Kind.FIELD)}
    return {**usual_coefficients(equations), **kinds, **taken}


def check_free_letters(
    equations: Sequence[Equation],
    kinds: Mapping[str, Kind],
    operators: FurtherOperators,
    coefficients: Collection[str],
) -> None:
    """Refuse kinds and operators under letters of fields, and letters that would be an operator and a coefficient.

    `coefficients` are the letters that are such in the equations already.
    """
    fields = {letter for state in states_of(equations) for letter in (state, start_of(state))}
    clashes = [(name, "a field") for name in (*kinds, *operators.names) if name in fields]
    clashes += [(name, "an operator") for name in kinds if name in operators.names]
    clashes += [(name, "a coefficient") for name in operators.names if name in {*coefficients, *kinds}]
    for name, meaning in clashes:
        raise LanguageError(
            name, 0, expected="a free name", got=f"{name!r}, {meaning} of {system_text(equations)}"[:120],
            remedy=f"call it {name}_1",
        )  # fmt: skip
