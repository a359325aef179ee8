"""What an analysis says of the regularity of several fields: constants, existence, rectangles, sums, coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rdgraph.errors import Undecided
from rdgraph.identifiability.question import identify
from rdgraph.reports.answer_tables import constants, remarks, steps, with_assumption
from rdgraph.systems.system import System
from rdgraph.theory.conservation import conserved
from rdgraph.theory.global_existence import Existence, existence
from rdgraph.theory.invariant_boxes import invariant_box
from rdgraph.theory.lipschitz import lipschitz_global, lipschitz_local, one_sided
from rdgraph.theory.several_fields.conserved_sums import ConservedSums
from rdgraph.theory.several_fields.rectangles import Rectangle


def regularity_answers(system: System, kinds: Sequence[str], notes: dict[str, str]) -> dict[str, Any]:
    """Answers by key, with notes on what is missing or conditional.

    >>> from rdgraph.systems.parser import parse
    >>> found = regularity_answers(parse("u' = -beta*u*(A@v); v' = beta*u*(A@v) - v"), ["row"], {})
    >>> found["existence"], found["starts"], found["nonnegative"]
    ('global', 'u, v >= 0', {'row': 'proved'})
    """
    lives = existence(system)
    notes["existence"] = existence_note(lives)
    known = identify(system)
    notes["identifiable"] = known.note
    notes["response_exact"] = "a gain of one number is that of one field; the symbol is a matrix here"
    boxes = _rectangles(system, kinds, notes)
    return {
        "response_exact": None,
        "lipschitz_global": constants("lipschitz_global", lipschitz_global, system, kinds, notes),
        "lipschitz_local": constants("lipschitz_local", lipschitz_local, system, kinds, notes),
        "one_sided": constants("one_sided", one_sided, system, kinds, notes),
        "existence": lives.status,
        "starts": lives.starts,
        "invariant_box": {n: dict(b.bounds) if b.exists and b.bounds else None for n, b in boxes.items()},
        "nonnegative": {n: b.nonnegative.status for n, b in boxes.items()},
        "step_limit_euler": steps("step_limit_euler", "euler", system, kinds, notes),
        "step_limit_rk4": steps("step_limit_rk4", "rk4", system, kinds, notes),
        "identifiable": list(known.combinations),
        "conserved": _sums(system, notes),
    }


def existence_note(lives: Existence) -> str:
    """The reason of an answer, from which starts it holds, and blow-ups."""
    starts = [f"from starts with {lives.starts}"] if lives.starts else []
    return "; ".join([lives.reason, *starts, *map(str, lives.blow_ups)])


def _rectangles(system: System, kinds: Sequence[str], notes: dict[str, str]) -> dict[str, Rectangle]:
    found = {n: box for n in kinds if isinstance(box := invariant_box(system, n), Rectangle)}
    notes["invariant_box"] = remarks({n: with_assumption(b.note, b.assumes) for n, b in found.items()})
    notes["nonnegative"] = remarks({n: b.nonnegative.note for n, b in found.items()})
    return found


def _sums(system: System, notes: dict[str, str]) -> list[dict[str, Any]] | None:
    """Conserved sums with their weights by normalisation; None where there are none, or where it is undecided."""
    try:
        found = conserved(system)
    except Undecided as problem:
        notes["conserved"] = f"undecided: {problem}"
        return None
    if not isinstance(found, ConservedSums) or not found.exists:
        notes["conserved"] = getattr(found, "note", "")
        return None
    notes["conserved"] = "; ".join([*map(str, found.sums), *([found.note] if found.note else [])])
    return [{"sum": one.text, "weights": dict(one.weights), "assumes": dict(one.assumes)} for one in found.sums]
