"""Spectral answers: symbols, responses, filter classes and extrema against dense matrices and fine grids."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import expm

from tests.adversary import formulas, graphs, methods
from tests.adversary.answers import Classes, Formula
from tests.adversary.boxes import numbers
from tests.adversary.outcome import Question
from tests.adversary.systems import Drawn, Field

FAMILY = "responses"
Array = np.ndarray
Random = np.random.Generator
CASES = 6
GRID = 1200


def questions(drawn: Drawn, rng: Random) -> list[Question]:
    if drawn.recipe not in ("linear", "usual", "sourced") or drawn.has("node", "matrix"):
        return []
    T = float(rng.choice([0.5, 1.0, 2.0, 1.3]))
    method = str(rng.choice(["exact", *methods.TABLEAUX]))
    step = None if method == "exact" else float(rng.choice([0.1, 0.25, 0.4, 1.0]))
    found = [Question(FAMILY, n) for n in ("symbol", "classify", "fastest_frequency", "growth_rate")]
    return [*found, Question(FAMILY, "response", {"T": T, "method": method, "step": step})]


def check(drawn: Drawn, question: Question, answer: Any, rng: Random) -> str | None:
    """A witness against the answer, or None."""
    match question.name:
        case "symbol":
            return _symbol(drawn, answer, rng)
        case "response":
            return _response(drawn, question, answer, rng)
        case "classify":
            return _classes(drawn, answer, rng)
    return _extreme(drawn, question, answer, rng)


def _field(drawn: Drawn, rng: Random, normalisation: str = "symmetric") -> Field:
    graph = graphs.draw(rng, normalisation, one_way=False)
    return Field(drawn, graph, normalisation, drawn.values(rng, graph.nodes))


def _modes(field: Field) -> tuple[Array, Array]:
    """Frequencies and eigenvectors of L = I - A, A symmetric."""
    return np.linalg.eigh(np.eye(field.graph.nodes) - field.matrix)


def _symbol(drawn: Drawn, answer: Formula, rng: Random) -> str | None:
    for _ in range(CASES):
        field = _field(drawn, rng)
        frequencies, vectors = _modes(field)
        told = np.array([formulas.evaluate(answer.text, {**numbers(field, 1.0), "lam": x}) for x in frequencies])
        matrix = field.generator()
        gap = np.abs(vectors @ np.diag(told) @ vectors.T - matrix).max()
        if gap > 1e-8 * (1 + np.abs(matrix).max()):
            return f"p(L) differs from the Jacobian by {gap:.6g}; {field.told()}"
    return None


def _response(drawn: Drawn, question: Question, answer: Formula, rng: Random) -> str | None:
    T, method, step = (question.arguments[k] for k in ("T", "method", "step"))
    for _ in range(CASES):
        field = _field(drawn, rng)
        frequencies, vectors = _modes(field)
        told = np.array([formulas.evaluate(answer.text, {**numbers(field, 1.0), "lam": x}) for x in frequencies])
        found = flow_matrix(field, T) if method == "exact" else stepped_matrix(field, T, method, step)
        gap = np.abs(vectors @ np.diag(told) @ vectors.T - found).max()
        if not gap <= 1e-6 * (1 + np.abs(found).max()):
            return f"the map H0 -> H(T) differs from the response by {gap:.6g}; {field.told()}"
    return None


def flow_matrix(field: Field, T: float) -> Array:
    """The matrix of H0 -> H(T) for H' = P H + Q H0."""
    n = field.graph.nodes
    generator = np.zeros((2 * n, 2 * n))
    generator[:n, :n] = field.generator()
    generator[:n, n:] = field.source_generator()
    flow = expm(T * generator)
    return flow[:n, :n] + flow[:n, n:]


def stepped_matrix(field: Field, T: float, method: str, step: float) -> Array:
    columns = []
    for unit in np.eye(field.graph.nodes):
        start = unit[:, None]
        columns.append(methods.run(method, lambda x, h=start: field(x, h), start, T, step)[:, 0])  # type: ignore[misc]
    return np.array(columns).T


