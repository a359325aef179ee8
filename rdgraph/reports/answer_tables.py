"""Answers by normalisation, and the notes that go with them; every expression inside an answer as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import sympy as sp

from rdgraph.errors import NotApplicable, Undecided
from rdgraph.systems.system import System
from rdgraph.theory.lipschitz import Constant
from rdgraph.theory.step_limits import step_limit

Answer = TypeVar("Answer")


def rendered(value: Any, show: Callable[[sp.Basic], str]) -> Any:
    """Every expression inside an answer as text."""
    match value:
        case Mapping():
            return {k: rendered(v, show) for k, v in value.items()}
        case list() | tuple():
            return [rendered(v, show) for v in value]
        case sp.Basic():
            return show(value)
    return value


def attempted(key: str, question: Callable[[], Answer], notes: dict[str, str]) -> Answer | None:
    """An answer, or None with the reason among the notes."""
    try:
        return question()
    except (NotApplicable, Undecided) as reason:
        notes[key] = str(reason)
        return None


def remarks(texts: Mapping[str, str]) -> str:
    """Notes per normalisation, said once where they agree."""
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{n}: {text}" for n, text in texts.items() if text)


def constants(
    key: str, question: Callable[[System, str], Constant], system: System, kinds: Sequence[str], notes: dict[str, str]
) -> dict[str, sp.Expr | None] | None:
    """Constants by normalisation, None where there is none of them."""
    found = {n: question(system, n) for n in kinds}
    notes[key] = remarks({n: c.note for n, c in found.items()})
    if all(c.value is None for c in found.values()):
        return None
    return {n: c.value for n, c in found.items()}


def where_known(kinds: Sequence[str], question: Callable[[str], Answer]) -> tuple[dict[str, Answer], dict[str, str]]:
    """Answers by normalisation, and why there is none for the others."""
    found: dict[str, Answer] = {}
    reasons: dict[str, str] = {}
    for name in kinds:
        try:
            found[name] = question(name)
        except (NotApplicable, Undecided) as reason:
            reasons[name] = str(reason)
    return found, reasons


def with_assumption(note: str, assumes: str) -> str:
    return f"{note}; assumes: {assumes}".removeprefix("; ") if assumes else note


def steps(
    key: str, method: str, system: System, kinds: Sequence[str], notes: dict[str, str]
) -> dict[str, sp.Expr | None] | None:
    """Step limits of a method by normalisation."""
    found, reasons = where_known(kinds, lambda n: step_limit(system, method, n))
    reasons |= {n: with_assumption(limit.means, limit.assumes) for n, limit in found.items()}
    notes[key] = remarks({n: reasons[n] for n in kinds})
    if all(limit.value is None for limit in found.values()):
        return None
    return {n: found[n].value if n in found else None for n in kinds}
