"""Everything the package can say about one system, as one object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from rdgraph.decisions.condition_words import in_words
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.html_tables import html_table
from rdgraph.identifiability.question import identify
from rdgraph.normalisations.registry import find_normalisation
from rdgraph.reports.answer_tables import attempted, constants, remarks, rendered, steps, where_known, with_assumption
from rdgraph.reports.field_regularity import existence_note
from rdgraph.reports.field_summary import field_answers, field_method
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.conservation import energy_law, single_mean
from rdgraph.theory.filters import classify, fastest_frequency, response, symbol
from rdgraph.theory.global_existence import existence
from rdgraph.theory.invariant_boxes import single_box
from rdgraph.theory.lipschitz import lipschitz_global, lipschitz_local, one_sided
from rdgraph.theory.method_choice import MethodChoice, choose_method

#: What is asked about unless others are named.
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
    method: MethodChoice

    def _repr_html_(self) -> str:
        rows = [(key, self.words[key], self.notes.get(key, "")) for key in self.answers if key != "text"]
        rows += [("method", self.method.method, self.method.reason), ("energy law", self.energy, "")]
        return html_table(repr(self.system), rows)

    def to_dict(self) -> dict[str, Any]:
        """One flat object: strings sympy can read, None where a question does not apply, explained under `notes`."""
        return {**self.answers, "notes": dict(self.notes)}


def analyse(source: System | str, normalisations: Sequence[str] = NORMALISATIONS) -> Analysis:
    """Answer every question about a system.

    Args:
        source: the system, a name of the catalogue or a line of text.
        normalisations: for which bounds, boxes and step limits are asked.

    Returns:
        The answers, with notes on what is missing or conditional, and the method that fits the system.

    Raises:
        LanguageError: the text is no equation.
        UnknownName: there is no such normalisation.

    >>> analyse("FB").answers["identifiable"]
    ['alpha - beta']
    """
    system = parse(source)
    kinds = tuple(find_normalisation(name).name for name in normalisations)
    if not system.is_single:
        return _of_fields(system, kinds)
    notes: dict[str, str] = {}
    lives = existence(system)
    known = identify(system)
    found: dict[str, Any] = {
        "text": str(system),
        "latex": system.latex(),
        "linear": system.structure.linear,
        "has_source": system.structure.has_source,
        "symbol": attempted("symbol", lambda: symbol(system), notes),
        "response_exact": attempted("response_exact", lambda: response(system), notes),
        "lipschitz_global": constants("lipschitz_global", lipschitz_global, system, kinds, notes),
        "lipschitz_local": constants("lipschitz_local", lipschitz_local, system, kinds, notes),
        "one_sided": constants("one_sided", one_sided, system, kinds, notes),
        "existence": lives.status,
        "invariant_box": _boxes(system, kinds, notes),
        "step_limit_euler": steps("step_limit_euler", "euler", system, kinds, notes),
        "step_limit_rk4": steps("step_limit_rk4", "rk4", system, kinds, notes),
        "identifiable": list(known.combinations),
        "conserved": _conserved(system, notes),
    }
    notes["existence"] = existence_note(lives)
    notes["identifiable"] = known.note
    if system.coefficients and any(k in ("channel", "node") for k in system.coefficients.values()):
        notes["coefficients"] = "answers hold per channel; node coefficients enter bounds by their largest modulus"
    return Analysis(
        system, rendered(found, str), rendered(found, in_words), {k: v for k, v in notes.items() if v},
        _classes(system), _fastest(system), tuple(map(str, lives.blow_ups)), _energy(system), lives.reason,
        choose_method(system, normalisation=kinds[0] if kinds else NORMALISATIONS[0]),
    )  # fmt: skip


def _conserved(system: System, notes: dict[str, str]) -> dict[str, str] | None:
    """The weights of the conserved mean by normalisation, None where there is none or nothing is known."""
    try:
        found = single_mean(system)
    except Undecided as problem:
        notes["conserved"] = f"undecided: {problem}"
        return None
    if not found.exists:
        notes["conserved"] = f"no weighted mean is constant: its rate is the mean of {found.rate}"
        return None
    notes["conserved"] = "sum_i w_i H_i is constant, w in terms of the degree d; " + "; ".join(
        f"{n}: {assumed}" for n, assumed in found.assumes.items()
    )
    return found.weights


def _of_fields(system: System, kinds: Sequence[str]) -> Analysis:
    """The analysis of several fields, or of one beyond dH/dt = f(H)."""
    answers, words, notes = field_answers(system, kinds)
    lives, method = existence(system), field_method(system, kinds[0] if kinds else NORMALISATIONS[0])
    energy = "not applicable: the energy law is that of one field"
    return Analysis(
        system, answers, words, notes, (), None, tuple(map(str, lives.blow_ups)), energy, lives.reason, method
    )


def _boxes(
    system: System, kinds: Sequence[str], notes: dict[str, str]
) -> dict[str, list[sp.Expr | None] | None] | None:
    found, reasons = where_known(kinds, lambda n: single_box(system, n))
    reasons |= {n: with_assumption(b.note, b.assumes) for n, b in found.items()}
    notes["invariant_box"] = remarks({n: reasons[n] for n in kinds})
    if not any(b.exists for b in found.values()):
        return None
    return {n: [found[n].lower, found[n].upper] if n in found and found[n].exists else None for n in kinds}


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
