"""What can be said of systems beyond one equation dH/dt = f(H): matrix symbol, steady states, Turing's conditions.

Questions that are answered for one equation alone are undecided here, each with the reason.
"""

from __future__ import annotations

from typing import Any

from rdgraph.errors import NotApplicable, Undecided
from rdgraph.patterns.steady_states import steady_states
from rdgraph.patterns.turing_analysis import turing
from rdgraph.systems.system import System
from rdgraph.theory.method_choice import DEFAULT_STEP, MethodChoice, choose_method

#: Keys of the answers about one equation that several do not have, or not yet.
OF_ONE_EQUATION = (
    "response_exact", "lipschitz_global", "lipschitz_local", "one_sided", "existence", "invariant_box",
    "step_limit_euler", "step_limit_rk4", "identifiable", "conserved",
)  # fmt: skip
UNDECIDED = "undecided"


def field_answers(system: System) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """Answers for machines and in words, by key, and notes.

    >>> from rdgraph.systems.parser import parse
    >>> answers, _, notes = field_answers(parse("u' = -L@u + 2*v; v' = -u"))
    >>> answers["symbol"], answers["existence"]
    ([['-lam', '2'], ['-1', '0']], 'undecided')
    """
    notes: dict[str, str] = {}
    answers: dict[str, Any] = {
        "text": str(system),
        "latex": system.latex(),
        "fields": list(system.fields),
        "linear": system.coupling.is_linear,
        "has_source": bool(system.coupling.source),
        "symbol": _symbol(system, notes),
    }
    words = dict(answers)
    _add_patterns(system, answers, words, notes)
    reason = _reason(system)
    for key in OF_ONE_EQUATION:
        answers[key] = words[key] = UNDECIDED
        notes[key] = reason
    if system.is_noisy:
        notes["steady_states"] = f"white noise is left out; {notes['steady_states']}"
    return answers, words, notes


def _reason(system: System) -> str:
    try:
        _ = system.expression
    except NotApplicable as problem:
        return str(problem)
    raise AssertionError("one equation of first order has answers of its own")


def _symbol(system: System, notes: dict[str, str]) -> list[list[str]] | None:
    try:
        matrix = system.symbol()
    except NotApplicable as problem:
        notes["symbol"] = str(problem)
        return None
    return [[str(entry) for entry in row] for row in matrix.tolist()]


def _add_patterns(system: System, answers: dict[str, Any], words: dict[str, Any], notes: dict[str, str]) -> None:
    try:
        states = steady_states(system)
        answers["steady_states"], words["steady_states"] = states.to_dict(), list(map(str, states))
        proof = "complete" if states.is_complete else "not proved to be complete"
        notes["steady_states"] = f"{proof}: {states.note}; assumes: {states.assumes}"
    except (NotApplicable, Undecided) as problem:
        answers["steady_states"] = words["steady_states"] = UNDECIDED
        notes["steady_states"] = str(problem)
    try:
        found = turing(system)
        answers["turing"], words["turing"] = found.to_dict(), {name: str(s) for name, s in found.sets.items()}
        notes["turing"] = f"for lam in (0, {found.to}]; assumes: {found.assumes}"
    except (NotApplicable, Undecided) as problem:
        answers["turing"] = words["turing"] = UNDECIDED
        notes["turing"] = str(problem)


def field_method(system: System, normalisation: str) -> MethodChoice:
    """The method that fits the system, or rk4 where none was worked out."""
    try:
        return choose_method(system, normalisation=normalisation)
    except NotApplicable as problem:
        return MethodChoice("rk4", DEFAULT_STEP, f"no bound of the slope is known: {problem}")
