"""The analysis of systems beyond one equation dH/dt = f(H): what they are, and what is proved of them.

Every key is answered, or None with the reason among the notes. Further groups of questions are further entries of
`GROUPS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rdgraph.decisions.condition_words import in_words
from rdgraph.errors import NotApplicable
from rdgraph.patterns.steady_states import steady_states
from rdgraph.patterns.turing_analysis import turing
from rdgraph.reports.answer_tables import attempted, rendered
from rdgraph.reports.field_regularity import regularity_answers
from rdgraph.systems.system import System
from rdgraph.theory.method_choice import MethodChoice, choose_method

UNDECIDED = "undecided"
#: A group of questions: a system, normalisations and the notes, to which it adds, to answers by key.
Group = Callable[[System, Sequence[str], dict[str, str]], dict[str, Any]]


def field_answers(system: System, kinds: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """Answers as strings for sympy and in words, by key, and notes.

    >>> from rdgraph.systems.parser import parse
    >>> answers, _, notes = field_answers(parse("u' = -L@u + 2*v; v' = -u"), ["row"])
    >>> answers["symbol"], answers["existence"], answers["lipschitz_global"]
    ([['-lam', '2'], ['-1', '0']], 'global', {'row': '4'})
    """
    notes: dict[str, str] = {}
    found: dict[str, Any] = {}
    for group in GROUPS:
        found |= group(system, kinds, notes)
    return rendered(found, str), rendered(found, in_words), {key: text for key, text in notes.items() if text}


def _nature(system: System, kinds: Sequence[str], notes: dict[str, str]) -> dict[str, Any]:
    """What kind of system it is, and its matrix symbol by rows."""
    return {
        "text": str(system),
        "latex": system.latex(),
        "fields": list(system.fields),
        "linear": system.coupling.is_linear,
        "has_source": bool(system.coupling.source),
        "symbol": attempted("symbol", lambda: system.symbol().tolist(), notes),
    }


def _patterns(system: System, kinds: Sequence[str], notes: dict[str, str]) -> dict[str, Any]:
    """Homogeneous steady states, and the conditions under which transport makes one of them unstable."""
    states = attempted("steady_states", lambda: steady_states(system), notes)
    found = attempted("turing", lambda: turing(system), notes)
    if states is not None:
        proof = "complete" if states.is_complete else "not proved to be complete"
        noise = "white noise is left out; " if system.is_noisy else ""
        notes["steady_states"] = f"{noise}{proof}: {states.note}; assumes: {states.assumes}"
    linear = {}
    if found is not None and not system.coupling.is_linear:
        linear = {"symbol": found.to_dict()["symbol"]}
        notes["symbol"] = f"of the linearisation at {found.state or 'every steady state'}"
    if found is not None:
        notes["turing"] = f"for lam in (0, {found.to}]; assumes: {found.assumes}"
    return linear | {
        "steady_states": UNDECIDED if states is None else states.to_dict(),
        "turing": UNDECIDED if found is None else found.to_dict(),
    }


GROUPS: tuple[Group, ...] = (_nature, _patterns, regularity_answers)


def field_method(system: System, normalisation: str) -> MethodChoice:
    """The method that fits the system; where none follows from the equation, the choice says so."""
    try:
        return choose_method(system, normalisation=normalisation)
    except NotApplicable as problem:
        return MethodChoice("undecided", None, str(problem))
