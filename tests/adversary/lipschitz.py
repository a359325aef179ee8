"""Lipschitz and one-sided constants: sampled Jacobians must respect them, exact ones must nearly be reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from tests.adversary import formulas, graphs
from tests.adversary.answers import Bound
from tests.adversary.outcome import Question
from tests.adversary.systems import Drawn, Field

FAMILY = "lipschitz"
Array = np.ndarray
Random = np.random.Generator

NORMALISATIONS = ("symmetric", "row", "column")
CASES = 14
#: Part of the size of f by which a supremum may be missed on the graphs that are searched.
SLACK = 0.03


def questions(drawn: Drawn, rng: Random) -> list[Question]:
    names = ("lipschitz_global", "lipschitz_local", "one_sided")
    return [Question(FAMILY, n, {"normalisation": str(rng.choice(NORMALISATIONS, p=(0.5, 0.35, 0.15)))}) for n in names]


def norm(jacobian: Array, normalisation: str) -> float:
    """The matrix norm that belongs to the normalisation: 2, inf or 1."""
    order = {"symmetric": 2, "row": np.inf, "column": 1}[normalisation]
    return float(np.linalg.norm(jacobian, order))


def logarithmic_norm(jacobian: Array, normalisation: str) -> float:
    """lim (|I + e J| - 1)/e: the fastest separation of two solutions."""
    if normalisation == "symmetric":
        return float(np.linalg.eigvalsh((jacobian + jacobian.T) / 2)[-1])
    diagonal = np.diag(jacobian)
    axis = 1 if normalisation == "row" else 0
    return float((diagonal + np.abs(jacobian).sum(axis) - np.abs(diagonal)).max())


def matrix_norm(matrix: Array, normalisation: str) -> float:
    """Norm of X -> X W in the entries of X."""
    return norm(np.asarray(matrix).T, normalisation)


def bound_at(text: str, field: Field, radius: float, channel: int) -> float:
    """The claimed constant in one channel; node coefficients by their largest modulus, s the largest row sum."""
    numbers: dict[str, Any] = {"R": radius, "s": float(field.matrix.sum(1).max())}
    for name, kind in field.drawn.kinds:
        value = np.asarray(field.values[name])
        if kind == "matrix":
            numbers[f"norm_{name}"] = matrix_norm(value, field.normalisation)
        elif kind == "node":
            numbers[name] = float(np.abs(value).max()) * (-1 if value.max() <= 0 else 1)
        else:
            numbers[name] = float(value if kind == "scalar" else value[channel])
    return float(np.real(formulas.evaluate(text, numbers)))


def check(drawn: Drawn, question: Question, answer: Bound, rng: Random) -> str | None:
    """A witness against the answer, or None."""
    normalisation = question.arguments["normalisation"]
    measure = logarithmic_norm if question.name == "one_sided" else norm
    local = question.name == "lipschitz_local"
    if answer.value is None:
        return None if local else _bounded_after_all(drawn, normalisation, measure, rng)
    for _ in range(CASES):
        graph = graphs.draw(rng, normalisation)
        channels = 2 if drawn.has("channel", "matrix") else 1
        field = Field(drawn, graph, normalisation, drawn.values(rng, graph.nodes, channels), channels)
        radius = float(np.exp(rng.uniform(-2, 2)))
        claimed = max(bound_at(answer.value, field, radius, c) for c in range(channels))
        if claimed == np.inf:
            witness = None if channels > 1 else _stays_bounded(drawn, normalisation, measure, field.values)
            if witness:
                return witness
            continue
        for state, initial in _states(rng, (graph.nodes, channels), radius if local else None):
            witness = _exceeds(field, state, initial, measure, claimed, radius)
            if witness:
                return witness
    return _reached(drawn, question, answer, rng) if answer.exact and not drawn.has("node", "matrix") else None


def _states(rng: Random, shape: tuple[int, int], radius: float | None) -> list[tuple[Array, Array]]:
    """States and initial states in the box |h| <= R, or of any size."""
    found = []
    for kind in range(4):
        size = radius if radius is not None else float(np.exp(rng.uniform(-4, 5)))
        entries = [
            rng.uniform(-1, 1, shape),
            rng.choice([-1.0, 1.0], shape),
            np.full(shape, rng.uniform(-1, 1)),
            np.full(shape, rng.choice([-1.0, 1.0])),
        ][kind]
        found.append((size * entries, size * rng.uniform(-1, 1, shape)))
    return found


def _exceeds(field: Field, state: Array, initial: Array, measure: Any, claimed: float, radius: float) -> str | None:
    jacobian = field.jacobian(state, initial)
    if not np.isfinite(jacobian).all():
        return None
    found = measure(jacobian, field.normalisation)
    if found <= claimed + 1e-7 * (1 + abs(claimed) + np.abs(jacobian).max()):
        return None
    exact = field.jacobian(state.astype(np.longdouble), initial.astype(np.longdouble))
    if found <= claimed + 100 * state.size * float(np.abs(jacobian - exact).max()):
        return None  # rounding
    return f"the Jacobian reaches {found:.9g} > {claimed:.9g}; R = {radius}, H = {state.tolist()}, H0 = {initial.tolist()}, {field.told()}"  # noqa: E501


def _search_graph(normalisation: str) -> graphs.Graph:
    """Where suprema over graphs are nearly reached: a long even cycle, or a long directed one."""
    return graphs.cycle(60) if normalisation == "symmetric" else graphs.directed_cycle(9)


def _places(local: bool, radius: float) -> Array:
    return radius * np.linspace(-1, 1, 61) if local else np.sinh(np.linspace(-9, 9, 121))


def _reached(drawn: Drawn, question: Question, answer: Bound, rng: Random) -> str | None:
    """Constant states on long cycles must come close to a constant that is called exact."""
    local = question.name == "lipschitz_local"
    normalisation = question.arguments["normalisation"]
    graph = _search_graph(normalisation)
    for _ in range(2):
        field = Field(drawn, graph, normalisation, drawn.values(rng, graph.nodes))
        radius = float(np.exp(rng.uniform(-1, 2)))
        assert answer.value is not None
        claimed = bound_at(answer.value, field, radius, 0)
        best, size = _largest(field, question.name == "one_sided", _places(local, radius))
        if best < claimed - SLACK * (abs(claimed) + size) - 1e-9:
            return f"called exact at {claimed:.9g}, but constant states reach {best:.9g}; R = {radius}, {field.told()}"
    return None


def _largest(field: Field, one_sided: bool, places: Array) -> tuple[float, float]:
    """The largest measure over constant states, and the size of the Jacobian at rest."""

    def value(h: float) -> float:
        column = field.column(np.full((field.graph.nodes, 1), h))
        return _circulant(column, field.normalisation, one_sided) if np.isfinite(column).all() else -np.inf

    values = np.array([value(h) for h in places])
    best = int(values.argmax())
    low, high = places[max(best - 1, 0)], places[min(best + 1, len(places) - 1)]
    refined = minimize_scalar(lambda h: -value(float(h)), bounds=(low, high), method="bounded", options={"maxiter": 20})
    rest = field.column(np.zeros((field.graph.nodes, 1)))
    size = _circulant(rest, field.normalisation, False) if np.isfinite(rest).all() else 0.0
    return max(float(values[best]), -float(refined.fun)), size


def _circulant(column: Array, normalisation: str, one_sided: bool) -> float:
    """Norm or logarithmic norm of the matrix whose columns are the shifts of one: all nodes of a cycle are alike."""
    if normalisation == "symmetric":
        spectrum = np.fft.fft(column)
        return float((spectrum.real if one_sided else np.abs(spectrum)).max())
    rest = float(np.abs(column[1:]).sum())
    return rest + float(column[0] if one_sided else abs(column[0]))


def _bounded_after_all(drawn: Drawn, normalisation: str, measure: Any, rng: Random) -> str | None:
    """ "No finite constant" is refuted where slopes stop growing with the state and near 0."""
    tried = (_stays_bounded(drawn, normalisation, measure, drawn.values(rng, 2)) for _ in range(3))
    return next(filter(None, tried), None)


def _stays_bounded(drawn: Drawn, normalisation: str, measure: Any, values: Mapping[str, Any]) -> str | None:
    """Slopes on an edge beside an isolated node that do not grow, a mask being 1."""
    directions = (np.array([[1.0], [1.0], [1.0]]), np.array([[-1.0], [-1.0], [-1.0]]), np.array([[1.0], [-1.0], [0.0]]))
    shapes = {"scalar": (), "channel": (1,), "node": (3, 1), "matrix": (1, 1)}
    numbers = {n: np.full(shapes[k], 1.0 if n == "M" else float(np.ravel(values[n])[0])) for n, k in drawn.kinds}
    field = Field(drawn, graphs.with_isolated(graphs.pair()), normalisation, numbers)
    found = []
    for size in (1e-9, 1e1, 1e3, 1e5):
        jacobians = [field.jacobian(size * d) for d in directions]
        finite = all(np.isfinite(j).all() for j in jacobians)
        found.append(max(measure(j, normalisation) for j in jacobians) if finite else np.inf)
    if max(found) < 3 * abs(found[1]) + 1:
        return f"said to be unbounded, but stays near {found} on |h| up to 1e5; {field.told()}"
    return None