def curve(field: Field) -> tuple[Array, Array, Array]:
    """p and q on a grid of [0, 2], from the rows of A^k on a long directed cycle: no answer of the tool is used."""
    n = 16
    line = Field(field.drawn, graphs.directed_cycle(n), "row", field.values)
    lam = np.linspace(0, 2, GRID + 1)
    p, q = (np.polyval(m[0, :8][::-1], 1 - lam) for m in (line.generator(), line.source_generator()))
    return lam, p, q


def _classes(drawn: Drawn, answer: Classes, rng: Random) -> str | None:
    for _ in range(2 * CASES):
        field = Field(drawn, graphs.pair(), "row", drawn.values(rng, 2))
        lam, p, q = curve(field)
        with np.errstate(all="ignore"):
            small = np.abs(p) < 1e-9
            gain = np.exp(p) + q * np.where(small, 1.0, np.expm1(p) / np.where(small, 1.0, p))
        kind, at, clear = _kind(lam, gain)
        letters = numbers(field, 1.0)
        told = [c for c in answer.classes if formulas.holds(c[0], letters)]
        if len(told) != 1:
            return f"{len(told)} of the conditions hold; {field.told()}"
        if clear and told[0][1] != kind:
            return f"told {told[0][1]}, the gain is {kind}; {field.told()}"
        if clear and told[0][2] is not None and at is not None:
            place = formulas.evaluate(told[0][2], letters)
            if isinstance(place, complex) or abs(place - at) > 0.01:
                return f"the extremum is at lam = {at:.4g}, told {place}; {field.told()}"
    return None


def _kind(lam: Array, gain: Array) -> tuple[str, float | None, bool]:
    """Class of a curve from the signs of its differences; not clear where a turn hides near an end."""
    steps = np.diff(gain)
    size = np.abs(gain).max()
    if np.abs(gain - gain[0]).max() < 1e-12 * size:
        return "all-pass", None, True
    if np.abs(gain - gain[0]).max() < 1e-7 * size:
        return "all-pass", None, False
    signs = np.sign(np.where(np.abs(steps) < 1e-14 * size, 0.0, steps))
    turns = signs[signs != 0]
    runs = [int(turns[0])] + [int(b) for a, b in pairwise(turns) if a != b]
    places = lam[1:][np.flatnonzero(np.diff(np.sign(steps)) != 0)] if len(runs) > 1 else np.array([])
    interior = len(runs) == 1 or (len(places) > 0 and places.min() > 0.05 and places.max() < 1.95)
    edges = np.abs(steps[[0, -1]]).min() > 1e-7 * size
    kinds = {(1,): "high-pass", (-1,): "low-pass", (1, -1): "band-pass", (-1, 1): "band-stop"}
    at = float(places[0]) if len(runs) == 2 and len(places) else None
    separated = len(places) < 2 or bool(np.diff(np.sort(places)).min() > 0.05)
    return kinds.get(tuple(runs), "multi-band"), at, bool(interior and edges and separated)


def _extreme(drawn: Drawn, question: Question, answer: Formula, rng: Random) -> str | None:
    """max p over [0, 2] and where it is."""
    for _ in range(2 * CASES):
        field = Field(drawn, graphs.pair(), "row", drawn.values(rng, 2))
        lam, p, _ = curve(field)
        told = formulas.evaluate(answer.text, numbers(field, 1.0))
        if isinstance(told, complex) or not np.isfinite(told):
            return f"the answer is {told}; {field.told()}"
        size = 1 + np.abs(p).max()
        if question.name == "growth_rate":
            if not -1e-8 * size <= told - p.max() <= 1e-4 * size:
                return f"max p = {p.max():.9g} on a grid, told {told:.9g}; {field.told()}"
        elif not -1e-9 <= told <= 2 + 1e-9 or np.interp(told, lam, p) < p.max() - 1e-4 * size:
            return f"p is largest at lam = {lam[p.argmax()]:.6g}, told {told}; {field.told()}"
    return None
