"""Every public function of a system takes a name of the catalogue and a line of text."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

import rdgraph as rd
from tests.doors import public_names

NAME, TEXT = "BS", "-alpha*L@H + beta*(A@H - A@A@H)"
NUMBERS = {"alpha": 0.5, "beta": 1.0}
OPERATOR = rd.generators.path(3).operator("symmetric", dtype=torch.float64)


def _refusal(question: Callable[..., Any], *given: Any) -> str:
    with pytest.raises(rd.errors.NotApplicable) as caught:
        question(*given)
    return str(caught.value)


STATES = [[1.0, 0.0, 0.5], [0.9, 0.1, 0.5], [0.8, 0.2, 0.5]]
#: A call of every public function whose first argument is a system.
CALLS: dict[str, Callable[[Any], Any]] = {
    "analyse": lambda s: rd.analyse(s).to_dict()["symbol"],
    "choose_method": lambda s: rd.theory.choose_method(s, 1.0).method,
    "classify": rd.classify,
    "conserved": rd.theory.conserved,
    "critical_ratio": lambda s: _refusal(rd.patterns.critical_ratio, s, NUMBERS),  # of one field there is none
    "dispersion": lambda s: str(rd.dispersion(s, NUMBERS)),
    "energy_law": rd.theory.energy_law,
    "equivalent": lambda s: rd.equivalent(s, TEXT).outcome,
    "euler_map": rd.theory.euler_map,
    "existence": rd.existence,
    "fastest_frequency": rd.theory.fastest_frequency,
    "fit": lambda s: (
        rd.fit(
            s,
            STATES,
            [0.0, 0.1, 0.2],
            graph=[[0, 1, 0], [1, 0, 1], [0, 1, 0]],
            initial=STATES[0],
            start={"alpha": 1.0, "beta": 1.0},
            starts=1,
            level=None,
        ).values
    ),
    "growth_rate": rd.theory.growth_rate,
    "identify": lambda s: rd.theory.identify(s).combinations,
    "invariant_box": rd.invariant_box,
    "lipschitz_global": rd.lipschitz_global,
    "lipschitz_local": rd.theory.lipschitz_local,
    "lower": lambda s: rd.lower(s, OPERATOR, {"alpha": 0.5, "beta": 1.0}).source,
    "one_sided": rd.theory.one_sided,
    "parse": rd.parse,
    "preflight": lambda s: str(rd.preflight(s, T=1.0, method="euler", step=0.5)),
    "reaction_flow": rd.theory.reaction_flow,
    "response": lambda s: rd.theory.response(s, T=1),
    "steady_states": lambda s: str(rd.steady_states(s, NUMBERS)),
    "step_limit": rd.step_limit,
    "symbol": rd.theory.symbol,
    "turing": lambda s: str(rd.turing(s)),
    "turing_threshold": lambda s: str(rd.turing_threshold(s, "beta", {"alpha": 0.5})),
}


def takes_a_system(function: Any) -> bool:
    """Whether the first argument of a function is a system."""
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return first is not None and "System" in str(first.annotation)


def test_the_calls_are_those_of_every_public_function_of_a_system() -> None:
    functions = {name: value for name, value in public_names("rdgraph").items() if inspect.isfunction(value)}
    assert {name for name, function in functions.items() if takes_a_system(function)} == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_a_system_is_a_system_a_name_or_a_line_of_text(name: str) -> None:
    call = CALLS[name]
    expected = call(rd.parse(TEXT))
    for given in (TEXT, NAME, rd.catalogue[NAME]):
        assert _comparable(call(given)) == _comparable(expected), given


def test_the_argument_may_be_named() -> None:
    assert rd.theory.symbol(system=NAME) == rd.theory.symbol(TEXT)


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_equation_is_refused(name: str) -> None:
    for wrong in ("A*H", "BSS", 3):
        with pytest.raises(rd.errors.RdgraphError):
            CALLS[name](wrong)


def _comparable(answer: Any) -> Any:
    """Reports of a name carry the name, so that their words are compared without it."""
    return answer.replace(NAME, TEXT) if isinstance(answer, str) else answer
