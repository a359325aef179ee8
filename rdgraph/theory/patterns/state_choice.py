"""One steady state out of those of a kinetics: by its number, or by values that are put in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.reals.enclosure import holds
from rdgraph.theory.patterns.kinetics import Kinetics
from rdgraph.theory.patterns.states import SteadyState, SteadyStates
from rdgraph.theory.patterns.steady_states import solve_states, with_assumption
from rdgraph.vocabulary.exact_numbers import exact_number


def state_at(kinetics: Kinetics, state: int | Mapping[str, Any]) -> SteadyState:
    """The steady state with a number, or with the values that are given, which are put in.

    Raises:
        InvalidArgument: there is no such state, or the rates do not vanish at the values.
        NotApplicable: no steady state was found.
    """
    if isinstance(state, Mapping):
        return _given(kinetics, state)
    return numbered(solve_states(kinetics), state)


def numbered(found: SteadyStates, state: int) -> SteadyState:
    """The steady state with a number among those that were found; errors as of `state_at`."""
    if isinstance(state, bool) or not isinstance(state, int):
        raise InvalidArgument(f"expected the number of a steady state or values of the fields, got {state!r}")
    if not found.states:
        raise NotApplicable(f"no steady state that is the same in all nodes was found; {found.reason}")
    if not 0 <= state < len(found):
        raise InvalidArgument(f"expected a state among 0..{len(found) - 1}, got {state}; the states are\n{found}")
    return found[state]


def _given(kinetics: Kinetics, values: Mapping[str, Any]) -> SteadyState:
    if set(values) != set(kinetics.fields):
        raise InvalidArgument(f"expected a value for each of {list(kinetics.fields)}, got {sorted(values)}")
    point = {
        x: exact_number(values[name], f"value of {name}")
        for name, x in zip(kinetics.fields, kinetics.letters, strict=True)
    }  # fmt: skip
    left = [sp.simplify(rate.xreplace(point)) for rate in kinetics.rates]
    if any(rate != 0 for rate in left):
        raise InvalidArgument(
            f"expected a steady state, got {dict(values)}, where the rates are {', '.join(map(str, left))}; take the "
            "number of one of steady_states(...)"
        )
    if any(holds(c.xreplace(point)) is False for c in kinetics.defined):
        raise InvalidArgument(f"the equation is not defined at {dict(values)}; take one of steady_states(...)")
    return with_assumption(SteadyState(point), kinetics)
