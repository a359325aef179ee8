"""Closed reaction flows against the integrated scalar equation."""

from __future__ import annotations

import numpy as np

from tests.adversary import formulas, graphs
from tests.adversary.answers import Flow
from tests.adversary.boxes import numbers
from tests.adversary.integration import follow
from tests.adversary.outcome import Question
from tests.adversary.systems import Drawn, Field

FAMILY = "flows"
Random = np.random.Generator
CASES = 8


def questions(drawn: Drawn, rng: Random) -> list[Question]:
    if drawn.recipe not in ("reaction", "damped", "bare reaction", "usual", "linear") or drawn.has_source:
        return []
    return [Question(FAMILY, "reaction_flow")]


def check(drawn: Drawn, question: Question, answer: Flow, rng: Random) -> str | None:
    """A witness against the answer, or None."""
    for _ in range(CASES):
        field = Field(drawn, graphs.pair(), "row", drawn.values(rng, 2))
        start = float(rng.normal() * np.exp(rng.uniform(-1, 1))) if rng.random() < 0.85 else float(rng.integers(-1, 2))
        for end in (0.3, 1.0):
            end *= float(np.exp(rng.uniform(-1, 1)))
            path = follow(field, np.full((2, 1), start), end, bound=1e3)
            if not path.finished:
                continue
            letters = {**numbers(field, 1.0), "t": path.end, "h0": start}
            told = next((formulas.evaluate(e, letters) for c, e in answer.branches if formulas.holds(c, letters)), None)
            found = float(path.state[0])
            if told is None or isinstance(told, complex) or not abs(told - found) <= 1e-4 * (1 + abs(found)):
                return f"h({path.end:.9g}) = {found:.9g} from h0 = {start}, told {told}; {field.told()}"
    return None
