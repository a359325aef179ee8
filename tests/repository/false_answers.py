"""What the adversary has against an answer that a test makes up."""

from __future__ import annotations

from typing import Any

from tests.adversary import suite
from tests.adversary.answers import Bound
from tests.adversary.outcome import Question
from tests.repository.drawn_system import drawn


def witness(text: str, name: str, answer: Any, tries: int = 3, **arguments: Any) -> str | None:
    """What the adversary has against an answer, over a few seeds."""
    question = Question(FAMILY_OF[name], name, arguments)
    found = (suite.check(drawn(text), question, answer, 1, i) for i in range(tries))
    return next(filter(None, found), None)


FAMILY_OF = {
    "lipschitz_global": "lipschitz", "lipschitz_local": "lipschitz", "one_sided": "lipschitz", "invariant_box": "boxes",
    "step_limit": "steps", "existence": "existence", "equivalent": "equivalence", "identify": "identifiability",
    "conserved": "conservation", "energy_law": "conservation", "response": "responses", "symbol": "responses",
    "classify": "responses", "fastest_frequency": "responses", "growth_rate": "responses", "reaction_flow": "flows",
    "preflight": "preflight", "steady_states": "states",
}  # fmt: skip
DIFFUSION = "-alpha*L@H"
FISHER = "-alpha*L@H + beta*H*(1 - H)"
ALLEN_CAHN = "-alpha*L@H + beta*H*(1 - H**2)"
BLUR = "-alpha*L@H + beta*(A@H - A@A@H)"
SOURCE = "-alpha*L@H + beta*H0"
MASKED = "-L@H + M*H**2"
TANH = "-alpha*L@H + tanh(H) - beta*H"


def bound(value: str | None, exact: bool = False) -> Bound:
    return Bound(value, exact, "")
