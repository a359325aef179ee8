"""The families of questions, and which of them a numbered system is asked."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from tests.adversary import (
    boxes,
    conservation,
    equivalence,
    existence,
    flows,
    forms,
    identifiability,
    lipschitz,
    preflight,
    responses,
    state_conditions,
    states,
    steps,
)
from tests.adversary.drawing import draw
from tests.adversary.outcome import Question
from tests.adversary.systems import Drawn

FAMILIES: dict[str, ModuleType] = {
    m.FAMILY: m
    for m in (
        lipschitz, boxes, steps, existence, equivalence, identifiability, conservation, responses, flows, preflight,
        states, state_conditions, forms,
    )
}  # fmt: skip

#: Share of the systems that are pairs made for `equivalent`.
PAIRS = 0.08
#: Share of the systems that are made for the conditions of steady states.
CONDITIONS = 0.05
#: Share of the systems that are asked about in two forms.
FORMS = 0.03
#: How often a question is chosen, by what its answer costs; 1 where not named.
WEIGHTS = {"preflight": 0.3, "existence": 0.7, "reaction_flow": 0.6, "step_limit": 1.5, "invariant_box": 0.8}


def planned(seed: int, index: int, families: tuple[str, ...] = (), count: int = 4) -> tuple[Drawn, list[Question]]:
    """System number `index` of a run and its questions, some of all that apply.

    Args:
        seed: seed of the run.
        index: number of the system.
        families: the families to ask; all where empty.
        count: the number of questions put to one system.
    """
    rng = np.random.default_rng([seed, index])
    wanted = families or tuple(FAMILIES)
    further = np.random.default_rng([seed, index, 1])
    if state_conditions.FAMILY in wanted and (len(wanted) == 1 or further.random() < CONDITIONS):
        return state_conditions.draw(further)
    share = rng.random() if equivalence.FAMILY in wanted else 0.5
    if share < PAIRS:
        drawn, question = equivalence.drawn_pair(rng)
        return drawn, [question]
    if wanted == (forms.FAMILY,) or (forms.FAMILY in wanted and share > 1 - FORMS):
        return forms.drawn_pair(rng, count)
    possible: list[Question] = []
    while not possible:
        drawn = draw(rng)
        possible = [q for name in wanted for q in FAMILIES[name].questions(drawn, rng)]
    weights = np.array([WEIGHTS.get(q.name, 1.0) for q in possible])
    chosen = rng.choice(len(possible), min(count, len(possible)), replace=False, p=weights / weights.sum())
    return drawn, [possible[i] for i in sorted(chosen)]


def check(drawn: Drawn, question: Question, answer: Any, seed: int, index: int) -> str | None:
    """A witness against an answer, or None; the same on every run."""
    rng = np.random.default_rng([seed, index, list(FAMILIES).index(question.family)])
    return FAMILIES[question.family].check(drawn, question, answer, rng)
