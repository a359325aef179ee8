"""Invariant boxes: on the faces the field must not point outwards, whatever the other entries are."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from tests.adversary import escapes, formulas, graphs
from tests.adversary.answers import Box
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
        elif kind == "node" and name != "M":  # a formula holds node by node, for the largest coefficient as well
            found[name] = float(value.max())
    return found


def check(drawn: Drawn, question: Question, answer: Box, rng: Random) -> str | None:
    """A witness against the answer, or None."""
    normalisation = question.arguments["normalisation"]
    attacks = []
    if answer.left:
        attacks.append(lambda: _not_left(drawn, normalisation, answer, rng))
    if answer.lower is not None:
        attacks.append(lambda: _not_kept(drawn, normalisation, answer, rng))
    if "elsewhere no box" in answer.note:
        attacks.append(lambda: _kept_elsewhere(drawn, normalisation, answer, rng))
    if answer.regular is not None:
        attacks.append(lambda: _not_kept_on_regular(drawn, answer, rng))
    return next((witness for attack in attacks if (witness := attack())), None)


def _not_kept(drawn: Drawn, normalisation: str, answer: Box, rng: Random) -> str | None:
    """A state on the faces that leaves, for coefficients that satisfy the condition."""
    tried = 0
    for _ in range(40 * CASES):
        graph = graphs.draw(
            rng, normalisation, isolated="without incoming edges" not in answer.assumes or rng.random() < 0.5
        )
        field = Field(drawn, graph, normalisation, drawn.values(rng, graph.nodes))
        letters = numbers(field, float(np.exp(rng.uniform(-2, 2))))
        letters["s"] = max(letters["s"], 1.0)
        if not formulas.holds(answer.where, letters):
            continue
        start = None if answer.start is None else tuple(formulas.evaluate(t, letters) for t in answer.start)
        for lower_text, upper_text in _told(answer, graph):
            lower, upper = (formulas.evaluate(t, letters) for t in (lower_text, upper_text))
            witness = _leaves(field, lower, upper, start, rng)
            if witness:
                return f"{witness}; box [{lower_text}, {upper_text}], R = {letters['R']}, {field.told()}"
        tried += 1
        if tried == CASES:
            break
    return None


def _not_left(drawn: Drawn, normalisation: str, answer: Box, rng: Random) -> str | None:
    """A box that is kept, or a solution that stays, for the coefficients that are told, else for any."""
    for _ in range(1 if answer.at else 3):
        values = {**drawn.values(rng, 1), **{name: formulas.evaluate(text, {}) for name, text in answer.at}}
        if answer.at and not drawn.assumed.satisfied({n: values[n] for n, k in drawn.kinds if k != "matrix"}):
            return f"the coefficients {dict(answer.at)} are not admissible"
        if drawn.has_source and escapes.feels_source(drawn, values, rng):
            alternating = "ends of one edge" in answer.note
            witness = escapes.stays_after_all(drawn, values, rng, told=bool(answer.at), alternating=alternating)
        else:
            witness = escapes.kept_after_all(drawn, normalisation, values, rng)
        if witness:
            return witness
    return None


def _kept_elsewhere(drawn: Drawn, normalisation: str, answer: Box, rng: Random) -> str | None:
    outside = (values for _ in range(4) if (values := escapes.violating(drawn, answer.where, rng)) is not None)
    tried = (escapes.kept_after_all(drawn, normalisation, values, rng) for values in outside)
    return next(filter(None, tried), None)


def _not_kept_on_regular(drawn: Drawn, answer: Box, rng: Random) -> str | None:
    assert answer.regular is not None
    for _ in range(CASES):
        regular = (graphs.pair(), graphs.cycle(int(rng.integers(3, 9))), graphs.complete(5))[int(rng.integers(3))]
        field = Field(drawn, regular, "symmetric", drawn.values(rng, regular.nodes))
        letters = numbers(field, float(np.exp(rng.uniform(-2, 2))))
        lower, upper = (formulas.evaluate(t, letters) for t in answer.regular)
        start = (-letters["R"], letters["R"]) if "R" in formulas.letters(answer.regular[1]) else None
        if answer.regular_start is not None:
            start = tuple(formulas.evaluate(t, letters) for t in answer.regular_start)
        witness = _leaves(field, lower, upper, start, rng)
        if witness:
            return f"{witness}; told for regular graphs, {field.told()}"
    return None


def _told(answer: Box, graph: graphs.Graph) -> list[tuple[str, str]]:
    """The boxes that are told for a graph."""
    assert answer.lower is not None
    assert answer.upper is not None
    if "without incoming edges" in answer.assumes and graph.has_isolated:
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
                speed = outward * field.precisely(state)[state == face]
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
