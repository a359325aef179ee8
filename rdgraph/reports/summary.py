"""Everything the package can say about one system, as one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy as sp

from rdgraph.decisions.condition_words import in_words
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.identifiability.question import identify
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.conservation import conserved, energy_law
from rdgraph.theory.filters import classify, fastest_frequency, response, symbol
from rdgraph.theory.global_existence import Existence, existence
from rdgraph.theory.invariant_boxes import invariant_box
from rdgraph.theory.lipschitz import Constant, lipschitz_global, lipschitz_local, one_sided
from rdgraph.theory.step_limits import step_limit

NORMALISATIONS = ("symmetric", "row")


@dataclass(frozen=True)
class Analysis:
    """Answers under fixed keys, as strings for sympy and in words, and notes on what is missing or conditional."""

    system: System
    answers: dict[str, Any]
    words: dict[str, Any]
    notes: dict[str, str]
    filter_classes: tuple[str, ...]
    fastest: str | None
    blow_ups: tuple[str, ...]
    energy: str
    existence_reason: str

    def to_dict(self) -> dict[str, Any]:
        """One flat object: strings sympy can read, None where a question does not apply, explained under `notes`."""
        return {**self.answers, "notes": dict(self.notes)}


def analyse(source: System | str) -> Analysis:
    """Answer every question about a system.

    >>> analyse("FB").answers["identifiable"]
    ['alpha - beta']
    """
    system = parse(source)
    notes: dict[str, str] = {}
    lives = existence(system)
    known = identify(system)
    found: dict[str, Any] = {
        "text": str(system),
        "latex": system.latex(),
        "linear": system.structure.linear,
        "has_source": system.structure.has_source,
        "symbol": _attempt("symbol", lambda: symbol(system), notes),
        "response_exact": _attempt("response_exact", lambda: response(system), notes),
        "lipschitz_global": _constants("lipschitz_global", lipschitz_global, system, notes),
        "lipschitz_local": _constants("lipschitz_local", lipschitz_local, system, notes),
        "one_sided": _constants("one_sided", one_sided, system, notes),
        "existence": lives.status,
        "invariant_box": _boxes(system, notes),
        "step_limit_euler": _steps("step_limit_euler", "euler", system, notes),
        "step_limit_rk4": _steps("step_limit_rk4", "rk4", system, notes),
        "identifiable": list(known.combinations),
        "conserved": conserved(system).weights or None,
    }
    notes["existence"] = _existence_note(lives)
    notes["identifiable"] = known.note
    if found["conserved"] is None:
        notes["conserved"] = f"no weighted mean is constant: its rate is the mean of {conserved(system).rate}"
    else:
        notes["conserved"] = "sum_i w_i H_i is constant, w in terms of the degree d; " + "; ".join(
            f"{n}: {assumed}" for n, assumed in conserved(system).assumes.items()
        )
    if system.coefficients and any(k in ("channel", "node") for k in system.coefficients.values()):
        notes["coefficients"] = "answers hold per channel; node coefficients enter bounds by their largest modulus"
    return Analysis(
        system, _rendered(found, str), _rendered(found, in_words), {k: v for k, v in notes.items() if v},
        _classes(system), _fastest(system), tuple(map(str, lives.blow_ups)), _energy(system), lives.reason,
    )  # fmt: skip


def _existence_note(lives: Existence) -> str:
    return "; ".join([lives.reason, *map(str, lives.blow_ups)])


def _rendered(value: Any, show: Callable[[sp.Basic], str]) -> Any:
    """Every expression inside an answer as text."""
    match value:
        case dict():
            return {k: _rendered(v, show) for k, v in value.items()}
        case list():
            return [_rendered(v, show) for v in value]
        case sp.Basic():
            return show(value)
    return value


def _attempt(key: str, question: Callable[[], sp.Expr], notes: dict[str, str]) -> sp.Expr | None:
    try:
        return question()
    except (NotApplicable, Undecided) as reason:
        notes[key] = str(reason)
        return None


def _remarks(texts: dict[str, str]) -> str:
    """Notes per normalisation, said once where they agree."""
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{n}: {text}" for n, text in texts.items() if text)


def _constants(
    key: str, question: Callable[[System, str], Constant], system: System, notes: dict[str, str]
) -> dict[str, sp.Expr | None] | None:
    found = {n: question(system, n) for n in NORMALISATIONS}
    notes[key] = _remarks({n: c.note for n, c in found.items()})
    if all(c.value is None for c in found.values()):
        return None
    return {n: c.value for n, c in found.items()}


def _with_assumption(note: str, assumes: str) -> str:
    return f"{note}; assumes: {assumes}" if assumes else note


def _boxes(system: System, notes: dict[str, str]) -> dict[str, list[sp.Expr | None] | None] | None:
    found = {n: invariant_box(system, n) for n in NORMALISATIONS}
    notes["invariant_box"] = _remarks({n: _with_assumption(b.note, b.assumes) for n, b in found.items()})
    if not any(b.exists for b in found.values()):
        return None
    return {n: [b.lower, b.upper] if b.exists else None for n, b in found.items()}


def _steps(key: str, method: str, system: System, notes: dict[str, str]) -> dict[str, sp.Expr | None] | None:
    found = {n: step_limit(system, method, n) for n in NORMALISATIONS}
    notes[key] = _remarks({n: _with_assumption(limit.means, limit.assumes) for n, limit in found.items()})
    if all(limit.value is None for limit in found.values()):
        return None
    return {n: limit.value for n, limit in found.items()}


def _classes(system: System) -> tuple[str, ...]:
    try:
        return tuple(map(str, classify(system)))
    except (NotApplicable, Undecided):
        return ()


def _fastest(system: System) -> str | None:
    try:
        return in_words(fastest_frequency(system))
    except (NotApplicable, Undecided):
        return None


def _energy(system: System) -> str:
    law = energy_law(system)
    return f"{law.text}; {law.decays}"
