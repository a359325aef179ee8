"""Conserved sums by algebra, w^T f(H) = 0; the energy law is attacked in `energy`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.adversary import energy, formulas, graphs
from tests.adversary.answers import Conservation
from tests.adversary.outcome import Question
from tests.adversary.systems import Drawn, Field

FAMILY = "conservation"
Array = np.ndarray
Random = np.random.Generator
CASES = 12
KERNEL = {"symmetric": "sqrt(d)", "row": "d", "column": "1"}


def questions(drawn: Drawn, rng: Random) -> list[Question]:
    return [Question(FAMILY, "conserved"), Question(FAMILY, "energy_law")]


def check(drawn: Drawn, question: Question, answer: Any, rng: Random) -> str | None:
    """A witness against the answer, or None."""
    if question.name == "conserved":
        return _conserved(drawn, answer, rng)
    return energy.check(drawn, answer, rng)


def _drift(
    drawn: Drawn, normalisation: str, weight: str, rng: Random, *, alone: bool = True, **kind: bool
) -> tuple[float, str]:
    """w^T f(H) relative to its parts, on one graph; isolated nodes have the same weight, or none if not `alone`."""
    graph = graphs.draw(rng, normalisation, **kind)
    channels = 2 if drawn.has("matrix", "channel") else 1
    field = Field(drawn, graph, normalisation, drawn.values(rng, graph.nodes, channels), channels)
    state, initial = rng.normal(size=(2, graph.nodes, channels)) * np.exp(rng.uniform(-1, 1))
    degrees = [float(d) for d in graph.degree(normalisation)]
    w = np.array([float(formulas.evaluate(weight, {"d": d})) if d or alone else 0.0 for d in degrees])
    rate = field(state, initial)
    if not np.isfinite(rate).all():
        return 0.0, ""
    if np.abs(w @ rate).max() > 1e-9 * (1 + np.abs(state).max()):
        rate = field.precisely(state, initial)
    drift = np.abs(w @ rate).max() / (1e-12 + (w @ np.abs(rate)).max() + np.abs(state).max())
    return float(
        drift
    ), f"w^T f = {(w @ rate).tolist()} at H = {state.tolist()}, H0 = {initial.tolist()}, {field.told()}"


def _conserved(drawn: Drawn, answer: Conservation, rng: Random) -> str | None:
    if not answer.weights:
        return _conserved_after_all(drawn, rng)
    assumed = dict(answer.assumes)
    for normalisation, weight in answer.weights:
        one_way = "undirected" not in assumed.get(normalisation, "")
        alone = "weight is 0" not in assumed.get(normalisation, "")
        for _ in range(CASES):
            drift, told = _drift(drawn, normalisation, weight, rng, alone=alone, one_way=one_way)
            if drift > 1e-7:
                return told
    return None


def _conserved_after_all(drawn: Drawn, rng: Random) -> str | None:
    drifts = [_drift(drawn, "row", KERNEL["row"], rng, one_way=False) for _ in range(2 * CASES)]
    if max(d for d, _ in drifts) < 1e-11:
        return f"told that no weighted mean is constant, but w = d keeps it on {len(drifts)} random cases"
    return None
