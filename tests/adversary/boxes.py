"""Invariant boxes: on the faces the field must not point outwards, whatever the other entries are."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from tests.adversary import formulas, graphs
from tests.adversary.answers import NOT_EVERYWHERE, Box
from tests.adversary.outcome import Question
from tests.adversary.systems import Drawn, Field

FAMILY = "boxes"
Array = np.ndarray
Random = np.random.Generator
CASES = 14


def questions(drawn: Drawn, rng: Random) -> list[Question]:
    return [Question(FAMILY, "invariant_box", {"normalisation": n}) for n in ("row", "symmetric")]


def numbers(field: Field, radius: float, channel: int = 0) -> dict[str, Any]:
    """Values for the letters of a formula in one channel."""
    found: dict[str, Any] = {"R": radius, "s": float(field.matrix.sum(1).max())}
    for name, kind in field.drawn.kinds:
        value = np.asarray(field.values[name])
        if kind in ("scalar", "channel"):
            found[name] = float(value if kind == "scalar" else value[channel])
    return found


def check(drawn: Drawn, question: Question, answer: Box, rng: Random) -> str | None:
    """A witness against the answer, or None."""
    normalisation = question.arguments["normalisation"]
    if answer.lower is None or answer.upper is None:
        return _kept_on_chains(drawn, rng) if NOT_EVERYWHERE in answer.note else _box_after_all(drawn, rng)
    for _ in range(CASES):
        graph = graphs.draw(rng, normalisation, isolated="without edges" not in answer.assumes or rng.random() < 0.5)
        field = Field(drawn, graph, normalisation, drawn.values(rng, graph.nodes))
        letters = numbers(field, float(np.exp(rng.uniform(-2, 2))))
        start = None if answer.start is None else tuple(formulas.evaluate(t, letters) for t in answer.start)
        for lower_text, upper_text in _told(answer, graph):
            lower, upper = (formulas.evaluate(t, letters) for t in (lower_text, upper_text))
            witness = _leaves(field, lower, upper, start, rng)
            if witness:
                return f"{witness}; box [{lower_text}, {upper_text}], R = {letters['R']}, {field.told()}"
    return None


def _told(answer: Box, graph: graphs.Graph) -> list[tuple[str, str]]:
    """The boxes that are told for a graph."""
    assert answer.lower is not None
    assert answer.upper is not None
    if "without edges" in answer.assumes and graph.has_isolated:
        return [] if answer.isolated is None else [answer.isolated]
    return [(answer.lower, answer.upper), *answer.others]


def _leaves(field: Field, lower: Any, upper: Any, start: Any, rng: Random) -> str | None:
    if isinstance(lower, complex) or isinstance(upper, complex) or not np.isfinite([lower, upper]).all():
        return f"the faces {lower}, {upper} are no real numbers"
    if lower > upper + 1e-12:
        return f"the lower face {lower} lies above the upper one {upper}"
    n = field.graph.nodes
    for _ in range(6):
        others = rng.choice([lower, upper], (n, 1)) if rng.random() < 0.7 else rng.uniform(lower, upper, (n, 1))
        if field.drawn.has_source:
            first, last = start or (lower, upper)
            initial = rng.choice([first, last], (n, 1)) if rng.random() < 0.7 else rng.uniform(first, last, (n, 1))
            witness = _integrated(field, initial, lower, upper)
            if witness:
                return witness
            continue
        for face, outward in ((lower, -1.0), (upper, 1.0)):
            state = others.copy()
            state[rng.integers(n)] = face
            speed = outward * field(state)[state == face]
            if (speed > 1e-7 * (1 + np.abs(speed).max() + abs(face))).any():
                return f"[{lower}, {upper}] is left with speed {speed.max():.6g} at H = {state.ravel().tolist()}"
    return None


def _integrated(field: Field, start: Array, lower: float, upper: float) -> str | None:
    """With a source the solution from H(0) = H0 itself decides."""
    shape = start.shape
    flow = solve_ivp(lambda _, y: field(y.reshape(shape), start).ravel(), (0, 2.0), start.ravel(), max_step=0.2)
    gap = max(lower - flow.y.min(), flow.y.max() - upper) if np.isfinite(flow.y).all() else np.inf
    if gap <= 1e-3 * (1 + abs(lower) + abs(upper)):
        return None
    return f"[{lower}, {upper}] is left by {gap:.6g} from H0 = {start.ravel().tolist()} within t = 2"


def _box_after_all(drawn: Drawn, rng: Random) -> str | None:
    """ "Leaves every box": refuted by an interval whose faces are kept on states equal in all nodes, H0 aside."""
    for _ in range(0 if drawn.has_source else 6):
        field = Field(drawn, graphs.pair(), "row", drawn.values(rng, 2))
        sizes = np.exp(np.linspace(-5, 6, 45))
        upper = [h for h in sizes if field(np.full((2, 1), h))[0, 0] < -1e-9]
        lower = [-h for h in sizes if field(np.full((2, 1), -h))[0, 0] > 1e-9]
        if upper and lower:
            return f"[{lower[0]:.6g}, {upper[0]:.6g}] is kept on states equal in all nodes; {field.told()}"
    return None


def _kept_on_chains(drawn: Drawn, rng: Random) -> str | None:
    """ "No box is kept on every graph": refuted by an interval that the first node of a directed chain never leaves.

    There A^k h is the entry of the k-th node after it, so that all averages are free.
    """
    chain = graphs.chain(6)
    for _ in range(3):
        field = Field(drawn, chain, "row", drawn.values(rng, chain.nodes))
        for _ in range(12):
            lower, upper = sorted(rng.choice([-1.0, 1.0], 2) * np.exp(rng.uniform(-2, 2, 2)))
            if upper - lower > 0.1 and not _leaves_first(field, lower, upper):
                return f"[{lower:.6g}, {upper:.6g}] is kept at the first node of a chain; {field.told()}"
    return None


def _leaves_first(field: Field, lower: float, upper: float) -> bool:
    for face, outward in ((lower, -1.0), (upper, 1.0)):
        for others in itertools.product((lower, upper), repeat=field.graph.nodes - 1):
            state = np.array([face, *others])[:, None]
            if outward * field(state)[0, 0] > 0:
                return True
    return False
